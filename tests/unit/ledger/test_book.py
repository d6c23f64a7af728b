import os
import sqlite3
import stat
import warnings
from pathlib import Path

import pytest

from deniable.errors import InputError, Notice
from deniable.ledger import (
    Event,
    Ledger,
    Population,
    Spending,
    balances,
    remembered,
    stored_releases,
)
from deniable.ledger.book import population_of, same_people, unfinished
from killing import finished, forked, killed, moments

DROPPED = ("DROP TRIGGER events_stay", "DROP TRIGGER events_remain")


def spend(path: Path, epsilon: float = 1.0) -> None:
    with Ledger(path).release("p", Spending(epsilon), "share") as entry:
        entry.count(Spending(epsilon))
        entry.publish("00")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def test_a_ledger_is_its_owners_alone_and_knows_what_it_is(path):
    spend(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [event.kind for event in Ledger(path).events()] == [
        "opened",
        "begun",
        "counted",
        "published",
    ]
    assert [p.name for p in path.parent.iterdir()] == ["people.ledger"]


def test_a_release_beyond_the_budget_is_refused_and_says_what_is_left(path):
    Ledger(path).set_budget("p", 2.5)
    spend(path)
    spend(path)
    with pytest.raises(InputError, match=r"of 2\.5 nats 0\.5 are left after 2 releases"):
        spend(path)
    with pytest.raises(InputError, match="without a bound"):
        spend(path, float("inf"))
    spend(path, 0.5)
    assert balances(Ledger(path).events())["p"].left == 0.0


def test_rows_of_persons_that_pass_the_budget_are_refused_when_they_are_known(path):
    ledger = Ledger(path)
    ledger.set_budget("p", 2.5)
    with (
        pytest.raises(InputError, match="which is 3 nats"),
        ledger.release("p", Spending(1.0), "share") as entry,
    ):
        entry.count(Spending(1.0), rows_of_person=3)
    assert balances(ledger.events())["p"].left == 2.5


def test_a_failure_gives_the_level_back_unless_rows_were_complete(path):
    ledger = Ledger(path)

    def fail(*, count: bool, publish: bool) -> None:
        with ledger.release("p", Spending(1.0), "share") as entry:
            if count:
                entry.count(Spending(1.0))
            if publish:
                entry.publish("00")
            raise KeyboardInterrupt

    # Failed before: a release that failed when its rows were complete was given back.
    for count, publish, counts in [(False, False, 0), (True, False, 1), (True, True, 2)]:
        with pytest.raises(KeyboardInterrupt):
            fail(count=count, publish=publish)
        assert sum(not r.withdrawn for r in stored_releases(ledger.events())) == counts
        assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_standing_counts_what_was_counted_before(path):
    spend(path, 0.5)
    ledger = Ledger(path)
    with (
        ledger.release("p", Spending(1.0), "share"),
        ledger.release("p", Spending(2.0), "share") as second,
    ):
        second.count(Spending(2.0), rows_of_person=2)
        assert second.standing == (2, 4.5)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET content = replace(content, '1.0', '0.5')",
        "DELETE FROM events WHERE number = 2",
    ],
)
def test_an_event_cannot_be_changed_and_a_change_by_force_is_noticed(path, change):
    spend(path)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        connection.execute(change)
    for statement in (*DROPPED, change):
        connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match="has been altered: event 2"):
        Ledger(path).events()
    with pytest.raises(InputError, match="has been altered: event 2"):
        spend(path)


def test_other_files_are_not_taken_for_ledgers(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n" * 1000)
    with pytest.raises(InputError, match="not a ledger"):
        spend(tmp_path / "table.csv")
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    for use in (spend, lambda path: Ledger(path).events()):
        with pytest.raises(InputError, match="not a ledger"):
            use(tmp_path / "other.db")
    with pytest.raises(InputError, match="no such ledger"):
        Ledger(tmp_path / "none").events()
    with pytest.raises(InputError, match="is a folder"):
        Ledger(tmp_path)
    with pytest.raises(InputError, match="folder of the ledger does not exist"):
        Ledger(tmp_path / "no" / "l")
    (tmp_path / "record.json").write_text("{}")
    with pytest.raises(InputError, match="lies in the folder of a release"):
        Ledger(tmp_path / "l")


def test_a_later_version_is_refused(path):
    spend(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(InputError, match="later version"):
        Ledger(path).events()


def test_a_ledger_that_cannot_be_written_is_one_sentence(path, monkeypatch):
    spend(path)
    path.chmod(0o400)
    if os.getuid() != 0:
        with pytest.raises(InputError, match="cannot be written"):
            spend(path)
    path.chmod(0o600)

    def refuse(*_: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InputError, match="Read-only file system"):
        spend(path)
    assert balances(Ledger(path).events())["p"].epsilon == 1.0


def test_the_same_people_under_two_names_are_noticed(path):
    ledger = Ledger(path)
    spend(path)

    def release(name: str, people: list[int]) -> None:
        with remembered(Population(ledger, name), Spending(1.0), "share") as entry:
            assert entry is not None
            entry.count(Spending(1.0), people=people)

    release("a", [1, 2])
    release("b", [1, 2, 3])
    release("a", [2, 1])
    assert same_people(ledger.events()) == []
    with pytest.warns(Notice, match="population 'a' has exactly the same people"):
        release("c", [2, 1])
    assert same_people(ledger.events()) == [("a", "c")]


def test_a_digest_of_people_cannot_be_made_without_the_ledger(tmp_path):
    first, second = Ledger(tmp_path / "a"), Ledger(tmp_path / "b")
    for ledger in (first, second):
        spend(ledger.path)
    assert first.digest_of(["x", "y"]) == first.digest_of(["y", "x"])
    assert first.digest_of(["x"]) != second.digest_of(["x"])
    assert first.digest_of([1]) != first.digest_of(["1"])


def test_no_ledger_remembers_nothing():
    with remembered(None, Spending(1.0), "share") as entry:
        assert entry is None
    with pytest.raises(InputError, match="name of a population"):
        Population(Ledger("l"), " ")


def test_a_new_population_is_asked_for_where_the_ledger_has_budgets(path):
    # Failed before: a mistyped name was a population without a budget.
    ledger = Ledger(path)
    spend(path)
    Population(ledger, "q").check(Spending(9.0))  # nobody has a budget yet
    ledger.set_budget("p", 5.0)
    for attempt in (
        lambda: Population(ledger, "q").check(Spending(1.0)),
        lambda: ledger.release("q", Spending(1.0), "share").__enter__(),
        lambda: ledger.set_budget("q", 1.0),
    ):
        with pytest.raises(InputError, match=r"'q' is not in this ledger.*of 'p', or set"):
            attempt()
    Population(ledger, "P ").check(Spending(1.0))
    with remembered(Population(ledger, "q", new=True), Spending(1.0), "share") as entry:
        assert entry is not None
        entry.count()
    ledger.set_budget("q", 1.0)  # it is known by now
    assert [b.left for b in balances(ledger.events()).values()] == [4.0, 0.0]


def test_a_release_that_was_begun_is_gone_on_with_by_another_process(path):
    ledger = Ledger(path)
    ledger.set_budget("p", 5.0)
    with ledger.release("p", Spending(1.0), "share", rows_of_person=3) as begun:
        assert balances(ledger.events())["p"].left == 2.0
    with (
        pytest.raises(InputError, match="which is 3 nats: of 5 nats 2 are left"),
        ledger.release("p", Spending(1.0), "share", rows_of_person=3),
    ):
        pass
    entry = ledger.entry(begun.number, begun.token)
    assert not entry.counted
    entry.count()
    again = Ledger(path).entry(begun.number, begun.token)
    assert (again.counted, again.standing) == (True, (1, 3.0))
    again.count()  # a second time is once
    assert balances(ledger.events())["p"].left == 2.0
    with pytest.raises(InputError, match="rows of the release in event 3 were drawn"):
        begun.withdraw("nothing was drawn")
    assert balances(ledger.events())["p"].left == 2.0
    again.publish("00")
    again.publish("00")  # it died after that
    assert [e.kind for e in ledger.events()].count("published") == 1
    with pytest.raises(InputError, match="already published with other rows"):
        begun.publish("01")
    with pytest.raises(InputError, match="another ledger, or an earlier state of it"):
        ledger.entry(2, "other")


def test_what_was_withdrawn_is_counted_no_more_and_what_was_counted_is_read_as_counting(path):
    # Failed before: one could be withdrawn while it was made, by a lock that was deleted, and
    # what it released counted nothing.
    ledger = Ledger(path)

    def meanwhile() -> None:
        with ledger.release("p", Spending(1.0), "share") as entry:
            lock = next(p for p in path.parent.iterdir() if p.suffix == ".running")
            lock.unlink()
            lock.touch()
            spend(path)
            entry.count()

    with pytest.raises(InputError, match="was withdrawn meanwhile"):
        meanwhile()
    (taken, made) = stored_releases(ledger.events())
    assert (taken.withdrawn, made.withdrawn) == (True, False)
    with pytest.raises(InputError, match="was withdrawn, so no row of it may be drawn"):
        ledger.entry(taken.number, taken.token)
    begun = next(e for e in ledger.events() if e.number == taken.number)
    counted = next(e.content for e in ledger.events() if e.kind == "counted")
    of_old = [
        begun,
        Event(9, "t", "withdrawn", "p", {"release": begun.number}),
        Event(10, "t", "counted", "p", {**counted, "release": begun.number}),
    ]
    assert [r.withdrawn for r in stored_releases(of_old)] == [False]


def test_a_ledger_that_goes_while_a_release_is_made_is_not_begun_anew(path):
    def moved() -> None:
        with Ledger(path).release("p", Spending(1.0), "share") as entry:
            path.rename(path.with_name("moved"))
            entry.count()

    with pytest.raises(InputError, match="the ledger is missing"):
        moved()
    assert not path.exists()


def test_a_new_ledger_is_said_and_an_empty_file_is_none(path):
    with (
        pytest.warns(Notice, match="is a new ledger without a budget"),
        remembered(Population(Ledger(path)), Spending(1.0), "share"),
    ):
        pass
    path.write_bytes(b"")
    for use in (spend, lambda path: Ledger(path).events()):
        with pytest.raises(InputError, match="is empty: it is no ledger"):
            use(path)


def test_no_filter_of_warnings_ends_a_release(path, caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("p", "q"):
            # Failed before: a new ledger was not begun, and the second counted and then ended.
            with remembered(Population(Ledger(path), name), Spending(1.0), "share") as entry:
                entry.count(people=["a", "b"])
                entry.publish("00" * 32)
            assert entry.standing == (1, 1.0)
    said = [record.getMessage() for record in caplog.records]
    assert ["is a new ledger" in said[0], "has exactly the same people" in said[1]] == [True] * 2
    assert len(said) == 2


@pytest.mark.parametrize(
    "change", ["UPDATE secret SET key = ?", "INSERT INTO secret VALUES (?)", "DELETE FROM secret"]
)
def test_a_secret_that_was_changed_is_noticed(path, change):
    spend(path)
    connection = sqlite3.connect(path)
    connection.execute(change, (b"x" * 32,) if "?" in change else ())
    connection.commit()
    connection.close()
    for use in (spend, lambda path: Ledger(path).events()):
        with pytest.raises(InputError, match="has been altered: its secret"):
            use(path)


@pytest.mark.parametrize(
    ("budget", "spent", "said"),
    [
        (9.0, 9 - 5.49999e-11, "of 9 nats nothing is left"),
        (9.0, 9.0, "of 9 nats nothing is left"),
        (9.0, 9.5, "of 9 nats nothing is left"),
        (0.5, 0.4999999, "of 0.5 nats nothing is left"),
        (9.0, 6.0000000001, "of 9 nats 2.99999 are left"),
        (200.0, 100.0, "of 200 nats 100 are left"),
        (0.3, 0.1, "of 0.3 nats 0.2 are left"),
    ],
)
def test_what_is_left_is_said_rounded_down(path, budget, spent, said):
    ledger = Ledger(path)
    spend(path, spent)
    ledger.set_budget("p", budget)
    assert balances(ledger.events())["p"].left_text == said


def race(path: Path, writers: int, budget: float) -> None:
    Ledger(path).set_budget("p", budget)
    children = [forked(lambda: spend(path)) for _ in range(writers)]
    assert sum(map(finished, children)) == budget
    balance = balances(Ledger(path).events())["p"]
    assert (balance.left, unfinished(Ledger(path).events())) == (0.0, [])


def test_eight_writers_at_once_cannot_spend_more_than_there_is(path):
    race(path, 8, 5.0)


@pytest.mark.slow
def test_fifty_writers_at_once_cannot_spend_more_than_there_is(path):
    race(path, 50, 30.0)


def die(path: Path, moment: int) -> None:
    """A release that is killed leaves a whole ledger; it counts if it was counted, and otherwise
    the next release takes it back."""
    assert killed(lambda: spend(path), moment, "deniable.ledger")
    ledger = Ledger(path)
    if path.exists() and path.stat().st_size:
        before = stored_releases(ledger.events())
        counted = [r for r in before if r.counted]
    else:
        counted = []
    spend(path)
    after = [r for r in stored_releases(ledger.events()) if not r.withdrawn]
    assert len(after) == len(counted) + 1
    assert unfinished(ledger.events()) == []
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def each_moment(tmp_path: Path, count: int) -> None:
    def work() -> None:
        spend(tmp_path / "trial")

    total = moments(work, "deniable.ledger")
    for turn, moment in enumerate(range(0, total, max(1, total // count))):
        folder = tmp_path / str(turn)
        folder.mkdir()
        die(folder / "people.ledger", moment)


def test_a_killed_release_leaves_a_whole_ledger(tmp_path):
    each_moment(tmp_path, 12)


@pytest.mark.slow
def test_a_release_killed_at_many_moments_leaves_a_whole_ledger(tmp_path):
    each_moment(tmp_path, int(os.environ.get("KILLS", "25")))  # just kill: two hundred


def test_a_ledger_that_does_not_exist_is_begun_or_refused(path, monkeypatch):
    # Failed before: a mistyped name could not be refused, and DENIABLE_LEDGER could begin none.

    def found(*given, **told):
        whose = population_of(*given, **told)
        return whose is not None and whose.ledger.path == path

    assert found(path)
    assert found(path, new_ledger=True)
    with pytest.raises(InputError, match=r"no such ledger; restore it.*with `new_ledger`"):
        population_of(path, new_ledger=False)
    monkeypatch.setenv("DENIABLE_LEDGER", str(path))
    with pytest.raises(InputError, match="and DENIABLE_LEDGER names it"):
        population_of()
    assert found(new_ledger=True)
    Ledger(path).set_budget("p", 1.0)
    assert found()
    assert found(path, new_ledger=False)


def test_an_outlook_says_what_a_release_would_come_to(path):
    whose = Population(Ledger(path), "P ")
    assert whose.outlook(Spending(1.0))["new"]
    whose.ledger.set_budget("p", 5.0)
    with whose.ledger.release("p", Spending(1.5), "share") as entry:
        entry.count()
    seen = whose.outlook(Spending(3.0, {"a": 2.0}, {"a": 2.0}))
    before, after = seen["before"], seen["after"]
    assert (before["population"], before["epsilon"], before["left"]) == ("p", 1.5, 3.5)
    assert (after["releases"], after["epsilon"], after["left"]) == (2, 4.5, 0.5)
    assert len(whose.ledger.events()) == 4, "nothing is entered"
