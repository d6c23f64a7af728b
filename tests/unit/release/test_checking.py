"""All reasons against a release at once, and nothing is drawn or written."""

from pathlib import Path

import pytest

from deniable import Attribute, Schema
from deniable.errors import InputError
from deniable.ledger import Ledger, Population, Spending
from deniable.release.checking import Check, Problems
from deniable.release.release import Options

SCHEMA = Schema((Attribute("a", ("x", "y"), drafted=True), Attribute("b", ("no", "yes"))))


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table with a column too many, a value that does not fit, and two rows of one person."""
    file = tmp_path / "people.csv"
    file.write_text("a,b,who,town\nx,no,1,here\ny,maybe,1,there\nx,yes,2,here\n")
    return str(file)


def check(folder: Path, **options: object) -> Check:
    given = Options(person="who", **options)  # type: ignore[arg-type]
    return Check(SCHEMA, folder / "release", given, Problems(), Spending(2.0))


def test_all_reasons_are_found_at_once_and_nothing_is_written(tmp_path: Path, table: str) -> None:
    # Failed before: each was found only when the one before it had been settled.
    ledger = Ledger(tmp_path / "l")
    ledger.set_budget("p", 1.0)
    (tmp_path / "release").mkdir()
    before = {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    found = check(tmp_path, people=Population(ledger, "p"))
    found.request()
    found.columns(table)
    found.look(table)
    plain = found.to_plain()
    assert [one["at"] for one in plain["problems"]] == [
        *("output", "ledger", "accept_drafted", "table", "table", "person_epsilon"),
    ]
    for sentence, word in zip(
        plain["problems"],
        (
            "exists already",
            "budget of",
            "of 'a' were read off",
            "'town'",
            "data row 2",
            "2 rows of ε",
        ),
        strict=True,
    ):
        assert word in sentence["sentence"]
    assert (plain["drafted"], plain["replaces"]) == (["a"], True)
    with pytest.raises(InputError, match="refused for 6 reasons") as refused:
        found.problems.refuse()
    assert str(refused.value).count("\n  ") >= 6
    assert {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before


def test_rows_are_not_read_while_something_is_known_to_stand_against_it(
    tmp_path: Path, table: str
) -> None:
    found = check(tmp_path)
    with pytest.raises(InputError) as refused:
        found.refuse_before_rows(table)
    assert "read off the data" in str(refused.value)
    assert "'town'" in str(refused.value)
    assert (found.rows, "maybe" in str(refused.value)) == (None, False)
    settled = check(tmp_path, accept_drafted=True, drop_other_columns=True, person_epsilon=4.0)
    settled.refuse_before_rows(table)
    settled.look(table)
    with pytest.raises(InputError, match=r"^.*people\.csv"):  # one reason is said as it is
        settled.problems.refuse()


def test_the_ledger_before_and_after_counts_all_rows_of_a_person(
    tmp_path: Path, table: str
) -> None:
    Path(table).write_text(Path(table).read_text().replace("maybe", "no"))
    ledger = Ledger(tmp_path / "l")
    whose = Population(ledger, "p")
    given = {"accept_drafted": True, "drop_other_columns": True, "people": whose}
    given |= {"person_epsilon": 4.0}
    found = check(tmp_path, **given)
    found.columns(table)
    found.look(table)
    plain = found.to_plain()
    assert (plain["rows"], plain["rows_of_person"], plain["dropped"]) == (3, 2, ["town"])
    assert plain["ledger"]["new"]
    assert (plain["ledger"]["before"]["epsilon"], plain["ledger"]["after"]["epsilon"]) == (0.0, 4.0)
    assert not ledger.exists
    ledger.set_budget("p", 3.0)  # enough for one row
    found = check(tmp_path, **given)
    found.refuse_before_rows(table)
    found.look(table)
    (problem,) = found.problems.found
    assert (problem.at, "which is 4 nats: of 3 nats 3 are left" in problem.sentence) == (
        *("ledger", True),
    )


def test_rows_of_a_person_are_counted_without_a_ledger(tmp_path: Path, table: str) -> None:
    # Failed before: `--check` found nothing against a release that is refused for it.
    Path(table).write_text(Path(table).read_text().replace("maybe", "no"))
    given = {"accept_drafted": True, "drop_other_columns": True}
    found = check(tmp_path, **given)
    found.refuse_before_rows(table)
    found.look(table)
    assert found.to_plain()["rows_of_person"] == 2
    (problem,) = found.problems.found
    assert problem.at == "person_epsilon"
    assert "2 rows of ε = 2 each, 4 together" in problem.sentence
    allowed = check(tmp_path, **given, person_epsilon=4.0)
    allowed.look(table)
    assert (allowed.rows_of_person, allowed.problems.found) == (2, [])


def test_a_table_that_is_not_there_is_a_reason_and_a_stream_is_not_read(tmp_path: Path) -> None:
    found = check(tmp_path)
    found.columns("-")
    assert found.problems.found == []
    found.columns(str(tmp_path / "nobody.csv"))
    (problem,) = found.problems.found
    assert "nobody.csv: there is no such file" in problem.sentence
