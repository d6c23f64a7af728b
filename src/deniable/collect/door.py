"""The door of a page on this machine alone: for whoever knows the secret, and no other site.

A page elsewhere on the web that leads the browser here gets nothing: the address has to be this
machine's by name or number (so that no other name can be made to point here), requests from other
sites are refused, and the cookie is sent with none of them. What changes something, or makes files,
is posted with a token that stands in the page's own forms.
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
    """Lets in whoever has the secret."""

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
            "Referrer-Policy": "same-origin",  # under no-referrer a form has Origin: null
            "X-Frame-Options": "DENY",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Content-Security-Policy": policy,
        }

    def before(self, inside: ASGIApp) -> ASGIApp:
        """Return an application that answers only what this page, or a person, has asked."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            refused = self._refused(Request(scope)) if scope["type"] == "http" else None
            await (refused or inside)(scope, receive, send)

        return guarded

    def _refused(self, request: Request) -> Response | None:
        """Refuse what another site may have sent, before anything else is looked at."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return self.said(421, "this page has its address on this machine alone")
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "none")
        if request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate":
            site = "none" if site == "same-site" else site  # a link of the studio to the steward's
        if origin not in (None, f"http://{host}") or site not in ("none", "same-origin"):
            return self.said(403, "requests come from this page itself, or are typed")
        if not request.url.path.startswith("/enter/") and not self._is_in(request):
            return self.said(403, "come in by the address that was printed at the start")
        return None

    async def enter(self, request: Request) -> Response:
        """Answer ``/enter/{secret}``."""
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
        """Return what was posted; None if it does not come from the page's own forms."""
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
        """Return an answer of one sentence."""
        return Response(sentence + "\n", status, self.headers, "text/plain; charset=utf-8")

    def handed_out(self, name: str) -> dict[str, str]:
        """Return the headers of a file to be saved under this name."""
        return {**self.headers, "Content-Disposition": f'attachment; filename="{name}"'}
