"""The figures of the genome study."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deniable.report.method_styles import BLACK, GREY
from deniable_studies.drawing import STYLES, grid, letter, plot_method
from deniable_studies.genome_runs import IN_THE_NOTEBOOK, METHODS, PValues, Run, runs_text
from deniable_studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

_LABELS = {"kronecker": "Kronecker", "heuristic": "heuristic", "optimal": "optimum"}


def figures(
    runs: Sequence[Run],
    null: PValues,
    printed: Mapping[str, Sequence[float]],
    printed_at: Sequence[int],
) -> list[Figure]:
    """Return all figures.

    Args:
        runs: all runs.
        null: p-values where there is nothing to find.
        printed: averages of the paper's figure, by method.
        printed_at: the k that these are at.
    """
    many = runs_text(runs)
    return [
        Figure(
            "accuracy",
            "Average absolute difference from the original χ² over the number of SNPs, all methods "
            "at the ε of the record that the heuristic comes to: (a) the released χ² as it stands, "
            f"(b) the corrected χ². {many}; bars reach over all of them.",
            lambda canvas: _draw_accuracy(canvas, runs),
            (8.0, 3.9),
        ),
        Figure(
            "notebook",
            "The paper's Figure 5: averages printed in the authors' notebook (crosses), and ours: "
            "(a) every SNP randomized from the last SNP's copies, as the notebook does; (b) every "
            f"SNP from its own, as the paper describes. {many}; bars reach over all of them.",
            lambda canvas: _draw_notebook(canvas, runs, printed, printed_at),
            (8.0, 3.9),
        ),
        Figure(
            "p-values",
            f"Distribution of the p-values of {len(null.corrected):,} SNPs that have nothing to do "
            "with the disease, allele and status randomized together: share of SNPs with a p-value "
            "of at most x; the diagonal is what it should be. (a) all, (b) small p-values, "
            "logarithmic.",
            lambda canvas: _draw_p_values(canvas, null),
            (8.0, 3.9),
        ),
    ]


def _bars(
    axes: "Axes", runs: Sequence[Run], method: str, value: Callable[[Run], float], shift: float
) -> None:
    sizes = sorted({run.n_snps for run in runs})
    values = [[value(r) for r in runs if (r.n_snps, r.method) == (k, method)] for k in sizes]
    means = np.array([np.mean(each) for each in values])
    low, high = (np.array([pick(each) for each in values]) for pick in (min, max))
    places = np.array(sizes) + shift
    axes.errorbar(
        places,
        means,
        yerr=[means - low, high - means],
        fmt="none",
        ecolor=STYLES[method].colour,
        elinewidth=0.8,
        capsize=2.5,
    )
    plot_method(axes, method, places, means, label=_LABELS[method])


def _frame(axes: "Axes") -> None:
    axes.set_xlabel("number of SNPs, k")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, 106)
    grid(axes)


def _draw_accuracy(canvas: "MatplotlibFigure", runs: Sequence[Run]) -> None:
    left, right = canvas.subplots(1, 2, sharey=True)
    for place, method in enumerate(METHODS):
        _bars(left, runs, method, lambda run: run.naive, 0.9 * (place - 1))
        _bars(right, runs, method, lambda run: run.corrected, 0.9 * (place - 1))
    for axes in (left, right):
        _frame(axes)
    left.set_ylabel("average |difference from the original χ²|")
    letter((left, right), ("χ² of the released counts", "corrected χ²"))
    canvas.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _draw_notebook(
    canvas: "MatplotlibFigure",
    runs: Sequence[Run],
    printed: Mapping[str, Sequence[float]],
    printed_at: Sequence[int],
) -> None:
    left, right = canvas.subplots(1, 2, sharey=True)
    for place, method in enumerate(IN_THE_NOTEBOOK):
        shift = 0.9 * (place - 0.5)
        _bars(left, runs, method, lambda run: run.notebook, shift)
        _bars(right, runs, method, lambda run: run.naive, shift)
    for axes in (left, right):
        for method in IN_THE_NOTEBOOK:
            axes.plot(
                printed_at,
                printed[method],
                "x",
                color="#D55E00",
                markersize=6,
                zorder=5,
                label="printed" if method == IN_THE_NOTEBOOK[0] else "_printed",
            )
        _frame(axes)
    left.set_ylabel("average |difference from the original χ²|")
    letter((left, right), ("from the last SNP's copies", "as the paper describes"))
    canvas.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _draw_p_values(canvas: "MatplotlibFigure", null: PValues) -> None:
    left, right = canvas.subplots(1, 2)
    n = len(null.corrected)
    shares = np.arange(1, n + 1) / n
    least = 1 / n
    for axes in (left, right):
        axes.plot([least, 1], [least, 1], color=GREY, linewidth=0.8, label="uniform")
        for values, look, label in (
            (null.corrected, {"color": BLACK, "linestyle": "-"}, "corrected"),
            (null.naive, {"color": "#D55E00", "linestyle": "--"}, "released table as it stands"),
        ):
            axes.plot(
                np.maximum(values, least), shares, drawstyle="steps-post", label=label, **look
            )
        axes.set_xlabel("p-value")
        grid(axes)
    left.set_ylabel("share of SNPs with at most this p-value")
    right.set_xscale("log")
    right.set_yscale("log")
    letter((left, right), ("all p-values", "small p-values"))
    canvas.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
