"""Test that all forms of a release agree with one population.

Each form estimates the shares of an attribute that it includes by itself, so that two forms or more
can contradict each other: because some answers were not randomized as stated, or were made up. With
f_c the frequencies of the n_c answers to form c, M_c its channel and b the shares,

    X² = Σ_c n_c Σ_v (f_c − M_c b)²_v/θ_cv,     θ_c = M_c b at the estimate,

least over b, is χ² with Σ_c (m_c − 1) − (a − 1) degrees of freedom for a categories and m_c
answers, (forms − 1)(a − 1) where answers name one category. Forms that do the same are compared
too. Answers of a form that expect fewer than five rows are taken together. Over attributes p-values
are adjusted by Holm (1979), which holds under any dependence.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from deniable.errors import InputError
from deniable.estimate.columns import Answers, Presented, target_text, where_text
from deniable.estimate.independence import FEW_EXPECTED, one_stratum
from deniable.estimate.query import Query, refuse_randomized_groups
from deniable.estimate.simplex import project_to_simplex
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Floats
from deniable.mechanism.prediction import Target
from deniable.mechanism.published import PublishedChannel
from deniable.numerals import count_text

_ROUNDS = 3
"""Fits, each with the θ of the one before; the second decides, as the first is consistent."""

UNSEEN = (
    "The test finds forms that contradict each other. It cannot find a wrong attenuation common to "
    "all forms, or liars who answer every form as some population would, and seldom finds a few "
    "liars in a hundred."
)


@dataclass(frozen=True)
class AttributeAgreement:
    """The test that all forms that include an attribute agree on its shares."""

    attribute: str
    forms: int
    statistic: float
    degrees_of_freedom: int

    @property
    def p_value(self) -> float:
        """p-value of X²."""
        from scipy.special import chdtrc  # only here: loading it takes a fifth of a second

        return float(chdtrc(self.degrees_of_freedom, self.statistic))


@dataclass(frozen=True)
class FormAgreement(Presented):
    """Tests of a release's forms, one per attribute."""

    tests: tuple[AttributeAgreement, ...]
    untested: tuple[str, ...]
    n_records: int
    group: tuple[tuple[str, str], ...] = ()

    target: ClassVar[Target] = "population"

    @property
    def p_value(self) -> float:
        """Of all attributes together: the least of Holm's p-values."""
        return float(holm(np.array([test.p_value for test in self.tests])).min(initial=1.0))

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:  # noqa: ARG002 - no interval
        """Return a row per attribute, its p-value also adjusted for their number."""
        adjusted = holm(np.array([test.p_value for test in self.tests]))
        return [
            dict(self.group) | asdict(test) | {"p_value": test.p_value, "p_holm": p_holm}
            for test, p_holm in zip(self.tests, adjusted.tolist(), strict=True)
        ]

    def caption(self, level: float = 0.95) -> str:  # noqa: ARG002 - as of every answer
        """Return a caption."""
        return (
            f"Agreement of all forms with one population{where_text(self.group)}: "
            f"{count_text(self.n_records, 'row')}, of {target_text('population')}"
        )

    def remarks(self) -> list[str]:
        """Return remarks on the table, one sentence each."""
        listed = ", ".join(f"'{name}'" for name in self.untested)
        alone = [f"Included by one form only, so not tested: {listed}."]
        return [*(alone if self.untested else []), UNSEEN]

    def to_plain(self, level: float = 0.95) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        return {
            "group": dict(self.group),
            "n": self.n_records,
            "target": "population",
            "p_value": self.p_value,
            "attributes": self.table(level),
            "untested": list(self.untested),
        }


@dataclass(frozen=True)
class Agreement(Query[FormAgreement]):
    """Do all forms agree with one population?

    Args:
        of: attributes under forms, or parts of them; none for all.

    Raises:
        InputError: if weights are given, the release has no forms, an attribute is not under forms,
            or a group is formed by a randomized attribute.
    """

    takes_weights: ClassVar[bool] = False
    of_all: ClassVar[bool] = True

    of: Sequence[str] = ()

    def run(self, release: Release) -> Answers[FormAgreement]:
        """Return the test of every group of rows, in the order of the groups' values."""
        mechanism = next(iter(release.strata.mechanisms.values()))
        schema = mechanism.schema
        under_forms = mechanism.positions_under_forms
        if mechanism.forms is None:
            raise InputError("this release has no forms, so there is no agreement of forms to test")
        names = self.of or tuple(schema.names[i] for i in under_forms)
        for variable, name in zip(schema.variables(names), names, strict=True):
            if variable.position not in under_forms:
                raise InputError(
                    f"'{name}' is not under forms, so their agreement on it cannot be tested"
                )
        refuse_randomized_groups(schema, self.by, "agreement is")
        counted = release.count_tables(
            [[name] for name in names], by=self.by, where=self.where, by_form=True
        )
        found = (self.agreement(names, of) for of in zip(*counted, strict=True))
        return Answers(found, counted[0][0].selection)

    def answer(self, counts: Counts) -> list[FormAgreement]:
        """Return the test of one attribute, from counts by every form."""
        return [self.agreement(self.of, [counts])]

    def agreement(self, names: Sequence[str], counted: Sequence[Counts]) -> FormAgreement:
        """Return the test of one group of rows."""
        tests, untested = [], []
        for name, counts in zip(names, counted, strict=True):
            mechanism, tabulation = one_stratum(counts)
            channel = PublishedChannel(mechanism, (name,)).of_every_form()
            found = _agree(name, channel, tabulation.counts)
            if found.degrees_of_freedom:
                tests.append(found)
            else:
                untested.append(name)
        some = counted[0]
        return FormAgreement(tuple(tests), tuple(untested), some.n_records, some.group)


def _agree(name: str, channel: PublishedChannel, counts: Floats) -> AttributeAgreement:
    """Return the test of one attribute from counts of the released values of every form."""
    (a,) = channel.n_categories
    pieces = channel.forward.pieces(counts)
    matrices = (part.apply(np.eye(a)) for part in channel.forward.parts)
    answered = [
        (piece, matrix)
        for piece, matrix in zip(pieces, matrices, strict=True)
        if len(piece) > 1 and piece.any()
    ]
    if len(answered) < 2:
        return AttributeAgreement(name, len(answered), 0.0, 0)
    return AttributeAgreement(name, len(answered), *contradiction(answered, a))


def contradiction(answered: Sequence[tuple[Floats, Floats]], a: int) -> tuple[float, int]:
    """Return X² and its degrees of freedom of groups of rows that answer about the same shares.

    ``answered``: counts, shape (m,), and matrix, shape (m, a), of each group.
    """
    contrasts = np.eye(a)[:, 1:] - 1.0 / a
    shares = np.full(a, 1.0 / a)
    for round_ in range(_ROUNDS):
        rows, targets, cells = [], [], 0
        for piece, matrix in answered:
            n = float(piece.sum())
            # The first fit takes θ from the rows, away from 0.
            expected = matrix @ shares if round_ else (piece + 1) / (n + len(piece))
            rare = n * expected < FEW_EXPECTED
            merged = np.eye(len(piece))
            if rare.any():
                merged = np.vstack([merged[~rare], rare])
            root = np.sqrt(n / np.maximum(merged @ expected, 1e-300))
            at = merged @ matrix
            rows.append(root[:, None] * (at @ contrasts))
            targets.append(root * (merged @ piece / n - at.mean(axis=1)))
            cells += len(merged) - 1
        design, target = np.concatenate(rows), np.concatenate(targets)
        moved, _, rank, _ = np.linalg.lstsq(design, target)
        shares = project_to_simplex(1.0 / a + contrasts @ moved)
    statistic = float(((target - design @ moved) ** 2).sum())
    return statistic, max(cells - int(rank), 0)


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted for their number by Holm (1979), in the same order."""
    order = np.argsort(p_values)
    adjusted = np.empty(len(p_values))
    times = np.arange(len(p_values), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(times * p_values[order]))
    return adjusted
