"""The audit of the public command, and of another program."""

import sys

import pytest

SMALL = ["--draws", "3000"]


@pytest.mark.slow
def test_the_command_says_what_it_can_see_and_then_what_it_found(deniable, people):
    deniable("design", "--schema", "people.toml", "--epsilon", "3", "--output", "m.json")
    done = deniable("audit", "m.json", *SMALL, "--error", "1e-9")
    assert done.status == 0, done.err
    assert done.out.index("found with probability") < done.out.index("ε given rest")
    assert done.out.splitlines()[-1] == "Consistent with the claim; an audit cannot prove it"


@pytest.mark.slow
def test_another_program_is_refuted_with_status_one(deniable, people):
    schema = (people / "people.toml").read_text().replace("bins = [0, 30, 60, 120]", "")
    (people / "p.toml").write_text(
        schema.replace('name = "age"', 'name = "age"\ncategories = ["1", "2"]')
    )
    deniable("design", "--schema", "p.toml", "--epsilon", "3", "--output", "m.json")
    program = people / "same.py"
    program.write_text("import sys\nprint(sys.stdin.read().replace(',\\n', ',NA\\n'), end='')\n")
    words = ["audit", "m.json", *SMALL, "--error", "1e-9", "--command", f"{sys.executable} same.py"]
    done = deniable(*words)
    assert done.status == 1, done.err
    assert done.out.splitlines()[-1].startswith("REFUTED: at least ")
    plain = deniable(*words, "--json").json
    assert plain["refuted"] is True
    assert plain["error"] == 1e-9
    assert plain["power"][0]["defect"] == "an attribute is released unchanged"


def test_what_cannot_be_audited_is_one_sentence(deniable, people):
    deniable("design", "--schema", "people.toml", "--epsilon", "3", "--output", "m.json")
    for words, said in [
        (["--draws", "10"], "draw at least 1000"),
        (["--error", "2"], "--error: expected a probability"),
        (["--command", " "], "name a program"),
        (["--command", "no-such-program"], "cannot be run"),
    ]:
        done = deniable("audit", "m.json", *words)
        assert (done.status, said in done.err) == (2, True), done.err
