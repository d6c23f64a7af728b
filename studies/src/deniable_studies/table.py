"""Verdicts of the studies in the documentation: ``python -m deniable_studies.table``.

Writes every claim with its verdict into ``verdicts.csv`` next to a page, and the counts per study
between the page's two markers. Runs are read from the ``verdicts.json`` of folders that ``deniable
reproduce`` wrote; studies without one keep their rows of ``verdicts.csv``.
"""

import argparse
import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deniable_studies.catalogue import STUDIES
from deniable_studies.study import Verdict
from deniable_studies.text import Text

BEGIN = "<!-- The verdicts: written by python -m deniable_studies.table, not by hand. -->"
END = "<!-- The end of the verdicts. -->"
FULL_ONLY = "in full only"
FILE = "verdicts.csv"
COLUMNS = ("study", "form", "seed", "claim", "source", "verdict")

Run = Mapping[str, Any]
"""A study's verdicts, as in its ``verdicts.json``."""


def read_runs(folders: Sequence[Path]) -> dict[str, Run]:
    """Return the runs in folders of ``deniable reproduce`` by study; the last one counts."""
    runs: dict[str, Run] = {}
    for folder in folders:
        plain = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
        runs |= {run["study"]: run for run in plain.get("studies", [plain])}
    return runs


def runs_in(path: Path) -> dict[str, Run]:
    """Return the runs in a ``verdicts.csv`` by study; empty if the file does not exist."""
    runs: dict[str, Run] = {}
    if not path.exists():
        return runs
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            quick, seed = row["form"] == "quick", int(row["seed"])
            run = runs.setdefault(row["study"], {"quick": quick, "seed": seed, "claims": []})
            if row["verdict"] != FULL_ONLY:
                run["claims"].append({"statement": row["claim"], "verdict": row["verdict"]})
    return runs


def verdicts_of(text: Text, run: Run) -> dict[str, str]:
    """Return a run's verdicts by statement, in the order of the text.

    Raises ValueError if the claims of run and text differ.
    """
    verdicts = {claim["statement"]: str(claim["verdict"]) for claim in run["claims"]}
    stated = [claim.statement for claim in text.claim if not (claim.full_only and run["quick"])]
    if set(stated) != set(verdicts):
        raise ValueError(f"the run of {text.name} is of other claims; run it again")
    return {claim.statement: verdicts.get(claim.statement, FULL_ONLY) for claim in text.claim}


def csv_text(texts: Sequence[Text], runs: Mapping[str, Run]) -> str:
    """Return ``verdicts.csv``: a row per claim.

    Raises ValueError if a study has no run, or a run of other claims than its text.
    """
    if missing := [text.name for text in texts if text.name not in runs]:
        raise ValueError(f"no run of {', '.join(missing)}")
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(COLUMNS)
    for text in texts:
        run = runs[text.name]
        verdicts = verdicts_of(text, run)
        form = "quick" if run["quick"] else "full"
        for claim in text.claim:
            verdict = verdicts[claim.statement]
            writer.writerow((text.name, form, run["seed"], claim.statement, claim.source, verdict))
    return rows.getvalue()


def table_text(texts: Sequence[Text], runs: Mapping[str, Run]) -> str:
    """Return the table of verdicts per study, as Markdown."""
    quick = [text.name for text in texts if runs[text.name]["quick"]]
    seeds = sorted({runs[text.name]["seed"] for text in texts})
    head = f"{'Full runs' if not quick else 'Runs'}, seed {', '.join(map(str, seeds))}."
    if quick:
        head += f" Quick ones, whose verdicts can differ from the full ones: {', '.join(quick)}."
    titles = ("study", "subject", *(verdict.short for verdict in Verdict))
    rows = [titles, ("---",) * len(titles)]
    for text in texts:
        verdicts = list(verdicts_of(text, runs[text.name]).values())
        counts = (str(verdicts.count(verdict)) for verdict in Verdict)
        rows.append((f"`{text.name}`", text.title, *counts))
    return "\n".join([head, "", *("| " + " | ".join(row) + " |" for row in rows)])


def replaced(page: str, table: str) -> str:
    """Return a page with another text between its markers.

    Raises ValueError unless the page has each marker once.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError("the page needs each of the two markers once")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read folders; write ``verdicts.csv`` and the page."""
    parser = argparse.ArgumentParser(prog="python -m deniable_studies.table", description=__doc__)
    parser.add_argument(
        "folders", nargs="+", type=Path, help="folders of runs; the last run of a study counts"
    )
    parser.add_argument("page", type=Path, help="such as docs/studies.md")
    given = parser.parse_args(arguments)
    try:
        verdicts = given.page.with_name(FILE)
        runs = runs_in(verdicts) | read_runs(given.folders)
        texts = [study.text for study in STUDIES]
        rows = csv_text(texts, runs)
        page = replaced(given.page.read_text(encoding="utf-8"), table_text(texts, runs))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    verdicts.write_text(rows, encoding="utf-8")
    given.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
