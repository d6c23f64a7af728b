"""synthesize and combine, as a user types them."""

from pathlib import Path
from typing import Any

from cli.test_model_command import release, shelf

__all__ = ["release", "shelf"]


def test_copies_are_drawn_and_combined(release: str, deniable: Any, tmp_path: Path) -> None:
    done = deniable(
        *("synthesize", release, "--of", "y,a,b", "--tables", "tree", "--rows", "synthetic"),
        *("--copies", 5, "--output", "out", "--as", "csv", "--insecure-seed", 1),
    )
    assert done.status == 0, done.err
    assert "No row belongs to a person" in done.out
    lines = ["copy,term,estimate,std_error", *(f"{i},b,{0.1 * i},0.1" for i in range(5))]
    (tmp_path / "out" / "results.csv").write_text("\n".join(lines))
    done = deniable("combine", "out/results.csv", "--level", 0.9, "--output", "c.csv")
    assert done.status == 0, done.err
    assert "5 synthetic copies" in done.out
    assert (tmp_path / "c.csv").exists()
    again = deniable("combine", "out/results.csv", "--rows", "synthetic", "--json", "--force")
    assert again.status == 0
    refused = deniable("synthesize", release, "--copies", 4, "--output", "few")
    assert refused.status == 2
    assert not (tmp_path / "few").exists()
    more = deniable("synthesize", release, "--output", "out", "--force", "--json", "--show-values")
    assert more.status == 2  # the results of an analysis are not removed


def test_some_rows_and_rows_beside_their_record(
    release: str, deniable: Any, tmp_path: Path
) -> None:
    done = deniable(
        *("synthesize", "release/data.csv", "--mechanism", "release/record.json", "--anyway"),
        *("--where", "town=A", "--copies", 5, "--output", "south"),
    )
    assert done.status == 0, done.err
    assert "by the model of all pairs" in done.out
    (tmp_path / "counts.csv").write_text("y,a,b,count\nno,p,f,3\n")
    counted = ("--counts", "counts.csv", "--mechanism", "release/record.json")
    refused = deniable("synthesize", *counted, "--output", "none")
    assert refused.status == 2
    assert "needs the released rows" in refused.err


def test_copies_to_predict_an_attribute(release: str, deniable: Any, tmp_path: Path) -> None:
    options = ("--of", "y,a,b", "--copies", 5, "--insecure-seed", 1)
    done = deniable("synthesize", release, *options, "--about", "y", "--output", "out")
    assert done.status == 0, done.err
    assert len(list((tmp_path / "out").glob("synthetic_copy_*"))) == 5
    refused = deniable("synthesize", release, *options, "--about", "z", "--output", "none")
    assert refused.status == 2
    assert "'z'" in refused.err
    assert not (tmp_path / "none").exists()
