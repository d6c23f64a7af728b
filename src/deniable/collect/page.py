"""The page: one file of HTML, the same bytes on every machine for a study and a version.

Everything is inside: code, style, icon, all languages. The Content Security Policy allows exactly
this code and this style, by their hashes, and requests to where the page came from.
"""

import base64
import hashlib
import html
from urllib.parse import quote

from deniable.collect.scripts import PAGE, joined, read
from deniable.collect.study import Study
from deniable.errors import InputError

MOST_BYTES = 2_000_000

_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" '
    'rx="3" fill="#0b5394"/><g fill="#fff"><circle cx="5" cy="5" r="1.6"/>'
    '<circle cx="11" cy="11" r="1.6"/><circle cx="8" cy="8" r="1.6"/></g></svg>'
)


def source_hash(text: str) -> str:
    """Return how a Content Security Policy names a script or style that it allows."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy(*, framed: bool = True) -> str:
    """Return the page's Content Security Policy.

    Args:
        framed: whether to say who may frame the page, which only a header can.
    """
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
    """Return the page of a study.

    Raises:
        InputError: if it would be larger than two megabytes.
    """
    language = study.plain["languages"][0]
    direction = "rtl" if language in study.plain["right_to_left"] else "ltr"
    title = html.escape(study.plain["texts"][language]["title"])
    code, style = joined(PAGE), read("page.css")
    data = study.content.decode()
    text = f"""<!doctype html>
<html lang="{html.escape(language)}" dir="{direction}" data-study="{study.identity}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(framed=False))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{title}</title>
<link rel="icon" href="data:image/svg+xml,{quote(_ICON)}">
<style>{style}</style>
</head>
<body>
<main id="app"><noscript><p>This form draws at random on your own device, so it needs JavaScript.
Nothing was sent.</p></noscript></main>
<script type="application/json" id="study">{data}</script>
<script type="module">{code}</script>
</body>
</html>
"""
    content = text.encode()
    if len(content) > MOST_BYTES:
        raise InputError(
            f"the page of this study would have {len(content):,} bytes, more than "
            f"{MOST_BYTES:,}; design the mechanism with `method` kronecker, whose law takes "
            "few numbers, or ask fewer questions"
        )
    return content
