"""The example that an installation brings, and its notebook."""

import json

import pytest

from deniable.cli.example import NAMES


@pytest.mark.slow
def test_the_example_is_copied_whole_and_its_notebook_runs(deniable, tmp_path, monkeypatch):
    made = deniable("example", "practice", "--json")
    assert made.json["files"] == [f"practice/{name}" for name in NAMES]
    monkeypatch.chdir(tmp_path / "practice")
    notebook = json.loads((tmp_path / "practice/example.ipynb").read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(cells) == 4
    names: dict[str, object] = {}
    for cell in cells:
        # What a notebook shows is the value of a cell's last line.
        before, _, last = cell.rpartition("\n")
        exec(before, names)
        shown = eval(last, names)
        assert last.startswith("print") or hasattr(shown, "_repr_html_")
    assert (tmp_path / "practice/release/report.html").is_file()


def test_the_example_replaces_nothing(deniable, tmp_path):
    (tmp_path / "example").mkdir()
    done = deniable("example")
    assert done.status == 2
    assert "exists already" in done.err
