"""Consequences of an ε, for the people who choose it; no ε is recommended."""

import math
from collections.abc import Iterable
from functools import cache
from importlib.metadata import metadata
from typing import Any

from deniable.studio.numbers import rounded_down
from deniable.studio.request import DraftRequest


@cache
def page_of_docs(name: str) -> str:
    """Return the address of a page of the documentation."""
    urls = (url.split(", ", 1) for url in metadata("deniable").get_all("Project-URL", ()))
    return f"{dict(urls)['Documentation']}/{name}"


def largest_epsilon(prior: float, limit: float) -> float:
    """Return the ε at which a belief of probability ``prior`` becomes ``limit`` at most."""
    return math.log(limit / (1 - limit)) - math.log(prior / (1 - prior))


def ladder(request: DraftRequest, words: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the ε to choose from: ``total``, of all releases of the same people; ``each``, of one
    release, as typed; ``words``, empty for the ε at the limit."""
    totals = {float(epsilon): text for epsilon, text in words}
    if 0 < request.prior < request.limit:
        totals.setdefault(float(rounded_down(largest_epsilon(request.prior, request.limit))), "")
    waves = request.waves or 1
    return [
        {"total": total, "each": rounded_down(total / waves), "words": text}
        for total, text in sorted(totals.items())
        if total > 0
    ]
