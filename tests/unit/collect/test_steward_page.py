"""The steward's page: what it says, and that no text of a study becomes markup."""

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from deniable.collect.folder import StudyFolder
from deniable.collect.steward_page import steward_page
from deniable.collect.store import Totals
from deniable.collect.study import Study, study_bytes
from deniable.collect.watching import Batch, Cell, Shown
from deniable.estimate.consistency import Origin
from deniable.mechanism.readability import Readability
from unit.collect.studies import example_folder

NOTHING = np.zeros((0, 3), dtype=np.uint8)
TOTALS = Totals(records=1200, withdrawn=3, invitations=5000, spent=1203, closed=False)
EVIL = "<script>alert(1)</script>\u202e\"'"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return example_folder(tmp_path_factory.mktemp("page"), respondents='"invited"').study


def shown_of(names: tuple[str, ...], n_records: int, cells: tuple[Cell, ...]) -> Shown:
    """Return a table with the readability of its cells."""
    shares, errors = [c.share for c in cells], [c.margin / 1.959964 for c in cells]
    readability = Readability.of(names, shares, errors, n_records, "population")
    return Shown(names, n_records, cells, readability)


def page(
    study: Study, shown: Shown | None = None, origin: Origin | None = None, precision: str = "2"
) -> str:
    what = {"of": ["smokes"], "target": "table", "precision": precision}
    batch = Batch(StudyFolder(Path("study")), TOTALS, 1203, 3, (NOTHING,))
    batch.__dict__["origin"] = origin
    return steward_page(study, batch, is_closed=False, token="0", **what, shown=shown).decode()


def test_totals_and_whether_they_can_be_honest_are_said_in_words(study: Study) -> None:
    found = page(study)
    for said in ("1,203 of 5,000", "open until 2099-12-31", "Stopping by interim results"):
        assert said in found
    assert "Not possible under this law." in found
    for p_value, said in (
        (1e-9, "<strong>Failed</strong>"),
        (1e-4, "Doubtful"),
        (0.3, "Passed: the counts of 900"),
    ):
        assert said in page(study, origin=Origin(p_value, ("smokes",), 900))


def test_ends_beyond_what_can_be_are_not_drawn(study: Study) -> None:
    cells = (Cell(("no",), 1.02, 0.9, 1.1, 0.09, 2.0), Cell(("yes",), -0.02, -0.1, 0.1, 0.09, 2.0))
    shown = shown_of(("smokes",), 1000, cells)
    found = page(study, shown)
    for said in ("90.0 to 100.0 %", "0.0 to 10.0 %", "about 21,000 records:", "about 20,000 more"):
        assert said in found
    assert "100.0 %*</td>" in found
    assert "0.0 %*</td>" in found
    assert "-2.0" not in found
    assert "is below 0 or above 100 %" in found
    within = shown_of(("smokes",), 1000, (Cell(("no",), 0.98, 0.9, 1.0, 0.1, 2.0),) * 2)
    assert "lies beyond" not in page(study, within)
    assert "<strong>no more</strong>" in page(study, shown, precision="50")


def test_what_cannot_be_read_is_not_shown(study: Study) -> None:
    cells = (Cell(("no",), 1.839, 0.4, 1.0, 0.98, 2.0), Cell(("yes",), -0.839, 0.0, 0.6, 0.98, 2.0))
    found = page(study, shown_of(("smokes",), 20, cells))
    assert (
        "<strong>Nothing can be read.</strong> smokes: 0 of 2 categories readable (± 98 points at "
        "95 %, sampling error included). Equally frequent, all of them are readable from "
        "about 2,100 rows on."
    ) in found.replace("\u00a0", " ")
    assert "83.9" not in found
    assert 'estimates" role' not in found


def test_no_text_becomes_markup(study: Study) -> None:
    plain = dict(study.plain)
    plain["texts"] = {"en": dict(plain["texts"]["en"], title=EVIL), "ar": plain["texts"]["ar"]}
    cells = (Cell((EVIL,), 0.5, 0.4, 0.6, 0.1, 2.0),)
    found = page(
        Study(study_bytes(plain)),
        shown=shown_of((EVIL,), 10, cells),
        origin=Origin(1e-9, (EVIL,), 10),
    )
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(found)
    assert "h1" in tags
    assert "script" not in tags
