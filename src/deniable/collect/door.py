"""Access control of a local page: the user with the secret address, and no other site.

A foreign website cannot use the browser to reach the page: the Host header must be a loopback name
or address (against DNS rebinding), cross-site requests are rejected, and the cookie is
SameSite=Strict. Requests that change something, or make files, are POSTs with a token from the
page's forms.
"""

import hmac
from hashlib import sha256
from urllib.parse import parse_qs

import numpy as np
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from deniable.collect.page import HEADERS
from deniable.randomness import SystemRandomness


def new_secret() -> str:
    """Return a secret of 256 bits, in hexadecimal."""
    return SystemRandomness().bits(np.uint64, 4).tobytes().hex()


class Door:
    """Access by the secret."""

    def __init__(
        self,
        port: int,
        secret: str,
        name: str,
        policy: str,
        longest_form: int = 10_000,
        token: str = "",
    ) -> None:
        self._hosts = {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}
        self._secret, self._cookie, self._longest_form = secret, name, longest_form
        self.token = token or new_secret()
        self._session = sha256(self.token.encode()).hexdigest()
        self.headers = {
            **HEADERS,
            "Referrer-Policy": "same-origin",  # no-referrer would make the Origin of a form null
            "X-Frame-Options": "DENY",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Content-Security-Policy": policy,
        }

    def before(self, inside: ASGIApp) -> ASGIApp:
        """Return an application that rejects requests not from this page or a typed address."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            refused = self._refused(Request(scope)) if scope["type"] == "http" else None
            await (refused or inside)(scope, receive, send)

        return guarded

    def _refused(self, request: Request) -> Response | None:
        """Reject requests that another site may have sent, before any other check."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return self.said(421, "this page has an address on this machine only")
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "none")
        if request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate":
            site = (
                "none" if site == "same-site" else site
            )  # a link from the studio to the steward's page
        if origin not in (None, f"http://{host}") or site not in ("none", "same-origin"):
            return self.said(
                403, "this request came from another site; open the page by its address"
            )
        if not request.url.path.startswith("/enter/") and not self._is_in(request):
            return self.said(403, "open the page by the address printed at the start")
        return None

    async def enter(self, request: Request) -> Response:
        """Handle ``/enter/{secret}``: set the session cookie."""
        given = str(request.path_params["secret"])
        if not hmac.compare_digest(given.encode(), self._secret.encode()):
            return self.said(403, "this is not the address that was printed at the start")
        answer = RedirectResponse("/", 303, headers=self.headers)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        return answer

    def _is_in(self, request: Request) -> bool:
        given = request.cookies.get(self._cookie, "")
        return hmac.compare_digest(given.encode(), self._session.encode())

    async def form(self, request: Request) -> dict[str, str] | None:
        """Return the posted fields; None without the token of the page's forms."""
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > self._longest_form:
                return None
        fields = parse_qs(body.decode("latin-1"), True, encoding="utf-8", errors="replace")
        form = {name: values[-1].strip() for name, values in fields.items()}
        is_ours = hmac.compare_digest(form.pop("token", "").encode(), self.token.encode())
        return form if is_ours else None

    def said(self, status: int, sentence: str) -> Response:
        """Return a response of one sentence."""
        return Response(sentence + "\n", status, self.headers, "text/plain; charset=utf-8")

    def handed_out(self, name: str) -> dict[str, str]:
        """Return the headers of a download with this file name."""
        return {**self.headers, "Content-Disposition": f'attachment; filename="{name}"'}
