"""The Python interface: what the command line does, in one call."""

import inspect
import json
import pickle
import re
import warnings
from datetime import date
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import deniable
from deniable import api
from deniable.engines import dask, spark
from deniable.errors import Notice
from deniable.randomness import SeededRandomness

API = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
NEVER_CALLED = {"Design", "Mechanism", "Estimate", "Model", "OpenedRelease", "InputError"}

SCHEMA = deniable.Schema(
    (
        deniable.Attribute("smokes", ("no", "yes"), scores=(0.0, 1.0)),
        deniable.Attribute("age", bins=(0, 30, 65, 100)),
    ),
    keep=("town",),
)
PLAN = deniable.design(SCHEMA, attribute_epsilon=[3, 3], method="kronecker")


def frame() -> pandas.DataFrame:
    random = np.random.default_rng(2)
    return pandas.DataFrame(
        {
            "smokes": random.choice(["no", "yes"], 400),
            "age": random.integers(0, 100, 400),
            "town": random.choice(["north", "south"], 400),
            "weight": random.choice([1.0, 2.0], 400),
        }
    )


def test_the_package_hands_out_the_names_of_the_interface_and_no_others() -> None:
    assert deniable.__all__ == api.__all__
    assert all(getattr(deniable, name) is getattr(api, name) for name in api.__all__)
    assert set(api.__all__) <= set(dir(deniable))
    with pytest.raises(AttributeError, match="no attribute 'desing'"):
        _ = deniable.desing  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in api.__all__ if name.islower()])
def test_the_help_of_a_function_names_what_it_documents_with_its_default(name: str) -> None:
    function = getattr(api, name)
    shown = inspect.signature(function).parameters
    documented = re.findall(
        r"^        (\w+): ", str(function.__doc__).split("Raises:")[0], re.MULTILINE
    )
    assert set(documented) <= set(shown)
    assert not any(one.kind is one.VAR_KEYWORD for one in shown.values())


def test_the_help_shows_the_defaults_that_hold() -> None:
    shown = inspect.signature(deniable.OpenedRelease.quantile).parameters
    defaults = {name: shown[name].default for name in ("level", "q", "target", "where")}
    assert defaults == {"level": 0.95, "q": 0.5, "target": "table", "where": None}
    formula = inspect.signature(deniable.OpenedRelease.model).parameters["formula"]
    assert (formula.default, formula.annotation) == (formula.empty, str)


def test_packages_do_not_take_the_places_of_functions() -> None:
    import deniable.design.level_designs

    assert deniable.design is api.design  # type: ignore[comparison-overlap]


def test_the_package_can_be_sent_to_a_worker() -> None:
    assert pickle.loads(pickle.dumps(deniable)) is deniable


def test_dates_written_as_text_are_read_as_the_schema_says_in_file_and_frame(
    tmp_path: Path,
) -> None:
    born = {"name": "born", "bins": [date(1900, 1, 1), date(1970, 1, 1), date(2026, 1, 1)]}
    plain = {"attribute": [{"name": "sex", "categories": ["f", "m"]}, born]}
    days = {"sex": ["f", "m"] * 20, "born": ["31.12.1969", "1.2.1970"] * 20}
    levels, method = [40.0, 40.0], "kronecker"
    silent = deniable.design(
        deniable.Schema.from_plain(plain), attribute_epsilon=levels, method=method
    )
    with pytest.raises(deniable.InputError, match=r"give the form of dates with .*in the schema's"):
        deniable.randomize(pandas.DataFrame(days), silent)
    schema = deniable.Schema.from_plain({**plain, "file": {"dates": "31.12.2025"}})
    told = deniable.design(schema, attribute_epsilon=levels, method=method)
    expected = ["[1900-01-01,1970-01-01)", "[1970-01-01,2026-01-01]"] * 20
    assert deniable.randomize(pandas.DataFrame(days), told)["born"].tolist() == expected
    pandas.DataFrame(days).to_csv(tmp_path / "people.csv", index=False)
    released = deniable.randomize(tmp_path / "people.csv", told)
    assert released["born"].to_pylist() == expected


@pytest.mark.parametrize("kind", [pandas.DataFrame, polars.DataFrame])
def test_a_frame_comes_back_as_its_own_kind_with_kept_columns_untouched(kind: Any) -> None:
    table = frame().drop(columns="weight")
    given = table if kind is pandas.DataFrame else polars.DataFrame(table.to_dict("list"))
    released = deniable.randomize(given, PLAN.mechanism)
    assert isinstance(released, kind)
    assert list(released["town"]) == list(table["town"])
    assert set(released["age"]) <= set(SCHEMA.attributes[1].categories)


def test_a_column_that_is_not_declared_is_refused_or_dropped() -> None:
    with pytest.raises(deniable.InputError, match="weight"):
        deniable.randomize(frame(), PLAN)
    released = deniable.randomize(frame(), PLAN, deniable.Publication(drop_other_columns=True))
    assert "weight" not in released.columns


def test_a_shared_folder_needs_no_plan_to_be_asked(tmp_path: Path) -> None:
    record = deniable.share(
        frame(), PLAN, tmp_path / "r", deniable.Publication(drop_other_columns=True, shuffle=True)
    )
    written = json.loads((tmp_path / "r" / "record.json").read_text())
    assert written["guarantee"].items() <= record["guarantee"].items()
    assert record.keys() - written.keys() == {"small_print", "outlook"}
    whole = deniable.open(tmp_path / "r").shares(["smokes", "age"])[0]
    assert whole.n_records == 400
    assert whole.values.sum() == pytest.approx(1)
    north = deniable.open(tmp_path / "r").shares("smokes", where={"town": "north"})[0]
    assert 0 < north.n_records < 400
    with pytest.raises(deniable.InputError, match="exists already"):
        deniable.share(frame(), PLAN, tmp_path / "r", deniable.Publication(drop_other_columns=True))
    deniable.share(
        frame(), PLAN, tmp_path / "r", deniable.Publication(drop_other_columns=True, overwrite=True)
    )


def test_every_question_answers_about_the_released_rows() -> None:
    released = deniable.randomize(frame(), PLAN, deniable.Publication(drop_other_columns=True))
    mean, *_ = deniable.open(released, PLAN).mean("smokes")
    shares = deniable.open(released, PLAN).shares("smokes")[0]
    assert mean.estimate == pytest.approx(shares.values[1])
    median, *_ = deniable.open(released, PLAN).quantile("age", q=0.5)
    assert median.estimate in PLAN.mechanism.schema.attributes[-1].categories
    number, *_ = deniable.open(released, PLAN).quantile("age", interpolate=True)
    assert median.bounds[0] <= number.estimate <= median.bounds[1]
    both = ("smokes", "age")
    covariance = deniable.open(released, PLAN).covariance(both, scores=(None, (0, 1, 2)))[0]
    joint = deniable.open(released, PLAN).shares(both)[0].values
    s, t = np.array([0.0, 1.0]), np.array([0.0, 1.0, 2.0])
    plug_in = s @ joint @ t - (s @ joint.sum(axis=1)) * (joint.sum(axis=0) @ t)
    # The plug-in is off by a term of the order of the squared standard error.
    assert abs(covariance.estimate - plug_in) < 5 * covariance.standard_error / 400**0.5
    assert 0 <= deniable.open(released, PLAN).independence(both)[0].p_value <= 1


def test_a_whole_table_is_treated_and_its_record_returned(tmp_path: Path) -> None:
    request = deniable.StrengthRequest(attenuation=0.7)
    record = deniable.pram(
        frame(),
        SCHEMA,
        tmp_path / "p",
        deniable.Publication(drop_other_columns=True),
        request=request,
        by="town",
    )
    assert record["release"]["rows"] == 400
    assert deniable.open(tmp_path / "p").shares("smokes")[0].n_records == 400


def test_a_decomposition_gives_its_matrix_back_exactly() -> None:
    matrix = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    mixture = deniable.birkhoff(matrix)
    rebuilt = np.array(mixture.rebuild(), dtype=object) / mixture.total
    assert rebuilt.tolist() == matrix.tolist()
    with pytest.raises(deniable.InputError, match="row"):
        deniable.birkhoff(np.array([[0.5, 0.4], [0.5, 0.6]]))


def test_names_are_given_as_in_a_shell_or_as_lists() -> None:
    released = deniable.randomize(frame(), PLAN, deniable.Publication(drop_other_columns=True))
    expected = deniable.open(released, PLAN).shares(["smokes", "age"])[0].values
    for of in ("smokes,age", ("smokes", "age")):
        np.testing.assert_array_equal(deniable.open(released, PLAN).shares(of)[0].values, expected)
    assert deniable.open(released, PLAN).shares("smokes")[0].attributes == ("smokes",)
    assert deniable.open(released, PLAN).mean("smokes", by="age")[0].group[0][0] == "age"
    with pytest.raises(deniable.InputError, match="of is the name of a column or a list of names"):
        deniable.open(released, PLAN).shares(3)[0]
    with pytest.raises(deniable.InputError, match="expected column=value"):
        deniable.open(released, PLAN).shares("smokes", where="town")[0]


def test_kept_columns_group_a_frame() -> None:
    released = deniable.randomize(frame(), PLAN, deniable.Publication(drop_other_columns=True))
    found = deniable.open(released, PLAN).shares("smokes", by="town")
    towns = released["town"].value_counts()
    assert {dict(one.group)["town"]: one.n_records for one in found} == dict(towns)


def test_messages_speak_of_arguments_and_wrong_plans_are_told_apart(tmp_path: Path) -> None:
    table = deniable.randomize(frame(), PLAN, deniable.Publication(drop_other_columns=True))
    with pytest.raises(deniable.InputError) as raised:
        deniable.open(table).shares("smokes")[0]
    assert "--" not in str(raised.value)
    assert "plan" in str(raised.value)
    with pytest.raises(deniable.InputError, match=r"make a design with deniable.design"):
        deniable.open(table, PLAN.mechanism.schema).shares("smokes")[0]  # type: ignore[arg-type]
    with pytest.raises(deniable.InputError, match="not int"):
        deniable.randomize(frame(), 3)  # type: ignore[arg-type]
    with pytest.raises(deniable.InputError, match="not int"):
        deniable.design(3)  # type: ignore[arg-type]
    with pytest.raises(deniable.InputError, match="is a list of numbers or a dictionary"):
        deniable.design(PLAN.mechanism.schema, attribute_epsilon=1.0)  # type: ignore[arg-type]
    names = [PLAN.mechanism.schema.names[i] for i in PLAN.mechanism.schema.protected]
    by_name = dict.fromkeys(names, 1.0)
    made = deniable.design(PLAN.mechanism.schema, attribute_epsilon=by_name, method="kronecker")
    assert made.mechanism.attribute_epsilon[0] == pytest.approx(1.0)
    with pytest.raises(deniable.InputError, match="no protected attribute 'size'"):
        deniable.design(PLAN.mechanism.schema, attribute_epsilon={"size": 1.0})


def test_a_frame_with_rows_missing_is_warned_of(tmp_path: Path) -> None:
    deniable.share(frame(), PLAN, tmp_path / "r", deniable.Publication(drop_other_columns=True))
    plan = deniable.read_design(tmp_path / "r")
    rows = pandas.read_parquet(tmp_path / "r" / "data.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deniable.open(rows, plan, randomized=True).shares("smokes")[0]
        deniable.open(rows, tmp_path / "r", randomized=True).shares("smokes")[0]
        town = rows["town"].iloc[0]
        deniable.open(rows, plan, randomized=True).shares("smokes", where={"town": town})[0]
    for given in (plan, tmp_path / "r" / "record.json"):
        with pytest.warns(Notice, match="of the 400 rows that were released"):
            deniable.open(rows.iloc[:300], given).shares("age")[0]


def test_what_is_asked_in_the_wrong_type_is_told_in_a_sentence() -> None:
    schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),), keep=("town",))
    with pytest.raises(deniable.InputError, match="error is a number or None, not str"):
        deniable.plan(schema, rows=100, error="2pt")
    with pytest.raises(deniable.InputError, match="schema is a Schema or a text or a path"):
        deniable.plan({"smokes": 2}, rows=100, error=0.02)
    with pytest.raises(deniable.InputError, match="'town' is released unchanged: its"):
        schema.position("town")
    frame = pandas.DataFrame({"smokes": ["no", "maybe"], "town": ["A", "B"]})
    plan = deniable.design(schema, epsilon=1)
    with pytest.raises(deniable.InputError, match=r"counted from 1\)$") as raised:
        deniable.randomize(frame, plan)
    assert "header" not in str(raised.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: deniable.design("s.toml", epsilon=1, method=["balanced"]),
        lambda: deniable.design(3, epsilon=1),
        lambda: deniable.expected_tables("mechanism.json", ["a"], 100),
        lambda: deniable.plan_trend(people="100", snps=10, epsilon=1.0),
        lambda: deniable.read_design(None),
        lambda: deniable.synthesize("release", output=None),
    ],
)
def test_arguments_of_other_types_are_refused_in_a_sentence(call: Any) -> None:
    with pytest.raises(deniable.InputError, match=r"^\w+ is .*, not \w+$"):
        call()


# --- arguments of wrong types ----------------------------------------------------------------

WRONG = [3, "x", None, float("nan"), True, [], {}, object(), [None], [[1]], {"x": None}, frame()]


def every_call() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Every function of docs/api.md with arguments that are right; ``...`` for an output."""
    schema = deniable.Schema(
        (
            *(deniable.Attribute(x, ("0", "1"), ordered=True, scores=(0, 1)) for x in "ab"),
            deniable.Attribute("c", ("0", "1", "2")),
            deniable.Attribute("x", range=(0, 2), grid=3),
        ),
        keep=("town",),
    )
    plan = deniable.design(schema, epsilon=9, method="balanced")
    rows = {x: ["0", "1", "1"] * 40 for x in "ab"} | {x: ["0"] * 60 + ["2"] * 60 for x in "cx"}
    table = pandas.DataFrame(rows | {"town": ["n", "s"] * 60})
    opened, released = deniable.open(table, plan), {"released": table, "plan": plan}
    shares, model = opened.shares("a")[0], opened.model("a ~ b")[0]
    weak = deniable.StrengthRequest(attenuation=0.8)
    made = {"plan": plan, "output": ...}
    table.to_csv("rows.csv", index=False)

    class Client:  # as distributed.Client
        gather = staticmethod(list)

        def map(self, task: Any, numbers: Any, **_: Any) -> list[Any]:
            return [task(number) for number in numbers]

    def fitted(of: Any) -> Any:
        def fit(plan: Any, response: Any, formula: Any = None) -> Any:
            return of(plan, response, formula).fit(table)

        return fit

    predicting = {"plan": plan, "response": "a", "formula": "b"}
    one, two = {"of": "a"}, {"of": "a,b"}
    queries: dict[str, tuple[Any, dict[str, Any]]] = {
        "shares": (deniable.Shares, one),
        "mean": (deniable.Mean, one),
        "quantile": (deniable.Quantile, one),
        "deviation": (deniable.Deviation, one),
        "correlation": (deniable.Correlation, two),
        "distribution": (deniable.Distribution, {"of": "x"}),
        "leverage": (deniable.Leverage, one),
        "honesty": (deniable.Honesty, one),
        "covariance": (deniable.Covariance, two),
        "independence": (deniable.Independence, two),
        "agreement": (deniable.Agreement, {}),
        "smooth": (deniable.Smooth, {"of": "a,b,c"}),
        "compare": (deniable.Comparison, one | {"column": "b", "values": "0,1"}),
        "trend": (deniable.Trend, one | {"status": "b"}),
        "model": (deniable.ModelQuery, {"formula": "a ~ b"}),
    }
    wish = {"schema": schema, "epsilon": 3, "method": "kronecker"}
    return {
        "Attribute": (deniable.Attribute, {"name": "x", "categories": ("0", "1")}),
        "Schema": (deniable.Schema, {"attributes": schema.attributes}),
        "Schema.anonymous": (deniable.Schema.anonymous, {"n_categories": (2, 3)}),
        "Schema.from_toml": (deniable.Schema.from_toml, {"path": "none.toml"}),
        "Schema.from_plain": (deniable.Schema.from_plain, {"plain": schema.to_plain()}),
        "design": (deniable.design, wish),
        "design, levels": (deniable.design, {"schema": schema, "attribute_epsilon": [1, 1, 1, 1]}),
        "design, strengths": (deniable.design, {"schema": schema, "attenuation": 0.5}),
        "design, forms": (deniable.design, wish | {"method": "forms"}),
        "plan": (deniable.plan, wish | {"rows": 1000}),
        "expected_tables": (
            deniable.expected_tables,
            {"design": plan, "tables": ["a"], "n_records": 10},
        ),
        "plan_trend": (deniable.plan_trend, {"people": 1000, "snps": 1, "epsilon": 3}),
        "DesignRequest": (deniable.DesignRequest, {"epsilon": 2.0}),
        "StrengthRequest": (deniable.StrengthRequest, {"attenuation": 0.5}),
        "read_design": (deniable.read_design, {"path": "none.json"}),
        "birkhoff": (deniable.birkhoff, {"matrix": np.array([[0.5, 0.5], [0.5, 0.5]])}),
        "randomize": (deniable.randomize, {"frame": table, "plan": plan}),
        "Publication": (deniable.Publication, {}),
        "share": (deniable.share, made | {"table": table}),
        "pram": (
            deniable.pram,
            {"table": table, "schema": schema, "output": ..., "request": weak},
        ),
        "pram, strata": (
            deniable.pram,
            {"table": table, "schema": schema, "output": ..., "by": "town"}
            | {"per_stratum": {"n": weak, "s": weak}},
        ),
        "dask.share": (dask.share, made | {"client": Client(), "source": ["rows.csv"]}),
        "spark.share": (spark.share, made | {"session": None, "source": ["rows.csv"]}),
        "spark.share_frame": (spark.share_frame, made | {"frame": None}),
        "Classifier": (fitted(deniable.Classifier), predicting),
        "Regressor": (fitted(deniable.Regressor), predicting),
        "synthesize": (deniable.synthesize, released | {"of": "a,b", "output": ..., "copies": 5}),
        "combine": (
            deniable.combine,
            {"estimates": [1, 2, 3, 1, 2], "variances": [1] * 5, "kind": "imputed"},
        ),
        "open": (deniable.open, released),
        **{f".{name}": (getattr(opened, name), given) for name, (_, given) in queries.items()},
        **{kind.__name__: (kind, given) for kind, given in queries.values()},
        "Estimate.table": (shares.table, {}),
        "Estimate.confidence_interval": (shares.confidence_interval, {"level": 0.9}),
        "Model.table": (model.table, {}),
        "Model.predict": (model.predict, {}),
        "Model.summary": (model.summary, {}),
        "Model.tested_against": (model.tested_against, {"other": model}),
    }


@pytest.mark.slow
def test_an_argument_of_a_wrong_type_is_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "SystemRandomness", lambda: SeededRandomness(1))
    outputs, missed = count(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = every_call()
        documented = re.findall(r"^::: deniable\.(?:engines\.)?(\w\S*)$", API, re.MULTILINE)
        named = {re.sub(r"^api\.", "", name) for name in documented}
        assert named - calls.keys() == NEVER_CALLED
        for name, (function, given) in calls.items():
            parameters = inspect.signature(function).parameters
            defaults = {name: one.default for name, one in parameters.items()}
            for (argument, default), wrong in product(defaults.items(), WRONG):
                if wrong is default or (wrong is True and default is False):
                    continue  # right, and the work of a whole call
                arguments = {
                    key: f"made{next(outputs)}" if value is ... else value
                    for key, value in given.items()
                }
                try:
                    function(**arguments | {argument: wrong})
                except (deniable.InputError, TypeError) as error:
                    said = str(error)
                    clear = isinstance(error, deniable.InputError) or argument in said
                    if not clear or "\n" in said or " at 0x" in said or len(said) > 400:
                        missed.append((name, argument, type(wrong).__name__, said))
                except Exception as error:
                    missed.append((name, argument, type(wrong).__name__, repr(error)))
    assert missed == []
