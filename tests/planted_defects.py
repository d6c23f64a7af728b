"""One-line defects, planted one by one in a copy of the source: do the tests that should see them?

Not a test itself: run by hand, some minutes, `just defects` or

    python tests/planted_defects.py [--only TEXT] [--unchanged]

Each defect is a line of a module written otherwise (a sign, an index, a factor, an off-by-one),
with the few test files of which one has to fail. A defect that none of them notices is listed as a
survivor, and the status is then 1; so it is where a line is no longer in the module, and this list
has to be brought up to date. With --unchanged the named files are run without any defect first, so
that none of them fails for another reason.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 300
"""A defect that makes the tests run longer than so many seconds has been noticed too."""

# By module and the test files (under tests/, without test_ and .py): lines, and what is written in
# their place. A line is given by any part of it that stands in the module once.
Lines = list[tuple[str, str]]
DEFECTS: dict[tuple[str, str], Lines] = {
    ("tables/survey_source", "unit/tables/survey_source"): [
        ("if value not in categories and label in categories", "if label in categories"),
        ("(numbers - back * of_day) *", "(numbers - back) *"),
        ("row_offset=self._done,", "row_offset=0,"),
    ],
    ("tables/survey_writing", "unit/tables/survey_writing"): [
        ("start += 1000", "break"),
        ("count[label] > 1 or (label", "(label"),
        ("stands if column.empty is None else None", "stands"),
    ],
    ("tables/declaring", "unit/tables/declaring"): [
        ("in rows if value not in entry", "in rows if value in entry"),
    ],
    ("laws/product", "unit/laws/product laws/every_law"): [
        ("at_least_one((weight * (n - 1), total", "at_least_one((weight * n, total"),
        ("(n * weight - total) /", "(n * weight + total) /"),
        ("aim = 1 - Decimal(2)", "aim = 1 + Decimal(2)"),
    ],
    ("laws/product", "unit/laws/family_samplers"): [
        ("[total - weight] * (n - 1), prefix_bits", "[total - weight] * n, prefix_bits"),
    ],
    ("laws/joint", "unit/laws/joint"): [
        ("1 + n_records(n_categories) * part", "n_records(n_categories) * part"),
        ("max(0.0, small)", "0.0"),
    ],
    ("laws/single_change", "unit/laws/family_checks unit/laws/family_samplers laws/every_law"): [
        ("(self.uniform_weight * others + self", "(self.uniform_weight + self"),
        ("change * n / ((n - 1) * total)", "change / ((n - 1) * total)"),
        ("piece == i + 2", "piece == i + 1"),
        ("single[second if i == first else first]", "single[first]"),
    ],
    ("laws/pattern_table", "unit/laws/pattern_table laws/every_law"): [
        ("np.log(others / same)", "np.log(same / others)"),
        ("[ascending.index(i) for i in subset]", "[list(subset).index(i) for i in ascending]"),
        ("int(changed[c]) * same)", "int(changed[c]) * others)"),
    ],
    ("laws/score", "unit/laws/score laws/every_law"): [
        ("rest[s] -= (n_categories - 1) *", "rest[s] -= n_categories *"),
        ("(self.total - kept) // (n - 1)", "(self.total - kept) // n"),
        ("at_least_one(pair) for pair in ratios", "pair for pair in ratios"),
        ("kept + (n - 1) * changed, kept - changed", "kept + n * changed, kept - changed"),
        ("fall, fall[other:]", "fall, fall[cost:]"),
        ("nats > cap * (1 - _MARGIN)", "nats > cap * 1.01"),
        ("score -= np.multiply(changes, cost", "score -= np.multiply(changes, 1"),
        ("(np.uint32(among) - changes.astype", "(changes.astype"),
        ("value << 48 | more >> _PREFIX", "value << 48 | more >> 15"),
        ("moved = chain(repeat(0, cost * changes)", "moved = chain(repeat(0, changes)"),
    ],
    ("laws/transforms", "unit/laws/transforms"): [
        ("changed = (moved[0] - moved[1]) / n", "changed = (moved[0] - moved[1]) / (n - 1)"),
        ("moved[0] -= np.add.reduce(moved[1:]", "moved[0] += np.add.reduce(moved[1:]"),
    ],
    ("laws/votes/choices", "unit/laws/votes/choices"): [
        ("first = smaller.astype(np.uint16)", "first = (smaller + 1).astype(np.uint16)"),
        ("source) != (weights[0] > weights[1])", "source) == (weights[0] > weights[1])"),
        ("return drawn < digit", "return drawn > digit"),
        ("yes > no, 1.0 - smaller, smaller), np", "yes > no, smaller, smaller), np"),
    ],
    (
        "laws/votes/sampling",
        "unit/laws/votes/sampling "
        "unit/laws/votes/gated unit/laws/votes/as_drawn",
    ): [
        ("(shift + n, kept * plain), (", "(shift + n, kept * extra), ("),
        ("tops[0], before) * (a / (a - 1))", "tops[0], before) * a"),
        ("(shift + n + 1, kept * extra)", "(shift + n, kept * extra)"),
        ("shift + first - start", "shift + first"),
        ("state - self._starts[place] + table", "state + table"),
        ("_dither.draw(state[some], source)", "_dither.draw(some, source)"),
        ("target[-1] += mass[last:].sum()", "target[-1] += 0.0"),
    ],
    ("laws/votes/sampling", "statistical/attribute_by_attribute"): [
        ("_dither.draw(state, source) & kept", "_dither.draw(state, source)"),
    ],
    ("randomness", "unit/randomness"): [
        ("low_half > (1 << 16) - limit)", "low_half > (1 << 16) - limit + 1)"),
        ("drawn[undecided] += total < low", "drawn[undecided] += total <= low"),
        ("while low + limit > 1 << bits", "while low + limit > (1 << bits) + limit"),
        ('np.searchsorted(floor, prefixes, side="right")', "least"),
        ("value = (value << 64) |", "value = value |"),
        ("value >> kind(2) | first", "value >> kind(1) | first"),
        ("np.diff(keys[order]) == 0", "np.diff(keys[order]) < 0"),
    ],
    ("mechanism/channel", "unit/mechanism/parts unit/mechanism/channel"): [
        ("np.max([chosen[axis] for", "np.min([chosen[axis] for"),
        ("max(n_records, 1.0) ** 0.5", "max(n_records, 1.0)"),
        ("stride = whole.strides[variable.part]", "stride = whole.strides[0]"),
        ("self.undoing(1.0 / self.pattern", "self.undoing(self.pattern"),
        ("axes.append(source)", "axes.append(axis)"),
    ],
    ("mechanism/response_axes", "unit/mechanism/response_axes"): [
        ("(len(matrix) / left.shape[0]) ** 0.5", "(len(matrix) / left.shape[0]) ** -0.5"),
        ("rows = rows * size + codes", "rows = rows * n_rows + codes"),
    ],
    (
        "mechanism/table_map",
        "unit/mechanism/table_map "
        "unit/mechanism/channel unit/mechanism/published",
    ): [
        ("np.transpose(other.kernel, order).reshape", "other.kernel.reshape"),
        ("eigenvalues * self._breadth, matrices", "eigenvalues, matrices"),
        ("np.minimum.reduce(products), np.max", "np.maximum.reduce(products), np.max"),
    ],
    ("mechanism/published", "unit/mechanism/published"): [
        ("self.forward.eigenvalues**2 * shown", "self.forward.eigenvalues * shown"),
        ("(g.forward.eigenvalues / self._inf", "(1 / g.forward.eigenvalues / self._inf"),
    ],
    ("mechanism/prediction", "unit/mechanism/prediction unit/mechanism/published"): [
        ("spurious = attenuation - float", "spurious = attenuation + float"),
        ("p = np.clip((diagonal - high) / 2", "p = np.clip(diagonal / 2"),
        ("fraction * (other - untold**2)", "fraction * (other + untold**2)"),
    ],
    ("mechanism/privacy", "unit/mechanism/privacy"): [
        ("logarithm = _UP.next_plus(_UP.ln(quotient))", "logarithm = _UP.ln(quotient)"),
        ("_UP.multiply(d, _UP.subtract(Decimal(1)", "_UP.multiply(d, _UP.add(Decimal(1)"),
    ],
    ("estimate/correlation", "unit/estimate/correlation"): [
        ("rho / 2 * (moved[1]", "rho * (moved[1]"),
        ("(v - r for v, r in", "(v + r for v, r in"),
    ],
    ("estimate/distribution", "unit/estimate/distribution"): [
        ("fraction**2 * fit.variance", "fraction * fit.variance"),
        ('value, side="right")) - 2', 'value, side="right")) - 1'),
        ("+ inside / 2 +", "+ inside / 4 +"),
    ],
    ("estimate/covariance", "unit/estimate/covariance unit/estimate/strata"): [
        ("along_second - along_both", "along_second + along_both"),
        ("correction /= 1 - counts.sq", "correction /= 1 + counts.sq"),
        ("correction += fraction**2 *", "correction += fraction *"),
    ],
    ("estimate/covariance", "unit/estimate/under_forms"): [
        ("correction -= fraction**2 *", "correction += fraction**2 *"),
    ],
    (
        "estimate/inference",
        "unit/estimate/inference "
        "unit/estimate/strata unit/estimate/comparing",
    ): [
        ("sampling = self.squares * (1 - 2 *", "sampling = self.squares * (1 -"),
        ("+ fraction**2 * margin_inverse", "- fraction**2 * margin_inverse"),
        ("(1 - 2 * fraction) * self.squares", "(1 + 2 * fraction) * self.squares"),
        ("total += fraction**2 * (influence", "total += fraction * (influence"),
        ("influence -= centres[:, None]", "influence += centres[:, None]"),
    ],
    ("estimate/inference", "unit/estimate/under_forms"): [
        ("total = -sum(weight for", "total = sum(weight for"),
        ("total -= fraction**2 * part.between", "total += fraction**2 * part.between"),
        ("table - fraction * table.sum(axis", "table + fraction * table.sum(axis"),
    ],
    ("estimate/intervals", "unit/estimate/intervals"): [
        ("slope**2 / 4", "slope**2 / 2"),
        ("self.score_interval(estimates - outwards", "self.score_interval(estimates + outwards"),
        ("covariance -= second * nearest", "covariance += second * nearest"),
    ],
    ("estimate/intervals", "unit/estimate/under_forms statistical/coverage_by_enumeration"): [
        ("slope = slope - 2 * fraction", "slope = slope + 2 * fraction"),
        ("covariance = covariance - fraction", "covariance = covariance + fraction"),
        ("variance = variance - fraction * at**2", "variance = variance + fraction * at**2"),
        ("((gains - 1) * weights).sum()", "(gains * weights).sum()"),
        ("at_all = at_none + rise - square", "at_all = at_none + rise + square"),
    ],
    ("estimate/ordered", "unit/estimate/correlation"): [
        ("most - z * error, evenly", "none - z * error, evenly"),
    ],
    ("estimate/shares", "unit/estimate/shares unit/estimate/comparing"): [
        ("(weights - shares * same) / below", "(weights + shares * same) / below"),
    ],
    ("estimate/inference", "unit/estimate/shares"): [
        ("few = margin.values < UNCERTAIN_ERRORS", "few = margin.values > UNCERTAIN_ERRORS"),
    ],
    ("estimate/ordered", "unit/estimate/ordered"): [
        ("most.estimate + z * most", "most.estimate - z * most"),
        ("cumulative[place - 1]) if place", "cumulative[place - 2]) if place"),
        ("np.minimum.accumulate(lower[::-1])[::-1]", "np.minimum.accumulate(lower)"),
        ("(high - low) / (2 * normal", "(high - low) / (normal"),
    ],
    ("estimate/consistency", "unit/estimate/consistency"): [
        ("-s / a / shown]", "s / a / shown]"),
        ("(own, all_of - own)", "(own, all_of)"),
        ("[*axes[::2], *axes[1::2]]", "[*axes[1::2], *axes[::2]]"),
        ("(breadth - 1) / (m - 1)", "breadth / (m - 1)"),
        ("1 - scores), truths, n", "-scores), truths, n"),
    ],
    ("estimate/known", "unit/estimate/known"): [
        ("return values - gain @ (members", "return values + gain @ (members"),
        ("left = covariance - gain @", "left = covariance + gain @"),
    ],
    ("models/likelihood", "unit/models/likelihood"): [
        ("((u - n) * probabilities)[:, None])", "((u + n) * probabilities)[:, None])"),
        ("each.back(ratio).reshape", "each.back(counts).reshape"),
        ("1 - np.diag(self.covariance) * self.precision", "1 - np.diag(self.covariance) * 0"),
        ("(known.shares / theta - 1)", "(known.shares / theta + 1)"),
        ("scale = self.n_effective / self.total\n", "scale = 1.0\n"),
    ],
    ("synthesis/rows", "unit/synthesis/tree"): [
        ("np.bincount(s.cells, weights[s.rows], s.counts.size)", "s.counts.ravel()"),
    ],
    ("synthesis/combining", "unit/synthesis/combining"): [
        ("np.maximum(between - within, within)", "between + within"),
        ("(1 + 1 / m) * values.var", "values.var"),
    ],
    ("models/merging", "unit/models/merging unit/models/query"): [
        ("design - means[group]", "design + means[group]"),
    ],
    ("models/least_squares", "unit/models/numbers"): [
        ("pairs.append((-factor / 12", "pairs.append((-factor / 4"),
        ("of_each.append((response, minus[0]))", "of_each.append((response, -minus[0]))"),
    ],
    ("models/by_row", "unit/models/numbers"): [
        ("np.interp(places, np.ar", "np.interp(np.floor(places), np.ar"),
    ],
    ("synthesis/numbers", "unit/synthesis/numbers"): [
        ("- step**2 / 6, 0.0)", "+ step**2 / 6, 0.0)"),
    ],
    ("models/least_squares", "unit/models/least_squares unit/models/query"): [
        ("(1 if i == j else 2) * reading", "1 * reading"),
        ("self.inverse.transposed().apply(shaped)", "self.inverse.apply(shaped)"),
        ("factor * fitted, chosen, minus)", "factor * fitted, chosen, -minus)"),
        ("total - crossed - crossed.T", "total - crossed"),
    ],
    ("models/model", "unit/models/model unit/models/query unit/models/smoothing"): [
        ("in (estimate - z * error, estimate + z", "in (estimate + z * error, estimate + z"),
        ("2 * (self._symmetric_fit.obj", "(self._symmetric_fit.obj"),
    ],
    ("estimate/chi_square", "unit/estimate/chi_square"): [
        ("columns = influence - first", "columns = influence + first"),
        ("scaled = scaled - np.outer(root", "scaled = scaled + np.outer(root"),
    ],
    ("estimate/association", "unit/estimate/association"): [
        ("2 * spread / most**2", "spread / most**2"),
        ("middle = self.square + quantile**2", "middle = self.square + quantile"),
        ("* bias / free / most)", "* bias / most)"),
    ],
    ("estimate/tabulate", "unit/estimate/independence"): [
        ("stacked * (frequencies.size // int(stacked[-1]))", "stacked * 1"),
    ],
    ("estimate/trend", "unit/estimate/trend"): [
        ("null = np.outer(first, second) / total + (1 - counts) * table", "null = table"),
        ("sqrt(max(self.n - 1 / total, 0.0)", "sqrt(max(self.n, 0.0)"),
        ("return two[1], two[0]", "return two[0], two[1]"),
        ("influence - difference * self._image(", "influence - 0 * self._image("),
        ("len(p_values) / ranks)", "len(p_values))"),
        ("influence - correlation / 2 * self._image(squares)", "influence"),
        ("return rows[: self.top]", "return rows"),
    ],
    ("estimate/ranking", "unit/estimate/ranking"): [
        ("pulls[:, j % _BLOCK] / own", "away[:, j]"),
        ("shrunk = spreads[component] ** 2 / variance[component]", "shrunk = np.ones(_CHAINS)"),
    ],
    ("planning/trend_power", "unit/planning/trend_power"): [
        ("1 - self.level / self.snps / 2", "1 - self.level / self.snps"),
        ("** (snps - top))", "** snps)"),
        ("tilted / tilted.sum()", "tilted"),
    ],
    ("estimate/agreement", "unit/estimate/agreement"): [
        ("cells += len(merged) - 1", "cells += len(merged)"),
        ("merged[~rare], rare", "merged, rare"),
        ("np.maximum.accumulate(times * p_values[order])", "times * p_values[order]"),
    ],
    ("estimate/leverage", "unit/estimate/leverage"): [
        ("low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)", "pass"),
        ("1 / tanh(epsilon / 2)", "1 / tanh(epsilon)"),
        ("even = 1.0 / prod(channel.n_categories)", "even = 0.0"),
    ],
    ("estimate/honesty", "unit/estimate/honesty"): [
        ("np.hstack([matrix, np.eye(m)])", "np.hstack([matrix, 0 * np.eye(m)])"),
        ("sum(len(counts) - 1 for counts, _ in answered)", "1"),
        ("sums = [1.0] if share is None else [1 - share, share]", "sums = [1.0, 0.0]"),
        ("contrasts[-1] @ np.linalg.solve", "contrasts[0] @ np.linalg.solve"),
    ],
    ("schema/responses", "unit/schema/responses"): [
        ("lambda _, p: _binary((1 - p[0]) * p[1]", "lambda _, p: _binary(p[0] * p[1]"),
        ("forced.reverse()", "pass"),
        ("for p in (no, yes)]", "for p in (yes, no)]"),
    ],
    ("design/outlook", "unit/design/outlook"): [
        ("** 2 / (s * (a - s))", "** 2 / (s * s)"),
    ],
    ("tables/encode", "unit/tables/encode"): [
        ('np.searchsorted(edges, numbers, side="right")', 'np.searchsorted(edges, numbers)'),
        ("codes[numbers == edges[-1]] = last", "codes[numbers == edges[-1]] = last - 1"),
        ("(np.abs(numbers) < 2.0**53)", "(np.abs(numbers) < 2.0)"),
    ],
    ("tables/columns", "unit/tables/merged_columns"): [
        ("codes // self.stride % len(self.labels)", "codes % len(self.labels)"),
    ],
    ("tables/csv_known", "unit/tables/csv_known"): [
        ("== ranks) | (ranks < 0)", "== ranks)"),
        ("if not pa.py_buffer(content(self._rows.pieces(codes))).equals(block):", "if False:"),
    ],
    ("tables/csv_text", "unit/tables/writing"): [
        ("combined *= np.uint16(len(fields))", "combined *= np.uint16(1)"),
    ],
    ("tables/plink", "unit/tables/plink"): [
        ("four >> 6 | four >> 12", "four >> 6 | four >> 10"),
        ("{2: 0, None: 1, 1: 2, 0: 3}", "{2: 3, None: 1, 1: 2, 0: 0}"),
    ],
    ("release/curator", "unit/release/curator"): [
        ("mean + attenuation * (members", "mean - attenuation * (members"),
    ],
    ("release/entered", "unit/release/entered"): [
        ("if not entry.counted:", "if entry.counted:"),
        ("return None if entry is None or entry.counted else entry", "return entry"),
    ],
    ("release/record", "unit/release/record"): [
        ("if or_infinite(level) < true_level:", "if False:"),
    ],
    ("ledger/events", "unit/ledger/balance"): [
        ('unicodedata.normalize("NFKC", population).casefold()', "population.casefold()"),
    ],
    ("ledger/book", "unit/ledger/book"): [
        ("known, spending.of_rows(rows_of_person))", "known, spending)"),
        ("if self._stored(self.ledger._events(connection)).counted:", "if False:"),
    ],
    ("laws/votes/backward", "laws/every_law"): [
        ("blur / a * up + (own + blur * ((a - 1) / a)) * stay", "blur / a * up + own * stay"),
    ],
    ("release/statements", "unit/release/statements"): [
        ("shown = significant(level, 6, ROUND_CEILING)", "shown = significant(level, 6)"),
    ],
    ("report/wording", "unit/report/wording"): [
        ("_three_decimals(epsilon, ROUND_CEILING)", "_three_decimals(epsilon, None)"),
    ],
}  # fmt: skip


def named(tests: str) -> list[str]:
    """Return the files that a defect's tests stand for."""
    parts = (name.rpartition("/") for name in tests.split())
    return [f"tests/{folder}/test_{name}.py" for folder, _, name in parts]


def run(source: Path, files: list[str]) -> tuple[int, str]:
    """Return how the tests end on a copy of the source, and the last lines they print."""
    places = [source, ROOT / "studies" / "src"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not weekly"]
    command = [sys.executable, "-m", "pytest", *options, *files]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, "takes too long"
    return done.returncode, "\n".join(done.stdout.splitlines()[-4:])


def outcomes(source: Path, only: str) -> Iterator[tuple[str, str]]:
    """Plant the defects one after the other; yield each with what came of it."""
    for (module, tests), lines in DEFECTS.items():
        path = source / "deniable" / f"{module}.py"
        text = path.read_text(encoding="utf-8")
        for line, defect in lines:
            name = f"{module}: {line}  ->  {defect}"
            if only not in name:
                continue
            if text.count(line) != 1:
                yield name, f"NOT PLANTED: the line stands there {text.count(line)} times"
                continue
            path.write_text(text.replace(line, defect), encoding="utf-8")
            status, end = run(source, named(tests))
            path.write_text(text, encoding="utf-8")
            yield name, {0: "SURVIVED", 1: "noticed"}.get(status, f"NOT RUN: {end}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant defects and see whether tests notice.")
    parser.add_argument("--only", default="", help="defects with this in their name")
    parser.add_argument("--unchanged", action="store_true", help="run the tests without a defect")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
        if options.unchanged:
            files = sorted({file for _, tests in DEFECTS for file in named(tests)})
            status, end = run(source, files)
            if status:
                print(f"without a defect tests fail:\n{end}")
                return 1
        count = unnoticed = 0
        for name, outcome in outcomes(source, options.only):
            count += 1
            unnoticed += outcome != "noticed"
            print(f"{outcome}: {name}", flush=True)
    print(f"{count} defects, {unnoticed} not noticed")
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
