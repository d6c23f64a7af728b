"""Test that groups of respondents with different designs follow their instructions.

The groups of a randomized experiment have the same shares b of the true categories and matrices M_g
of their own. If all respondents follow the instruction, the frequencies of the answers are M_g b in
expectation; X² of :mod:`deniable.estimate.agreement` tests that some b fits all groups. If a share
γ does not follow it and answers by a distribution d, the same in all groups, they are

    f_g = (1 − γ) M_g b + γ d.

*One false answer.* If d is one answer (the self-protective "no" of Clark and Desharnais, 1998),
weighted least squares estimate γ without bias, if all [M_g, d] together have full rank.

*Any false answers.* The data allow a γ if some b and d fit within the χ² quantile with
Σ_g (m_g − 1) degrees of freedom: the projection of a confidence region of all f_g, valid for every
b, d and γ in groups of a hundred rows or more. In u = (1 − γ)b and w = γd the misfit is convex, so
that these γ are an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deniable.errors import InputError
from deniable.estimate.agreement import contradiction
from deniable.estimate.columns import Presented, target_text, where_text
from deniable.estimate.inference import normal_quantile
from deniable.estimate.query import Query, refuse_randomized_groups
from deniable.estimate.tabulate import Counts, Floats
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import Target
from deniable.numerals import count_text

_HEAVY = 1e6
"""Weight of an equation that must hold, relative to the largest weight of the others."""

_STEPS = 50
"""Bisections of an end of the interval of γ."""

UNSEEN = (
    "Groups assigned at random are assumed. Respondents who follow the instruction but answer "
    "about another true value are not detectable."
)


@dataclass(frozen=True)
class HonestyTest(Presented):
    """Whether groups with different designs fit one population, and the share of respondents who
    do not follow the instruction.

    ``estimate, standard_error``: of γ if they all give ``answer``; None if the designs do not
    determine it. ``allowed``: smallest and largest γ at the level, for any false answers; None if
    none fits.
    """

    attribute: str
    groups: int
    n_records: int
    statistic: float
    degrees_of_freedom: int
    answer: str
    estimate: float | None
    standard_error: float | None
    allowed: tuple[float, float] | None
    level: float
    group: tuple[tuple[str, str], ...] = ()

    target: ClassVar[Target] = "population"

    @property
    def p_value(self) -> float:
        """p-value of X², if all respondents follow the instruction."""
        from scipy.special import chdtrc  # only here: loading it takes a fifth of a second

        return float(chdtrc(self.degrees_of_freedom, self.statistic))

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return one row of plain values."""
        low = high = None
        if self.estimate is not None and self.standard_error is not None:
            margin = normal_quantile(self._level(level)) * self.standard_error
            low, high = self.estimate - margin, self.estimate + margin
        least, most = (None, None) if self.allowed is None else self.allowed
        return [
            dict(self.group)
            | {
                "attribute": self.attribute,
                "statistic": self.statistic,
                "degrees_of_freedom": self.degrees_of_freedom,
                "p_value": self.p_value,
                "estimate": self.estimate,
                "standard_error": self.standard_error,
                "low": low,
                "high": high,
                "least": least,
                "most": most,
            }
        ]

    def caption(self, level: float | None = None) -> str:
        """Return a caption."""
        return (
            f"Respondents who do not follow the instruction, {self.attribute}"
            f"{where_text(self.group)}: {count_text(self.n_records, 'row')} in {self.groups} "
            f"groups, of {target_text('population')}; {100 * self._level(level):g} % intervals"
        )

    def remarks(self) -> list[str]:
        """Return remarks on the table, one sentence each."""
        texts = [
            "χ² tests that all follow it. The estimate is the share of respondents who do not, if "
            f"they all answer '{self.answer}'; least and most allow any false answers."
        ]
        if self.estimate is None:
            texts.append("These designs do not determine the share from one false answer.")
        if self.allowed is None:
            texts.append(
                "No share of false answers that are alike in all groups explains the answers: the "
                "groups differ, or a design is not the declared one."
            )
        return [*texts, UNSEEN]

    def to_plain(self, level: float | None = None) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        (row,) = self.table(level)
        return {
            "group": dict(self.group),
            "n": self.n_records,
            "groups_of_rows": self.groups,
            "target": "population",
            "level": self._level(level),
            "answer": self.answer,
        } | {key: value for key, value in row.items() if key not in dict(self.group)}


@dataclass(frozen=True, kw_only=True)
class Honesty(Query[HonestyTest]):
    """Do groups of respondents with different designs follow their instructions?

    Args:
        of: one attribute, whose design differs between the groups.
        evasive: the answer of the respondents who do not follow the instruction, for the estimate
            of their share; the first one if not given, such as "no".

    Raises:
        InputError: if weights are given, several attributes are named, or a group is formed by a
            randomized attribute; from :meth:`answer`, if all rows have one design.
    """

    takes_weights: ClassVar[bool] = False

    evasive: str | None = None

    def answer(self, counts: Counts) -> list[HonestyTest]:
        """Return the test of one group of rows."""
        refuse_randomized_groups(counts.schema, self.by, "honesty is")
        if len(self.of) != 1:
            raise InputError("honesty is tested for one attribute; name one")
        (name,) = self.of
        position = counts.schema.position(name)
        answered = []
        for mechanism, tabulation in counts.parts:
            if mechanism.forms is not None:
                raise InputError("a release with forms is tested with agreement")
            channel = Channel(mechanism, (name,))
            matrix = channel.forward.apply(np.eye(channel.n_categories[0]))
            answered.append((tabulation.counts, matrix))
        first = answered[0][1]
        if all(np.array_equal(matrix, first) for _, matrix in answered):
            raise InputError(
                f"all rows have one design of '{name}'; honesty is tested between groups with "
                "different designs, a `plan` for each value of a kept column"
            )
        texts = counts.parts[0][0].output_labels[position]
        evasive = texts[0] if self.evasive is None else self.evasive
        if evasive not in texts:
            raise InputError(
                f"`evasive` is none of the answers of '{name}': {', '.join(texts[:8])}"
            )
        statistic, degrees = contradiction(answered, first.shape[1])
        estimate, error = share_of(answered, texts.index(evasive))
        return [
            HonestyTest(
                name,
                len(answered),
                counts.n_records,
                statistic,
                degrees,
                evasive,
                estimate,
                error,
                allowed_shares(answered, self.level),
                self.level,
                counts.group,
            )
        ]


def _expected(counts: Floats) -> Floats:
    """Return frequencies away from 0, for weights."""
    return np.asarray((counts + 1) / (counts.sum() + len(counts)))


def share_of(
    answered: Sequence[tuple[Floats, Floats]], place: int
) -> tuple[float | None, float | None]:
    """Return the share of respondents who give one answer without following the instruction, and
    its standard error, from the counts and the matrix of each group."""
    m, a = answered[0][1].shape
    false = np.eye(m)[:, [place]]
    mean, contrasts = np.full(a + 1, 1 / (a + 1)), np.eye(a + 1)[:, :-1] - 1 / (a + 1)
    expected = [_expected(counts) for counts, _ in answered]
    for _ in range(2):  # the second takes the weights of the first
        rows, targets = [], []
        for (counts, matrix), theta in zip(answered, expected, strict=True):
            both, n = np.hstack([matrix, false]), counts.sum()
            root = np.sqrt(n / theta)
            rows.append(root[:, None] * (both @ contrasts))
            targets.append(root * (counts / n - both @ mean))
        design = np.concatenate(rows)
        if np.linalg.matrix_rank(design) < a:
            return None, None
        moved = np.linalg.lstsq(design, np.concatenate(targets))[0]
        z = mean + contrasts @ moved
        expected = [
            np.maximum(np.hstack([matrix, false]) @ z, theta / len(theta))
            for (_, matrix), theta in zip(answered, expected, strict=True)
        ]
    variance = contrasts[-1] @ np.linalg.solve(design.T @ design, contrasts[-1])
    return float(z[-1]), float(np.sqrt(variance))


def misfit(answered: Sequence[tuple[Floats, Floats]], share: float | None) -> tuple[float, float]:
    """Return the least misfit if a share of respondents does not follow the instruction (any share
    for None), and the share at which it is attained."""
    from scipy.optimize import nnls

    m, a = answered[0][1].shape
    rows, targets = [], []
    for counts, matrix in answered:
        n = counts.sum()
        root = np.sqrt(n / _expected(counts))
        rows.append(root[:, None] * np.hstack([matrix, np.eye(m)]))
        targets.append(root * counts / n)
    heavy = _HEAVY * max(float(np.abs(block).max()) for block in rows)
    followed, false = np.repeat([1.0, 0.0], [a, m]), np.repeat([0.0, 1.0], [a, m])
    exact = [followed + false] if share is None else [followed, false]
    sums = [1.0] if share is None else [1 - share, share]
    design = np.vstack([*rows, *(heavy * row[None] for row in exact)])
    found, _ = nnls(design, np.concatenate([*targets, heavy * np.array(sums)]))
    left = np.concatenate(targets) - np.vstack(rows) @ found
    return float(left @ left), float(false @ found)


def allowed_shares(
    answered: Sequence[tuple[Floats, Floats]], level: float
) -> tuple[float, float] | None:
    """Return the smallest and largest share of respondents who do not follow the instruction that
    the answers allow at a level; None if none fits."""
    from scipy.special import chdtri

    most = float(chdtri(sum(len(counts) - 1 for counts, _ in answered), 1 - level))
    least_misfit, inside = misfit(answered, None)
    if least_misfit > most:
        return None
    ends = []
    for outside in (0.0, 1.0):
        near, far = inside, outside
        if misfit(answered, outside)[0] <= most:
            near = outside
        else:
            for _ in range(_STEPS):
                middle = (near + far) / 2
                fits = misfit(answered, middle)[0] <= most
                near, far = (middle, far) if fits else (near, middle)
        ends.append(near)
    return ends[0], ends[1]
