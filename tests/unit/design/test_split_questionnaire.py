"""From a request to published forms, their record, and the release, in files and in frames."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import deniable
from deniable.design.design import design
from deniable.design.split_questionnaire import WORTH_SETS
from deniable.errors import InputError
from deniable.laws import PublishedForms
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import expected_variance
from deniable.schema import Attribute, Schema
from deniable.statement.account import Design, asked_shares
from deniable.statement.record import mechanism_from_plain, mechanism_to_plain
from marked import slow_after
from unit.laws.test_forms import channel as brute_force
from unit.laws.test_forms import drawing_forms

SCHEMA = Schema(
    (
        Attribute("sex", ("f", "m")),
        Attribute("children", ("0", "1", "2", "3")),
        Attribute("blood", ("A", "B", "0", "NA"), missing="NA"),
    ),
    keep=("region",),
)


@cache
def questionnaire() -> Design:
    return design(SCHEMA, epsilon=3, method="forms")


def people(n: int = 300) -> pandas.DataFrame:
    return pandas.DataFrame(
        {
            "sex": ["fm"[i % 2] for i in range(n)],
            "children": [i * 7 % 4 for i in range(n)],
            "blood": [["A", "B", "0", None][i * 5 % 7 % 4] for i in range(n)],
            "region": [f"r{i % 3}" for i in range(n)],
        }
    )


def released_laws(plan: Design) -> PublishedForms:
    assert plan.mechanism.forms is not None
    return plan.mechanism.forms


def test_a_design_keeps_the_total_and_every_number_is_read_off_the_integers() -> None:
    law = released_laws(questionnaire())
    assert questionnaire().epsilon <= 3
    assert 3 - questionnaire().epsilon < 1e-9
    assert sum(law.shares) == 1 << law.bits
    assert max(questionnaire().mechanism.attribute_epsilon) <= questionnaire().epsilon
    plain = json.loads(json.dumps(mechanism_to_plain(questionnaire())))
    assert mechanism_from_plain(plain).mechanism == questionnaire().mechanism
    first = plain["blocks"][0]["law"]["forms"][0]
    first["weights"][0], first["weights"][1] = first["weights"][1], first["weights"][0]
    with pytest.raises(InputError, match="altered"):
        mechanism_from_plain(plain)


def test_largest_levels_hold_alone() -> None:
    plan = design(SCHEMA, epsilon=3, method="forms", at_most={"sex": 0.5})
    levels = plan.mechanism.attribute_epsilon
    assert levels[0] <= 0.5
    assert max(levels[1:]) > 1


def test_a_cap_is_kept_and_a_record_that_does_not_keep_its_cap_is_refused() -> None:
    plan = design(SCHEMA, epsilon=3, method="forms", given_rest="0.5e")
    assert plan.epsilon <= 3
    assert max(plan.mechanism.epsilon_given_rest) <= 1.5
    assert max(plan.mechanism.epsilon_given_rest) == pytest.approx(1.5)
    plain = json.loads(json.dumps(mechanism_to_plain(plan)))
    assert mechanism_from_plain(plain).given_rest == "0.5e"
    for cap in ("0.4e", "1.2", "2x"):
        with pytest.raises(InputError, match="altered"):
            mechanism_from_plain(plain | {"given_rest": cap})
    by_attribute = design(SCHEMA, epsilon=3, method="forms", given_rest=[0.4, None, 2.0])
    levels = by_attribute.mechanism.epsilon_given_rest
    assert levels[0] <= 0.4
    assert levels[2] <= 2.0 < levels[1]


def test_importance_moves_errors_to_what_counts_less() -> None:
    even, tilted = (
        design(SCHEMA, epsilon=2, method="forms", pairs=0.0, importance=importance)
        for importance in ({}, {"blood": 20.0})
    )
    of_blood = [np.diagonal(released_laws(plan).pair_information())[2] for plan in (even, tilted)]
    assert of_blood[1] > 1.5 * of_blood[0]


def test_pairs_that_no_form_asks_together_are_named() -> None:
    plan = design(SCHEMA, epsilon=1, method="forms", pairs=0.0)
    assert "sex and children" in plan.notes[0]
    assert "With `pairs` 0.02" in plan.notes[0]


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("a level belongs to a form", {"attribute_epsilon": [1, 1, 1], "method": "forms"}),
        ("needs a total", {"method": "forms"}),
        ("takes totals from 1e-06 nats", {"epsilon": 1e-10, "method": "forms"}),
        ("a part of the record's ε", {"epsilon": 1, "method": "forms", "given_rest": "2x"}),
        ("a part of the record's ε", {"epsilon": 1, "method": "forms", "given_rest": "1.5e"}),
        ("multiple of each attribute's own ε", {"epsilon": 1, "given_rest": "0.5e"}),
        ("takes the weight of pairs instead", {"epsilon": 1, "method": "forms", "pair_floor": 0.5}),
        ("are for method forms", {"epsilon": 1, "max_questions": 2}),
        ("is for methods balanced and forms", {"epsilon": 1, "pairs": 0.5, "method": "optimal"}),
        ("has a column 'region'", {"epsilon": 1, "method": "forms", "form_column": "region"}),
        ("no protected attribute", {"epsilon": 1, "method": "forms", "importance": {"age": 2.0}}),
    ],
)
def test_what_is_not_for_forms_is_refused(words: str, request_: dict) -> None:
    with pytest.raises(InputError, match=words):
        design(SCHEMA, **request_)
    ratio = Schema((Attribute("a", ("x", "y"), ratio=2.0), Attribute("b", ("x", "y"))))
    with pytest.raises(InputError, match="takes no ratios"):
        design(ratio, epsilon=1, method="forms")


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-6, 402.9])
def test_totals_at_the_ends_of_the_range_are_designed_without_a_warning(epsilon: float) -> None:
    plan = design(Schema.anonymous((60_000, 5)), epsilon=epsilon, method="forms")
    assert 0.99 * epsilon < plan.epsilon <= epsilon


def test_the_form_s_column_has_a_name_that_is_not_taken() -> None:
    schema = Schema((Attribute("form", ("x", "y")), Attribute("b", ("x", "y"))))
    assert released_laws(design(schema, epsilon=1, method="forms")).column == "form_2"
    named = design(SCHEMA, epsilon=1, method="forms", form_column="questionnaire")
    assert released_laws(named).column == "questionnaire"


def test_the_share_of_people_who_are_asked_is_that_of_the_rows_that_answer() -> None:
    law = drawing_forms()
    mechanism = Mechanism(Schema.anonymous((2, 2, 3, 2)), (Block((0, 1, 2, 3), law),))
    rows = brute_force(law)[0, 0, 0, 0]
    for i, share in asked_shares(mechanism).items():
        assert share == pytest.approx(
            float(sum(p for (_, y), p in rows.items() if y[i] is not None))
        )
    assert asked_shares(design(SCHEMA, epsilon=3).mechanism) == {}


def check(rows: list[dict], law: PublishedForms) -> None:
    """Cells are filled where the form asks, and nowhere else; a missing answer is no empty cell."""
    assert {row["form"] for row in rows} <= set(range(1, len(law.forms) + 1))
    blood = set()
    for row in rows:
        asked = law.forms[row["form"] - 1].asked
        for place, attribute in enumerate(SCHEMA.attributes):
            assert (row[attribute.name] is not None) == (place in asked)
        blood.add(row["blood"])
    assert {"NA", None} < blood


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_release_in_a_file_comes_back(ending: str, tmp_path: Path) -> None:
    source = tmp_path / f"people.{ending}"
    if ending == "parquet":
        people().to_parquet(source)
    else:
        people().to_csv(source, index=False)
    record = deniable.share(source, questionnaire(), tmp_path / "release")
    assert record["release"]["columns"][-1] == "form"
    file = tmp_path / "release" / f"data.{ending}"
    if ending == "parquet":
        frame = pyarrow.parquet.read_table(file).to_pylist()
    else:
        frame = pandas.read_csv(file, dtype=str, keep_default_na=False).to_dict("records")
        frame = [
            {k: v or None for k, v in row.items()} | {"form": int(row["form"])} for row in frame
        ]
    check(frame, released_laws(questionnaire()))
    found = deniable.open(tmp_path / "release").shares(["sex", "blood"])[0]
    assert found.n_records == 300
    assert found.values.sum() == pytest.approx(1)


def test_a_release_of_a_frame_is_a_frame_of_its_kind() -> None:
    law = released_laws(questionnaire())
    frame = people()
    frame.index = range(1000, 1300)
    released = deniable.randomize(frame, questionnaire())
    assert list(released.index) == list(frame.index)
    rows = released.astype(object).where(released.notna(), None).to_dict("records")
    check(rows, law)
    polar = deniable.randomize(polars.from_pandas(people()), questionnaire())
    check(polar.to_dicts(), law)
    arrow = deniable.randomize(pyarrow.Table.from_pandas(people()), questionnaire())
    check(arrow.to_pylist(), law)
    for each in (released, polar, arrow):
        assert deniable.open(each, questionnaire()).shares("children")[0].n_records == 300


def test_rows_that_are_not_of_the_release_are_refused() -> None:
    released = deniable.randomize(
        pyarrow.Table.from_pandas(people(40)), questionnaire()
    ).to_pandas()

    def refused(words: str, change: pandas.DataFrame) -> None:
        with pytest.raises(InputError, match=words):
            deniable.open(change, questionnaire()).shares(["sex", "children"])[0]

    refused("no column 'form'", released.drop(columns="form"))
    refused("data row 1: column 'form' holds no form", released.assign(form=99))
    refused("though the row's form includes the column, or filled", released.assign(sex="f"))
    refused(r"data row \d+, column '(sex|children)'", released.assign(sex=None, children=None))


ADULT = (7, 16, 7, 14, 6, 5, 2, 41, 2)


@pytest.mark.parametrize(
    ("epsilon", "reached"),
    slow_after(0, [(0.5, 2.03e-3), (1.0, 4.9e-4), (2.0, 1.03e-4)]),
)
def test_sets_reach_the_figures_that_were_computed_for_them(epsilon: float, reached: float) -> None:
    plan = design(Schema.anonymous(ADULT), epsilon=epsilon, method="forms", pairs=0.0)
    shares = expected_variance(plan.mechanism).shares
    assert shares is not None
    assert shares / 45222 == pytest.approx(reached, rel=0.01)
    assert plan.epsilon <= epsilon
    assert "name a set of the given number of categories" in plan.notes[0]


BROAD_SCHEMA = Schema(
    (
        Attribute("sex", ("f", "m")),
        Attribute("grade", tuple(map(str, range(16)))),
        Attribute("place", (*(f"p{i}" for i in range(20)), "NA"), missing="NA"),
    ),
    keep=("region",),
)


@cache
def broad() -> Design:
    return design(BROAD_SCHEMA, epsilon=1, method="forms", pairs=0.3, max_questions=2)


def pupils(n: int = 400) -> pandas.DataFrame:
    return pandas.DataFrame(
        {
            "sex": ["fm"[i % 2] for i in range(n)],
            "grade": [i * 7 % 16 for i in range(n)],
            "place": [None if i % 9 == 0 else f"p{i * 5 % 7}" for i in range(n)],
            "region": [f"r{i % 3}" for i in range(n)],
        }
    )


def test_sets_are_named_only_where_they_gain() -> None:
    law = released_laws(broad())
    assert {i: sets.breadth for i, sets in law.sets.items()} == {1: 4, 2: 5}
    plain = json.loads(json.dumps(mechanism_to_plain(broad())))
    assert mechanism_from_plain(plain).mechanism == broad().mechanism
    first = plain["blocks"][0]["law"]["sets"][0]
    first["lists"][0] = f"{int(first['lists'][0], 16) ^ 0b11:x}"
    with pytest.raises(InputError, match=r"steps|sets|more often"):
        mechanism_from_plain(plain)
    assert not released_laws(design(BROAD_SCHEMA, epsilon=5, method="forms", pairs=0.0)).sets
    with pytest.raises(InputError, match="`max_questions` and `form_column` are for method forms"):
        design(BROAD_SCHEMA, epsilon=1, max_questions=2)


def test_merged_attributes_and_what_is_capped_low_name_no_sets() -> None:
    parts = (Attribute("b", tuple("abcd")), Attribute("c", tuple("abcd")))
    merged = Schema((Attribute("sex", ("f", "m")), Attribute("bc", parts=parts)))
    assert not released_laws(design(merged, epsilon=0.5, method="forms", pairs=0.0)).sets


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv", "parquet"])
def test_a_release_with_sets_comes_back(kind: str, tmp_path: Path) -> None:
    frame: Any = pupils()
    released: Any = tmp_path / "release"
    if kind == "csv":
        frame.to_csv(tmp_path / "in.csv", index=False)
        deniable.share(tmp_path / "in.csv", broad(), released)
        codebook = (released / "codebook.csv").read_text(encoding="utf-8")
        assert '"a set of 4 categories: the one named, and those ' in codebook
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "in.parquet")
        deniable.share(tmp_path / "in.parquet", broad(), released)
    else:
        kinds = {"polars": polars.from_pandas, "arrow": pyarrow.Table.from_pandas}
        released = deniable.randomize(kinds.get(kind, lambda same: same)(frame), broad())
    plan = None if isinstance(released, Path) else broad()
    found = deniable.open(released, plan).shares(["place", "sex"])[0]
    assert found.n_records == 400
    assert found.values.sum() == pytest.approx(1)
    em = deniable.open(released, plan).shares("grade", method="em")[0]
    assert em.values.min() >= 0
    assert em.values.sum() == pytest.approx(1)


def test_a_category_where_a_set_is_named_is_refused() -> None:
    released = deniable.randomize(pupils(40), broad())
    forms = released_laws(broad()).forms
    named = [1 in dict(forms[number - 1].sets) for number in released["form"]]
    wrong = released.assign(grade=released["grade"].where(~np.array(named), "3"))
    with pytest.raises(InputError, match=r"data row \d+, column 'grade'.*set of categories"):
        deniable.open(wrong, broad()).shares("grade")[0]


def test_the_page_on_forms_states_the_gain_that_set_answers_need() -> None:
    page = (Path(__file__).parents[3] / "docs" / "forms.md").read_text(encoding="utf-8")
    stated = f"the variance of shares falls by {WORTH_SETS - 1:.0%}".replace("%", " %")
    assert stated in " ".join(page.split())
