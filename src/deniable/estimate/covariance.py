"""Covariances of two attributes: their attenuation by randomization, and unbiased estimates.

For the table π of two attributes with margins α and β, C = π − αβᵀ is the covariance of their
indicator vectors, and sᵀCt that of scores s, t. A law attenuates it (Ruiz, "λ-randomization",
equation (9)), and a joint law adds to it, so that independent attributes come out correlated
(docs/proofs/interactions.md, Theorem 7). The estimate is unbiased by docs/proofs/estimation.md,
Theorem 6.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deniable.errors import InputError
from deniable.estimate.columns import Presented, target_text, where_text
from deniable.estimate.inference import Inference, normal_quantile
from deniable.estimate.query import Query
from deniable.estimate.scores import SOURCE_TEXT, Scores, ScoreSource, single_scores
from deniable.estimate.tabulate import Counts, Floats
from deniable.mechanism.prediction import CovariancePrediction, Target, predict_covariance
from deniable.mechanism.published import PublishedChannel
from deniable.numerals import count_text

PairScores = tuple[Scores, Scores]
"""One number per category of either attribute; ``middle`` for the middles of bins; None takes the
schema's."""


def indicator_covariance(table: Floats) -> Floats:
    """Return π − αβᵀ of a table of frequencies, shape (a, b)."""
    return table - np.outer(table.sum(axis=1), table.sum(axis=0))


@dataclass(frozen=True)
class CovarianceEstimate(Presented):
    """An estimated covariance of two scored attributes."""

    attributes: tuple[str, str]
    n_records: int
    target: Target
    estimate: float
    standard_error: float
    released: float | None
    prediction: CovariancePrediction | None
    group: tuple[tuple[str, str], ...] = ()
    scores: tuple[ScoreSource, ScoreSource] = ("given", "given")
    level: float = 0.95

    def confidence_interval(self, level: float | None = None) -> tuple[float, float]:
        """Return the ends of the interval."""
        margin = normal_quantile(self._level(level)) * self.standard_error
        return self.estimate - margin, self.estimate + margin

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return one row of plain values."""
        plain = self.to_plain(level)
        names = ("estimate", "standard_error", "low", "high")
        return [
            dict(self.group)
            | {"first": self.attributes[0], "second": self.attributes[1]}
            | {name: plain[name] for name in names}
            | {"uncertain": plain["low"] <= 0 <= plain["high"], "released": self.released}
        ]

    def caption(self, level: float | None = None) -> str:
        """Return a caption."""
        made = " and ".join(dict.fromkeys(SOURCE_TEXT[source] for source in self.scores))
        return (
            f"Covariance of {' and '.join(self.attributes)}{where_text(self.group)}: "
            f"{count_text(self.n_records, 'row')}, of {target_text(self.target)}; {made}; "
            f"{100 * self._level(level):g} % intervals"
        )

    axis = "covariance"

    def to_plain(self, level: float | None = None) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        low, high = self.confidence_interval(level)
        return {
            "attributes": list(self.attributes),
            "group": dict(self.group),
            "n": self.n_records,
            "target": self.target,
            "scores": list(self.scores),
            "level": self._level(level),
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": low,
            "high": high,
            "released": self.released,
            "share": None if self.prediction is None else self.prediction.share,
            "spurious": None if self.prediction is None else self.prediction.spurious,
        }


@dataclass(frozen=True, kw_only=True)
class Covariance(Query[CovarianceEstimate]):
    """Covariance of two attributes' scores before randomization.

    With ℓ_c = Lᵀc the plug-in θ·ℓ_st − (θ·ℓ_s)(θ·ℓ_t) is off by the covariance of the two estimated
    means. That covariance is linear in the released frequencies, so adding its estimate leaves no
    bias (``population`` with unequal weights: none of order 1/n):

        table        θ₂·(ℓ_s ℓ_t − ℓ_st)
        population   θ₂·(ℓ_s − μ_s)(ℓ_t − μ_t)/(1 − Σw²/W²)

    The standard error is that of the linear function with weights (s − μ_s)(t − μ_t), from the
    joint estimate's exact covariance.

    Args:
        target: truth that errors are for: of these rows (``table``), or of the ``population`` that
            they were drawn from.
        scores: one number per category, or ``middle`` for the middles of bins, of each of the two:
            ``0,1;middle``; by default the schema's.

    Raises:
        InputError: if it is not of two attributes; from :meth:`answer`, if an attribute is unknown,
            has no scores or is to form subgroups, the counts have another shape, the randomization
            has wiped the covariance out, or a population is estimated from one row.
    """

    takes_answered: ClassVar[bool] = True

    target: Target = "table"
    scores: PairScores = (None, None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.of) != 2:
            raise InputError("a covariance is of two attributes; name both of them, as in a,b")

    def answer(self, counts: Counts) -> list[CovarianceEstimate]:
        """Return the covariance in one group of rows."""
        schema, population = counts.schema, self.target == "population"
        if by := self.subgroups(schema):
            raise InputError(
                f"a covariance is not estimated within subgroups of '{by[0]}', which is "
                "randomized; group by a kept column"
            )
        first, second = self.of
        inference = Inference(counts, (first, second), self.target)
        (first_source, s), (second_source, t) = (
            single_scores(schema.variable(name).attribute, each, answered=self.answered)
            for name, each in zip(self.of, self.scores, strict=True)
        )
        shape = inference.channel.n_categories
        weights = (np.broadcast_to(s[:, None], shape), np.broadcast_to(t[None, :], shape))
        if self.answered:
            found, moved = zip(
                *(
                    inference.linearized(each * inference.answered, inference.answered)
                    for each in (*weights, np.outer(s, t))
                ),
                strict=True,
            )
            error = inference.error_of(moved[2] - found[0] * moved[1] - found[1] * moved[0])
            return [
                CovarianceEstimate(
                    attributes=(first, second),
                    n_records=counts.n_records,
                    target=self.target,
                    estimate=found[2] - found[0] * found[1],
                    standard_error=error,
                    released=None,
                    prediction=None,
                    group=counts.group,
                    scores=(first_source, second_source),
                    level=self.level,
                )
            ]
        if population and counts.square_weight >= 1:
            raise InputError(
                "the covariance in a population cannot be estimated from a single record"
            )
        parts = [  # ℓ_s, ℓ_t and ℓ_st over the released tables
            (fraction, part, [part.influence(each) for each in (*weights, np.outer(s, t))])
            for fraction, part in inference.parts
        ]
        mean_first, mean_second, mean_both = (
            sum(
                fraction * float((part.tabulation.frequencies * along[i]).sum())
                for fraction, part, along in parts
            )
            for i in range(3)
        )
        correction = 0.0
        for fraction, part, (along_first, along_second, along_both) in parts:
            if population:
                moment = (along_first - mean_first) * (along_second - mean_second)
            else:
                moment = along_first * along_second - along_both
            correction += fraction**2 * float((part.tabulation.square_frequencies * moment).sum())
            between = part.between_forms(
                lambda table: np.asarray(s @ table.sum(axis=1)),
                lambda table: np.asarray(table.sum(axis=0) @ t),
            )
            correction -= fraction**2 * float(between)
        if population:
            correction /= 1 - counts.square_weight
        channels = [part.channel for _, part in inference.parts]
        released = None
        if not any(each.n_outputs != shape or each.shared_matrices for each in channels):
            released = float(s @ indicator_covariance(counts.frequencies) @ t)
        gradient = np.outer(s - mean_first, t - mean_second)
        estimate = CovarianceEstimate(
            attributes=(first, second),
            n_records=counts.n_records,
            target=self.target,
            estimate=mean_both - mean_first * mean_second + correction,
            standard_error=inference.linear(gradient).standard_error,
            released=released,
            prediction=_common_prediction(inference, first, second),
            group=counts.group,
            scores=(first_source, second_source),
            level=self.level,
        )
        return [estimate]


def _common_prediction(
    inference: Inference, first: str, second: str
) -> CovariancePrediction | None:
    if any(
        part.channel.shared_matrices or isinstance(part.channel, PublishedChannel)
        for _, part in inference.parts
    ):
        return None
    predictions = [
        predict_covariance(part.channel.mechanism, first, second) for _, part in inference.parts
    ]
    if any(prediction != predictions[0] for prediction in predictions[1:]):
        return None
    return predictions[0]
