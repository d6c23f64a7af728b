"""HTTP server: uvicorn without logs, with time limits on slow and idle connections."""

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from deniable.errors import InputError

HEAD_WITHIN = 15.0
"""Seconds after which a connection without the head of a next request is closed."""

READ_WITHIN = 120.0
"""Further seconds for a client that reads a response slowly."""

MOST_HEAD = 32 << 10
"""Most bytes of a request's head (address and headers), and of the trailer of a body."""

CONNECTIONS = 2048
"""Most concurrent requests; above it, status 503."""


class _TimedProtocol(HttpToolsProtocol):
    """HTTP with limits on the time and size of the head of a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unread = 0
        self._is_too_large = False
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        before = self._unread = self._unread + len(data)  # bytes not yet part of a head or body
        super().data_received(data)
        if self._unread == before > MOST_HEAD and not self.transport.is_closing():
            self._is_too_large = True
            self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        if not self._is_too_large:
            super().send_400_response(msg)
            return
        said = b"the head of the request is too large"
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n"
            b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)
        )
        self.transport.close()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        super().on_message_complete()

    def _expect_head(self) -> None:
        self._too_late = self.loop.call_later(HEAD_WITHIN, self._cut)

    def _cut(self) -> None:
        self.transport.close()  # after a pending response has been read
        self._too_late = self.loop.call_later(READ_WITHIN, self.transport.abort)

    def on_headers_complete(self) -> None:
        self._unread = 0
        head = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if head > MOST_HEAD:
            self._is_too_large = True
            raise ValueError("the head is too large")  # uvicorn responds by the method above
        self._too_late.cancel()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        another = bool(self.pipeline)  # its head was there before this answer
        super().on_response_complete()
        if not another:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._too_late.cancel()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """A server whose signals :func:`run` handles for all listeners."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def is_loopback(host: str) -> bool:
    """Whether an address is one of this machine's loopback addresses."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_listening(host: str, certificate: Path | None, key: Path | None, proxies: int) -> None:
    """Raise for an address beyond this machine without TLS."""
    if (certificate is None) != (key is None):
        raise InputError("--certificate and --key go together; give both")
    if proxies < 0:
        raise InputError(f"--behind-proxy is a number of proxies, not {proxies}")
    if certificate is None and proxies == 0 and not is_loopback(host):
        raise InputError(
            f"{host} is not a loopback address, and records would be sent unencrypted; give "
            "--certificate and --key, or --behind-proxy 1 if a proxy in front has TLS"
        )


def bound_socket(host: str, port: int, option: str = "--port") -> socket.socket:
    """Return a bound socket; port 0 takes a free one, ``option`` is named in errors."""
    if not 0 <= port <= 65535:
        raise InputError(f"{option} is a number from 0 to 65535, not {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            # On Windows SO_REUSEADDR would let two programs share a port.
            alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
            bound.setsockopt(socket.SOL_SOCKET, alone, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except UnicodeError:
        raise InputError(f"--host {host}: not a valid address") from None
    except OSError as error:
        raise InputError(
            f"port {port} of {host} cannot be used ({error.strerror or error}); choose another "
            f"with {option}"
        ) from None
    return bound


def server_for(
    app: ASGIApp, *, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Server:
    """Return a server without logs and without a Server header."""
    options: dict[str, Any] = {
        "http": _TimedProtocol,
        "ws": "none",
        "lifespan": "on",
        "log_config": None,
        "log_level": "critical",
        "access_log": False,
        "server_header": False,
        "date_header": True,
        "proxy_headers": False,
        "limit_concurrency": CONNECTIONS,
        "timeout_keep_alive": HEAD_WITHIN,
        "timeout_graceful_shutdown": 20,
    }
    if certificate is not None:
        options |= {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    config = uvicorn.Config(app, **options)
    try:
        config.load()
    except OSError as error:  # also for invalid contents of the files
        raise InputError(
            f"--certificate {certificate} and --key {key} cannot be used ("
            f"{error.strerror or error}); give two PEM files, a certificate and its own key"
        ) from None
    return _Server(config)


def run(servers: Sequence[tuple[uvicorn.Server, socket.socket]], ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; accepted requests are finished first."""

    async def together() -> None:
        def stop() -> None:
            for server, _ in servers:
                server.should_exit = True

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(number, stop)
            except NotImplementedError:  # on Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
        serving = [asyncio.create_task(server.serve(sockets=[bound])) for server, bound in servers]
        while not all(server.started for server, _ in servers):
            if any(task.done() for task in serving):
                break
            await asyncio.sleep(0.01)
        else:
            ready()
        await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
        stop()
        await asyncio.wait(serving)
        for task in serving:
            task.result()  # or raise its error

    factory = servers[0][0].config.get_loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(together())
