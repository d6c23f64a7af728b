"""A release opened once: every question is the function's answer."""

import inspect
import json

import pandas as pd
import pyarrow as pa
import pytest

import deniable
from deniable.design.record import mechanism_to_plain
from deniable.engines.units import options_of
from deniable.errors import InputError

SCHEMA = deniable.Schema(
    (
        deniable.Attribute("smokes", ("no", "yes"), scores=(0, 1)),
        deniable.Attribute("age", bins=(0, 30, 60, 90), scores=(15, 45, 75)),
        deniable.Attribute("sex", ("f", "m")),
    ),
    keep=("town",),
)
PLAN = deniable.design(SCHEMA, epsilon=6)
TABLE = pa.table(
    {
        "smokes": ["no", "yes", "no"] * 200,
        "age": ["[0,30)", "[30,60)", "[60,90]", "[0,30)"] * 150,
        "sex": ["f"] * 250 + ["m"] * 350,
        "town": ["A", "B"] * 300,
    }
)
RELEASE = deniable.open_release(TABLE, PLAN)


def test_every_question_is_the_functions_answer() -> None:
    (shares,) = RELEASE.shares("smokes,age")
    assert shares.table() == deniable.estimate(TABLE, PLAN, of="smokes,age").table()
    (mean,) = RELEASE.mean("age")
    assert mean == deniable.estimate_mean(TABLE, PLAN, of="age")[0]
    (median,) = RELEASE.quantile("age")
    assert median == deniable.estimate_quantile(TABLE, PLAN, of="age")[0]
    (covariance,) = RELEASE.covariance(["smokes", "age"])
    assert covariance == deniable.estimate_covariance(TABLE, PLAN, of="smokes,age")
    (test,) = RELEASE.test("smokes,sex")
    assert test.p_value == deniable.independence_test(TABLE, PLAN, of="smokes,sex").p_value
    (model,) = RELEASE.model("smokes ~ sex", where={"town": "A"})
    again = deniable.model(TABLE, "smokes ~ sex", PLAN, where={"town": "A"})
    assert model.table() == again.table()
    (moved,) = RELEASE.leverage("smokes")
    assert moved.table() == deniable.leverage(TABLE, PLAN, of="smokes").table()
    trends = RELEASE.trend("smokes,age", status="town")
    assert trends == deniable.trend_test(TABLE, PLAN, of="smokes,age", status="town")
    with pytest.raises(InputError, match="this release has no forms"):
        RELEASE.agreement()
    (smoothed,) = RELEASE.smooth("smokes,age,sex")
    assert len(smoothed.table()) == 12


def test_levels_selections_groups_and_weights_are_the_same_everywhere() -> None:
    for ask in (RELEASE.shares, RELEASE.mean, RELEASE.quantile):
        groups = ask("age", by="town", level=0.8)
        assert [dict(g.group)["town"] for g in groups] == ["A", "B"]
        assert groups[0].to_plain()["n"] == 300
    (narrow,), (wide,) = (RELEASE.shares("sex", level=level) for level in (0.5, 0.99))
    assert narrow.table()[0]["low"] > wide.table()[0]["low"]
    for ask in (RELEASE.covariance, RELEASE.test):
        (narrow,), (wide,) = (ask("smokes,age", level=level) for level in (0.5, 0.99))
        assert narrow.to_plain()["level"] == 0.5
        assert "50 % interval" in narrow.caption()
        assert wide.to_plain()["level"] == 0.99


def test_it_says_what_it_is_in_a_line_and_what_is_wrong_in_a_sentence() -> None:
    assert repr(RELEASE) == "<release of smokes, age, sex; ε = 6 for the record>"
    assert RELEASE.schema == SCHEMA
    with pytest.raises(InputError, match="the test of independence takes no weights"):
        RELEASE.test("smokes,sex", weights="town")
    with pytest.raises(InputError, match="collapse is a dictionary of texts by name"):
        RELEASE.model("smokes ~ age", collapse="age=x|*")  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match="where is a dictionary of values by name or a list of texts"
    ):
        RELEASE.shares("sex", where=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ask", "argument"),
    [(deniable.estimate, "level"), (deniable.estimate, "method"), (deniable.estimate, "target"),
     (deniable.estimate, "weights"), (deniable.estimate, "known"), (deniable.estimate, "anyway"),
     (deniable.estimate_mean, "scores"), (deniable.estimate_quantile, "probability"),
     (deniable.trend_test, "status"), (deniable.model, "formula"), (deniable.model, "against"),
     (deniable.share, "person"), (deniable.share, "shuffle"), (RELEASE.shares, "target")],
)  # fmt: skip
def test_an_argument_of_another_type_is_named_with_its_types_and_not_shown(ask, argument) -> None:
    # Failed before: tracebacks of pandas, or the frame in the message.
    rows = (TABLE, PLAN) if inspect.isfunction(ask) else ()
    given = {"of": "sex", "formula": "smokes ~ sex", "output": "x", argument: [pd.DataFrame(["y"])]}
    given = {name: given[name] for name in (*inspect.signature(ask).parameters,) if name in given}
    if argument == "scores":
        given[argument] = 5
    with pytest.raises(InputError, match=rf"^{argument} is (a|True).*, not (list|int)$"):
        ask(*rows, **given)


def test_an_argument_that_there_is_not_is_said_of_the_function_that_was_called() -> None:
    # Failed before: "Shares.__init__() got an unexpected keyword argument".
    for ask in (deniable.estimate, RELEASE.shares, deniable.share, deniable.randomize):
        with pytest.raises(TypeError, match=f"^{ask.__name__}.. has no argument 'colour'; it"):
            ask(TABLE, PLAN, colour=1)
    with pytest.raises(TypeError, match=r"^deniable.engines.dask.share\(\) has no argument 'seed'"):
        options_of("deniable.engines.dask.share(…)", seed=1)


def test_a_dictionary_of_levels_is_checked_and_a_plan_is_read_from_its_file(tmp_path) -> None:
    (model,) = RELEASE.model("age ~ sex", collapse={"sex": "f|*"}, where="town=A")
    assert model.n_records == 300
    for collapse in ("sex", {"sex": ["f", "*"]}):
        with pytest.raises(InputError, match=r"^collapse is a"):
            RELEASE.model("age ~ sex", collapse=collapse)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="of"):
        RELEASE.shares()  # type: ignore[call-arg]
    (tmp_path / "plan.json").write_text(json.dumps(mechanism_to_plain(PLAN)))
    (shares,) = deniable.open_release(TABLE, tmp_path / "plan.json").shares("sex")
    assert shares.table() == RELEASE.shares("sex")[0].table()
