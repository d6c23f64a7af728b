"""The part of the page that says who is asked what."""

from pathlib import Path

import pandas
import pytest

import deniable
from deniable.design.design import design
from deniable.design.expected_accuracy import outlook_to_plain
from deniable.report import wording
from deniable.report.who_is_asked import LISTED
from deniable.schema import Attribute, Schema
from unit.report.test_page import attribute_cells, visible

SCHEMA = Schema((Attribute("sex", ("f", "m")), Attribute("blood", ("A", "B", "0", "AB"))))
PLAN = design(SCHEMA, epsilon=2, method="forms")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("forms")
    people = pandas.DataFrame({"sex": ["f", "m"] * 40, "blood": ["A", "B", "0", "AB"] * 20})
    people.to_csv(folder / "people.csv", index=False)
    deniable.share(folder / "people.csv", PLAN, folder / "release")
    return Path(folder / "release" / "report.html").read_text(encoding="utf-8")


def test_the_forms_are_listed_as_a_questionnaire_would_show_them(page: str) -> None:
    law = PLAN.mechanism.forms
    assert law is not None
    assert len(law.forms) < LISTED
    text = visible(page)
    for number, (share, form) in enumerate(zip(law.probabilities, law.forms, strict=True), 1):
        asked = ", ".join(SCHEMA.names[i] for i in form.asked)
        people = wording.percent_text(float(share)).replace("\xa0", " ")
        assert f"{number} {asked} {people}" in text
    assert "whoever is asked one question alone spends all of the row's ε on it" in text


def test_the_share_of_people_who_are_asked_stands_beside_every_attribute_s_levels(
    page: str,
) -> None:
    law = PLAN.mechanism.forms
    assert law is not None
    both = list(zip(law.probabilities, law.forms, strict=True))
    asked = [sum(float(p) for p, form in both if i in form.asked) for i in range(2)]
    assert 0 < min(asked) < 1
    cells = attribute_cells(page)
    for name, share in zip(SCHEMA.names, asked, strict=True):
        assert cells[name][1] == wording.percent_text(share)
    least = SCHEMA.names[asked.index(min(asked))]
    people = wording.percent_text(min(asked)).replace("\xa0", " ")
    assert (
        f"Of {least}, for example: {people} of people are asked, at up to 2; of the others nothing "
        "is left."
    ) in visible(page)


def test_the_page_says_how_far_any_method_could_get(page: str) -> None:
    outlook = outlook_to_plain(PLAN)
    least = wording.points_text((outlook["limit"]["shares"] / 80) ** 0.5)
    text = visible(page)
    assert f"No method whatever has less than {least} for shares at this ε" in text
    assert f"1/{wording.significant(outlook['limit']['times'], 3)} of the rows" in text
    assert outlook["limit"]["times"] > 1
