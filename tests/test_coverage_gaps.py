"""The gate's judgement of what the tests do not reach."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("gaps", ROOT / "scripts" / "coverage_gaps.py")
assert spec is not None
assert spec.loader is not None
gaps = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gaps)


def test_a_gap_without_a_reason_and_a_reason_without_a_gap_are_seen() -> None:
    percent = {"deniable.a": 94.9, "deniable.b": 95.0, "deniable.c": 50.0}
    reasons = {"deniable.a": "why", "deniable.b": "why", "deniable.d": "why"}
    assert gaps.without_reason(percent, reasons) == ["deniable.c"]
    assert gaps.without_gap(percent, reasons) == ["deniable.b", "deniable.d"]


def test_a_file_is_named_as_it_is_imported() -> None:
    assert gaps.module_of("src/deniable/cli/app.py") == "deniable.cli.app"
    assert gaps.module_of("/somewhere/src/deniable/schema/__init__.py") == "deniable.schema"
