"""The appendix has what the rest of the page leaves out: φ, strength, and how near the optimum."""

import re

import pytest

from deniable.report.page import render_report
from unit.report.release_records import VARIANTS

RECORDS = {name: make() for name, make in VARIANTS.items()}


def appendix(name: str) -> tuple[str, str]:
    """What is before the appendix, and the appendix."""
    before, _, after = render_report(RECORDS[name]).partition(
        "<h2>Appendix: for statisticians</h2>"
    )
    return before, after


@pytest.mark.parametrize("name", RECORDS)
def test_words_of_statisticians_stand_in_the_appendix_only(name: str) -> None:
    before, after = appendix(name)
    shown = re.sub(r"<style>.*?</style>|<pre>.*?</pre>", "", before, flags=re.DOTALL)
    assert not re.search(r"λ|attenuation|\bstrength\b|condition", shown, re.IGNORECASE)
    for word in ("Attenuation φ", "Condition", "Strength", "How near the optimum"):
        assert f"<dt>{word}</dt>" in after


def test_the_table_shows_the_records_attenuations_and_the_rows_they_cost() -> None:
    for name, record in RECORDS.items():
        _, after = appendix(name)
        rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", after.split("</table>")[0])
        assert len(rows) == len(record["mechanism"]["attributes"])
        for row, attribute in zip(rows, record["mechanism"]["attributes"], strict=True):
            phi, times, _ = re.findall(r"<td[^>]*>(.*?)</td>", row)
            if attribute["attenuation"] is None:
                assert (phi, times) == ("–", "–")
            else:
                assert float(phi) == pytest.approx(attribute["attenuation"], rel=1e-3)
                cost = float(times.replace(",", ""))
                assert cost == pytest.approx(attribute["attenuation"] ** -2, rel=6e-3)
