"""From a total to forms: who is asked what, if it is published who was asked what."""

from dataclasses import replace
from itertools import combinations

from deniable._checks import check_level, check_positive
from deniable.design.account import Design
from deniable.design.methods import FormWishes
from deniable.design.plan import lower_bound
from deniable.design.solving import aimed_below
from deniable.errors import InputError
from deniable.laws import Identity, PublishedForms
from deniable.laws.forms import DEFAULT_COLUMN
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Schema

_NAMED = 6
"""Pairs that are named at most in a sentence."""


def published_forms(schema: Schema, method: str, epsilon: float, wishes: FormWishes) -> Design:
    """Return the design of forms of a record level.

    Args:
        schema: the attributes.
        method: its name.
        epsilon: of the record, in nats.
        wishes: what counts how much.

    Raises:
        InputError: if something asked for is out of its range, or is not for forms.
    """
    from deniable.solvers.patterns import forms

    protected = [schema.attributes[i] for i in schema.protected]
    names = [attribute.name for attribute in protected]
    if any(attribute.ratio for attribute in protected):
        raise InputError(
            f"method {method} divides nothing in ratios: a level belongs to a form, and whoever is "
            "asked one question alone spends all of it there; give importances instead"
        )
    for name in (*wishes.importance, *wishes.at_most):
        if name not in names:
            raise InputError(f"there is no protected attribute '{name}'")
    importance = [wishes.importance.get(a.name, a.importance or 1.0) for a in protected]
    for name, value in zip(names, importance, strict=True):
        check_positive(value, f"importance of '{name}'")
    at_most = [
        check_level(wishes.at_most[name], f"largest level of '{name}'")
        if name in wishes.at_most
        else None
        for name in names
    ]
    column = _free_column(schema, wishes.column)
    n_categories = [attribute.n_categories for attribute in protected]
    found = forms.solve(
        n_categories,
        *aimed_below([epsilon]),
        importance=importance,
        pairs=forms.DEFAULT_PAIRS if wishes.pairs is None else wishes.pairs,
        asked=forms.DEFAULT_ASKED if wishes.asked is None else wishes.asked,
        at_most=[None if level is None else aimed_below([level])[0] for level in at_most],
    )
    law = PublishedForms.from_probabilities(
        n_categories,
        [form.share for form in found.forms],
        [(form.asked, form.pattern_probability) for form in found.forms],
        column,
    )
    blocks = [Block(tuple(schema.protected), law)]
    blocks += [
        Block((i,), Identity((attribute.n_categories,)))
        for i, attribute in enumerate(schema.attributes)
        if i not in schema.protected
    ]
    mechanism = Mechanism(schema, tuple(blocks))
    return Design(
        replace(mechanism, claim=mechanism.promise()),
        method,
        (None,) * len(schema.attributes),
        lower_bound(mechanism, None),
        epsilon,
        notes=_never_together(law, names),
    )


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
    """Return a sentence on the pairs that no form asks together, if there are any."""
    told = law.pair_information()
    never = [
        f"{first} and {second}"
        for (i, first), (j, second) in combinations(enumerate(names), 2)
        if told[i, j] == 0
    ]
    if not never:
        return ()
    listed = ", ".join(never[:_NAMED]) + (
        f" and {len(never) - _NAMED} more" if len(never) > _NAMED else ""
    )
    return (
        f"Nothing can be estimated of how these go together: {listed}. With --pairs 0.02 every "
        "pair can, and errors of shares grow by 1 to 5 %.",
    )
