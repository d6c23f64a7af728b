"""Randomized response designs of surveys by their names, as exact response matrices.

Two categories are in the order no, yes: the last one is the sensitive category.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from deniable.errors import InputError

Matrix = tuple[tuple[Fraction, ...], ...]
"""M[y][x] = Pr[answer y | category x], shape (m, a); columns add up to 1."""

MOST_CARDS = 100

_NUMBER = re.compile(r"\.[0-9]{1,30}|[0-9]{1,20}(/0*[1-9][0-9]{0,19}|\.[0-9]{1,30})?")
_REVERSED = {("yes", "no"), ("y", "n"), ("true", "false"), ("1", "0")}


@dataclass(frozen=True)
class NamedResponse:
    """A design: its parameters, and its matrix as a function of the number of categories and of
    them. ``yes``: the answer counted as the last category. ``symmetric``: the order of two
    categories is irrelevant. ``counts``: the answers are numbers."""

    name: str
    parameters: str
    help: str
    source: str
    matrix: Callable[[int, Sequence[Fraction]], Sequence[Sequence[Fraction]]]
    yes: str = "yes"
    symmetric: bool = False
    any_number: bool = False
    counts: bool = False


def _binary(yes_if_no: Fraction, yes_if_yes: Fraction) -> list[list[Fraction]]:
    return [[1 - yes_if_no, 1 - yes_if_yes], [yes_if_no, yes_if_yes]]


def _forced(n: int, given: Sequence[Fraction]) -> list[list[Fraction]]:
    truth, *forced = given
    if len(forced) != n:
        raise InputError(f"give the probability of the truth and of {n} forced answers")
    if sum(given) != 1:
        raise InputError("its probabilities do not add up to 1; fractions such as 1/6 are exact")
    if n == 2:
        forced.reverse()  # yes, no
    return [[forced[y] + (truth if y == x else 0) for x in range(n)] for y in range(n)]


def _kuk(given: Sequence[Fraction]) -> list[list[Fraction]]:
    yes, no, cards = given if len(given) == 3 else (*given, Fraction(1))
    if cards.denominator != 1 or not 1 <= cards <= MOST_CARDS:
        raise InputError(f"the number of cards is a whole number from 1 to {MOST_CARDS}")
    n = int(cards)
    return [[comb(n, k) * p**k * (1 - p) ** (n - k) for p in (no, yes)] for k in range(n + 1)]


NAMED: dict[str, NamedResponse] = {
    one.name: one
    for one in (
        NamedResponse(
            "warner",
            "P",
            "the sensitive statement with probability P, else its negation",
            "Warner 1965",
            lambda _, p: _binary(1 - p[0], p[0]),
            symmetric=True,
        ),
        NamedResponse(
            "forced",
            "P,YES,NO",
            "the truth with probability P, else a forced yes or no; of more than two categories P "
            "and the probability of each forced answer, in their order",
            "Boruch 1971",
            _forced,
            any_number=True,
        ),
        NamedResponse(
            "unrelated",
            "P,Q",
            "the sensitive question with probability P, else one that a share Q answers with yes",
            "Greenberg, Abul-Ela, Simmons and Horvitz 1969",
            lambda _, p: _binary((1 - p[0]) * p[1], p[0] + (1 - p[0]) * p[1]),
        ),
        NamedResponse(
            "crosswise",
            "P",
            "whether the answers to the sensitive question and to one that a share P answers with "
            "yes are the same",
            "Yu, Tian and Tang 2008",
            lambda _, p: _binary(1 - p[0], p[0]),
            yes="the same",
        ),
        NamedResponse(
            "triangular",
            "P",
            "whether one of the sensitive question and of one that a share P answers with yes is "
            "answered with yes",
            "Yu, Tian and Tang 2008",
            lambda _, p: _binary(p[0], Fraction(1)),
            yes="at least one yes",
        ),
        NamedResponse(
            "kuk",
            "YES,NO[,N]",
            "the number of red among N cards (1 if left out) of the deck that belongs to the true "
            "answer, with these shares of red cards",
            "Kuk 1990",
            lambda _, p: _kuk(p),
            yes="numbers",
            counts=True,
        ),
        NamedResponse(
            "mangat",
            "P",
            "yes if it is true, else no with probability P",
            "Mangat 1994",
            lambda _, p: _binary(1 - p[0], Fraction(1)),
        ),
        NamedResponse(
            "disguised",
            "P",
            "the colour of a card of the deck that belongs to the true answer, red with "
            "probability P for yes and 1 - P for no",
            "Blair, Imai and Zhou 2015",
            lambda _, p: _binary(1 - p[0], p[0]),
            yes="red",
        ),
    )
}
"""The designs by name; parser, help, pages and messages read this table."""


def probability(text: str) -> Fraction:
    """Return a fraction such as 2/3 or a decimal exactly."""
    if not _NUMBER.fullmatch(text):
        raise InputError(f"'{text[:40]}' is neither a decimal nor a fraction such as 2/3")
    return Fraction(text)


def design_of(response: str) -> NamedResponse:
    """Return the design that a declaration such as ``warner:0.7`` names."""
    name = response.partition(":")[0].strip()
    if name not in NAMED:
        named = ", ".join(f"{one.name}:{one.parameters}" for one in NAMED.values())
        raise InputError(f"there is no design '{name[:40]}'; choose one of {named}")
    return NAMED[name]


def response_matrix(response: str, categories: Sequence[str]) -> Matrix:
    """Return the matrix of a declaration such as ``forced:2/3,1/6,1/6``."""
    design = design_of(response)
    written = f"{design.name}:{design.parameters}"
    if len(categories) != 2 and not design.any_number:
        raise InputError(
            f"{design.name} is for two categories, no and yes, not {len(categories)}; give a "
            "matrix, or forced with a probability per category"
        )
    reversed_ = tuple(category.lower() for category in categories) in _REVERSED
    if reversed_ and not design.symmetric:
        raise InputError(
            f"{design.name} needs the categories in the order no, yes; the last one is the "
            "sensitive one"
        )
    least, most = (len(names.split(",")) for names in design.parameters.partition("[")[::2])
    try:
        given = [probability(part.strip()) for part in response.partition(":")[2].split(",")]
        if not design.any_number and not least <= len(given) < least + most:
            raise InputError(f"it has {len(given)} of these numbers")
        if any(value > 1 for value in given[:2]):
            raise InputError("a probability lies between 0 and 1")
        return tuple(tuple(row) for row in design.matrix(len(categories), given))
    except InputError as error:
        raise InputError(f"response '{response[:80]}', expected {written}: {error}") from None


def answer_texts(response: str, answers: int) -> tuple[str, ...]:
    """Return the texts of a design's answers where they are not the categories: numbers of cards.

    >>> answer_texts("kuk:0.8,0.2,2", 3), answer_texts("warner:0.7", 2)
    (('0', '1', '2'), ())
    """
    return tuple(map(str, range(answers))) if design_of(response).counts else ()


def named_table() -> str:
    """Return the table of designs in docs/howto/randomized.md, in Markdown."""
    rows = [
        f"| `{one.name}:{one.parameters}` | {one.help} | {one.yes} | {one.source} |"
        for one in NAMED.values()
    ]
    head = ["| design | respondents answer | counted as the last category | source |"]
    return "\n".join([*head, "|---|---|---|---|", *rows]) + "\n"
