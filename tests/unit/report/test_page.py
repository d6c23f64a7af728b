"""The page of a release: complete, escaped, repeatable, and never saying more than its record."""

import copy
import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

import pytest

from deniable.errors import InputError
from deniable.report import wording
from deniable.report.attributes import PLOTTED
from deniable.report.page import render_report
from unit.report.release_records import (
    VARIANTS,
    as_json,
    joint_law,
    kept_columns,
    matrix_without_bound,
    one_attribute,
    person_with_rows,
    release_record,
    seeded,
    sixty_attributes,
    three_attributes,
    twelve_attributes,
    very_weak,
)

RECORDS = {name: make() for name, make in VARIANTS.items()}


def visible(page: str) -> str:
    """Return the text of a page, without style sheet and tags."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def plots(page: str) -> list[ElementTree.Element]:
    return [
        ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    ]


def attribute_cells(page: str) -> dict[str, list[str]]:
    """Return the cells of the attributes' table by the name that heads the row."""
    table = page.split("<h2>Attribute by attribute</h2>")[1].split("</table>")[0]
    return {
        unescape(re.findall(r'<th scope="row">(.*?)</th>', row)[0]): [
            unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)
        ]
        for row in re.findall(r"<tr[^>]*><th scope=\"row\">.*?</tr>", table)
    }


@pytest.mark.parametrize("name", RECORDS)
def test_every_kind_of_record_gives_a_whole_page(name: str) -> None:
    as_json(RECORDS[name])  # it is strict JSON
    page = render_report(RECORDS[name])
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>\n")
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [
        "What can be read from it",
        "What is promised",
        "Who sees what",
        "Who decides what",
        "Attribute by attribute",
        "What is not protected",
        "How to estimate",
        "How to cite the guarantee",
        "The small print",
        "How it was made",
        "Appendix: for statisticians",
    ]


@pytest.mark.parametrize("name", RECORDS)
def test_no_missing_or_broken_number_reaches_the_page(name: str) -> None:
    text = visible(render_report(RECORDS[name]))
    assert not re.search(r"\b(nan|NaN|inf|Infinity|None|null|[\d.]+e[+-]\d+)\b", text)


@pytest.mark.parametrize("name", RECORDS)
def test_the_page_refers_to_nothing_outside_itself(name: str) -> None:
    page = render_report(RECORDS[name])
    assert not re.search(r"https?://|//\w|<script|<link|<img|<iframe|@import|url\(|src=", page)


@pytest.mark.parametrize("name", RECORDS)
def test_the_tags_of_the_page_are_balanced_and_its_plots_are_well_formed(name: str) -> None:
    page = render_report(RECORDS[name])
    body = page[page.index("<body>") : page.index("</body>") + len("</body>")]
    ElementTree.fromstring(body)
    for plot in plots(page):
        assert plot.tag == "svg"
        assert plot.get("aria-label")


@pytest.mark.parametrize("name", RECORDS)
def test_equal_records_give_equal_bytes(name: str) -> None:
    again = copy.deepcopy(RECORDS[name])
    assert render_report(RECORDS[name]).encode() == render_report(again).encode()


_FIXED = {"family", "bits", "format", "randomness", "row_order", "method", "law"}


def hostile(value: Any, marker: str, key: str = "") -> Any:
    """Return a record with every text in it that users choose preceded by a marker."""
    if key in _FIXED:
        return value
    if isinstance(value, dict):
        named = key in ("labels", "single")  # keyed by names
        return {(marker + k if named else k): hostile(v, marker, k) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(v, marker) for v in value]
    if isinstance(value, str) and key == "missing":
        return value.replace("category:", "category:" + marker)
    return marker + value if isinstance(value, str) else value


@pytest.mark.parametrize("make", [three_attributes, kept_columns, person_with_rows, seeded])
def test_texts_that_users_choose_cannot_break_out_of_the_page(make: Any) -> None:
    marker = '</title><script>alert(1)</script>\'"&amp;<b x="'
    page = render_report(hostile(make(), marker))
    assert "<script" not in page
    assert "<b x=" not in page
    assert "alert(1)" in page
    body = page[page.index("<body>") : page.index("</body>") + len("</body>")]
    shown = " ".join(ElementTree.fromstring(body).itertext())
    assert marker in shown  # it arrives as text, to the letter


def test_the_table_of_attributes_shows_the_records_numbers() -> None:
    for name, record in RECORDS.items():
        cells = attribute_cells(render_report(record))
        errors = {e["attribute"]: e["standard_error"] for e in record["expected_error"]}
        for row in record["mechanism"]["attributes"]:
            unprotected = " (not protected)" if row["epsilon"] is None else ""
            shown = cells[row["name"] + unprotected]
            error = errors.get(row["name"])
            expected = [
                f"{row['categories']:,}",
                "–"
                if row["keep_probability"] is None
                else wording.percent_text(row["keep_probability"]),
                wording.epsilon_text(row["epsilon"]),
                wording.epsilon_text(row["epsilon_given_rest"]),
                "–" if error is None else wording.points_text(error),
            ]
            assert shown == expected, name
        assert len(cells) == len(record["mechanism"]["attributes"])


def test_a_changed_number_in_the_record_changes_the_page() -> None:
    record = three_attributes()
    before = attribute_cells(render_report(record))
    row = record["mechanism"]["attributes"][1]
    row["epsilon_given_rest"] = 1.75
    record["expected_error"][1]["standard_error"] = 0.0777
    record["guarantee"]["epsilon"] = 3.25
    page = render_report(record)
    after = attribute_cells(page)
    assert after["a"] == before["a"]
    assert after["b"][3] == "1.75"
    assert after["b"][4] == "7.8"
    assert "25.8 times likelier" in visible(page)
    assert "7.8" in " ".join(t.text or "" for t in plots(page)[1].iter("text"))


def test_the_promise_states_the_factor_and_what_a_belief_can_become() -> None:
    text = visible(render_report(one_attribute()))
    assert "any released row is at most 2.72 times likelier" in text
    assert "a belief of 50 % can become at most 73.2 %, one of 1 % at most 2.7 %" in text


def test_a_promise_is_called_weak_above_five_and_next_to_nothing_above_ten() -> None:
    record = one_attribute()
    for epsilon, words in ((5.0, "Plausible"), (5.01, "Weak"), (10.01, "Next to nothing")):
        record["guarantee"]["epsilon"] = epsilon
        page = render_report(record)
        assert f'<p class="promise">{words}' in page, epsilon
    assert "near certainty" in visible(render_report(very_weak()))


def test_the_four_observers_have_their_numbers() -> None:
    text = visible(render_report(release_record(joint_law())))
    table = text.split("Who sees what")[1].split("Attribute by attribute")[0]
    assert "Anyone, whatever they know about anything in a person's row" in table
    assert "from the whole released row 1.387 4.01 30.8 %" in table
    assert "about that attribute 0.694 to 0.768 2.16 19.4 %" in table
    assert "about the remaining attribute 1.387 4.01 30.8 %" in table
    assert "deniable inspect . --subset a,b 0.694 to 1.387" in table
    assert "is covered by the first line only" in table


def test_a_persons_epsilon_stands_beside_that_of_a_row() -> None:
    text = visible(render_report(person_with_rows()))
    assert "nobody has more than 4 rows" in text
    assert "(ε of a person: 8). That is weak." in text
    assert "from all their rows (at most 4) 8 2,990" in text


def test_without_a_bound_nothing_is_promised_for_the_row() -> None:
    page = render_report(matrix_without_bound())
    text = visible(page)
    assert "For a row as a whole, nothing" in text
    assert "times likelier" not in text
    assert "NOT PROTECTED: test." in text
    assert "Randomized, but not protected: test." in text
    assert "Columns with true values" not in text
    assert "no limit no limit certainty" in text
    table = text.split("Who sees what")[1].split("Attribute by attribute")[0]
    for observer in ("about that attribute", "about the remaining attribute"):
        row = table.split(observer)[1].split("Someone")[0]
        assert row.strip().endswith("to no limit no limit certainty"), row
    assert "Every column of the file is randomized" not in text


def test_kept_columns_are_named_loudly_and_qualify_the_promise() -> None:
    page = render_report(kept_columns())
    text = visible(page)
    assert text.index("NOT PROTECTED: region, weight.") < text.index("What is promised")
    assert "than from that of another with the same region, weight." in text
    assert "Columns with true values: region, weight." in text
    plotted = {t.text for t in plots(page)[0].iter("text") if t.get("class") == "name"}
    assert plotted == {"hours", "race"}


def test_a_seeded_release_is_called_not_private_and_promises_nothing() -> None:
    page = render_report(seeded())
    text = visible(page)
    assert text.index("NOT PRIVATE.") < text.index("What is promised")
    assert '<p class="promise">Nothing: the randomness came from a seed.</p>' in page
    assert "There is none to cite" in text
    assert "NOT PRIVATE" not in visible(render_report(three_attributes()))


def test_changed_levels_are_listed() -> None:
    record = three_attributes()
    assert "Levels differ" not in visible(render_report(record))
    record["mechanism"]["changed_levels"] = ["b"]
    assert "Levels differ from what was requested: b." in visible(render_report(record))


def test_row_order_is_said_to_be_open_only_if_it_was_kept() -> None:
    sentence = "The order of the rows, which is that of the original table."
    assert sentence in visible(render_report(one_attribute()))
    assert sentence not in visible(render_report(three_attributes()))  # shuffled


def test_a_plot_holds_the_largest_values_of_many_attributes_and_says_so() -> None:
    record = sixty_attributes()
    for position, row in enumerate(record["mechanism"]["attributes"]):
        row["epsilon_given_rest"] = 1 + (position * 7 % 60) / 100
    page = render_report(record)
    plotted = [t.text for t in plots(page)[0].iter("text") if t.get("class") == "name"]
    largest = sorted(
        record["mechanism"]["attributes"], key=lambda a: a["epsilon_given_rest"], reverse=True
    )[:PLOTTED]
    assert sorted(str(name) for name in plotted) == sorted(a["name"] for a in largest)
    assert f"The {PLOTTED} of 60 attributes with the largest ε given the rest" in visible(page)
    assert len(attribute_cells(page)) == 60
    assert "of 12 attributes with" not in visible(render_report(twelve_attributes()))


def test_the_small_print_the_sentence_the_command_and_the_digest_are_the_records() -> None:
    record = three_attributes()
    text = visible(render_report(record))
    for line in (
        *record["small_print"],
        record["guarantee"]["sentence"],
        record["command"],
        record["release"]["sha256"],
        record["software"],
    ):
        assert line in text


def test_the_distance_to_the_lower_bound_is_rounded_so_as_not_to_flatter() -> None:
    record = three_attributes()
    record["mechanism"].update(epsilon=3.0, epsilon_lower_bound=2.7654321)
    text = visible(render_report(record))
    assert "below 2.765; this one's is 3, at most 0.24 above that" in text
    record["mechanism"]["epsilon_lower_bound"] = 3.0 - 1e-8
    assert "more than 0.000001 below this one's" in visible(render_report(record))
    record["mechanism"]["epsilon_lower_bound"] = None
    assert "How near the optimum not known" in visible(render_report(record))


def test_a_release_without_a_title_is_named_after_its_file() -> None:
    assert "<h1>Release of data.csv</h1>" in render_report(very_weak())


def test_what_is_no_record_of_a_release_is_refused() -> None:
    record = one_attribute()
    with pytest.raises(InputError, match="not the record of a release"):
        render_report(record["mechanism"])
    del record["guarantee"]
    with pytest.raises(InputError, match="guarantee"):
        render_report(record)
