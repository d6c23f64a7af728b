"""Print which lines and branches of src the tests reach, and stop at a gap without a reason.

    pytest --cov && python scripts/coverage_gaps.py

Reads `.coverage`. A module below 95 % of its lines and branches needs a reason in pyproject.toml,
[tool.coverage-gaps]; a reason that is no longer needed is printed.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ENOUGH = 95.0
LEEWAY = 2.0  # examples are drawn anew in every run, and what they reach varies by a line or two


def measured() -> dict[str, Any]:
    """What coverage found, with modules by their names."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(path)]
        subprocess.run(command, check=True, cwd=ROOT)
        return json.loads(path.read_text())


def module_of(file: str) -> str:
    """deniable.cli.app of …/src/deniable/cli/app.py."""
    parts = Path(file).with_suffix("").parts
    return ".".join(parts[parts.index("src") + 1 :]).removesuffix(".__init__")


def without_reason(percent: dict[str, float], reasons: dict[str, str]) -> list[str]:
    """The modules that have a gap which nobody has explained."""
    low = (module for module, value in percent.items() if value < ENOUGH - LEEWAY)
    return sorted(module for module in low if not reasons.get(module))


def without_gap(percent: dict[str, float], reasons: dict[str, str]) -> list[str]:
    """The modules whose reason is no longer needed, or that are gone."""
    return sorted(module for module in reasons if percent.get(module, 100.0) >= ENOUGH)


def main() -> int:
    found = measured()
    reasons = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage-gaps"]
    percent = {
        module_of(file): entry["summary"]["percent_covered"]
        for file, entry in found["files"].items()
        if entry["summary"]["num_statements"]
    }
    totals = found["totals"]
    for module, value in sorted(percent.items(), key=lambda item: item[1]):
        if value < ENOUGH:
            print(f"{value:5.1f} %  {module}: {reasons.get(module, 'NO REASON')}")
    print(
        f"lines {totals['covered_lines']} of {totals['num_statements']}, branches "
        f"{totals['covered_branches']} of {totals['num_branches']}: "
        f"{totals['percent_covered']:.1f} %"
    )
    for module in without_gap(percent, reasons):
        print(f"{module} has no gap: its reason can go")
    return 1 if without_reason(percent, reasons) else 0


if __name__ == "__main__":
    sys.exit(main())
