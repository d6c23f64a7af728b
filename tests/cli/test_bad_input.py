"""Bad input: exit status 2, one sentence on stderr, no value shown, nothing half-written."""

import resource
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
    lines = [line for line in result.err.splitlines() if not line.startswith("Method ")]
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


def test_a_number_outside_the_bins_is_placed(deniable, people):
    rewrite(people / "people.csv", "f,119,B", "f,121,B")
    result = deniable(*SHARE, *LEVELS, "--output", "r")
    refused(result, "row 5", "age")
    assert "121" not in result.err


def test_a_missing_value_where_none_is_declared_is_placed(deniable, people):
    rewrite(people / "people.csv", "m,61,0", ",61,0")
    refused(deniable(*SHARE, *LEVELS, "--output", "r"), "row 2", "sex", "missing")


def test_a_ragged_row_is_placed(deniable, people):
    rewrite(people / "people.csv", "f,30,", f"f,30,,{SECRET}")
    refused(deniable(*SHARE, *LEVELS, "--output", "r"), "people.csv", "3")


@pytest.mark.parametrize("content", ["", "sex,age,blood\n"])
def test_an_empty_table_is_refused(deniable, people, content):
    (people / "people.csv").write_text(content)
    refused(deniable(*SHARE, *LEVELS, "--output", "r"), "people.csv")
    assert not (people / "r").exists()


def test_a_missing_column_is_named(deniable, people):
    rewrite(people / "people.csv", "sex,age,blood", "sex,age,bloodtype")
    refused(deniable(*SHARE, *LEVELS, "--output", "r"), "'blood'")


def test_a_column_that_is_neither_declared_nor_kept_is_refused_or_dropped(deniable, people):
    rows = (people / "people.csv").read_text().splitlines()
    lines = [f"{row},{SECRET if i else 'name'}" for i, row in enumerate(rows)]
    (people / "people.csv").write_text("\n".join(lines) + "\n")
    refused(deniable(*SHARE, *LEVELS, "--output", "r"), "'name'", "--drop-other-columns")
    assert deniable(*SHARE, *LEVELS, "--output", "r", "--drop-other-columns").status == 0
    assert SECRET not in (people / "r" / "data.csv").read_text()


def test_a_column_that_is_there_twice_is_named(deniable, people):
    rewrite(people / "people.csv", "sex,age,blood", "sex,age,sex")
    refused(deniable(*SHARE, *LEVELS, "--output", "r"), "'sex'")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('["f", "m"]', '["f"]', "at least 2"),
        ('["f", "m"]', '["f", "f"]', "twice"),
        ('name = "age"', 'name = "sex"', "twice"),
        ("bins = [0, 30, 60, 120]", "bins = [0, 60, 30, 120]", "increase"),
        ("categories =", "kategories =", "kategories"),
        ('name = "age"', 'name = "age"\nepsilon = -1', "above 0"),
        ("[[attribute]]", "[[attribute]", "TOML"),
        ('"category:NA"', '"skip"', "missing"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(deniable, people, old, new, problem):
    text = (people / "people.toml").read_text()
    assert old in text
    (people / "people.toml").write_text(text.replace(old, new, 1))
    refused(deniable(*SHARE, "--epsilon", "3", "--output", "r"), "people.toml", problem)


@pytest.mark.parametrize("level", ["0", "-1", "nan", "inf"])
def test_levels_that_are_not_positive_and_finite_are_refused(deniable, people, level):
    refused(deniable(*SHARE, f"--epsilon={level}", "--output", "r"), "above 0")
    refused(
        deniable(*SHARE, "--attribute-epsilon", f"1,{level},1", "--output", "r"), "'age'", "above 0"
    )


def test_a_level_beyond_all_protection_is_refused_and_not_computed_for_hours(deniable):
    words = ["design", "--categories", "3,3", "--method", "kronecker", "--json"]
    refused(deniable(*words, "--epsilon", "1e6"), "500000 nats", "protects nothing")
    assert deniable(*words, "--epsilon", "1500").status == 0


def test_a_level_that_is_no_number_is_refused(deniable, people):
    refused(deniable(*SHARE, "--epsilon", "three", "--output", "r"), "epsilon")


def test_a_wrong_number_of_levels_is_refused(deniable, people):
    refused(deniable(*SHARE, "--attribute-epsilon", "1,2", "--output", "r"), "2 values", "3")


def test_no_level_at_all_is_refused(deniable, people):
    refused(deniable(*SHARE, "--output", "r"), "no privacy level", "'sex'")


def test_a_total_and_levels_at_once_are_refused(deniable, people):
    refused(deniable(*SHARE, "--epsilon", "3", *LEVELS, "--output", "r"), "both")


def test_an_infeasible_request_is_refused(deniable, people):
    refused(deniable("design", "--schema", "people.toml", *LEVELS, "--given-rest", "0.5"))


def test_the_heuristic_changes_no_level_without_leave(deniable):
    words = ["design", "--categories", "5,5,5,5", "--attribute-epsilon", "1,4,2,1"]
    refused(deniable(*words, "--method", "heuristic"), "cannot keep", "allow changed levels")
    allowed = deniable(*words, "--method", "heuristic", "--allow-changed-levels", "--json")
    assert allowed.status == 0
    assert allowed.json["changed_levels"]


def test_methods_out_of_their_range_name_the_alternative(deniable):
    many = ",".join(["2"] * 40)
    refused(deniable("design", "--categories", many, "--epsilon", "3", "--method", "lp"), "optimal")
    refused(
        deniable("design", "--categories", "2,2,2", "--epsilon", "3", "--method", "closed-form"),
        "exactly 2 attributes",
    )
    refused(
        deniable("design", "--categories", "2,2", "--epsilon", "3", "--method", "magic"), "magic"
    )


@pytest.mark.parametrize("key", ["epsilon", "keep_probability", "epsilon_given_rest"])
def test_a_mechanism_edited_by_hand_is_refused(deniable, mechanism, key):
    lines = mechanism.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if f'"{key}":' in line)
    name, _, value = lines[place].partition(": ")
    lines[place] = f"{name}: {float(value.rstrip(',')) * 0.9},"
    mechanism.write_text("\n".join(lines))
    refused(deniable("inspect", "m.json"), "m.json")
    refused(deniable("randomize", "people.csv", "--mechanism", "m.json"), "m.json")


def test_a_mechanism_whose_law_was_edited_is_refused(deniable, mechanism):
    text = mechanism.read_text()
    place = text.index('"weights": [') + 30
    digit = next(i for i in range(place, len(text)) if text[i] in "123456789")
    mechanism.write_text(text[:digit] + str(int(text[digit]) - 1) + text[digit + 1 :])
    refused(deniable("inspect", "m.json"), "m.json")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format": "deniable mechanism"}'])
def test_a_file_that_is_no_mechanism_is_refused(deniable, people, content):
    (people / "m.json").write_text(content)
    refused(deniable("inspect", "m.json"), "m.json")


def test_a_table_with_other_columns_than_the_mechanism_is_refused(deniable, mechanism, people):
    (people / "other.csv").write_text("height\n180\n")
    refused(deniable("randomize", "other.csv", "--mechanism", "m.json"), "other.csv", "'sex'")
    refused(deniable("estimate", "other.csv", "--mechanism", "m.json", "--of", "sex"), "'sex'")


def test_a_table_is_not_replaced_by_its_own_randomization(deniable, mechanism, people):
    before = (people / "people.csv").read_bytes()
    done = deniable(
        "randomize", "people.csv", "--mechanism", "m.json", "--output", "people.csv", "--force"
    )
    refused(done, "people.csv", "another name")
    assert (people / "people.csv").read_bytes() == before


def test_a_release_whose_rows_were_exchanged_is_refused(deniable, people):
    deniable(*SHARE, *LEVELS, "--output", "r")
    rewrite(people / "r" / "data.csv", "sex", "sex")
    with (people / "r" / "data.csv").open("a") as file:
        file.write('f,"[0,30)",A\n')
    refused(deniable("estimate", "r", "--of", "sex"), "SHA-256")
    refused(deniable("inspect", "r"), "SHA-256")


def test_an_existing_output_is_kept_unless_forced(deniable, people):
    assert deniable(*SHARE, *LEVELS, "--output", "r").status == 0
    before = (people / "r" / "data.csv").read_bytes()
    refused(deniable(*SHARE, *LEVELS, "--output", "r"), "exists", "add up")
    assert (people / "r" / "data.csv").read_bytes() == before
    forced = deniable(*SHARE, *LEVELS, "--output", "r", "--force")
    assert forced.status == 0
    assert "add up" in forced.err


def test_questions_that_a_release_cannot_answer_are_refused(deniable, people):
    deniable(*SHARE, *LEVELS, "--output", "r")
    ask = ["estimate", "r", "--of"]
    refused(deniable(*ask, "size"), "'size'")
    refused(deniable(*ask, "sex,sex"), "twice")
    refused(deniable(*ask, "sex", "--where", "age=[0,30)"), "randomized", "subgroups")
    refused(deniable(*ask, "sex", "--level", "1.5"), "level")
    refused(deniable(*ask, "sex", "--method", "magic"), "magic")
    refused(deniable(*ask, "sex", "--target", "world"), "world")
    refused(deniable(*ask, "sex", "--mean"), "'sex'", "score")
    refused(deniable(*ask, "sex", "--quantile", "0.5"), "order")
    refused(deniable(*ask, "sex", "--weights", "w"), "'w'")
    refused(deniable("estimate", "people.csv", "--of", "sex"), "--mechanism")


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


def test_a_full_disk_leaves_nothing(people):
    rows = "f,25,A\n" * 200_000
    (people / "people.csv").write_text("sex,age,blood\n" + rows)

    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    for output in (["share", "people.csv", "--schema", "people.toml", *LEVELS, "--output", "r"],):
        done = subprocess.run(
            [sys.executable, "-m", "deniable", *output],
            cwd=people, capture_output=True, text=True, check=False, preexec_fn=small_disk,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        assert "space" in done.stderr.splitlines()[-1]
    assert names(people) == ["people.csv", "people.toml"]


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
        assert "nothing was left half-written" in said
    assert names(people) == ["many.csv", "people.csv", "people.toml"]


def test_a_question_about_nothing_is_refused(deniable, mechanism, people):
    refused(deniable("estimate", "people.csv", "--mechanism", "m.json", "--of", ""), "no attribute")


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
