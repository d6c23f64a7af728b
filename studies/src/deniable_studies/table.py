"""Write the verdicts into a page of the documentation: ``python -m deniable_studies.table``.

What stands between the two markers of the page is replaced; everything else stays as it is. Runs
are read from the ``verdicts.json`` of folders that ``deniable reproduce`` made. Of a study that is
in none of them the page keeps its verdicts.
"""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deniable_studies.catalogue import STUDIES
from deniable_studies.study import Verdict
from deniable_studies.text import Text

BEGIN = "<!-- The verdicts: written by python -m deniable_studies.table, not by hand. -->"
END = "<!-- The end of the verdicts. -->"
FULL_ONLY = "in full only"

Run = Mapping[str, Any]
"""A study's verdicts, as they stand in its ``verdicts.json``."""


def read_runs(folders: Sequence[Path]) -> dict[str, Run]:
    """Return the runs in folders of one study or of all, by study; of two the later one.

    Args:
        folders: made by ``deniable reproduce``.
    """
    runs: dict[str, Run] = {}
    for folder in folders:
        plain = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
        runs |= {run["study"]: run for run in plain.get("studies", [plain])}
    return runs


def runs_on(page: str) -> dict[str, Run]:
    """Return the runs that a page tells of, by study."""
    said, *studies = page.partition(BEGIN)[2].partition(END)[0].split("\n### ")
    head = re.search(r"seed (\d+)\.(?: Quick ones.*: (.*)\.)?", said)
    if head is None:
        return {}
    quick = (head[2] or "").split(", ")
    runs: dict[str, Run] = {}
    for study in studies:
        name, *lines = study.splitlines()
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")][2:]
        cells = [[cell.strip().replace("\\|", "|") for cell in row] for row in rows]
        claims = [{"statement": c[0], "verdict": c[2]} for c in cells if c[2] != FULL_ONLY]
        runs[name] = {"quick": name in quick, "seed": int(head[1]), "claims": claims}
    return runs


def verdicts_of(text: Text, run: Run) -> dict[str, str]:
    """Return a run's verdicts by statement, in the order of the text.

    Raises:
        ValueError: if the run is of other claims than the text has.
    """
    verdicts = {claim["statement"]: str(claim["verdict"]) for claim in run["claims"]}
    stated = [claim.statement for claim in text.claim if not (claim.full_only and run["quick"])]
    if set(stated) != set(verdicts):
        raise ValueError(f"the run of {text.name} is of other claims; run it again")
    return {claim.statement: verdicts.get(claim.statement, FULL_ONLY) for claim in text.claim}


def table_text(texts: Sequence[Text], runs: Mapping[str, Run]) -> str:
    """Return the tables: how many claims of every study got which verdict, then each of them.

    Args:
        texts: of the studies.
        runs: one of each of them.

    Raises:
        ValueError: if a study was not run, or a run is of other claims than its text has.
    """
    if missing := [text.name for text in texts if text.name not in runs]:
        raise ValueError(f"no run of {', '.join(missing)}")
    quick = [text.name for text in texts if runs[text.name]["quick"]]
    seeds = sorted({runs[text.name]["seed"] for text in texts})
    said = f"{'Full runs' if not quick else 'Runs'}, seed {', '.join(map(str, seeds))}."
    if quick:
        said += f" Quick ones, whose verdicts can differ from the full ones: {', '.join(quick)}."
    lines = [said, "", *_head("study", "what", *(v.short for v in Verdict))]
    details = []
    for text in texts:
        verdicts = verdicts_of(text, runs[text.name])
        counts = [str(list(verdicts.values()).count(verdict)) for verdict in Verdict]
        lines.append(_row(f"[`{text.name}`](#{text.name})", text.title, *counts))
        details += ["", f"### {text.name}", "", *_head("claim", "where", "verdict")]
        details += [
            _row(claim.statement, claim.source, verdicts[claim.statement]) for claim in text.claim
        ]
    return "\n".join([*lines, *details])


def _head(*cells: str) -> list[str]:
    return [_row(*cells), _row(*["---"] * len(cells))]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def replaced(page: str, table: str) -> str:
    """Return a page with another text between its markers.

    Raises:
        ValueError: if it does not have each of them once.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError("the page needs each of the two markers once")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read folders and write a page."""
    parser = argparse.ArgumentParser(prog="python -m deniable_studies.table", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="of runs; of two the later counts")
    parser.add_argument("page", type=Path, help="such as docs/studies.md")
    given = parser.parse_args(arguments)
    try:
        page = given.page.read_text(encoding="utf-8")
        runs = runs_on(page) | read_runs(given.folders)
        page = replaced(page, table_text([study.text for study in STUDIES], runs))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    given.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
