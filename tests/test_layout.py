"""Tests mirror the source: a module is tested by the file that has its path.

What a subject of several modules needs has a file of its own, named here; so has a module that is
tested from outside, by what a user sees of it.
"""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "deniable"
TESTS = ROOT / "tests"
UNIT = TESTS / "unit"

# Modules whose test file is elsewhere: module or folder, the file or folder of its tests, why.
ELSEWHERE: dict[str, tuple[str, str]] = {
    "__init__": ("unit/test_api.py", "it hands out the names of api"),
    "__main__": ("cli/test_commands.py", "it starts the command line"),
    "collect/tables": ("unit/collect/test_store.py", "what makes a store"),
    "design/methods": ("unit/design/test_a_new_method.py", "a row of the table"),
    "design/outlook": (
        "unit/statement/test_expected_accuracy.py",
        "expected beside least variance",
    ),
    "models/hypotheses": ("unit/models/test_model.py", "tests of a fitted model"),
    "models/new_rows": ("unit/models/test_model.py", "predictions of a fitted model"),
    "proofs/prior": ("unit/solvers/matrices/test_response.py", "checked with its matrix"),
    "statement/bound": ("unit/design/test_level_designs.py", "the bound of a design"),
    "statement/caps": ("unit/design/test_solving.py", "caps as requested and as stored"),
    "readable": ("unit/mechanism/test_readability.py", "the numbers of the rule"),
    "errors": ("unit/test__checks.py", "an exception; every refusal is a test of it"),
    "cli": ("cli", "commands are tested as a user runs them: words in, text and files out"),
    "laws/__init__": ("laws/test_every_law.py", "it reads a law back by its family"),
    "laws/law": ("laws/test_every_law.py", "what all laws have in common, against brute force"),
    "laws/single_change": ("laws/test_every_law.py", "a law that is small enough for brute force"),
    "studio/state": ("unit/studio/test_server.py", "what the listener looks at and changes"),
    "synthesis/pairs": ("unit/synthesis/test_tree.py", "both models against the same exact law"),
    "synthesis/rows": ("unit/synthesis/test_tree.py", "what both models look at"),
    "report/figures": ("unit/report/test_page.py", "a part of the page"),
    "report/method_styles": ("unit/report/test_frontier_plot.py", "colours and marks of the plot"),
    "solvers/patterns/interactions": (
        "unit/solvers/patterns/test_forms.py",
        "what forms tell of interactions",
    ),
    "tables/columns": ("unit/tables/test_encode.py", "the columns that are encoded"),
    "tables/csv_source": ("unit/tables/test_reading.py", "one of the two kinds of file"),
    "tables/csv_text": ("unit/tables/test_reading.py", "one of the two kinds of file"),
    "tables/parquet_source": ("unit/tables/test_reading.py", "one of the two kinds of file"),
}

# Test files without a module of their path: their subject goes across modules.
SUBJECTS: dict[str, str] = {
    "collect/test_in_a_browser": "the page, from the first sentence to the receipt",
    "collect/test_form_in_a_browser": "the form, from the explanation to the button",
    "collect/test_browser_account": "the page checks a law by itself",
    "design/test_a_new_method": "what a contributor does to add a method",
    "estimate/test_numbers": "means and quantiles of numbers, with their rounding",
    "estimate/test_strata": "strata with mechanisms of their own, from counts to covariances",
    "estimate/test_under_forms": "everything that is estimated, where rows have forms",
    "estimate/test_a_new_query": "what a contributor does to add a query",
    "laws/test_family_checks": "what every law refuses",
    "laws/test_family_samplers": "how every law draws",
    "mechanism/test_parts": "parts of merged attributes, from the channel to the estimate",
    "release/test_numbers": "numbers, from the table to the mean, and their levels",
    "schema/test_merged_attribute": "merging, from the declaration to the schema",
    "studio/test_in_a_browser": "the page, from a table to a release",
    "tables/test_column_types": "every type of column, from the file to the estimate and back",
    "tables/test_merged_columns": "merged columns in files and in frames",
    "tables/test_numbers": "numbers, from a column of any type to a point",
    "tables/test_through": "whole tables through the reader and the writer",
}


def has_code(path: Path) -> bool:
    """Whether a module does more than describe itself and hand on names."""
    if path.name != "__init__.py":
        return True
    idle = (ast.Expr, ast.Import, ast.ImportFrom)
    body = ast.parse(path.read_text()).body
    return not all(isinstance(node, idle) or names_only(node) for node in body)


def names_only(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


@cache
def modules() -> list[str]:
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if has_code(path)]
    return [path.relative_to(SOURCE).with_suffix("").as_posix() for path in paths]


def mirror(module: str) -> Path:
    folder, _, name = module.rpartition("/")
    return UNIT / folder / f"test_{name}.py"


def where_tested(module: str) -> Path:
    """Where a module is tested: the file of its path, or what the table says."""
    for named in (module, *map(str, Path(module).parents)):
        if named in ELSEWHERE and not mirror(module).exists():
            return TESTS / ELSEWHERE[named][0]
    return mirror(module)


def test_every_module_has_tests_in_the_file_of_its_path() -> None:
    missing = [mirror(module) for module in modules() if not where_tested(module).exists()]
    assert [str(path.relative_to(ROOT)) for path in missing] == []


def test_what_is_tested_elsewhere_exists() -> None:
    gone = [m for m in ELSEWHERE if not (SOURCE / f"{m}.py").exists() | (SOURCE / m).is_dir()]
    assert gone == []


def test_every_test_file_mirrors_a_module_or_names_its_subject() -> None:
    files = {p.relative_to(UNIT).with_suffix("").as_posix() for p in UNIT.rglob("test_*.py")}
    mirrors = {mirror(m).relative_to(UNIT).with_suffix("").as_posix() for m in modules()}
    assert sorted(files - mirrors) == sorted(SUBJECTS)
