"""What an ε comes to, for the people who choose it."""

import re
from pathlib import Path

import pytest

from deniable.report.wording import (
    VERY_WEAK_EPSILON,
    WEAK_EPSILON,
    factor_text,
    posterior_text,
)
from deniable.studio.choosing import ladder, largest_epsilon, page_of_docs
from deniable.studio.request import request_of
from deniable.studio.sentences import texts
from unit.studio.drafts import draft

DOCS = Path(__file__).parents[3] / "docs"


def test_words_are_those_of_the_documentation() -> None:
    """The documentation's table, cell by cell."""
    page = (DOCS / "choosing.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.,]+) \| ([\d.]+) % \| (.+) \|$", page, re.MULTILINE)
    assert {epsilon: words for epsilon, _, _, words in rows} == texts("en")["strength"]
    assert texts("de")["strength"].keys() == texts("en")["strength"].keys()
    for epsilon, factor, after, _ in rows:
        assert factor_text(float(epsilon)).startswith(factor[:3])
        assert float(posterior_text(0.01, float(epsilon)).split()[0]) == pytest.approx(
            float(after), abs=0.1
        )
    assert {WEAK_EPSILON, VERY_WEAK_EPSILON} <= {float(epsilon) for epsilon, *_ in rows}
    assert (DOCS / page_of_docs("choosing.md").rpartition("/docs/")[2]).is_file()


@pytest.mark.parametrize(("prior", "limit"), [(0.1, 0.5), (0.01, 0.02), (0.4, 0.999)])
def test_a_limit_is_kept(prior: float, limit: float) -> None:
    epsilon = largest_epsilon(prior, limit)
    request = request_of(draft(prior=f"{100 * prior:g}", limit=f"{100 * limit:g}", waves="3"))
    found = next(one for one in ladder(request, []) if not one["words"])
    assert found["total"] == pytest.approx(epsilon, rel=1e-5)
    assert found["total"] <= epsilon
    assert 3 * float(found["each"]) <= found["total"]


def test_releases_of_the_same_people_share_an_epsilon() -> None:
    rows = ladder(request_of(draft(waves="10")), texts("en")["strength"].items())
    assert [(one["total"], one["each"]) for one in rows[:2]] == [(0.5, "0.05"), (1.0, "0.1")]
    assert ladder(request_of(draft(waves="0")), [("2", "x")])[0]["each"] == "2"
