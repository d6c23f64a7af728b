"""Algorithm 3 of Yamamoto and Shibuya line by line, as it is printed: for its run time only.

The package's own heuristic (``deniable.solvers.patterns.heuristic``) is the same algorithm in a
scaled form. Table I times the printed one, whose numbers grow like ∏ a_i; this module shows how
long that takes and how far double precision carries it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.solvers.patterns import closed_form


@dataclass(frozen=True)
class PrintedRun:
    """What the printed algorithm returns.

    Args:
        values: x_{k,0} to x_{k,k}, shape (k + 1,).
        levels: ε_1 to ε_k after line 10, in nats, shape (k,).
        first_not_finite: the i of the first step with a value that is not a finite number, from 3
            on; None if all are.
    """

    values: list[float]
    levels: list[float]
    first_not_finite: int | None


def run_as_printed(n_categories: Sequence[int], attribute_epsilon: Sequence[float]) -> PrintedRun:
    """Run Algorithm 3 in double precision, in plain loops.

    Args:
        n_categories: a_i, shape (k,), k at least 2.
        attribute_epsilon: ε_i in nats, shape (k,).
    """
    a = [float(n) for n in n_categories]
    levels = list(attribute_epsilon)
    base = closed_form.solve(n_categories[:2], levels[:2]).pattern_density
    x = [float(base[0, 0]), float(base[1, 0]), float(base[0, 1])]
    product, total = a[0], a[0]
    first_not_finite = None
    for i in range(3, len(a) + 1):
        n = a[i - 1]
        for j in range(1, i):
            x[j] = n * x[j] - n + 1
        product *= a[i - 2]
        total += a[i - 2]
        others = 0.0
        for j in range(1, i):
            others += (a[j - 1] - 1) * x[j]
        rest = product - total + i - 2
        growth = math.exp(levels[i - 1])
        # Lines 7: x_0 + (n − 1) x_i = n x_0', x_0 − e^ε x_i = −A − B + e^ε C.
        before = n * x[0]
        last = (before + others + rest - growth * (product - 1)) / (n - 1 + growth)
        x[0] = before - (n - 1) * last
        x.append(last)
        fits = x[0] >= 1 and last >= 1
        for j in range(1, i + 1):
            if x[0] < x[j]:
                fits = False
                break
        if not fits:
            x[0], x[i] = before - n + 1, 1.0
            ratio = (x[0] + others + rest) / (x[i] + product - 1)
            levels[i - 1] = math.log(ratio) if ratio > 0 else math.nan
        if first_not_finite is None and not (
            math.isfinite(x[0]) and math.isfinite(product) and math.isfinite(levels[i - 1])
        ):
            first_not_finite = i
    return PrintedRun(x, levels, first_not_finite)
