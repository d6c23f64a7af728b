"""An opened release: a method for every query."""

import inspect
import json
import warnings
from dataclasses import fields

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable
from deniable.errors import InputError, Notice
from deniable.statement.record import mechanism_to_plain

SCHEMA = deniable.Schema(
    (
        deniable.Attribute("smokes", ("no", "yes"), scores=(0, 1)),
        deniable.Attribute("age", bins=(0, 30, 60, 90), scores=(15, 45, 75)),
        deniable.Attribute("sex", ("f", "m")),
        deniable.Attribute("hours", range=(0, 60), grid=4),
    ),
    keep=("town",),
)
PLAN = deniable.design(SCHEMA, epsilon=6)
TABLE = pa.table(
    {
        "smokes": ["no", "yes", "no"] * 200,
        "age": ["[0,30)", "[30,60)", "[60,90]", "[0,30)"] * 150,
        "sex": ["f"] * 250 + ["m"] * 350,
        "hours": [0, 20, 40, 60] * 150,
        "town": ["A", "B"] * 300,
    }
)
RELEASE = deniable.open(TABLE, PLAN)


QUERIES = {
    "shares": deniable.Shares("smokes,age"),
    "mean": deniable.Mean("age", by="town"),
    "quantile": deniable.Quantile("age"),
    "distribution": deniable.Distribution("hours", at=(15, 35)),
    "deviation": deniable.Deviation("hours", by="sex"),
    "correlation": deniable.Correlation("hours,age,sex"),
    "covariance": deniable.Covariance(["smokes", "age"]),
    "independence": deniable.Independence("smokes,sex"),
    "trend": deniable.Trend("smokes,age", status="town"),
    "agreement": deniable.Agreement(),
    "leverage": deniable.Leverage("smokes"),
    "honesty": deniable.Honesty("smokes"),
    "compare": deniable.Comparison("smokes", column="sex", values="f,m"),
    "smooth": deniable.Smooth("smokes,age,sex"),
    "model": deniable.ModelQuery("smokes ~ sex", where={"town": "A"}),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_method_takes_what_its_query_takes_and_gives_the_same_answers(name: str) -> None:
    query, method = QUERIES[name], getattr(RELEASE, name)
    shown = inspect.signature(method).parameters.values()
    taken = inspect.signature(type(query)).parameters.values()
    defaults = {one.name: one.default for one in shown}
    assert defaults | {"collapse": None} == {p.name: p.default for p in taken} | {"collapse": None}
    given = {field.name: getattr(query, field.name) for field in fields(query)}
    refusals = {"agreement": "this release has no forms", "honesty": "all rows have one design"}
    if name in refusals:
        with pytest.raises(InputError, match=refusals[name]):
            method(**given)
        return
    answers = RELEASE.query(query)
    assert answers
    assert method(**given).table() == answers.table()


def test_a_query_is_a_dataclass_of_the_package() -> None:
    for wrong in (deniable.Mean, "smokes", None):
        with pytest.raises(InputError, match=r"^query is a query such as deniable.Mean"):
            RELEASE.query(wrong)  # type: ignore[type-var, arg-type]
    methods = {name for name, one in vars(type(RELEASE)).items() if inspect.isfunction(one)}
    assert {name for name in methods if name[0] != "_"} == {*QUERIES, "query"}


def test_levels_selections_groups_and_weights_are_the_same_everywhere() -> None:
    for ask in (RELEASE.shares, RELEASE.mean, RELEASE.quantile):
        groups = ask("age", by="town", level=0.8)
        assert [dict(g.group)["town"] for g in groups] == ["A", "B"]
        assert groups[0].to_plain()["n"] == 300
    (narrow,), (wide,) = (RELEASE.shares("sex", level=level) for level in (0.5, 0.99))
    assert narrow.table()[0]["low"] > wide.table()[0]["low"]
    for ask in (RELEASE.covariance, RELEASE.independence):
        (narrow,), (wide,) = (ask("smokes,age", level=level) for level in (0.5, 0.99))
        assert narrow.to_plain()["level"] == 0.5
        assert "50 % interval" in narrow.caption()
        assert wide.to_plain()["level"] == 0.99


def test_it_says_what_it_is_in_a_line_and_what_is_wrong_in_a_sentence() -> None:
    assert repr(RELEASE) == "<release of smokes, age, sex, hours; ε = 6 for the record>"
    assert RELEASE.schema == SCHEMA
    with pytest.raises(InputError, match="Trend takes no weights"):
        RELEASE.trend("smokes,sex", status="town", weights="town")
    with pytest.raises(InputError, match="collapse is a dictionary of texts by name"):
        RELEASE.model("smokes ~ age", collapse="age=x|*")  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match="where is a dictionary of values by name or a list of texts"
    ):
        RELEASE.shares("sex", where=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "argument"),
    [(deniable.Shares, "level"), (deniable.Shares, "method"), (deniable.Shares, "target"),
     (deniable.Shares, "weights"), (deniable.Shares, "known"), (deniable.open, "anyway"),
     (deniable.Mean, "scores"), (deniable.Quantile, "interpolate"), (deniable.Trend, "status"),
     (deniable.ModelQuery, "formula"), (deniable.ModelQuery, "against"),
     (deniable.Publication, "person"), (deniable.Publication, "shuffle"),
     (RELEASE.shares, "target")],
)  # fmt: skip
def test_an_argument_of_another_type_is_named_with_its_types_and_not_shown(call, argument) -> None:
    # Failed before: tracebacks of pandas, or the frame in the message.
    given = {"of": "sex", "formula": "smokes ~ sex", "output": "x", "status": "sex"}
    given |= {"released": TABLE, "table": TABLE, "plan": PLAN, argument: [pd.DataFrame(["y"])]}
    given = {name: given[name] for name in inspect.signature(call).parameters if name in given}
    if argument == "scores":
        given[argument] = 5
    with pytest.raises(InputError, match=rf"^{argument} is (a|True).*, not (list|int)$"):
        call(**given)


def test_an_argument_that_there_is_not_is_said_of_the_function_that_was_called() -> None:
    # Failed before: "Shares.__init__() got an unexpected keyword argument".
    with pytest.raises(TypeError, match=r"shares\(\) got an unexpected .* 'colour'"):
        RELEASE.shares("sex", colour=1)  # type: ignore[call-arg]


def test_a_dictionary_of_levels_is_checked_and_a_plan_is_read_from_its_file(tmp_path) -> None:
    (model,) = RELEASE.model("age ~ sex", collapse={"sex": "f|*"}, where="town=A")
    assert model.n_records == 300
    for collapse in ("sex", {"sex": ["f", "*"]}):
        with pytest.raises(InputError, match=r"^collapse is a"):
            RELEASE.model("age ~ sex", collapse=collapse)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="of"):
        RELEASE.shares()  # type: ignore[call-arg]
    (tmp_path / "plan.json").write_text(json.dumps(mechanism_to_plain(PLAN)))
    (shares,) = deniable.open(TABLE, tmp_path / "plan.json").shares("sex")
    assert shares.table() == RELEASE.shares("sex")[0].table()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_warned_of_unless_something_identifies_it_as_a_release(library):
    # Failed before: shares of rows that were never randomized were 0.142 for 0.274, without a word.
    plan = deniable.design(deniable.Schema.anonymous((2, 3)), epsilon=2)
    rows = {"a1": ["0", "1", "0", "1"] * 5, "a2": ["0", "1", "2", "0"] * 5}
    table = pa.table(rows)
    module = pytest.importorskip(library)
    frame = {"pandas": table.to_pandas, "pyarrow": lambda: table}.get(
        library, lambda: module.from_arrow(table)
    )()
    with pytest.warns(Notice, match="cannot be identified as a release"):
        deniable.open(frame, plan).shares("a1")[0]
    released = deniable.randomize(frame, plan)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "this table cannot be identified")
        deniable.open(released, plan).shares("a1")[0]
        deniable.open(frame, plan, randomized=True).shares("a1")[0]
        deniable.open(released, plan)
    other = deniable.design(deniable.Schema.anonymous((2, 3)), epsilon=3)
    with pytest.raises(InputError, match="another mechanism randomized this table"):
        deniable.open(released, other).shares("a1")[0]
    assert deniable.open(released, other, anyway=True, randomized=True).shares("a1")[0].n_records


def test_a_file_is_identified_by_the_record_that_has_its_digest(tmp_path):
    plan = deniable.design(deniable.Schema.anonymous((2, 3)), epsilon=2)
    rows = {"a1": ["0", "1", "0", "1"] * 5, "a2": ["0", "1", "2", "0"] * 5}
    deniable.share(pa.table(rows), plan, tmp_path / "r")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "this table cannot be identified")
        deniable.open(tmp_path / "r" / "data.parquet", tmp_path / "r")
    pq.write_table(pa.table(rows), tmp_path / "true.parquet")
    with pytest.warns(Notice, match="cannot be identified as a release"):
        deniable.open(tmp_path / "true.parquet", tmp_path / "r")


def test_every_answer_prints_as_a_table_with_its_caption() -> None:
    # Failed before: print showed the fields of an object, arrays and all.
    release = deniable.open(TABLE, PLAN, randomized=True, anyway=True)
    answers = [
        release.shares("smokes"), release.mean("age", by="town"), release.quantile("age"),
        release.covariance("smokes,age"), release.independence("smokes,sex"),
        release.leverage("smokes"),
        release.trend("age", status="sex"), release.smooth("smokes,age,sex"),
    ]  # fmt: skip
    for answer in [each for several in answers for each in (several, several[0])]:
        caption, headers, *rows = str(answer).splitlines()
        assert rows, answer
        assert "(" not in headers, answer
        assert caption == str(answer).split("\n")[0]
        assert "array" not in str(answer)
        assert type(answer).__name__ not in str(answer)
    (model,) = release.model("smokes ~ sex")
    assert str(model) == model.summary()
    combined = deniable.combine([0.2, 0.3, 0.2, 0.25, 0.22], [0.01] * 5, kind="synthetic")
    assert str(combined).splitlines()[1].split()[:3] == ["term", "estimate", "std_error"]


def test_a_release_takes_no_seed() -> None:
    for call in (
        lambda: deniable.randomize(TABLE, PLAN, seed=1),  # type: ignore[call-overload]
        lambda: deniable.share(TABLE, PLAN, "r", seed=1),  # type: ignore[call-arg]
        lambda: deniable.pram(TABLE, SCHEMA, "r", seed=1),  # type: ignore[call-arg]
        lambda: deniable.Publication(seed=1),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match="seed"):
            call()


@pytest.mark.parametrize(
    "given", [{"sex": "fm"}, ["sex"], {"sex": 2}, pd.DataFrame({"sex": [1]}), 3]
)
def test_a_schema_of_something_else_names_what_it_takes(given) -> None:
    assert deniable.Schema({"sex": ["f", "m"], "n": [0, 1]}).attributes[1].categories == ("0", "1")
    with pytest.raises(InputError, match="objects, or categories by name"):
        deniable.Schema(given)
