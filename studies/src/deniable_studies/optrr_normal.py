"""Figure 4 of Huang and Du: a normal prior and four worst posteriors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from deniable.frontier.priors import from_distribution
from deniable.solvers.matrices import response, square
from deniable.solvers.matrices.certificate import average_limits
from deniable_studies import optrr_claims as claims
from deniable_studies import optrr_normal_claims as stated
from deniable_studies.drawing import letter
from deniable_studies.optrr import (
    N_RECORDS,
    Case,
    Comparison,
    Effort,
    compare,
    search_front,
)
from deniable_studies.optrr_drawing import (
    ERROR,
    FRONT_CAPTION,
    PRIVACY,
    RATIO_CAPTION,
    draw_fronts,
    draw_ratios,
    fronts_table,
    levels_table,
    summary_table,
)
from deniable_studies.optrr_normal_claims import PRINTED, SOURCE
from deniable_studies.study import Figure, Findings, Setting, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

FULL, QUICK = Effort(20_000, 100, 24, 20), Effort(300, 40, 4, 2)

OTHER_RUNS = {False: (8, Effort(2_000, 40, 0, 0)), True: (3, Effort(300, 40, 0, 0))}
"""Quick or not: how many more runs of the search at the first δ, and how long each is."""

_STREAM = 4


def comparisons(setting: Setting) -> list[Comparison]:
    """Return both fronts and the bound for each δ."""
    effort = QUICK if setting.quick else FULL
    prior = from_distribution("normal,10")
    found = []
    for i, (delta, _, _) in enumerate(PRINTED):
        part = setting.part(0.95 * i / len(PRINTED), 0.95 * (i + 1) / len(PRINTED))
        found.append(
            compare(
                Case(f"δ = {delta:g}", prior, delta), effort, setting.generator(_STREAM, i), part
            )
        )
    return found


def least_private_square(
    delta: float, n_starts: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Return privacy and worst posterior of a square matrix that is asked for privacy 1 − δ."""
    prior = np.array(from_distribution("normal,10").shares)
    limits = average_limits(prior, 1.0 - delta, delta)
    with threadpool_limits(1):
        found = square.solve(limits, generator, n_starts=n_starts)
    return (
        float(response.privacy(found.matrix, prior)),
        float(response.worst_posterior(found.matrix, prior)),
    )


def other_runs(setting: Setting) -> list[float]:
    """Return the least privacy that further, shorter runs of the search reach at the first δ."""
    n_runs, effort = OTHER_RUNS[setting.quick]
    prior = np.array(from_distribution("normal,10").shares)
    found = []
    for i in range(n_runs):
        with setting.step(i, n_runs):
            generator = setting.generator(_STREAM, 8, i)
            found.append(float(search_front(prior, PRINTED[0][0], effort, generator).privacy[0]))
    return found


def run(setting: Setting) -> Findings:
    """Compute the four panels of Figure 4, with the bound."""
    effort = QUICK if setting.quick else FULL
    found = comparisons(setting)
    squares = [
        least_private_square(delta, effort.n_starts, setting.generator(_STREAM, 9, i))
        for i, (delta, _, _) in enumerate(PRINTED)
    ]
    others = other_runs(setting.part(0.95, 1.0))
    spent_on_others = OTHER_RUNS[setting.quick][1]
    return Findings(
        [
            stated.warner_claim(found),
            stated.search_claim(found, squares, others, spent_on_others),
            stated.range_claim(found),
            claims.lower_on_average(
                found,
                "“our scheme achieves a lower MSE (better utility) than the Warner scheme when the "
                "RR matrices are compared in the same privacy range”",
                SOURCE,
            ),
            claims.always_better(
                found,
                "“no matter what δ we choose, our scheme always achieves better performance than "
                "the Warner scheme”",
                SOURCE,
            ),
            claims.nearest_to_the_bound(found, "Huang and Du, section VII"),
            claims.nothing_below_the_bound(found),
        ],
        [
            Figure("fronts", FRONT_CAPTION, lambda canvas: _draw_fronts(canvas, found), (7.4, 6.2)),
            Figure("ratios", RATIO_CAPTION, lambda canvas: _draw_ratios(canvas, found), (7.4, 5.4)),
        ],
        [
            stated.least_privacy_table(found, squares),
            summary_table(found),
            stated.other_runs_table(others, spent_on_others),
            stated.cuts_table(),
            levels_table(found),
            fronts_table(found),
        ],
        choices=[
            "The paper does not say how it cuts the normal distribution into ten categories. Here: "
            "ten bins of equal width within three standard deviations of the mean, by the "
            "distribution function. Of the cuts in the table “cuts” those within three deviations "
            "come nearest to what is printed for Warner, which is therefore no independent check.",
            "The paper draws 10,000 records and takes their shares for the distribution; here the "
            "shares of the bins themselves are the prior, and N = 10,000.",
            effort.sentence(),
            "Matrices of the search that are still above δ after the repair of section V.G are "
            "mixed with a uniform answer, as little as is needed.",
        ],
        remarks=[
            "Theorem 6 as printed counts every covariance twice. Errors here are by the correct "
            "sum; how large the printed figures' errors are was not read off the curves.",
            "Where Warner's front rises in a step near the most privacy there can be, its matrices "
            "have p < 1/n: they answer with anything rather than the truth.",
            "Privacy here is an average over people and holds only if the prior is right; none of "
            "the matrices promises anything about an ε.",
        ],
    )


def _draw_fronts(canvas: "MatplotlibFigure", found: Sequence[Comparison]) -> None:
    panels = canvas.subplots(2, 2).ravel()
    for axes, comparison in zip(panels, found, strict=True):
        draw_fronts(axes, comparison)
    letter(list(panels), [c.case.name for c in found])
    for axes in panels[2:]:
        axes.set_xlabel(PRIVACY)
    for axes in panels[::2]:
        axes.set_ylabel(ERROR)
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def _draw_ratios(canvas: "MatplotlibFigure", found: Sequence[Comparison]) -> None:
    panels = canvas.subplots(2, 2, sharey=True).ravel()
    for axes, comparison in zip(panels, found, strict=True):
        draw_ratios(axes, comparison.levels)
    letter(list(panels), [c.case.name for c in found])
    for axes in panels[2:]:
        axes.set_xlabel(PRIVACY)
    for axes in panels[::2]:
        axes.set_ylabel("MSE over the least possible")
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


STUDY = Study(
    name="optrr-normal",
    title="OptRR, Figure 4: a normal prior, four worst posteriors, and the exact bound",
    source=SOURCE,
    question=f"How private and how accurate (N = {N_RECORDS:,}) are Warner's matrices and those of "
    "the evolutionary search, and how far are both from the best that any mechanism can do?",
    seconds=400,
    run=run,
)
