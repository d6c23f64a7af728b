"""Listening: uvicorn without logs, with connections that are slow or idle cut."""

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
"""Seconds after which a connection is cut that has not sent the head of its next request."""

READ_WITHIN = 120.0
"""Seconds after that in which an answer still goes to somebody who reads it slowly."""

MOST_HEAD = 32 << 10
"""Bytes that a request's head may have, its address and headers; and that of a body's end."""

CONNECTIONS = 2048
"""Requests at a time; more are told to come back."""


class _TimedProtocol(HttpToolsProtocol):
    """HTTP on a connection that has to say soon, and in few bytes, what it wants."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unread = 0
        self._is_too_large = False
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        before = self._unread = self._unread + len(data)  # of what is neither a head yet nor a body
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
        self.transport.close()  # when what was answered is with whoever reads slowly
        self._too_late = self.loop.call_later(READ_WITHIN, self.transport.abort)

    def on_headers_complete(self) -> None:
        self._unread = 0
        head = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if head > MOST_HEAD:
            self._is_too_large = True
            raise ValueError("the head is too large")  # which uvicorn answers by the method above
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
    """A server whose signals are handled for all listeners together, by :func:`run`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_listening(host: str, certificate: Path | None, key: Path | None, proxies: int) -> None:
    """Refuse to listen beyond this machine without TLS."""
    if (certificate is None) != (key is None):
        raise InputError("--certificate and --key go together; give both")
    if proxies < 0:
        raise InputError(f"--behind-proxy is a number of proxies, not {proxies}")
    if certificate is None and proxies == 0 and not is_loopback(host):
        raise InputError(
            f"{host} is not this machine alone, and answers would be open on the way; give "
            "--certificate and --key, or --behind-proxy 1 if a proxy in front has TLS"
        )


def bound_socket(host: str, port: int, option: str = "--port") -> socket.socket:
    """Take an address; port 0 takes any that is free, and ``option`` chooses another."""
    if not 0 <= port <= 65535:
        raise InputError(f"{option} is a number from 0 to 65535, not {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            # On Windows the usual option would let two programs have one port.
            alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
            bound.setsockopt(socket.SOL_SOCKET, alone, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except UnicodeError:
        raise InputError(f"--host {host}: this is not the address of a machine") from None
    except OSError as error:
        raise InputError(
            f"port {port} of {host} cannot be used ({error.strerror or error}); choose another "
            f"with {option}"
        ) from None
    return bound


def server_for(
    app: ASGIApp, *, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Server:
    """Return a server that logs nothing and names nothing."""
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
    except OSError as error:  # also of what is in the files
        raise InputError(
            f"--certificate {certificate} and --key {key} cannot be used ("
            f"{error.strerror or error}); give two PEM files, a certificate and its own key"
        ) from None
    return _Server(config)


def run(servers: Sequence[tuple[uvicorn.Server, socket.socket]], ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; what was accepted is finished first."""

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
            task.result()  # or why it ended

    factory = servers[0][0].config.get_loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(together())
