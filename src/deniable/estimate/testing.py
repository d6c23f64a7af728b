"""Tests of independence on a released table: from its rows to counts of pairs, group by group."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deniable.errors import InputError
from deniable.estimate.counting import Count, count_rows
from deniable.estimate.independence import IndependenceTest, independence
from deniable.estimate.strata import AnyMechanism, Counts
from deniable.estimate.tabulate import Tabulation
from deniable.mechanism.mechanism import Mechanism

Group = tuple[tuple[str, str], ...]


def independence_of_rows(
    source: Any,
    mechanism: AnyMechanism,
    of: Sequence[str],
    *,
    by: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    show_values: bool = False,
) -> list[IndependenceTest]:
    """Test whether two attributes are independent, in a released table.

    Args:
        source: what :func:`deniable.tables.open_table` reads.
        mechanism: what randomized it.
        of: the two; one of them may be a kept column that the schema does not declare.
        by: kept columns; every combination of their values is tested by itself.
        where: kept columns and the one value to select rows by.
        show_values: let error messages show the offending value.

    Returns:
        One test per group, in the order of the groups' values; one for all rows without ``by``.

    Raises:
        InputError: if ``of`` does not name two, both are undeclared kept columns, a group is
            formed by a randomized attribute, rows tested together were randomized by different
            mechanisms, or the rows cannot be counted or tested.
    """
    _refuse_but_two(of)
    schema = mechanism.schema
    for name in by:
        if name not in schema.keep:
            schema.variables([name])
            raise InputError(
                f"independence is not tested within subgroups of '{name}', which is randomized; "
                "group by a column released as it is"
            )
        if name in of:
            raise InputError(f"'{name}' is tested and forms the groups too; name it only once")
    undeclared = [name for name in of if name in schema.keep and name not in schema.names]
    declared = [name for name in of if name not in undeclared]
    if not declared:
        raise InputError(
            f"'{of[0]}' and '{of[1]}' are both released as they are; any test of independence on "
            "the released table is right"
        )
    groups = count_rows(
        source,
        mechanism,
        declared,
        by=[*by, *undeclared],
        where=where,
        show_values=show_values,
    )
    if not undeclared:
        return [
            independence_of_counts(each.tabulation, mechanism, of, each.group) for each in groups
        ]
    # One count per value of the undeclared column: side by side they are the table of the pair.
    gathered: dict[Group, list[Count]] = {}
    for each in groups:
        gathered.setdefault(each.group[:-1], []).append(each)
    return [
        _beside(mechanism, (declared[0], undeclared[0]), group, parts)
        for group, parts in gathered.items()
    ]


def independence_of_counts(
    counts: Counts, mechanism: AnyMechanism, of: Sequence[str], group: Group = ()
) -> IndependenceTest:
    """Test whether two attributes are independent, from counts of released pairs.

    Raises:
        InputError: as :func:`deniable.estimate.independence.independence`, or if the rows are of
        several
            strata with mechanisms of their own.
    """
    _refuse_but_two(of)
    tabulation, single = _one_stratum(counts, mechanism)
    return independence(tabulation, single, of, group=group)


def _refuse_but_two(of: Sequence[str]) -> None:
    if len(of) != 2 or of[0] == of[1]:
        raise InputError("independence is of two attributes; name both of them, as in a,b")


def _beside(
    mechanism: AnyMechanism, of: Sequence[str], group: Group, parts: Sequence[Count]
) -> IndependenceTest:
    singles = [_one_stratum(part.tabulation, mechanism) for part in parts]
    if any(each != singles[0][1] for _, each in singles):
        raise InputError(
            f"rows with different values of '{of[1]}' were randomized by mechanisms of their own, "
            "which one test cannot cover"
        )
    counts = np.stack([tabulation.counts for tabulation, _ in singles], axis=1)
    values = [part.group[-1][1] for part in parts]
    return independence(
        Tabulation.from_counts(counts), singles[0][1], of, kept_values=values, group=group
    )


def _one_stratum(counts: Counts, mechanism: AnyMechanism) -> tuple[Tabulation, Mechanism]:
    if isinstance(counts, Tabulation):
        if not isinstance(mechanism, Mechanism):
            (mechanism,) = mechanism.mechanisms.values()
        return counts, mechanism
    if len(counts.parts) > 1:
        assert not isinstance(mechanism, Mechanism)
        raise InputError(
            f"the strata of '{mechanism.column}' were randomized by mechanisms of their own, which "
            f"one test cannot cover; test within each of them (by '{mechanism.column}')"
        )
    ((single, tabulation),) = counts.parts
    return tabulation, single
