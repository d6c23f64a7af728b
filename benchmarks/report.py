"""Tables and plots of what the benchmarks measured; and the rows on speed of docs/figures.md.

    python benchmarks/report.py --measure figures    # all of them, then the report: half an hour
    python benchmarks/report.py figures              # the report of what was measured there

A folder has one JSON file for each benchmark (`bench_files.py --json figures/files.json` writes one
by itself). Beside them come `report.md`, with every table, a growth plot for what grows, as PNG and
as SVG. The rows on speed of `docs/figures.md` that were measured are written anew, there and where
the README has the same row.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from measured import machine

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent

MEASURES = {
    "commands": ["bench_commands.py"],
    "balanced": ["bench_optimal.py", "--hard", "--only", "tables"],
    "design": ["bench_design.py"],
    "optimal": ["bench_optimal.py"],
    "randomize": ["bench_randomize.py"],
    "files": ["bench_files.py", "--rows", "0.1", "1", "10"],
    "wide": ["bench_wide.py"],
    "plink": ["bench_wide.py", "--plink", "--people", "500000"],
    "estimate": ["bench_estimate.py"],
    "peers": ["bench_peers.py"],
}
"""What writes which file."""

GROWTH = {
    # table: what it grows with, what is shown, what tells the lines apart, and a title
    "finding a law": ("attributes", "solver_s", ("method",), "Seconds to find a law"),
    "the optimum with its proof": ("attributes", "s", (), "Seconds to the optimum and its proof"),
    "joint tables with standard errors": ("cells", "s", (), "Seconds for a joint table"),
    "a file of twelve columns into another": (
        *("rows", "s"),
        ("format", "law"),
        "Seconds for a file of twelve columns",
    ),
    "the default law against independent responses": (
        *("attributes", "ratio"),
        ("kind", "rows"),
        "Times as long as independent responses, per cell",
    ),
}

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def read(folder: Path) -> tuple[Tables, dict[str, Row]]:
    """Return all tables in a folder, by title, and on what machine each file was made."""
    tables: Tables = {}
    machines = {}
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        machines[path.stem] = found["machine"]
        for title, rows in found["tables"].items():
            tables.setdefault(title, []).extend(rows)
    return tables, machines


def shown(value: Any) -> str:
    """Return a value with three digits."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    names = list(rows[0])
    yield "| " + " | ".join(name.replace("_", " ") for name in names) + " |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield "| " + " | ".join(shown(row.get(name)) for name in names) + " |"


def plot(title: str, rows: Sequence[Row], folder: Path) -> str:
    """Draw how something grows; return the file's name without what it ends in."""
    along, up, apart, heading = GROWTH[title]
    lines: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row[up] is not None:
            lines.setdefault(tuple(row[name] for name in apart), []).append(row)
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for key, own in lines.items():
        own = sorted(own, key=lambda row: row[along])
        label = ", ".join(f"{shown(v)} {n}" if n == "rows" else str(v)
                          for n, v in zip(apart, key, strict=True))  # fmt: skip
        axes.plot([r[along] for r in own], [r[up] for r in own], marker="o", label=label)
    axes.set(xscale="log", yscale="linear" if up == "ratio" else "log", xlabel=along, title=heading)
    if up == "ratio":
        axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
    if apart:
        axes.legend()
    name = title.replace(" ", "-")
    for kind in ("png", "svg"):
        figure.savefig(folder / f"{name}.{kind}", dpi=150)
    plt.close(figure)
    return name


def write_report(tables: Tables, machines: dict[str, Row], folder: Path) -> None:
    """Write report.md and the plots."""
    text = ["# What the benchmarks measured", ""]
    for name, row in machines.items():
        busy = " (others were at work)" if row["load"] > BUSY else ""
        load = f"load {row['load']:.1f}{busy} when it began"
        text.append(f"* {name}: {row['processor']}, {row['cores']} cores, {load}")
    for title, rows in tables.items():
        text += ["", f"## {title[0].upper()}{title[1:]}", "", *table(rows)]
        if title in GROWTH:
            text += ["", f"![{GROWTH[title][3]}]({plot(title, rows, folder)}.svg)"]
    (folder / "report.md").write_text("\n".join(text) + "\n", encoding="utf-8")


class Found:
    """Looks rows up; a row of docs/figures.md that was not measured stays as it is.

    Args:
        tables: all tables, by title.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def all(self, title: str, **wanted: Any) -> list[Row]:
        """Return the rows of a table that have these values.

        Raises:
            LookupError: if there is none.
        """
        rows = [
            row
            for row in self._tables.get(title, [])
            if all(row[name] == value for name, value in wanted.items())
        ]
        if not rows:
            raise LookupError(title)
        return rows

    def one(self, title: str, **wanted: Any) -> Row:
        """Return the first of them."""
        return self.all(title, **wanted)[0]


def span(values: Sequence[float]) -> str:
    """Return the least and the largest of some values."""
    least, most = shown(min(values)), shown(max(values))
    return least if least == most else f"{least} to {most}"


def commands(f: Found) -> tuple[str, str]:
    labels = ("--help", "estimate", "share --mechanism", "share of the example")
    seconds = [f.one("commands", command=label)["CPU_s"] for label in labels]
    what = (
        "a command, start-up included: `--help`; `estimate`; `share` by a given mechanism; "
        "`share` of the shipped example"
    )
    return what, "; ".join(map(shown, seconds)) + " s of CPU"


def default_design(f: Found) -> tuple[str, str]:
    seconds = [
        f.one("hard designs", categories=name, asked="total 4, pairs 0.2, cap 2x")["CPU_s"]
        for name in ("Adult", "insurance")
    ]
    what = "the default design for ε = 4: Adult's fifteen columns; the shipped example"
    return what, "; ".join(
        map(shown, seconds)
    ) + " s of CPU, proof included; the total spent to 10⁻⁶"


def optimum(f: Found) -> tuple[str, str]:
    rows = [f.one("the optimum with its proof", attributes=k) for k in (12, 60, 1000)]
    gaps = ", ".join(f"{row['gap']:.0e}" for row in rows)
    return (
        "optimum with proof, different attributes, k = 12, 60, 1,000",
        f"gap to the proven bound {gaps}; in {', '.join(shown(r['s']) for r in rows)} s",
    )


def in_memory(f: Found) -> tuple[str, str]:
    rows = f.all("draws in memory")
    figure = span([row["kronecker_Mcells_s"] for row in rows]) + " million cells a second, "
    figure += span([row["ratio"] for row in rows]) + " times five lines of numpy; the keystream "
    figure += "alone would allow " + span([row["keystream_Mcells_s"] for row in rows]) + " million"
    return "randomizing in memory, one thread, independent responses", figure


def default_law(f: Found) -> tuple[str, str]:
    title, parts = "the default law against independent responses", []
    for text, sizes in (("12", (12,)), ("13 to 16", (13, 16)), ("24 to 1,000", (24, 100, 1000))):
        ratios = [row["ratio"] for k in sizes for row in f.all(title, attributes=k)]
        parts.append(f"{text}: {span(ratios)}")
    return (
        "the same under the default law: times as long per cell as independent responses, by k",
        "; ".join(parts),
    )


def file_of(kind: str, name: str) -> Callable[[Found], tuple[str, str]]:
    def row(f: Found) -> tuple[str, str]:
        title = "a file of twelve columns into another"
        rows = f.all(title, format=kind, law="default")
        least, most = rows[0], rows[-1]
        figure = (
            f"{shown(most['Mrows_s'])} million rows a second, {shown(most['ratio'])} of the speed "
            f"of the pipe that only copies ({shown(most['ratio_CPU'])} by CPU); peak memory "
            f"{shown(float(most['peak_MB']))} MB ({shown(float(least['peak_MB']))} MB at "
            f"{least['rows']:,} rows)"
        )
        return f"{name}, default law, 12 columns, {most['rows']:,} rows", figure

    return row


def wide(f: Found) -> tuple[str, str]:
    def rate(kind: str, columns: int, law: str) -> str:
        row = f.one("wide tables", format=kind, columns=columns, law=law)
        return f"{shown(row['rows_CPU_s'])} ({shown(float(row['peak_MB']))} MB)"

    laws = ("product", "alike", "different")
    figure = "; ".join(
        f"{name}: {', '.join(rate(kind, 1000, law) for law in laws)}"
        for kind, name in (("csv", "CSV"), ("parquet", "Parquet"))
    )
    return (
        "1,000 columns, rows a CPU second (peak memory): independent responses, votes of equal "
        "and of different levels",
        f"{figure}; CSV of 10,000 columns: {rate('csv', 10_000, 'product')}",
    )


def plink(f: Found) -> tuple[str, str]:
    most = max(row["rows"] for row in f.all("wide tables", format="bed"))
    rows = [
        f.one("wide tables", format="bed", law=law, rows=most)
        for law in ("product", "alike", "different")
    ]
    return (
        f"PLINK fileset of {most:,} people and 1,000 variants, the same three laws",
        f"{'; '.join(shown(row['CPU_s']) for row in rows)} s of CPU; at most "
        f"{shown(max(float(row['peak_MB']) for row in rows))} MB",
    )


def joint(f: Found) -> tuple[str, str]:
    most = max(f.all("joint tables with standard errors"), key=lambda row: row["cells"])
    dense = max(f.all("against a dense inverse"), key=lambda row: row["cells"])
    return (
        f"joint table of {most['cells']:,} cells with standard errors",
        f"{shown(most['s'])} s; at {dense['cells']:,} cells {shown(dense['ratio'])} times faster "
        "than a dense inverse",
    )


def peers(f: Found) -> tuple[str, str]:
    rows = f.all("other packages")
    return (
        "k-ary response on twelve columns, times as fast as "
        + ", ".join(f"{row['package']} {row['version']}" for row in rows),
        ", ".join(shown(row["ratio"]) for row in rows),
    )


BUSY = 1.5
"""A load that one benchmark alone, of which the last has just ended, does not make."""

FIGURES = [
    (commands, "bench_commands.py"),
    (default_design, "bench_optimal.py --hard --only tables"),
    (optimum, "bench_optimal.py"),
    (in_memory, "bench_randomize.py"),
    (default_law, "bench_randomize.py"),
    (file_of("parquet", "Parquet to Parquet"), "bench_files.py --rows 0.1 1 10"),
    (file_of("csv", "CSV to CSV"), "bench_files.py --rows 0.1 1 10"),
    (wide, "bench_wide.py"),
    (plink, "bench_wide.py --plink --people 500000"),
    (joint, "bench_estimate.py"),
    (peers, "bench_peers.py"),
]


def rows_on_speed(tables: Tables) -> Iterator[str | None]:
    """Yield the rows on speed of docs/figures.md, in its order; None where not all was measured."""
    for row, command in FIGURES:
        try:
            what, figure = row(Found(tables))
        except LookupError:
            yield None
        else:
            yield f"| {what} | {figure} | `python benchmarks/{command}` |"


def write_rows(tables: Tables, docs: Path, readme: Path) -> int:
    """Write the rows on speed that were measured into docs/figures.md, and into the README where it
    has the same row; return how many."""
    text, front = docs.read_text(encoding="utf-8"), readme.read_text(encoding="utf-8")
    before, head, after = text.partition("## Speed\n")
    old = [line for line in after.splitlines() if line.startswith("| ")][1:]
    replaced = 0
    for line, new in zip(old, rows_on_speed(tables), strict=True):
        if new is not None:
            after, front, replaced = (
                after.replace(line, new),
                front.replace(line, new),
                replaced + 1,
            )
    docs.write_text(before + head + after, encoding="utf-8")
    readme.write_text(front, encoding="utf-8")
    return replaced


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--measure", action="store_true", help="run the benchmarks first")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    if arguments.measure:
        folder.mkdir(parents=True, exist_ok=True)
        if (load := machine()["load"]) > BUSY:
            print(f"others are at work here: the load is {load:.1f}", file=sys.stderr)
        for name in arguments.only:
            script, *options = MEASURES[name]
            print(f"\n{' '.join(MEASURES[name])}", file=sys.stderr, flush=True)
            command = [sys.executable, str(HERE / script), *options]
            # What it prints goes on; a miss of an aim is in it, and ends nothing.
            subprocess.run(
                [*command, "--json", str(folder / f"{name}.json")], stdout=sys.stderr, check=False
            )
    tables, machines = read(folder)
    if not tables:
        parser.error(f"{folder} has no figures; measure them with --measure")
    write_report(tables, machines, folder)
    written = write_rows(tables, HERE.parent / "docs" / "figures.md", HERE.parent / "README.md")
    print(f"{folder / 'report.md'}; {written} rows of docs/figures.md")


if __name__ == "__main__":
    main()
