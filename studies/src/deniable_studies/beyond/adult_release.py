"""Adult released again and again: nine attributes, at one total, by every method.

Forty-five tables of nine attributes (nine marginals, 36 pairs) are estimated from every release.
The squared error of a table is averaged over its cells, then over tables. The truth is the table
that was randomized: only the randomization is random. Published alternatives are drawn from their
descriptions, and by the public package where that is installed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.laws.response import attenuation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import expected_error
from deniable.schema import Schema
from deniable_studies.adult import CATEGORICAL, Adult, read_adult
from deniable_studies.adult import schema as adult_schema
from deniable_studies.beyond import baselines, peers
from deniable_studies.beyond.baselines import (
    RSFD,
    RSFD_STATED,
    one_pair,
    pair_variance,
)
from deniable_studies.beyond.offers import (
    OFFERS,
    ONE_PAIR,
    Pairs,
    draw_offer,
    draw_realistic_fake_data,
)
from deniable_studies.beyond.peers import PeerRun, run_peers
from deniable_studies.beyond.releases import (
    DRAWN,
    FORMS,
    OURS,
    Released,
    cell_counts,
    mechanism_for,
    release_again,
)
from deniable_studies.drawing import grid, legend, letter, plot_method
from deniable_studies.study import Cell, Judged, Rows, Setting, Study, Values
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

RSRFD = "rsrfd"
SMP = "smp"
LEVELS, QUICK_LEVELS = (1.0, 2.0, 4.0, 8.0), (1.0, 8.0)
COMPLETE_CASES = 45_222
"""Complete cases of both files, for which the stated variances hold."""

STATED: dict[str, tuple[float, float, float, float]] = {
    "optimal": (7.5e-4, 1.7e-4, 4.0e-5, 1.2e-5),
    "kronecker": (1.7e-2, 3.8e-3, 7.8e-4, 1.4e-4),
    SMP: (8.9e-4, 1.3e-4, 3.3e-5, 2.7e-5),
}
"""At ``LEVELS``: mean over the attributes of the averaged variance of an unbiased marginal."""

REACHED: dict[float, tuple[float, float]] = {
    1.0: (5.2e-4, 1.5e-2),
    2.0: (1.2e-4, 1.5e-3),
    4.0: (2.4e-5, 6.2e-5),
    8.0: (4.2e-6, 3.3e-6),
}
"""At a level, mean squared errors of marginals and of pairs that a prototype of forms had at
θ = 0.5."""

COVERED = 0.935, 0.965
"""Between which shares of the intervals should hold the truth."""

FARTHEST = 5.0
"""Standard errors by which a mean over releases may differ from its expectation."""


def sampling_error(
    n_categories: Sequence[int], concentration: Sequence[float], epsilon: float, n_records: int
) -> float:
    """Return the predicted error of SMP with k-ary randomized response, mean over attributes.

    As an estimate of this table's shares, averaged over the cells of an attribute: about m = n/k
    people answer for it. The randomization adds (1 − 1/a)(1/φ² − 1)/(a m), and which people answer
    adds (1 − Σπ²)(1/m − 1/n)/a, drawn without replacement. The number of answers is taken at its
    mean.

    Args:
        n_categories: of the attributes, shape (k,).
        concentration: Σπ² of every marginal, shape (k,).
        epsilon: the total, in nats.
        n_records: n.
    """
    answers = n_records / len(n_categories)
    return fmean(
        (1 - 1 / a) / a * (1 / attenuation(a, epsilon) ** 2 - 1) / answers
        + (1 - square) / a * (1 / answers - 1 / n_records)
        for a, square in zip(n_categories, concentration, strict=True)
    )


@dataclass(frozen=True)
class Offered:
    """A published alternative, drawn as described, at a level.

    Args:
        method: one of ``OFFERS``, or RS+RFD, whose fake values are drawn here from the true shares:
            nobody knows a better prior.
        asked: ε of the record, in nats.
        kind: ``marginals`` or ``pairs``.
        exact: the variance where the true table is uniform, as an estimate of a population; for
            RS+RFD that of RS+FD.
        measured: mean squared error of unbiased estimates over the releases.
        standard_error: of it.
    """

    method: str
    asked: float
    kind: str
    exact: float
    measured: float
    standard_error: float


def run_offers(
    columns: Sequence[NDArray[Any]],
    schema: Schema,
    epsilon: float,
    n_releases: int,
    setting: Setting,
    stream: int,
) -> list[Offered]:
    """Return the errors of published alternatives.

    Args:
        columns: codes per attribute, shape (n,) each.
        schema: the attributes.
        epsilon: the total, in nats.
        n_releases: of each method.
        setting: for seed and progress.
        stream: of the seed.
    """
    n, n_categories, names = len(columns[0]), schema.n_categories, schema.names
    truths = [cell_counts(columns, schema, (name,)) / n for name in names]
    of_pairs = {
        (i, j): cell_counts(columns, schema, (names[i], names[j])) / n
        for i, j in combinations(range(len(names)), 2)
    }
    random = setting.generator(30, stream)
    done = []
    offers = (*OFFERS, RSRFD)
    for place, method in enumerate(offers):
        errors: dict[str, list[float]] = {"marginals": [], "pairs": []}
        for release in range(n_releases):
            with setting.step(place * n_releases + release, len(offers) * n_releases):
                pairs: Pairs = {}
                if method == RSRFD:
                    shares = draw_realistic_fake_data(columns, truths, epsilon, random)
                else:
                    shares, pairs = draw_offer(method, columns, n_categories, epsilon, random)
                both = zip(shares, truths, strict=True)
                errors["marginals"].append(fmean(float(np.mean((s - t) ** 2)) for s, t in both))
                if pairs:
                    errors["pairs"].append(
                        fmean(float(np.mean((pairs[p] - of_pairs[p]) ** 2)) for p in pairs)
                    )
        told = baselines.SHARES[RSFD if method == RSRFD else method](n_categories, epsilon)
        exact = {"marginals": baselines.share_variance(n_categories, told) / n}
        if method in ONE_PAIR:
            known = one_pair(n_categories, epsilon, ONE_PAIR[method])
            exact["pairs"] = pair_variance(n_categories, known) / n
        done += [
            Offered(
                method,
                epsilon,
                kind,
                exact[kind],
                fmean(errors[kind]),
                float(np.std(errors[kind], ddof=1)) / n_releases**0.5,
            )
            for kind in exact
        ]
    return done


def population_marginal(mechanism: Mechanism, n_records: int) -> float:
    """Return the mean over attributes of the averaged variance of a share, as an estimate of the
    population, where the true table is uniform."""
    return fmean(
        expected_error(Channel(mechanism, (name,)), n_records, "population").mean_variance
        for name in mechanism.schema.names
    )


def population_sampling(n_categories: Sequence[int], epsilon: float, n_records: int) -> float:
    """Return the same for SMP: (1 − 1/a) k/(a φ² n)."""
    k = len(n_categories)
    return fmean(
        (1 - 1 / a) / a * k / (attenuation(a, epsilon) ** 2 * n_records) for a in n_categories
    )


@dataclass(frozen=True)
class Numbers:
    """Everything that the study rests on.

    Args:
        people: of the data.
        levels: totals, in nats.
        n_releases: of every method at every level.
        released: results by level and method.
        sampled: the predicted error of SMP's marginals, by level.
        offered: published alternatives, drawn from their descriptions.
        others: the public package's methods; empty where it is not installed.
    """

    people: Adult
    levels: Sequence[float]
    n_releases: int
    released: Mapping[tuple[float, str], Released]
    sampled: Mapping[float, float]
    offered: Sequence[Offered]
    others: Sequence[PeerRun]


def measure(setting: Setting) -> Numbers:
    """Release Adult again and again under every method, ours and others'."""
    assert setting.adult is not None  # the catalogue asks for it
    people = read_adult(setting.adult)
    schema = adult_schema()
    columns = [people.codes[name].astype(np.uint8) for name in CATEGORICAL]
    levels = QUICK_LEVELS if setting.quick else LEVELS
    n_releases = 8 if setting.quick else 200
    with_peers = peers.available()
    ours = setting.part(0.0, 0.5 if with_peers else 0.8)
    released = {}
    jobs = [(level, method) for level in levels for method in DRAWN]
    for place, (level, method) in enumerate(jobs):
        part = ours.part(place / len(jobs), (place + 1) / len(jobs))
        released[level, method] = release_again(
            columns, schema, method, level, n_releases, part, [place]
        )
    theirs = setting.part(0.5, 0.7) if with_peers else setting.part(0.8, 0.98)
    offered: list[Offered] = []
    for place, level in enumerate(levels):
        part = theirs.part(place / len(levels), (place + 1) / len(levels))
        offered += run_offers(columns, schema, level, 4 if setting.quick else 40, part, place)
    marginals = [cell_counts(columns, schema, (name,)) / people.n_people for name in schema.names]
    squares = [float(np.sum(shares**2)) for shares in marginals]
    sampled = {
        level: sampling_error(schema.n_categories, squares, level, people.n_people)
        for level in levels
    }
    others: list[PeerRun] = []
    if with_peers:
        n_peers, peer_levels = (1, levels[-1:]) if setting.quick else (5, levels)
        for place, level in enumerate(peer_levels):
            start = 0.7 + 0.28 * place / len(peer_levels)
            part = setting.part(start, start + 0.28 / len(peer_levels))
            others += run_peers(columns, schema.n_categories, level, n_peers, part)
    setting.advance(1.0)
    return Numbers(people, levels, n_releases, released, sampled, offered, others)


# Judges.


def stated() -> Judged:
    """Judge the variances that were stated for Adult."""
    schema = adult_schema()
    computed = {
        method: [
            population_sampling(schema.n_categories, level, COMPLETE_CASES)
            if method == SMP
            else population_marginal(mechanism_for(method, schema, level), COMPLETE_CASES)
            for level in LEVELS
        ]
        for method in STATED
    }
    pairs = [pair for m, values in STATED.items() for pair in zip(values, computed[m], strict=True)]
    right = sum(f"{s:.1e}" == f"{v:.1e}" for s, v in pairs)
    twice = sum(f"{s:.1e}" == rounded_twice(v) for s, v in pairs)
    farthest = max(abs(v / s - 1) for s, v in pairs)
    texts = [f"{m} " + ", ".join(f"{v:.3g}" for v in values) for m, values in computed.items()]
    return Judged(
        f"{right} of {len(pairs)} as rounded, the farthest {farthest:.1%} off: " + "; ".join(texts),
        right == len(pairs),
        farthest <= 0.05,
        "twice" if twice == len(pairs) else "other",
    )


def rounded_twice(value: float) -> str:
    """Return a positive number rounded to three digits, and that, halves up, to two."""
    digits, exponent = f"{value:.2e}".split("e")
    # A nudge turns the half, which no double holds exactly, upwards.
    return f"{float(digits) + 1e-9:.1f}e{exponent}"


def agreement(released: Sequence[Released]) -> Judged:
    """Judge whether measured errors are the expected ones."""
    deviations = {
        f"{row.method}, {kind}, ε = {row.asked:g}": errors.deviation
        for row in released
        for kind, errors in row.kinds.items()
    }
    worst = max(deviations, key=lambda place: abs(deviations[place]))
    far = sum(abs(d) > FARTHEST for d in deviations.values())
    # Of n standard normal numbers, about 4.6 % lie beyond 2.
    beyond_two = sum(abs(d) > 2 for d in deviations.values())
    return Judged(
        f"{len(deviations) - far} of {len(deviations)} within; {beyond_two} beyond 2; the farthest "
        f"{deviations[worst]:+.1f} ({worst})",
        far == 0,
        far <= len(deviations) / 10,
    )


def better(n: Numbers) -> Judged:
    """Judge joint against independent randomization."""
    worse = [
        (kind, f"{kind} at ε = {level:g}: {method} {errors.expected:.2g}, {other} {against:.2g}")
        for level in n.levels
        for method in ("optimal", "balanced")
        for kind, errors in n.released[level, method].kinds.items()
        for other in ("kronecker", "lambda")
        for against in [n.released[level, other].kinds[kind].expected]
        if errors.expected >= against
    ]
    return Judged(
        "; ".join(text for _, text in worse) or "at every level",
        not worse,
        all(kind == "pairs" for kind, _ in worse),
    )


def estimable(released: Sequence[Released]) -> Judged:
    """Judge whether every pair can be estimated."""
    refused = {m: [len(row.refused) for row in released if row.method == m] for m in DRAWN}
    balanced = sum(refused["balanced"])
    return Judged(
        f"{balanced} pairs refused under balanced, {sum(refused['optimal'])} under the optimum, "
        f"{min(refused[RSFD] + refused[RSFD_STATED])} of 36 under RS+FD at every level",
        balanced == 0,
    )


def reached(n: Numbers) -> Judged:
    """Judge the errors of forms against earlier results."""
    factors = {}
    for level, stated_ in REACHED.items():
        kinds = n.released[level, "forms"].kinds
        for kind, value in zip(("marginals", "pairs"), stated_, strict=True):
            factors[f"{kind} at ε = {level:g}"] = kinds[kind].measured / value
    worst = max(factors, key=factors.__getitem__)
    texts = [
        " / ".join(f"{errors.measured:.2g}" for errors in n.released[level, "forms"].kinds.values())
        for level in n.levels
    ]
    return Judged(
        f"{', '.join(texts)}; at most {factors[worst]:.2f} times the stated one ({worst}), at "
        f"the least {min(factors.values()):.2f}",
        all(factor <= 1.1 for factor in factors.values()),
        all(factor <= 1.5 for factor in factors.values()),
    )


def coverage(n: Numbers) -> Judged:
    """Judge the intervals of forms."""
    low, high = COVERED
    kinds = {"marginals": "shares", "pairs": "pair cells", "rare": "shares under 1 %"}
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for level in n.levels:
        for kind, share in n.released[level, "forms"].covered.items():
            found[kind].append(share)
    inside = {kind: all(low <= s <= high for s in shares) for kind, shares in found.items()}
    return Judged(
        "; ".join(
            f"{name} " + ", ".join(f"{100 * share:.1f}" for share in found[kind])
            for kind, name in kinds.items()
        )
        + f" % at ε = {', '.join(f'{level:g}' for level in n.levels)}",
        all(inside.values()),
        inside["marginals"] and inside["pairs"],
    )


def fewest(n: Numbers) -> Judged:
    """Judge forms for shares alone against everything else at the same ε, by exact variances."""
    behind = {}
    for level in n.levels:
        own = n.released[level, "forms-shares"].exact[0] or 0.0
        rivals = {m: n.released[level, m].exact[0] or float("inf") for m in (*OURS, RSFD)}
        rivals |= {
            o.method: o.exact for o in n.offered if o.asked == level and o.kind == "marginals"
        }
        best = min(rivals, key=rivals.__getitem__)
        behind[level] = own / rivals[best], best
    # The search for forms stops at so little, relative to the variance.
    lost = {level: both for level, both in behind.items() if both[0] > 1 + 1e-3}
    return Judged(
        "; ".join(
            f"at ε = {level:g} {factor:.2f} times the variance of {best}"
            for level, (factor, best) in behind.items()
        ),
        not lost,
        all(level < 2 for level in lost),
    )


# Tables, the figure and values of sentences.


def _error_rows(n: Numbers) -> Rows:
    drawn: list[list[Cell]] = [
        [
            *(row.asked, row.method, row.epsilon, row.given_rest, kind, errors.n_tables),
            *(errors.expected, errors.expected_median, errors.measured),
            *(errors.standard_error, errors.simplex, row.exact[kind == "pairs"]),
        ]
        for row in n.released.values()
        for kind, errors in row.kinds.items()
    ]
    return drawn + [
        [level, SMP, level, level, "marginals", 9, error, *[None] * 5]
        for level, error in n.sampled.items()
    ]


def _offer_rows(n: Numbers) -> Rows:
    return [[o.asked, o.method, o.kind, o.exact, o.measured, o.standard_error] for o in n.offered]


def _covered_rows(n: Numbers) -> Rows:
    return [
        [row.asked, row.method, kind, share]
        for row in n.released.values()
        for kind, share in row.covered.items()
    ]


def _values(n: Numbers) -> Values:
    ahead = []
    for level in n.levels:
        ratio = n.released[level, "optimal"].kinds["marginals"].expected / n.sampled[level]
        if ratio > 1:
            ahead.append(f"{level:g} ({ratio:.1f} times)")
    given = {
        method: ", ".join(f"{n.released[level, method].given_rest:.2f}" for level in n.levels)
        for method in (*OURS, *FORMS, RSFD)
    }
    return {
        "people": n.people,
        "n_releases": n.n_releases,
        "levels": ", ".join(f"{level:g}" for level in n.levels),
        "given_rest": "; ".join(f"{method} {levels}" for method, levels in given.items()),
        "sampling": f"SMP has smaller errors of marginals than the optimum at ε = "
        f"{', '.join(ahead)}. It leaves no table of two attributes."
        if ahead
        else "SMP has larger errors of marginals than the optimum at every level shown.",
        "peers": _PEERS.format(version=peers.installed_version()) if n.others else _NO_PEERS,
        "peers_caption": "Mean squared errors of marginals as multi-freq-ldpy estimates them "
        "(negative shares set to 0, divided by the sum)."
        if n.others
        else "Empty: multi-freq-ldpy is not installed.",
        "hollow": " Large hollow markers: the public package." if n.others else "",
    }


_NO_PEERS = (
    "The public baselines of multi-freq-ldpy were not run: it is not installed (extra “peers”). "
    "The predicted errors of SMP and RS+FD are shown without it."
)
_PEERS = (
    "The public baselines are multi-freq-ldpy {version}, with k-ary randomized response. It sets "
    "negative shares to 0 and divides by the sum, which lowers the error of rare categories and "
    "biases it; compare with the column of estimates projected to the simplex, not with the "
    "unbiased ones. It estimates no pairs."
)


def _draw(canvas: "MatplotlibFigure", n: Numbers) -> None:
    levels = n.levels
    panels = canvas.subplots(1, 3)
    for method in DRAWN:
        style = RSFD if method == RSFD_STATED else method
        look: dict[str, Any] = (
            {"label": "RS+FD as stated", "linestyle": (0, (1, 4)), "markerfacecolor": "none"}
            if method == RSFD_STATED
            else {}
        )
        rows = [n.released[level, method].kinds for level in levels]
        plot_method(panels[0], style, [], [], **look)
        for panel, kind in ((panels[0], "marginals"), (panels[1], "pairs")):
            if any(kind not in row for row in rows):
                continue
            if kind == "pairs" and any(n.released[level, method].refused for level in levels):
                continue  # the mean would be of the few that are left
            known = [row[kind] for row in rows]
            line, points = {"marker": "", "label": "_"}, {"linestyle": "none", "label": "_"}
            plot_method(panel, style, levels, [e.expected for e in known], **(look | line))
            plot_method(panel, style, levels, [e.measured for e in known], **(look | points))
            panel.errorbar(
                levels,
                [e.measured for e in known],
                [2 * e.standard_error for e in known],
                fmt="none",
                ecolor="#444444",
                elinewidth=0.8,
            )
            if kind == "pairs":
                medians = [e.expected_median for e in known]
                plot_method(panels[2], style, levels, medians, **look)
    plot_method(panels[0], SMP, levels, [n.sampled[level] for level in levels])
    for method, panel, kind in (
        ("smp-subset", panels[0], "marginals"),
        ("pair-subset", panels[1], "pairs"),
    ):
        drawn = [o.measured for o in n.offered if (o.method, o.kind) == (method, kind)]
        plot_method(panel, method, levels, drawn)
        if panel is not panels[0]:
            plot_method(panels[0], method, [], [])
    for method in (peers.SPL, SMP, "smp-subset", RSFD, RSFD_STATED):
        theirs = [o for o in n.others if o.method == method]
        style = RSFD if method == RSFD_STATED else method
        plot_method(
            panels[0],
            style,
            [o.asked for o in theirs],
            [o.measured for o in theirs],
            linestyle="none",
            markersize=8,
            markerfacecolor="none",
            label="_",
        )
    for panel in panels:
        panel.set_yscale("log")
        panel.set_xscale("log", base=2)
        panel.set_xticks(list(levels), [f"{level:g}" for level in levels])
        panel.set_xlabel("total ε, nats")
        grid(panel)
    panels[0].set_ylabel("mean squared error of a share")
    letter(list(panels), ["nine marginals", "36 pairs, mean", "36 pairs, median"])
    legend(canvas, panels[0], ncols=3)


STUDY = Study(
    read_text("beyond/adult-release.toml"),
    measure,
    judges={
        "stated": lambda _: stated(),
        "agreement": lambda n: agreement([*n.released.values()]),
        "better": better,
        "estimable": lambda n: estimable([*n.released.values()]),
        "reached": reached,
        "coverage": coverage,
        "fewest": fewest,
    },
    figures={"errors": _draw},
    tables={
        "errors": _error_rows,
        "offers": _offer_rows,
        "covered": _covered_rows,
        "peers": lambda n: [
            [o.asked, o.method, o.n_releases, o.measured, o.standard_error] for o in n.others
        ],
    },
    values=_values,
)
