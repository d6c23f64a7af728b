"""The page: one file of HTML, the same bytes on every machine for a study and a version.

Everything is inside: code, style, icon, all languages. The Content Security Policy allows exactly
this code and this style, by their hashes, and requests to where the page came from.
"""

import base64
import hashlib

from deniable.collect.scripts import PAGE, joined, read
from deniable.collect.study import Study
from deniable.errors import InputError
from deniable.report.rendering import render

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer, the steward's too: nothing is kept, guessed or read by other sites."""

MOST_BYTES = 2_000_000
"""Bytes of the largest page: eight seconds at 2 Mbit/s, uncompressed."""


def source_hash(text: str) -> str:
    """Return how a Content Security Policy names a script or style that it allows."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy(*, framed: bool = True) -> str:
    """Return the page's Content Security Policy."""
    rules = [
        "default-src 'none'",
        f"script-src {source_hash(joined(PAGE))}",
        f"style-src {source_hash(read('page.css'))}",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        *(["frame-ancestors 'none'"] if framed else []),
    ]
    return "; ".join(rules)


def page_bytes(study: Study) -> bytes:
    """Return the page of a study."""
    language = study.plain["languages"][0]
    text = render(
        "deniable.collect/respondent.html.j2",
        title=study.plain["texts"][language]["title"],
        style=read("page.css"),
        policy=policy(framed=False),
        language=language,
        right_to_left=study.plain["right_to_left"],
        identity=study.identity,
        study=study.content.decode(),
        code=joined(PAGE),
    )
    content = text.encode()
    if len(content) > MOST_BYTES:
        raise InputError(
            f"the page of this study would have {len(content):,} bytes, more than "
            f"{MOST_BYTES:,}; design the mechanism with `method` kronecker, whose law takes "
            "few numbers, or ask fewer questions"
        )
    return content
