"""The page: one HTML file, the same bytes on every machine for a study and a version.

It contains its code, style, icon and all languages. The Content Security Policy allows exactly this
code and style, by their hashes, and requests to the page's origin.
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
"""Headers of every response: no caching, no sniffing, no reading by other sites."""

MOST_BYTES = 2_000_000
"""Largest page in bytes: eight seconds at 2 Mbit/s, uncompressed."""


def source_hash(text: str) -> str:
    """Return the source expression of a script or style in a Content Security Policy."""
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
