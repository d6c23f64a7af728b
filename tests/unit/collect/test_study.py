"""A study is frozen: what it holds, what it refuses, and that a changed one is another."""

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from deniable.collect.client import codes_of
from deniable.collect.study import Study, check_study, new_study, read_study, study_bytes
from deniable.design.design import design
from deniable.errors import InputError
from deniable.randomness import SeededRandomness
from deniable.schema import Attribute, Schema
from deniable.statement.record import mechanism_to_plain, read_design, to_json
from unit.collect.studies import TODAY, example_files, example_study

GOLDEN = Path(__file__).parents[2] / "golden" / "2"
pytestmark = pytest.mark.filterwarnings("ignore:respondents read the codes of categories")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return example_study(tmp_path_factory.mktemp("study"))


def test_a_study_is_the_same_bytes_each_time_and_reads_back(study: Study, tmp_path: Path) -> None:
    assert example_study(tmp_path).content == study.content
    (tmp_path / "study.json").write_bytes(study.content)
    again = read_study(tmp_path / "study.json")
    assert again.identity == study.identity
    assert len(study.identity) == 64
    assert again.design.epsilon == pytest.approx(2.3)
    assert (again.open_to_all, again.closes.year) == (True, 2099)


def test_a_record_is_text_of_one_width(study: Study) -> None:
    assert (study.digits, study.record_size) == ((1, 1, 1, 1, 1), 3)
    assert study.encode([1, 3, 2, 0, 1]) == "13201"
    assert study.decode("13201") == [1, 3, 2, 0, 1]
    for text in ("1320", "132011", "23201", "1320x", "1320A", ""):
        with pytest.raises(InputError, match="does not fit the study"):
            study.decode(text)
    for codes in ([2, 0, 0, 0, 0], [0] * 4, [-1, 0, 0, 0, 0]):
        with pytest.raises(InputError, match="does not fit the study"):
            study.encode(codes)


def test_nothing_in_a_study_can_end_the_element_it_stands_in() -> None:
    content = study_bytes({"title": "</script><!-- & \u2028"})
    assert not set(b"<>&") & set(content)
    assert json.loads(content) == {"title": "</script><!-- & \u2028"}


def altered(study: Study, change: str) -> Study:
    plain = json.loads(study.content)
    exec(change, {"plain": plain})
    return Study(study_bytes(plain))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("plain['format'] = 'x'", "not a study opened by deniable"),
        ("plain['format_version'] = 2", "opened by a later version"),
        ("plain['mechanism']['epsilon'] *= 0.99", "the mechanism"),
        ("plain['gates'] = []", "its law is not the one it was opened with"),
        ("plain['sizes'][0] = 3", "its categories are not those"),
        ("plain['outputs'][0] = 3", "its categories are not those"),
        ("plain['questions'].pop()", "its questions are not those"),
        ("plain['questions'][0]['stride'] = 2", "its questions are not those"),
        ("plain['questions'][3]['edges'][1] += 1", "its questions are not those"),
        (
            "plain['questions'][0]['texts']['xx'] = plain['questions'][0]['texts']['en']",
            "languages",
        ),
        ("plain['questions'][0]['texts']['en']['labels'].pop()", "another number of labels"),
        ("plain['right_to_left'] = ['en']", "the direction of a language is wrong"),
        ("plain['trust'] = 'me'", "unknown field"),
        ("plain['questions'][0]['hint'] = 'yes'", "unknown field"),
        ("plain['closes'] = 'never'", "has been altered"),
        ("del plain['mechanism']", "has been altered"),
        ("plain['mechanism'] = 7", "has been altered"),
    ],
)
def test_an_altered_study_is_refused(study: Study, change: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        check_study(altered(study, change))


def test_one_bit_of_what_is_drawn_from_is_noticed(tmp_path: Path) -> None:
    ramp = GOLDEN / "gated-sum-ramp.json"
    study = asking(read_design(ramp).mechanism.schema, ramp, tmp_path)
    check_study(study)
    change = "law = plain['mechanism']['blocks'][0]['law']; law['weights'][0] += '1'"
    with pytest.raises(InputError):
        check_study(altered(study, change))
    gates = "g = plain['gates'][0]; g[0] = ('B' if g[0][0] == 'A' else 'A') + g[0][1:]"
    with pytest.raises(InputError, match="law is not the one"):
        check_study(altered(study, gates))


@pytest.mark.parametrize("content", [b"", b"[]", b"7", b"{", b"\xff", b"null", b"[" * 9999])
def test_what_is_no_study_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_bytes(content)
    with pytest.raises(InputError, match="not a study"):
        read_study(tmp_path / "study.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_study(tmp_path / "none.json")


def opened_with(schema: Schema, tmp_path: Path, **levels: object) -> Study:
    plan = design(schema, **levels)  # type: ignore[arg-type]
    (tmp_path / "m.json").write_bytes(to_json(mechanism_to_plain(plan)))
    return asking(schema, tmp_path / "m.json", tmp_path)


def asking(schema: Schema, mechanism: Path, tmp_path: Path) -> Study:
    questions = "".join(
        f'[[question]]\nattribute = "{name}"\ntext = "?"\n' for name in schema.columns
    )
    head = 'title = "T"\npurpose = "P"\ncontact = "C"\ncloses = 2099-01-01\n'
    head += 'respondents = "open"\nconsent = ["Yes."]\n'
    (tmp_path / "q.toml").write_text(head + questions)
    return new_study(mechanism, tmp_path / "q.toml", TODAY)


AGE, SMOKES = (0, 1, math.inf), Attribute("smokes", ("no", "yes"))
BORN = (date(1950, 1, 1), date(1980, 1, 1), date(2000, 1, 1))


def test_open_ends_of_bins_are_asked_and_survive_the_file(tmp_path: Path) -> None:
    # Failed before: an interval without an end was refused.
    age = Attribute("age", bins=AGE, missing="NA")
    low = Attribute("change", bins=(-math.inf, 0, 10))
    study = opened_with(Schema((age, low)), tmp_path, epsilon=3)
    (tmp_path / "study.json").write_bytes(study.content)
    again = read_study(tmp_path / "study.json")
    assert [question["edges"] for question in again.plain["questions"]] == [
        [0.0, 1.0, None],
        [None, 0.0, 10.0],
    ]
    schema, bits = again.design.mechanism.schema, SeededRandomness(0)
    assert codes_of(schema, {"age": 1e9, "change": -1e9}, bits) == [1, 0]
    with pytest.raises(InputError, match="'age' is not one of its categories"):
        codes_of(schema, {"age": math.inf, "change": 0}, bits)


@pytest.mark.parametrize(
    ("schema", "levels", "problem"),
    [
        (Schema((Attribute("born", bins=BORN),)), {}, "the bins of 'born' are dates"),
        (Schema((SMOKES,), keep=("region",)), {}, "'region' is listed under keep without categ"),
        (
            Schema.anonymous((2,) * 201),
            {"method": "kronecker"},
            "at most 200 questions, and this mechanism has 201",
        ),
        # The page asks everybody everything.
        (
            Schema.anonymous((2, 3, 2)),
            {"method": "forms"},
            r"m\.json: method forms gives respondents different questions",
        ),
    ],
)
def test_a_mechanism_that_cannot_be_collected_with_is_refused(
    schema: Schema, levels: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=problem):
        opened_with(schema, tmp_path, epsilon=2.0, **levels)


def test_a_kept_attribute_is_asked(tmp_path: Path) -> None:
    region = Attribute("region", ("north", "south"))
    study = opened_with(Schema((SMOKES, region), keep=("region",)), tmp_path, epsilon=1.0)
    check_study(study)
    assert [q["column"] for q in study.plain["questions"]] == ["smokes", "region"]


def test_a_study_has_the_texts_of_answers_that_are_no_categories(tmp_path: Path) -> None:
    smokes = Attribute("smokes", ("no", "yes"), response="forced:2/3,1/6,1/6")
    check_study(opened_with(Schema((smokes,)), tmp_path))
    named = opened_with(Schema((replace(smokes, answers=("never", "yes")),)), tmp_path)
    check_study(named)
    words = named.plain["questions"][0]["texts"]["en"]
    assert (words["labels"], words["answers"]) == (["no", "yes"], ["never", "yes"])
    with pytest.raises(InputError, match="another number of labels"):
        check_study(altered(named, "plain['questions'][0]['texts']['en']['answers'].pop()"))


def test_a_law_without_epsilon_or_made_from_a_table_is_refused(tmp_path: Path) -> None:
    _, questionnaire = example_files(tmp_path)
    with pytest.raises(InputError, match="no ε holds for"):
        new_study(GOLDEN / "designed-matrix.json", questionnaire, TODAY)
    with pytest.raises(InputError):
        new_study(GOLDEN / "pram-invariant" / "record.json", questionnaire, TODAY)
