"""The page: a function of the draft, of what was computed, and of what is being made."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from deniable.collect.page import source_hash
from deniable.design.methods import METHODS
from deniable.report.rendering import read, render
from deniable.studio.draft import Draft, names_of
from deniable.studio.wish import SCALES, Wish, typed

if TYPE_CHECKING:
    from deniable.studio.server import Studio

LANGUAGES = ("en", "de")

VIEWS = ("start", "schema", "design", "release", "study", "ask")
"""The views, in the order in which they are needed."""

STYLE = read("deniable.report", "page.css") + read("deniable.studio", "browser", "studio.css")

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        f"style-src {source_hash(STYLE)}",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
"""Scripts are the two files that the package brings; nothing is evaluated, or comes from elsewhere."""


@cache
def texts(language: str) -> dict[str, Any]:
    """Return what the page says in a language."""
    return tomllib.loads(read("deniable.studio", "texts", f"{language}.toml"))


def page(studio: "Studio", view: str, wish: Wish, **more: Any) -> str:
    """Return the page.

    Args:
        studio: what the page is of.
        view: one of :data:`VIEWS`, or ``summary``.
        wish: as it was understood.
        more: what one view needs.
    """
    draft = studio.keeper.draft
    answer = studio.answers.known(wish.digest)
    return render(
        f"deniable.studio/{view}.html.j2",
        title=draft.schema.get("title") or studio.keeper.path.name,
        style=STYLE,
        policy="",
        t=texts(studio.language),
        language=studio.language,
        languages=LANGUAGES,
        views=VIEWS,
        view=view,
        token=studio.door.token,
        keeper=studio.keeper,
        draft=draft,
        wish=wish,
        typed=lambda name: typed(draft.wish, name),
        scales=SCALES,
        methods={name: spec for name, spec in METHODS.items() if spec.offered},
        names_of=names_of,
        answer=answer,
        told=answer.get("statements") if answer else None,
        pins=pins(studio, draft),
        **more,
    )


def pins(studio: "Studio", draft: Draft) -> Sequence[Mapping[str, Any]]:
    """Return the wishes that are compared, each with its answer, or None where there is none yet."""
    found = []
    for pin in draft.pins:
        wish = studio.understood(pin)
        answer = studio.answers.known(wish.digest)
        found.append({"name": pin["pin"], "wish": wish, "answer": answer})
    return found
