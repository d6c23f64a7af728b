"""From a total to a split questionnaire: its forms and their shares.

Every row gets one form, drawn independently of the record, and its number is released: a form
includes some attributes and leaves the others empty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.design.request import DesignRequest
from deniable.design.solving import aimed_below, importances_and_limits
from deniable.errors import InputError
from deniable.laws import PublishedForms
from deniable.laws.forms import DEFAULT_COLUMN
from deniable.laws.law import integer_weights
from deniable.laws.set_answers import SetAnswers
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Attribute, Schema
from deniable.statement.account import Design
from deniable.statement.bound import lower_bound
from deniable.statement.caps import cap_text, refuse_missed_caps, resolve_caps, unchanged_blocks

if TYPE_CHECKING:
    from deniable.solvers.patterns import forms

LEAST_TOTAL = 1e-6
"""In nats; the information of an answer is about its square, whose square is a divisor."""

_NAMED = 6
"""Pairs, or attributes, that are named at most in a sentence."""

WORTH_SETS = 1.02
"""Answers name sets where that multiplies the information of a single question by this, if it
divides the variance of some attribute's shares by as much in the design for shares."""

_BREADTHS = 4
"""Sizes of sets that are tried, for lists that are few."""


def published_forms(schema: Schema, method: str, epsilon: float, request: DesignRequest) -> Design:
    """Return the design of forms of a record level.

    ``epsilon``: of the record, in nats.
    """
    from deniable.solvers.patterns import forms

    if epsilon < LEAST_TOTAL:
        raise InputError(
            f"method {method} takes totals from {LEAST_TOTAL:g} nats, not {epsilon:g}, at which "
            "answers have no information"
        )
    protected = [schema.attributes[i] for i in schema.protected]
    names = [attribute.name for attribute in protected]
    if any(attribute.ratio for attribute in protected):
        raise InputError(
            f"method {method} takes no ratios: a level belongs to a form, and a form with one "
            "attribute alone spends all of it there; give importances instead"
        )
    importance, at_most = importances_and_limits(schema, request.importance, request.at_most)
    caps = resolve_caps(request.given_rest, [epsilon] * len(names), epsilon)
    column = _free_column(schema, request.form_column)
    n_categories = [attribute.n_categories for attribute in protected]
    task: dict[str, Any] = {
        "n_categories": n_categories,
        "epsilon": aimed_below([epsilon])[0],
        "importance": importance,
        "asked": request.max_questions,
        "at_most": _aimed(at_most),
        "caps": None if caps is None else _aimed(caps),
    }
    levels = [
        min([epsilon, *(each for each in limits if each is not None)])
        for limits in zip(at_most, caps or at_most, strict=True)
    ]
    sets, gains = _broad(protected, levels, task)
    broad = [(sets[i].breadth,) if i in sets else () for i in range(len(n_categories))]
    pairs = forms.DEFAULT_PAIRS if request.pairs is None else request.pairs
    solution = forms.solve(**task, pairs=pairs, broad=broad)
    law = PublishedForms.from_probabilities(
        n_categories,
        [form.share for form in solution.forms],
        [(form.asked, form.pattern_probability) for form in solution.forms],
        column,
        [form.drawn for form in solution.forms],
        [_sets_of(form, sets) for form in solution.forms],
    )
    mechanism = Mechanism(schema, (Block(tuple(schema.protected), law), *unchanged_blocks(schema)))
    refuse_missed_caps(mechanism, caps)
    return Design(
        replace(mechanism, claim=mechanism.promise()),
        method,
        (None,) * len(schema.attributes),
        lower_bound(mechanism, None),
        epsilon,
        given_rest=cap_text(request.given_rest),
        notes=(*_named_sets(law, names, gains), *_never_together(law, names)),
        together=True,
    )


def _broad(
    protected: Sequence[Attribute], levels: Sequence[float], task: Mapping[str, Any]
) -> tuple[dict[int, SetAnswers], NDArray[np.float64]]:
    """Return the sets that answers may name, by the places of the attributes, none if shares gain
    too little; and how many times smaller the variances of shares are by them."""
    from deniable.solvers.patterns import forms

    sets: dict[int, SetAnswers] = {}
    known: dict[tuple[int, tuple[int, ...]], SetAnswers | None] = {}
    for place, (attribute, level) in enumerate(zip(protected, levels, strict=True)):
        wanted = attribute.n_categories, tuple(breadths_that_gain(attribute, level)[:_BREADTHS])
        if wanted not in known:
            known[wanted] = _set_answers(*wanted)
        made = known[wanted]
        if made is not None:
            sets[place] = made
    even = np.ones(len(protected))
    if not sets:
        return {}, even
    single = forms.solve(**task, pairs=0.0).of_attributes
    breadths = [(sets[i].breadth,) if i in sets else () for i in range(len(protected))]
    gains = single / forms.solve(**task, pairs=0.0, broad=breadths).of_attributes
    return (sets, gains) if gains.max() >= WORTH_SETS else ({}, even)


def _named_sets(
    law: PublishedForms, names: Sequence[str], gains: NDArray[np.float64]
) -> tuple[str, ...]:
    """Return a sentence on the sets that answers name, if there are any."""
    if not law.sets:
        return ()
    named = [f"{names[i]} ({s.breadth} of {s.n_categories})" for i, s in law.sets.items()]
    best = int(np.argmax(gains))
    fewer = f"{float(f'{gains[best]:.2g}'):,.15g}"  # two digits without an exponent
    sentence = (
        f"Answers to these name a set of the given number of categories: {_listed(named)}. Shares "
        f"of {names[best]} then need {fewer} times fewer rows."
    )
    return (sentence,)


def breadths_that_gain(attribute: Attribute, level: float) -> list[int]:
    """Return the best numbers of categories for answers to a single question, the best first;
    empty where one category is about as good, or sets are not searched for. ``level`` in nats.
    """
    from deniable.solvers.patterns.balanced_lists import MOST_CATEGORIES
    from deniable.solvers.patterns.forms import informative_breadths

    if attribute.parts or attribute.n_categories > MOST_CATEGORIES:
        return []
    informative = informative_breadths(attribute.n_categories, level)
    return [breadth for breadth, gain in informative if gain >= WORTH_SETS]


def _set_answers(n_categories: int, breadths: Sequence[int]) -> SetAnswers | None:
    """Return sets of one of some sizes; None if no balanced lists are found."""
    from deniable.solvers.patterns.balanced_lists import balanced_lists

    answers = balanced_lists(n_categories, breadths) if breadths else None
    if answers is None:
        return None
    shares, lists = answers
    bits, weights = integer_weights(shares)
    return SetAnswers(n_categories, len(lists[0]), bits, weights, tuple(lists))


def _sets_of(form: "forms.Form", sets: Mapping[int, SetAnswers]) -> dict[int, SetAnswers]:
    """Return the sets that a form's answers name, by the places of the attributes."""
    named = [*form.asked, *(members[0] for members, count in form.drawn for _ in range(count))]
    broad = {place for place, breadth in zip(named, form.breadths, strict=True) if breadth > 1}
    drawn = {i for members, _ in form.drawn if members[0] in broad for i in members}
    return {place: sets[place] for place in sorted(broad | drawn)}


def _listed(named: Sequence[str]) -> str:
    return ", ".join(named[:_NAMED]) + (
        f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    )


def _aimed(levels: Sequence[float | None]) -> list[float | None]:
    return [None if level is None else aimed_below([level])[0] for level in levels]


def _free_column(schema: Schema, wanted: str | None) -> str:
    """Return the name of the column with the number of the form."""
    taken = {*schema.columns, *schema.names, *schema.keep}
    if wanted is not None:
        if wanted in taken:
            raise InputError(f"the table has a column '{wanted}'; name the forms' column otherwise")
        return wanted
    name, number = DEFAULT_COLUMN, 1
    while name in taken:
        number += 1
        name = f"{DEFAULT_COLUMN}_{number}"
    return name


def _never_together(law: PublishedForms, names: list[str]) -> tuple[str, ...]:
    """Return a sentence on the pairs that no form includes together, if there are any."""
    information = law.pair_information()
    never = [
        f"{first} and {second}"
        for (i, first), (j, second) in combinations(enumerate(names), 2)
        if information[i, j] == 0
    ]
    if not never:
        return ()
    sentence = (
        f"The association of these cannot be estimated: {_listed(never)}. With `pairs` 0.02 "
        "that of every pair can, and errors of shares grow by 1 to 5 %."
    )
    return (sentence,)
