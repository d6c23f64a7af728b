"""The steward's page: what it says, and that no text of a study becomes markup."""

from html.parser import HTMLParser

import pytest

from deniable.collect.steward_page import steward_page
from deniable.collect.store import Totals
from deniable.collect.study import Study, study_bytes
from deniable.collect.watching import Cell, Shown
from deniable.estimate.consistency import Origin
from unit.collect.studies import example_folder

TOTALS = Totals(records=1200, withdrawn=3, invitations=5000, spent=1203, closed=False)
EVIL = "<script>alert(1)</script>\u202e\"'"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return example_folder(tmp_path_factory.mktemp("page"), respondents='"invited"').study


def page(study: Study, *, shown: Shown | None = None, origin: Origin | None = None) -> str:
    return steward_page(
        study, TOTALS, of=["smokes"], target="table", precision="2", shown=shown, origin=origin
    ).decode()


def test_totals_and_invitations_are_said(study: Study) -> None:
    found = page(study)
    assert "1,203 of 5,000" in found
    assert "open until 2099-12-31" in found
    assert "Looking often and stopping" in found


@pytest.mark.parametrize(
    ("p_value", "said"),
    [(1e-9, "<strong>No</strong>"), (1e-4, "It is unlikely"), (0.3, "Yes: counts as those of 900")],
)
def test_whether_the_counts_can_be_is_said_in_words(
    study: Study, p_value: float, said: str
) -> None:
    assert said in page(study, origin=Origin(p_value, ("smokes",), 900))
    assert "Nothing can be told under this law." in page(study)


def test_ends_beyond_what_can_be_are_not_drawn(study: Study) -> None:
    cells = (Cell(("no",), 1.02, 0.9, 1.1, 0.1, 2.0), Cell(("yes",), -0.02, -0.1, 0.1, 0.1, 2.0))
    found = page(study, shown=Shown(("smokes",), 1000, cells))
    assert "90.0 to 100.0 %" in found
    assert "0.0 to 10.0 %" in found
    assert "about 25,000 records:" in found.replace("\n", " ") or "<strong>about" in found
    enough = steward_page(
        study,
        TOTALS,
        of=["smokes"],
        target="table",
        precision="50",
        shown=Shown(("smokes",), 1000, cells),
        origin=None,
    )
    assert b"<strong>no more</strong>" in enough


def test_no_text_becomes_markup(study: Study) -> None:
    plain = dict(study.plain)
    plain["texts"] = {"en": dict(plain["texts"]["en"], title=EVIL), "ar": plain["texts"]["ar"]}
    cells = (Cell((EVIL,), 0.5, 0.4, 0.6, 0.1, 2.0),)
    found = page(
        Study(study_bytes(plain)),
        shown=Shown((EVIL,), 10, cells),
        origin=Origin(1e-9, (EVIL,), 10),
    )
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(found)
    assert "h1" in tags
    assert "script" not in tags
