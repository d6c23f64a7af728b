"""From texts to arguments, and one sentence for everything that is wrong, by its control."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.statement.methods import METHODS
from deniable.studio.draft import Draft
from deniable.studio.request import (
    MOST_ATTRIBUTES,
    from_document,
    request_of,
    tables_in,
    tables_text,
)
from unit.studio.drafts import ODD, SPLIT, attribute, draft

LEVELS = {"kind": "levels", "level__a": "1", "level__b": "1", "level__c": "1"}


def problems(**typed: str) -> dict[str, str]:
    return request_of(draft(**typed)).problems


@pytest.mark.parametrize(
    ("control", "text", "said", "others"),
    [
        ("epsilon", "0", "ε: the privacy level must be finite and above 0 nats, not 0", {}),
        ("epsilon", "-1", "ε: the privacy level must be finite and above 0 nats, not -1", {}),
        ("epsilon", "10000", "ε: at most 600 nats", {}),
        ("epsilon", "10,000", "ε: write 10000 or 10.000", {}),
        ("epsilon", "1e", "ε: this is not a number", {}),
        ("epsilon", "", "ε: type the total", {}),
        ("cap", "0.5", "the cap '0.5x' on epsilon_given_rest should be", {}),
        ("cap", "1.5", "the cap '1.5e' on epsilon_given_rest should be", {"method": "forms"}),
        ("cap", "x", "the cap given the rest: this is not a number", {}),
        ("rows", "0", "rows expected: from 1 to", {}),
        ("rows", "1000000000001", "rows expected: from 1 to", {}),
        ("rows", "", "rows expected: a whole number", {}),
        ("within", "0", "the accepted error is more than 0", {}),
        ("within", "100", "the accepted error is more than 0", {}),
        ("prior", "200", "the belief before is more than 0", {}),
        ("within", "", "the accepted error: this is not a number", {}),
        ("pair_floor", "2", "the floor on pairs: between 0 and 1, not 2", {"method": "lp"}),
        ("pairs", "-1", "how much pairs count: between 0 and 1, not -1", {"method": "forms"}),
        ("max_questions", "2.5", "most questions: a whole number", {"method": "forms"}),
        ("attenuation", "0", "λ must lie between 0 and 1", {"method": "lambda"}),
        ("attenuation", "2", "λ must lie between 0 and 1", {"method": "joint"}),
        ("method", "nonsense", "there is no method 'nonsense'", {}),
        ("method", "closed-form", "method closed-form is for exactly 2 attributes", {}),
        ("importance.a", "0", "importance of 'a': it must be a finite number above 0", {}),
        ("level.b", "0", "ε of 'b': the privacy level must be", LEVELS),
        ("level.b", "700", "ε of 'b': at most 600 nats", LEVELS),
        ("level.b", "", "ε of 'b': type its level", LEVELS),
        ("tables", "a\tgone", "there is no attribute 'gone' in the schema; it has a, b, c", {}),
        ("tables", "a\ta", "attribute 'a' is named twice", {}),
        ("tables", "a\tb\tc\ta", "a table is of one to 3 attributes", {}),
        ("shares.a", "30 60", "add up to 0.9", {"assume": "typed"}),
        ("shares.b", "50 50", "'b' has 3 categories, and 2 shares were given", {"assume": "typed"}),
        ("shares.a", "half", "shares of 'a': this is not a number", {"assume": "typed"}),
        ("shares.a", "120 -20", "must be 0 or more", {"assume": "typed"}),
        ("matrix_of", "", "choose the attribute", {"matrix_file": "picked.json"}),
    ],
)
def test_what_is_wrong_is_said_at_its_control(
    control: str, text: str, said: str, others: dict[str, str]
) -> None:
    found = problems(**{**others, control.replace(".", "__"): text})
    assert list(found) == [control]
    assert said in found[control]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ([], "the schema declares no attribute"),
        ([attribute("a"), attribute("a")], "attribute 'a' is declared twice"),
        ([{"name": "a", "categories": ["x", "y", "x"]}], "category 'x' "),
        ([{"name": "a", "bins": [0, 30, 20]}], "must increase"),
        ([attribute(f"a{i}") for i in range(5000)], "5,000 attributes are more than"),
    ],
)
def test_what_is_wrong_with_the_schema_is_said_once(
    declared: list[dict[str, object]], said: str
) -> None:
    found = request_of(Draft({"attribute": declared})).problems
    assert list(found) == ["schema"]
    assert said in found["schema"]


def test_what_is_large_or_odd_is_read() -> None:
    assert problems(rows=str(10**12), epsilon="3,5", within="2,5", cap="none") == {}
    assert problems(assume="typed", shares__a="50,5; 49,5", shares__b="") == {}
    assert problems(assume="typed", shares__a="50 %, 50 %") == {}
    names = [attribute(name) for name in ODD + SPLIT]
    found = request_of(draft(*names, tables=tables_text([ODD[:3], ODD[3:], SPLIT])))
    assert found.problems == {}
    assert found.tables == [list(ODD[:3]), list(ODD[3:]), list(SPLIT)]
    many = [attribute(f"a{i}") for i in range(MOST_ATTRIBUTES)]
    assert request_of(draft(*many)).problems == {}


def test_tables_may_be_of_kept_columns_that_are_declared() -> None:
    assert request_of(draft(keep=("c", "x"), tables="c\na\tc")).problems == {}
    found = request_of(draft(keep=("c", "x"), tables="x")).problems
    assert "'x' is released unchanged" in found["tables"]


def test_arguments_are_those_that_the_method_takes() -> None:
    typed = {
        "cap": "1,5",
        "pair_floor": "0.25",
        "pairs": "0.5",
        "max_questions": "3",
        "importance__a": "2",
    }
    taken = {
        "balanced": {"epsilon": 4.0, "given_rest": "1.5x", "pairs": 0.5},
        "optimal": {"epsilon": 4.0},
        "kronecker": {"epsilon": 4.0},
        "lambda": {"attenuation": 0.5},
        "joint": {"epsilon": 4.0},
    }
    for method, arguments in taken.items():
        chosen = {"attenuation": "0.5"} if method == "lambda" else {}
        found = request_of(draft(**typed, **chosen, method=method))
        assert found.problems == {}
        assert found.arguments == {"method": method, **arguments}
        importance = "importance" in METHODS[method].takes
        assert ("importance" in found.schema["attribute"][0]) == importance
    forms = request_of(draft(**{**typed, "cap": "0.5"}, method="forms"))
    assert forms.arguments["given_rest"] == "0.5e"
    assert (forms.arguments["pairs"], forms.arguments["max_questions"]) == (0.5, 3)
    assert request_of(draft(method="joint", attenuation="0,3")).arguments["attenuation"] == 0.3


def test_levels_stand_in_the_schema() -> None:
    found = request_of(draft(**LEVELS, importance__a="3"))
    assert [one["epsilon"] for one in found.schema["attribute"]] == [1, 1, 1]
    assert "epsilon" not in found.arguments
    assert "importance" not in found.schema["attribute"][0]
    del (fewer := dict(LEVELS))["level__c"]
    assert request_of(draft(keep=("c",), **fewer)).problems == {}
    by_matrix = {**fewer, "matrix_of": "c", "matrix_file": "picked.json"}
    found = request_of(draft(**by_matrix))
    assert (found.problems, found.responses) == ({}, {"c": "picked.json"})


CHANGES = {
    "rows": "20000", "within": "3", "epsilon": "5", "method": "kronecker", "cap": "3",
    "pair_floor": "0.1", "tables": "a\tb", "assume": "worst", "importance.a": "2",
    "matrix_of": "a",
}  # fmt: skip


def test_whatever_changes_an_answer_changes_the_digest() -> None:
    requests = [
        draft(matrix_file="m.json", matrix_of="b").with_controls(**{k: t})
        for k, t in CHANGES.items()
    ]
    requests += [draft(assume="typed", shares__a=text) for text in ("50 50", "40 60")]
    requests += [draft(), draft(attribute("a", 4)), draft(keep=("a",))]
    digests = {request_of(one).digest for one in requests}
    assert len(digests) == len(requests)
    assert request_of(draft(prior="20")).digest == request_of(draft()).digest


def test_a_schema_that_is_read_gives_levels_to_the_controls() -> None:
    found = from_document(
        {
            "attribute": [
                attribute("a", epsilon=1.23456789),
                attribute("b", importance=2, missing="error"),
            ]
        }
    )
    assert found.controls == {"kind": "levels", "level.a": "1.23456789", "importance.b": "2"}
    assert found.attributes == (attribute("a"), attribute("b"))


@given(st.lists(st.lists(st.sampled_from(ODD + SPLIT), min_size=1, max_size=3)))
def test_tables_are_kept_as_they_were_chosen(tables: list[list[str]]) -> None:
    assert tables_in(tables_text(tables)) == tables


@pytest.mark.parametrize(
    ("typed", "unchosen"),
    [
        ({"epsilon": ""}, ["epsilon"]),
        ({"epsilon": "", "kind": "levels", "level__b": "1"}, ["level.a", "level.c"]),
        ({"epsilon": "", "method": "lambda"}, ["attenuation"]),
        ({"epsilon": "", "method": "joint", "attenuation": "0.5"}, []),
        ({"epsilon": "", "matrix_of": "a", "matrix_file": "m.json"}, ["epsilon"]),
    ],
)
def test_how_much_may_be_learnt_has_no_default(typed: dict[str, str], unchosen: list[str]) -> None:
    found = request_of(draft(**typed))
    assert found.unchosen == list(found.problems) == unchosen
    assert {"epsilon", "attenuation"} & found.arguments.keys() == (
        set() if unchosen else {"attenuation"}
    )


def test_where_a_matrix_decides_there_is_nothing_to_choose() -> None:
    one = draft(attribute("a"), epsilon="", matrix_of="a", matrix_file="m.json")
    assert request_of(one).problems == {}
