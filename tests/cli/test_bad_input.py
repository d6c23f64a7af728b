"""Bad input: exit status 2, one sentence on stderr, no value shown, nothing half-written."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LEVELS = ["--attribute-epsilon", "1,2,1.5"]
SHARE = ["share", "people.csv", "--schema", "people.toml", "--method", "kronecker"]
SECRET = "Rumpelstiltskin"


def refused(result, *problems):
    """Check the manners of a refusal."""
    ours = ("Method ", "this table cannot be identified")
    lines = [line for line in result.err.splitlines() if not line.startswith(ours)]
    assert result.status == 2, result
    assert len(lines) == 1, result.err
    assert lines[0].startswith("deniable: ")
    assert "Traceback" not in result.err
    assert SECRET not in result.err + result.out
    for problem in problems:
        assert problem in lines[0]


@pytest.fixture
def mechanism(deniable, people):
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    return people / "m.json"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def rewrite(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_unknown_category_is_placed_and_not_shown(deniable, people):
    rewrite(people / "people.csv", "m,59,AB", f"m,59,{SECRET}")
    refused(
        deniable(*SHARE, *LEVELS, "--output", "r"), "people.csv", "row 4", "blood", "categories"
    )
    assert not (people / "r").exists()
    shown = deniable(*SHARE, *LEVELS, "--output", "r", "--show-values")
    assert shown.status == 2
    assert SECRET in shown.err


def test_a_level_beyond_all_protection_is_refused_and_not_computed_for_hours(deniable):
    words = ["design", "--categories", "3,3", "--method", "kronecker", "--json"]
    refused(deniable(*words, "--epsilon", "1e6"), "500000 nats", "protects no value")
    assert deniable(*words, "--epsilon", "1500").status == 0


@pytest.mark.parametrize("total", ["0.5", "3.7", "12"])
def test_the_heuristic_divides_any_total_where_no_level_was_requested(deniable, total):
    words = ("design", "--categories", "2,2,6,3", "--method", "heuristic", "--json")
    design = deniable(*words, "--epsilon", total).json
    assert 0.99 * float(total) < design["epsilon"] <= float(total)
    assert design["changed_levels"] == []


def test_the_heuristic_changes_no_level_without_leave(deniable):
    words = ["design", "--categories", "5,5,5,5", "--attribute-epsilon", "1,4,2,1"]
    refused(deniable(*words, "--method", "heuristic"), "cannot keep", "set --allow-changed-levels")
    allowed = deniable(*words, "--method", "heuristic", "--allow-changed-levels", "--json")
    assert allowed.status == 0
    assert allowed.json["changed_levels"]


def test_a_table_is_not_replaced_by_its_own_randomization(deniable, mechanism, people):
    before = (people / "people.csv").read_bytes()
    done = deniable(
        "randomize", "people.csv", "--mechanism", "m.json", "--output", "people.csv", "--force"
    )
    refused(done, "people.csv", "another name")
    assert (people / "people.csv").read_bytes() == before


def test_an_existing_output_is_kept_unless_forced(deniable, people):
    assert deniable(*SHARE, *LEVELS, "--output", "r").status == 0
    before = (people / "r" / "data.csv").read_bytes()
    refused(deniable(*SHARE, *LEVELS, "--output", "r"), "exists", "add up")
    assert (people / "r" / "data.csv").read_bytes() == before
    forced = deniable(*SHARE, *LEVELS, "--output", "r", "--force")
    assert forced.status == 0
    assert "add up" in forced.err


def test_missing_files_and_folders_are_named(deniable, people):
    refused(deniable("share", "nobody.csv", "--schema", "people.toml", "--epsilon", "1",
                     "--output", "r"), "nobody.csv")  # fmt: skip
    refused(deniable(*SHARE, *LEVELS, "--output", "no/where/r"), "folder")
    refused(deniable("share", "people.csv", "--schema", "no.toml", "--epsilon", "1",
                     "--output", "r"), "no.toml")  # fmt: skip
    refused(deniable("inspect", "nothing.json"), "nothing.json")


def test_wrong_usage_is_one_sentence_too(deniable):
    refused(deniable("shaer"), "share")
    refused(deniable("design", "--categories", "3,3", "--epsilno", "1"), "--epsilno")
    refused(deniable("design"), "--schema")


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_leaves_nothing(people, kill):
    (people / "many.csv").write_bytes(b"sex,age,blood\n" + b"f,25,A\n" * 3_000_000)
    with subprocess.Popen(
        [sys.executable, "-m", "deniable", "share", "many.csv", "--schema", "people.toml", *LEVELS,
         "--method", "kronecker", "--output", "r"],
        cwd=people, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        # Wait until it has begun to write.
        deadline = time.monotonic() + 60
        while not list(people.glob(".r.*/new")) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert list(people.glob(".r.*/new"))
        process.send_signal(kill)
        assert process.wait(60) != 0
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert said.count("\n") == 1
        assert "no incomplete output remains" in said
    assert names(people) == ["many.csv", "people.csv", "people.toml"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_a_result_that_cannot_be_written_is_one_sentence(extra):
    command = "import deniable.cli; deniable.cli.main()"
    words = ["design", "--categories", "3,3", "--epsilon", "1", "--method", "kronecker", *extra]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", command, *words], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot be written" in done.stderr
