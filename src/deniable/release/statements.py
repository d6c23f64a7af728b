"""Sentences on a release's guarantee and its limits, in the terms of `docs/guarantees.md`; ε and
factors are rounded up."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING
from typing import Any

from deniable.laws import InvariantChannel
from deniable.mechanism.best_guess import BestGuess, Guess, PartGuess, best_guess
from deniable.mechanism.privacy import compose, epsilon_of
from deniable.mechanism.strata import Strata
from deniable.numerals import significant
from deniable.report.wording import PERCENT, factor_text, rounded_up

INVARIANT_STATEMENT = (
    "Invariant PRAM uses the data: its matrix is made from this table's own frequencies, so that "
    "they are preserved in expectation. The frequencies themselves are unprotected, the record "
    "of the release discloses them, and as a whole the release is not differentially private. "
    "Instead: against an observer who already knows these frequencies, a released record is at "
    "most e^ε times as likely under one possible true record as under another, with the ε stated "
    "for that case. A category without rows is never reported."
)

STRATUM_STATEMENT = (
    "Each stratum has its own matrix, and the column that forms the strata is released unchanged: "
    "it is unprotected, and two records are compared only within a stratum."
)

NUMERICAL_STATEMENT = (
    "Numerical values are contracted to their mean: λx + (1 − λ) times the mean. This is a fixed "
    "calculation, not a randomization, and carries no differential-privacy guarantee: the mean is "
    "unchanged, so an observer who knows λ or a single true value (a frequent one, such as 0, can "
    "be guessed) computes every value exactly; and the order of the values is preserved. λ is "
    "therefore not in the release. Properties: the mean is the same (in each stratum, if there "
    "are strata), standard deviations are multiplied by λ, covariances by the product of the two "
    "λ, and correlations do not change. For a guarantee, cut the attribute into bins fixed in "
    "advance and randomize those."
)


DRAFTED_STATEMENT = (
    "categories and ranges were read off the data: they are themselves a disclosure, which "
    "the guarantee does not cover."
)


def prior_sentence(name: str, guess: BestGuess) -> str:
    """Return a sentence on the source of the prior of an attribute's response matrix."""
    of = f"The matrix of '{name}' was designed for a prior"
    if guess.prior_source is None:
        return f"{of} whose source is not stated; if it was read off data, it may disclose counts."
    if guess.prior_steps is None:
        return f"{of} that the record states exactly; its source: {guess.prior_source}."
    return (
        f"{of} that was read off the data: {guess.prior_source}. It is itself a disclosure, "
        "which the guarantee does not cover; rounding is no differential privacy."
    )


def guarantee_sentence(
    strata: Strata, level: float, numeric: Sequence[str] = (), *, of_person: bool = False
) -> str:
    """Return the guarantee in one citable sentence.

    It speaks of a person only if the rows per person are known: by a person column, or by a schema
    with one row per person.

    ``level``: ε in nats, of all rows of a person if there is a person column, else of a row.
    """
    kept = (*strata.schema.keep, *numeric)
    among = f" that agree on {', '.join(kept)}" if kept else ""
    if math.isinf(level):
        return _without_guarantee(strata)
    shown = significant(level, 6, ROUND_CEILING)
    how = f"with ε = {shown} (local differential privacy)"
    if level > strata.epsilon:
        one_row = significant(strata.epsilon, 6, ROUND_CEILING)
        how = (
            f"with ε = {one_row} (local differential privacy), and the rows of one person together "
            f"have ε = {shown}"
        )
    whom = "person" if of_person or strata.schema.one_row_per_person else "row"
    return (
        f"Every record was randomized on its own {how}: any output for a {whom} is "
        f"at most {factor_text(level)} times as likely under that {whom}'s true values as "
        f"under any other values{among}."
    )


def _without_guarantee(strata: Strata) -> str:
    invariant = list(_invariant_levels(strata))
    kept = strata.schema.keep
    unbounded = [n for n in strata.unprotected if n not in kept and n not in invariant]
    why = []
    if unbounded:
        why.append(
            f"some released values of {', '.join(unbounded)} are possible for some true values only"
        )
    if invariant:
        why.append(f"the matrices of {', '.join(invariant)} were made from the table itself")
    sentences = [
        f"No ε-differential privacy holds for the whole record, because {', and '.join(why)}.",
        *_best_guesses(strata, unbounded).values(),
    ]
    return " ".join(sentences)


def holds_instead(strata: Strata, numeric: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the guarantees of columns without ε: treated over the whole table, or by a response
    matrix with a prior.

    Per kind of treatment: ``columns``, the ``statement``, and for invariant PRAM
    ``if_frequencies_known``: ε in nats, of the record and per attribute, against an observer who
    knows the frequencies from which the matrices were made.
    """
    statements: list[dict[str, Any]] = []
    if levels := _invariant_levels(strata):
        known = {"epsilon": compose(levels.values()), "attributes": levels}
        statements.append(_instead(list(levels), INVARIANT_STATEMENT, known))
    guesses = _best_guesses(strata, strata.unprotected)
    statements += [_instead([name], f"{_RULES_OUT} {guess}") for name, guess in guesses.items()]
    if strata.column is not None:
        statements.append(_instead([strata.column], STRATUM_STATEMENT))
    if numeric:
        statements.append(_instead(list(numeric), NUMERICAL_STATEMENT))
    return statements


_RULES_OUT = (
    "Randomized, but without ε-differential privacy: a released value can exclude some true "
    "values with certainty."
)


def merged_sentence(name: str, parts: Sequence[str], *, bounded: bool) -> str:
    """Return a sentence on an attribute merged from several columns."""
    columns = f"{', '.join(parts[:-1])} and {parts[-1]}"
    text = f"'{name}' merges the columns {columns}, randomized as one value."
    if not bounded:
        return text
    return (
        f"{text} Its ε bounds what an observer learns about any of them: alone, together, or if "
        "the others are known."
    )


def _instead(columns: list[str], statement: str, known: Any = None) -> dict[str, Any]:
    return {"columns": columns, "statement": statement, "if_frequencies_known": known}


def _invariant_levels(strata: Strata) -> dict[str, float]:
    """Return ε of every attribute under invariant PRAM, given its frequencies: the worst over the
    strata."""
    worst: dict[str, float] = {}
    for mechanism in strata.mechanisms.values():
        for position, name in enumerate(mechanism.schema.names):
            law = mechanism.block_of(position)[0].law
            if isinstance(law, InvariantChannel):
                level = epsilon_of((law.ratio_if_frequencies_known(),))
                worst[name] = max(level, worst.get(name, 0.0))
    return worst


def _best_guesses(strata: Strata, names: Sequence[str]) -> dict[str, str]:
    """Return a sentence on the best guess of each column whose prior is stated and equal in all
    strata, without unchanged columns."""
    sentences = {}
    for name in names:
        if name in strata.schema.keep:
            continue
        position = strata.schema.position(name)
        first, *others = (best_guess(m, position) for m in strata.mechanisms.values())
        if first is not None and all(guess == first for guess in others):
            sentences[name] = best_guess_sentence(name, first)
    return sentences


def small_print(
    strata: Strata,
    *,
    shuffled: bool,
    person: str | None,
    secure: bool,
    numeric: Sequence[str] = (),
) -> list[str]:
    """Return the limits of the guarantee in sentences."""
    lines = []
    if not secure:
        lines.append(
            "NOT PRIVATE: this release was made from a seed, for a test or a reproduction. An "
            "observer who knows or guesses the seed can undo the randomization."
        )
    if drafted := strata.schema.drafted:
        lines.append(f"{', '.join(drafted)}: {DRAFTED_STATEMENT}")
    lines += dict.fromkeys(
        prior_sentence(name, guess)
        for mechanism in strata.mechanisms.values()
        for position, name in enumerate(mechanism.schema.names)
        if (guess := best_guess(mechanism, position)) is not None
    )
    if kept := strata.schema.keep:
        lines.append(
            "Released unchanged and unprotected: "
            + ", ".join(kept)
            + ". The guarantee compares records that agree on them."
        )
    instead = holds_instead(strata, numeric)
    lines += [f"{', '.join(one['columns'])}: {one['statement']}" for one in instead]
    lines += [
        merged_sentence(
            attribute.name, [part.name for part in attribute.parts], bounded=math.isfinite(level)
        )
        for attribute, level in zip(strata.schema.attributes, strata.attribute_epsilon, strict=True)
        if attribute.parts
    ]
    treated = {*kept, *(column for one in instead for column in one["columns"])}
    if unbounded := [n for n in strata.unprotected if n not in treated]:
        lines.append(
            "Randomized, but without ε-differential privacy: " + ", ".join(unbounded) + ". A "
            "released value can exclude some true values with certainty."
        )
    lines += [
        "Whether a person is in the table at all, and its number of rows, is not protected.",
        "The order of the rows was shuffled and discloses nothing."
        if shuffled
        else "The rows are in their original order. If that order follows a sensitive value, "
        "such as place or date, neighbouring rows together can disclose it; shuffle them.",
    ]
    if person is None:
        every = (
            "The schema states one row per person. "
            if strata.schema.one_row_per_person
            else "The guarantee is per row. "
        )
        lines.append(
            f"{every}If a person has several rows, the ε of that person is the sum over the rows."
        )
    else:
        lines.append(
            f"The guarantee per person multiplies ε by the largest number of rows per person "
            f"(column '{person}', which was dropped); that number itself is read from the data."
        )
    lines += [
        "Releases add up: if the same people's data are randomized and released again, the ε of "
        "all releases together is the sum.",
        "Conclusions about the population as a whole, and from these about anyone in it, are "
        "the purpose of the release and not a breach of the guarantee.",
        "The random bits come from AES-256 in counter mode, keyed by the operating system: the "
        "guarantee holds against anyone who cannot break that cipher or read this computer's "
        "memory while the release was made.",
    ]
    return lines


def best_guess_sentence(name: str, guess: BestGuess) -> str:
    """Return a sentence on the probability of guessing an attribute."""
    what = f"'{name}'"
    if guess.parts:
        what = f"the combination {what}"
    return (
        f"If people are distributed as the matrix of '{name}' was designed for, the best guess of "
        f"{what} from its released value alone is right for {_percent(guess.success)} of the "
        f"people (without it for {_percent(guess.before)}), and {_surest(guess)}. "
        + ("Its parts are no harder to guess. " if guess.parts else "")
        + "".join(map(_part_sentences, guess.parts))
        + "If they are distributed otherwise, or other columns carry information on it, "
        + ("all of this" if guess.parts else "both")
        + " can be higher."
    )


def _part_sentences(part: PartGuess) -> str:
    alone, given_rest = part.alone, part.given_rest
    return (
        f"The best guess of '{part.name}' is right for {_percent(alone.success)} of the people "
        f"(without the released value for {_percent(alone.before)}), and {_surest(alone)}. By an "
        f"observer who knows the rest of the combination, it is right for "
        f"{_percent(given_rest.success)} (without for {_percent(given_rest.before)}), and "
        f"{_surest(given_rest)}. "
    )


def _surest(guess: Guess) -> str:
    if guess.worst_posterior >= 1.0:
        return "some released values determine it with certainty"
    return f"no released value makes anyone surer than {_percent(guess.worst_posterior)}"


def _percent(limit: float) -> str:
    return rounded_up(limit).replace(PERCENT, " %")
