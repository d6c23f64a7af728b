"""The page of a release: complete, escaped, repeatable, and never saying more than its record."""

import copy
import math
import re
from collections.abc import Callable
from datetime import date
from functools import cache
from html import unescape
from typing import Any
from xml.etree import ElementTree

import pytest

from deniable.errors import InputError
from deniable.report import wording
from deniable.report.contents import read_contents
from deniable.report.figures import PLOTTED
from deniable.report.page import meaning, render_report
from deniable.schema import Attribute
from unit.report.release_records import (
    VARIANTS,
    forms,
    joint,
    kept_columns,
    matrix_without_bound,
    one_attribute,
    person_with_rows,
    seeded,
    sixty_attributes,
    three_attributes,
    very_weak,
    visible,
)

HEADINGS = [
    "Readable attributes",
    "Guarantee",
    "Observers",
    "Decisions",
    "Attributes",
    "Codes",
    "Limits of the guarantee",
    "Estimation",
    "Citation of the guarantee",
    "Small print",
    "Production",
    "Appendix for statisticians",
]


@cache
def records() -> dict[str, dict[str, Any]]:
    """Return a record of every kind, by name; they are not to be changed."""
    return {name: make() for name, make in VARIANTS.items()}


def body(page: str) -> ElementTree.Element:
    """Return what is shown; it has to be well formed."""
    return ElementTree.fromstring(page[page.index("<body>") : page.index("</html>")])


def plotted(page: str, number: int) -> list[str]:
    """Return the names in a plot."""
    texts = list(body(page).iter("svg"))[number].iter("text")
    return ["".join(t.itertext()) for t in texts if t.get("class") == "name"]


def table_cells(page: str, heading: str) -> dict[str, list[str]]:
    """Return the cells of the first table under a heading by the name that heads the row."""
    table = page.split(f"<h2>{heading}</h2>")[1].split("</table>")[0]
    return {
        unescape(re.findall(r'<th scope="row">(.*?)</th>', row)[0]): [
            unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)
        ]
        for row in re.findall(r"<tr[^>]*><th scope=\"row\">.*?</tr>", table)
    }


@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_of_record_gives_a_whole_page(name: str) -> None:
    page = render_report(records()[name])
    assert page == render_report(copy.deepcopy(records()[name]))
    assert page.startswith("<!doctype html>")
    found = re.findall(r"<h2>(.*?)</h2>", page)
    assert [heading for heading in found if heading in HEADINGS] == HEADINGS
    assert set(found) - set(HEADINGS) <= {"Forms", "Effect of joint randomization"}
    assert all(len(section) > 1 for section in body(page).iter("section"))
    # It refers to nothing outside itself, and no number in it is missing or broken.
    assert not re.search(r"https?://|//\w|<script|<link|<img|<iframe|@import|url\(|src=", page)
    assert not re.search(
        r"\b(nan|NaN|inf|Infinity|None|null|[\d.]+e[+-]\d+)\b|(?i:\bundefined\b)", visible(page)
    )
    for table in body(page).iter("table"):
        columns = [th.text for th in table.findall("thead/tr/th")]
        for row in table.findall("tbody/tr"):
            assert [td.get("data-name") for td in row.findall("td")] == columns[1:]
    assert all(plot.get("aria-label") for plot in body(page).iter("svg"))
    before = page.split(f"<h2>{HEADINGS[-1]}")[0]
    shown = re.sub(r"<style>.*?</style>|<pre>.*?</pre>", "", before, flags=re.DOTALL)
    assert not re.search(r"λ|attenuation|\bstrength\b|condition", shown, re.IGNORECASE)


_FIXED = {
    *("family", "bits", "format", "randomness", "row_order", "method", "law", "file", "sha256"),
    "beside",
}


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
    assert marker in " ".join(body(page).itertext())  # it arrives as text, to the letter


def test_the_tables_of_attributes_show_the_records_numbers() -> None:
    for name, record in records().items():
        page = render_report(record)
        cells, appendix = table_cells(page, HEADINGS[4]), table_cells(page, HEADINGS[-1])
        tables = read_contents(record).tables()
        largest = {e["attribute"]: e["standard_error"] for e in record["expected_error"]}
        assert tables.keys() == (largest.keys() if tables else set())
        assert all(one["standard_error"] <= (1 + 1e-9) * largest[n] for n, one in tables.items())
        rows = record["mechanism"]["attributes"]
        assert len(cells) == len(appendix) == len(rows)
        for row in rows:
            one = tables.get(row["name"])
            kept = row["asked"] if "asked" in row else row["keep_probability"]
            assert cells[row["name"] + " (not protected)" * (row["epsilon"] is None)] == [
                f"{row['categories']:,}",
                "–" if kept is None else wording.percent_text(kept),
                wording.epsilon_text(row["epsilon"]),
                wording.epsilon_text(row["epsilon_given_rest"]),
                "–" if one is None else wording.points_text(one["half_width"]),
                "–" if one is None else f"{one['readable']} of {one['cells']}",
            ], name
            phi, times, _ = appendix[row["name"]]
            if row["attenuation"] is None:
                assert (phi, times) == ("–", "–")
            else:
                assert float(phi) == pytest.approx(row["attenuation"], rel=1e-3)
                cost = float(times.replace(",", ""))
                assert cost == pytest.approx(row["attenuation"] ** -2, rel=6e-3)


def changed(make: Callable[[], dict[str, Any]], part: str, **values: Any) -> dict[str, Any]:
    """Return a record with some values of a part replaced."""
    record = make()
    record[part].update(values)
    return record


def weak(epsilon: float) -> dict[str, Any]:
    return changed(one_attribute, "guarantee", epsilon=epsilon)


def bound(below: float | None) -> dict[str, Any]:
    return changed(three_attributes, "mechanism", epsilon=3.0, epsilon_lower_bound=below)


KEPT_ORDER = "The order of the rows, which is that of the original table."
SAYS: dict[str, tuple[Callable[[], dict[str, Any]], list[str], list[str]]] = {
    "the factor, and what a belief can become": (
        one_attribute,
        [
            "any released row is at most 2.72 times likelier",
            "a belief of 50 % can become at most 73.2 %, one of 1 % at most 2.7 %",
            KEPT_ORDER,
        ],
        [],
    ),
    "five is plausible": (lambda: weak(5.0), ["Plausible deniability for every"], ["Weak"]),
    "above five is weak": (lambda: weak(5.01), ["Weak deniability for every"], ["Plausible"]),
    "above ten is next to nothing": (lambda: weak(10.01), ["Next to nothing for a record"], []),
    "certainty is only near": (very_weak, ["near certainty", "Release of data.csv"], []),
    "four observers": (
        joint,
        [
            "Any observer about anything in a person's row",
            "from the whole released row 1.387 4.01 30.8 %",
            "about that attribute 0.694 to 0.768 2.16 19.4 %",
            "about the remaining attribute 1.387 4.01 30.8 %",
            "deniable inspect . --subset a,b 0.694 to 1.387",
            "is covered by the first line only",
        ],
        [],
    ),
    "a person beside a row": (
        person_with_rows,
        [
            "everyone has at most 4 rows",
            "at most 2,990 times likelier to come from one person's data than from that of another",
            "(ε of a person: 8). That is weak.",
            "from all their rows (at most 4) 8 2,990",
        ],
        [],
    ),
    "nothing without a bound": (
        matrix_without_bound,
        [
            "No guarantee for a row as a whole",
            "NOT PROTECTED: test.",
            "Randomized, but not protected: test.",
            "about that attribute 1 to no limit no limit certainty",
            "about the remaining attribute 1 to no limit no limit certainty",
        ],
        [
            "times likelier",
            "Columns with true values",
            "Every column of the file is randomized",
        ],
    ),
    "kept columns": (
        kept_columns,
        [
            "than from that of another with the same region, weight.",
            "Columns with true values: region, weight.",
        ],
        [],
    ),
    "a seed promises nothing": (
        seeded,
        [
            "No guarantee: the randomness came from a seed.",
            "This release is not private. With secret randomness",
        ],
        [],
    ),
    "shuffled": (three_attributes, ["shuffled"], ["NOT PRIVATE", "Levels differ", KEPT_ORDER]),
    "changed levels": (
        lambda: changed(three_attributes, "mechanism", changed_levels=["b"]),
        ["Levels differ from what was requested: b."],
        [],
    ),
    "a distance to the bound": (
        lambda: bound(2.7654321),
        ["below 2.765; this one's is 3, at most 0.24 above that"],
        [],
    ),
    "no distance": (lambda: bound(3.0 - 1e-8), ["more than 0.000001 below this one's"], []),
    "no bound": (lambda: bound(None), ["Distance from the optimum not known"], []),
}


@pytest.mark.parametrize("what", SAYS)
def test_the_page_says_what_holds_and_no_more(what: str) -> None:
    make, said, unsaid = SAYS[what]
    text = visible(render_report(make()))
    for sentence in said:
        assert sentence in text
    for sentence in unsaid:
        assert sentence not in text


def test_warnings_come_before_the_promise() -> None:
    for make, warning in (
        (kept_columns, "NOT PROTECTED: region, weight."),
        (seeded, "NOT PRIVATE."),
    ):
        text = visible(render_report(make()))
        assert text.index(warning) < text.index("Guarantee")
    assert set(plotted(render_report(kept_columns()), 0)) == {"hours", "race"}


def test_a_plot_holds_the_largest_values_of_many_attributes_and_says_so() -> None:
    record = sixty_attributes()
    rows = record["mechanism"]["attributes"]
    for position, row in enumerate(rows):
        row["epsilon_given_rest"] = 1 + (position * 7 % 60) / 100
    page = render_report(record)
    largest = sorted(rows, key=lambda a: a["epsilon_given_rest"], reverse=True)[:PLOTTED]
    names = {a["name"] for a in largest}
    assert plotted(page, 0) == [a["name"] for a in rows if a["name"] in names]
    assert f"The {PLOTTED} of 60 attributes with the largest ε given the rest" in visible(page)


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


def test_what_is_no_record_of_a_release_is_refused() -> None:
    record = one_attribute()
    with pytest.raises(InputError, match="not the record of a release"):
        render_report(record["mechanism"])
    del record["guarantee"]
    with pytest.raises(InputError, match="guarantee"):
        render_report(record)


def test_forms_are_listed_with_who_is_asked_and_how_far_any_method_could_get() -> None:
    record = forms()
    page = render_report(record)
    text = visible(page)
    (block,) = record["mechanism"]["blocks"]
    names, law = block["attributes"], block["law"]
    asked = dict.fromkeys(names, 0.0)
    for number, form in enumerate(law["forms"], 1):
        share, of = int(form["share"], 16) / 2 ** law["bits"], [names[i] for i in form["asked"]]
        people = wording.percent_text(share).replace("\xa0", " ")
        assert f"{number} {', '.join(of)} {people}" in text
        asked |= {name: asked[name] + share for name in of}
    assert 0 < min(asked.values()) < 1
    cells = table_cells(page, HEADINGS[4])
    assert {name: cells[name][1] for name in names} == {
        name: wording.percent_text(share) for name, share in asked.items()
    }
    least = min(names, key=asked.__getitem__)
    people = wording.percent_text(asked[least]).replace("\xa0", " ")
    assert (
        f"Of {least}, for example: {people} of people are asked, at up to 2; the others release an"
        in text
    )
    limit = record["outlook"]["limit"]
    part = wording.percent_text(1 / limit["times"]).replace("\xa0", " ")
    assert f"No method needs fewer than {part} of the rows for shares as accurate" in text
    assert limit["times"] > 1


def test_a_long_list_is_cut_and_its_rest_counted() -> None:
    record = forms()
    (block,) = record["mechanism"]["blocks"]
    block["law"]["forms"] = block["law"]["forms"][:1] * 45
    record["comparison"] = {
        "saving": {"marginals": 2.345, "pairs": 6.1},
    }
    text = visible(render_report(record))
    assert "and 5 more, in codebook.csv." in text
    assert "2.3 times as many rows, and for tables of two attributes 6.1 times as many" in text
    record = sixty_attributes()
    single = record["attenuation"]["single"]
    first, *others = list(single)[:12]
    record["attenuation"]["pairs"] = [
        {"attributes": [first, b], "attenuation": 0.05 * single[first] * single[b]} for b in others
    ]
    text = visible(render_report(record))
    assert "11 of 11 pairs have an attenuation below 10 %" in text
    assert f"{first} × {others[0]}: 5.0 %" in text
    assert "and 1 more." in text


def test_every_half_width_is_of_one_basis_that_is_named() -> None:
    """Failed before: a report of forms gave two errors of the same worst cell, for equal
    frequencies and for the worst truth."""
    compared = 0
    for record in records().values():
        contents = read_contents(record)
        if not contents.tables():
            continue
        text = visible(render_report(record))
        assert "Half-widths on this page are expected ones" in text
        widths = [one["half_width"] for one in contents.tables().values()]
        assert f" {wording.points_text(max(widths))} points" in text
        compared += 1
    assert compared


def test_contents_link_to_every_section() -> None:
    page = render_report(three_attributes())
    links = dict(re.findall(r'<li><a href="#(\w+)">(.*?)</a></li>', page))
    found = dict(re.findall(r'<section id="(\w+)">\s*<h2>(.*?)</h2>', page))
    assert links == found
    assert set(HEADINGS) <= set(found.values())
    assert page.index("<nav") < page.index("<section")


def test_the_head_says_who_answers_and_codes_are_spelled_out() -> None:
    record = copy.deepcopy(three_attributes())
    plain = record["mechanism"]["schema"]
    plain |= {"responsible": "A. Steward", "contact": "a@office.example", "date": "2026-11-24"}
    first = plain["attribute"][0]
    code = first["categories"][0]
    first |= {"question": "Do you smoke?", "labels": {code: "never in my life"}}
    text = visible(render_report(record))
    assert "Date: 2026-11-24 Responsible: A. Steward Contact: a@office.example" in text
    assert text.count("Do you smoke?") == 2
    assert f"{code} never in my life" in text
    without = visible(render_report(three_attributes()))
    assert "Responsible" not in without
    assert "Do you smoke?" not in without


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        (Attribute("n", bins=(0, 5, 15)), ["0 to under 5", "5 to 15"]),
        (Attribute("n", bins=(-math.inf, 5, math.inf)), ["under 5", "5 and more"]),
        (
            Attribute("d", bins=(date(1950, 1, 1), date(1980, 1, 1), math.inf), missing="NA"),
            ["1950-01-01 to under 1980-01-01", "1980-01-01 and later", "missing"],
        ),
        (Attribute("a", ("1", "2"), labels={"1": "yes"}), ["yes", "2"]),
    ],
)
def test_categories_and_intervals_are_put_into_words(attribute: Attribute, said: list[str]) -> None:
    assert [meaning(attribute, category) for category in attribute.categories] == said
