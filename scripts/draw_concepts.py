"""Draw the pictures of two pages, concepts and choosing: .venv/bin/python scripts/draw_concepts.py

The same pictures every time: the one draw in them is seeded, the rest is computed.
"""

from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import deniable
from deniable.mechanism.channel import Channel
from deniable.statement.expected_accuracy import expected_accuracy

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
TRUE, RELEASED, RECOVERED = "#37474f", "#b0bec5", "#00897b"
mpl.rcParams.update({
    "svg.hashsalt": "deniable", "svg.fonttype": "path", "font.size": 10,
    "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "white",
})  # fmt: skip


def save(figure: Figure, name: str) -> None:
    figure.savefig(IMAGES / name, metadata={"Date": None}, bbox_inches="tight")


def dense(plan: Any) -> Any:
    """The chance of every answer (row) to every record (column)."""
    forward = Channel(plan.mechanism, plan.mechanism.schema.names).forward
    sizes = plan.mechanism.schema.n_categories
    units = np.eye(int(np.prod(sizes))).reshape((-1, *sizes))
    return np.stack([forward.apply(unit).ravel() for unit in units], axis=1)


def one_table() -> None:
    """Shares of one attribute: true, as released, and recovered with their intervals."""
    name = "education"
    table = pd.read_csv(ROOT / "examples" / "insurance.csv", dtype=str)
    whole = deniable.Schema.from_toml(ROOT / "examples" / "insurance.toml")
    (attribute,) = (a for a in whole.attributes if a.name == name)
    plan = deniable.design(
        deniable.Schema((attribute,)), attribute_epsilon=[1.0], method="kronecker"
    )
    counts = table[name].value_counts().reindex(list(attribute.categories)).to_numpy()
    random = np.random.default_rng(1)
    answers = [random.multinomial(n, p) for n, p in zip(counts, dense(plan).T, strict=True)]
    released = pd.DataFrame({name: np.repeat(attribute.categories, np.sum(answers, axis=0))})
    estimate = deniable.open(released, plan).shares([name])[0]
    low, high = estimate.confidence_interval(0.95)
    labels = list(attribute.categories)
    at = np.arange(len(labels))
    figure = Figure(figsize=(7, 3.2))
    axes = figure.subplots()
    for step, (frame, colour, text) in enumerate(
        [(table, TRUE, "the table"), (released, RELEASED, "as released, ε = 1")]
    ):
        shares = frame[name].value_counts(normalize=True).reindex(labels)
        axes.bar(at + 0.27 * (step - 1), 100 * shares, 0.25, color=colour, label=text)
    shares = np.asarray(estimate.values)
    axes.bar(at + 0.27, 100 * shares, 0.25, color=RECOVERED, label="recovered, with its interval")
    errors = 100 * np.array([shares - np.ravel(low), np.ravel(high) - shares])
    axes.errorbar(at + 0.27, 100 * shares, errors, fmt="none", ecolor="black", capsize=3, lw=1)
    axes.set_xticks(at, labels)
    axes.set_ylabel("% of 22,272 women")
    axes.set_xlabel("education")
    axes.legend(frameon=False)
    save(figure, "concept-one-table.svg")


def four_observers() -> None:
    """How sure an answer can make each of the four, of what had odds of 1 to 9 before."""
    schema = deniable.Schema.anonymous([5] * 10)
    mechanism = deniable.design(schema, attribute_epsilon=[1.25] * 10).mechanism
    levels = [
        ("sees that column alone", mechanism.attribute_epsilon[0]),
        ("sees three columns", mechanism.subset_epsilon(schema.names[:3])),
        ("sees the row, knows all\nthe other true values", mechanism.epsilon_given_rest[0]),
        ("sees the row,\nwhatever they know", mechanism.epsilon),
    ]
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    for place, (_, epsilon) in enumerate(reversed(levels)):
        odds = np.exp(epsilon) / 9
        axes.barh(place, 100 * odds / (1 + odds), 0.6, color=RECOVERED)
        axes.barh(place, 10, 0.6, color=TRUE)
        percent = 100 * odds / (1 + odds)
        axes.text(percent + 1, place, f"{percent:.0f} %   ε = {epsilon:.2f}", va="center")
    axes.set_yticks(range(4), [text for text, _ in reversed(levels)])
    axes.set_xlim(0, 122)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("% sure of it at most; dark: before the release")
    save(figure, "concept-four-observers.svg")


def laws() -> None:
    """The chance of every answer to every record, for three laws of the same two attributes."""
    sizes, levels = (2, 3), (1.0, 2.0)
    schema = deniable.Schema.anonymous(list(sizes))
    apart = deniable.design(schema, attribute_epsilon=levels, method="kronecker")
    together = deniable.design(schema, attribute_epsilon=levels, method="optimal")
    merged = deniable.design(
        deniable.Schema.anonymous([6]), attribute_epsilon=[together.mechanism.epsilon],
        method="kronecker",
    )  # fmt: skip
    labels = ["".join(map(str, cell)) for cell in product(*(range(a) for a in sizes))]
    figure = Figure(figsize=(7, 2.9))
    panels: list[tuple[str, Any]] = [
        ("each by itself", apart), ("together (optimal)", together), ("merged into one", merged),
    ]  # fmt: skip
    for axes, (title, plan) in zip(figure.subplots(1, 3), panels, strict=True):
        matrix = dense(plan)
        axes.imshow(matrix, cmap="GnBu", vmin=0, vmax=0.8)
        for y, x in product(range(6), range(6)):
            colour = "white" if matrix[y, x] > 0.4 else "black"
            axes.text(
                x, y, f"{100 * matrix[y, x]:.0f}", ha="center", va="center", color=colour, size=8
            )
        axes.set_xticks(range(6), labels)
        axes.set_yticks(range(6), labels)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(f"{title}\nε = {plan.mechanism.epsilon:.2f}", fontsize=10)
        axes.set_xlabel("true record")
    figure.axes[0].set_ylabel("answer")
    figure.tight_layout()
    save(figure, "concept-laws.svg")


def suspicions() -> None:
    """How sure a released row can make anybody at most, of what they suspected, over ε."""
    epsilon = np.linspace(0, 10, 201)
    figure = Figure(figsize=(7, 3.4))
    axes = figure.subplots()
    for prior, colour in ((0.5, TRUE), (0.1, RECOVERED), (0.01, "#e65100"), (0.001, RELEASED)):
        odds = prior / (1 - prior) * np.exp(epsilon)
        label = f"1 in {round(1 / prior):,} before"
        axes.plot(epsilon, 100 * odds / (1 + odds), color=colour, label=label, linewidth=2)
    for border, text in ((5, "weak from here on"), (10, "next to nothing")):
        axes.axvline(border, color="black", linewidth=0.7, linestyle=":")
        axes.text(border - 0.1, 3, text, rotation=90, ha="right", va="bottom", fontsize=8)
    axes.set(xlim=(0, 10), ylim=(0, 100), xlabel="ε of the whole record, in nats")
    axes.set_ylabel("can become at most, %")
    axes.legend(
        frameon=False, loc="center left", bbox_to_anchor=(1.02, 0.5), title="a suspicion of"
    )
    save(figure, "choosing-suspicions.svg")


def errors() -> None:
    """The standard error of a typical share over ε, for numbers of rows and of attributes."""
    totals = [0.5, 1, 1.5, 2, 3, 4, 6, 8]
    figure = Figure(figsize=(7, 3.6))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, k in zip(panels, (3, 12), strict=True):
        schema = deniable.Schema.anonymous([5] * k)
        expected = [expected_accuracy(deniable.design(schema, epsilon=e).account) for e in totals]
        for rows, colour in ((500, RELEASED), (5_000, RECOVERED), (50_000, TRUE)):
            points = [100 * (one.shares[0].variance / rows) ** 0.5 for one in expected]
            axes.plot(totals, points, "o-", color=colour, markersize=4, label=f"{rows:,} rows")
        axes.axhline(10, color="#e65100", linewidth=1, linestyle="--")
        axes.text(8, 10.6, "half of the share", color="#e65100", fontsize=8, ha="right")
        axes.set_yscale("log")
        axes.set_yticks([0.1, 0.3, 1, 3, 10, 30, 100], ["0.1", "0.3", "1", "3", "10", "30", "100"])
        axes.minorticks_off()
        axes.set(xlim=(0, 8.3), xlabel="ε of the whole record", title=f"{k} attributes")
        axes.grid(visible=True, axis="y", color="#eceff1")
    panels[0].set_ylabel("standard error of a share of 20 %, points")
    panels[1].legend(frameon=False, fontsize=8, loc="upper right")
    figure.tight_layout()
    save(figure, "choosing-errors.svg")


if __name__ == "__main__":
    one_table()
    four_observers()
    laws()
    suspicions()
    errors()
