"""The form in Chromium: what is said before, kept between, and understood of what is typed."""

import json
import re
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from deniable.collect.client import codes_of
from deniable.collect.folder import StudyFolder
from deniable.collect.page import page_bytes
from deniable.collect.study import Study, new_study
from deniable.design.design import design
from deniable.design.matrices import with_responses
from deniable.laws import MatrixChannel
from deniable.mechanism.randomizer import Randomizer
from deniable.schema import Attribute, Schema
from deniable.statement.account import Design
from deniable.statement.record import mechanism_to_plain, to_json
from unit.collect import studies, vectors
from unit.collect.chromium import (
    CHROMIUM,
    DRIVER,
    WARNS,
    WATCHED_BITS,
    Watched,
    absent,
    broken,
    fill,
    first,
    forget,
    launched,
    patient,
    send,
    served,
    state,
    stored,
    wait_for,
)
from unit.collect.studies import TODAY, example_folder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="needs the Debian packages chromium, chromium-driver"
    ),
]

DEAF = "const ask = fetch; globalThis.fetch = (path, ...rest) => path === 'withdrawals' && "
DEAF += "!globalThis.heard ? (heard = true, ask(path, ...rest).then(() => { throw 0; })) : "
DEAF += "ask(path, ...rest);"


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    driver = launched()
    yield driver
    driver.quit()


def text(browser: webdriver.Chrome, selector: str = "#app") -> str:
    return browser.find_element(By.CSS_SELECTOR, selector).text


def speak(browser: webdriver.Chrome, language: str) -> None:
    browser.find_element(By.CSS_SELECTOR, f"#language option[value={language}]").click()
    patient(browser).until(lambda shown: shown.execute_script(HTML_LANGUAGE) == language)


HTML_LANGUAGE = "return document.documentElement.lang"


def test_a_closed_study_says_so_before_it_asks(browser: webdriver.Chrome, tmp_path: Path) -> None:
    folder, watch = example_folder(tmp_path), Watched()
    with folder.opened() as store:
        store.close()
    with served(folder, watch) as url:
        browser.get(url)
        wait_for(browser, "closed")
        assert text(browser, "h1") == "This study is closed."
        assert "Nothing was asked" in text(browser)
        assert "clock" not in text(browser)
        assert absent(browser, "input, button")
        assert broken(browser) == []
        assert watch.posts() == []


@pytest.mark.parametrize(("hours", "shown"), [(35, "introduction"), (37, "closed")])
def test_where_nobody_can_be_asked_the_clock_says_whether_a_study_is_over(
    browser: webdriver.Chrome, tmp_path: Path, hours: int, shown: str
) -> None:
    """The last day is over everywhere a day and twelve hours after it began in Greenwich."""
    study = example_folder(tmp_path).study
    page = tmp_path / "page.html"
    page.write_bytes(page_bytes(study))
    begins = f"Date.parse('{study.closes.isoformat()}T00:00:00Z')"
    with first(browser, f"Date.now = () => {begins} + {hours} * 3600 * 1000;"):
        browser.get(page.as_uri())
        wait_for(browser, shown)
        if shown == "closed":
            assert "by the clock of this device that is over" in text(browser)


def test_where_the_study_answers_its_word_counts_and_not_the_clock(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    late = "Date.now = () => 9e12;"
    with served(example_folder(tmp_path), Watched()) as url, first(browser, late):
        browser.get(url)
        wait_for(browser, "introduction")


def test_a_study_that_does_not_answer_is_not_waited_for(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    silent = "globalThis.fetch = () => new Promise(() => {});"
    with served(example_folder(tmp_path), Watched()) as url, first(browser, silent):
        browser.get(url)
        wait_for(browser, "introduction")


def test_what_was_taken_back_stays_taken_back(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Also if the answer was lost, and the person asks a second time."""
    folder = example_folder(tmp_path)
    with served(folder, Watched()) as url, first(browser, DEAF):
        browser.get(url)
        send(browser, "done")
        browser.find_element(By.CSS_SELECTOR, "#withdraw summary").click()
        button = browser.find_element(By.CSS_SELECTOR, "#withdraw button")
        button.click()
        patient(browser).until(lambda shown: text(shown, "[role=status]"))
        assert "could not be taken back now" in text(browser, "[role=status]")
        assert button.is_enabled()
        button.click()
        wait_for(browser, "withdrawn")
        assert text(browser, "h1") == "Your form has been taken back and deleted."
        assert broken(browser) == []
        assert stored(browser) == [{"state": "withdrawn"}]
        browser.refresh()
        wait_for(browser, "withdrawn")
        forget(browser)
    with folder.opened() as store:
        assert (store.totals().records, store.totals().withdrawn) == (0, 1)


def test_on_a_shared_device_a_link_remembers_that_its_form_was_taken_back(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder = example_folder(tmp_path, shared_device="true", respondents='"invited"')
    with folder.opened() as store:
        one, two = studies.invited(store, 2)
    with served(folder, Watched()) as url:
        browser.get(f"{url}#{one}")
        send(browser, "done")
        browser.find_element(By.CSS_SELECTOR, "#withdraw summary").click()
        browser.find_element(By.CSS_SELECTOR, "#withdraw button").click()
        wait_for(browser, "withdrawn")
        for link, shown in ((two, "introduction"), (one, "withdrawn")):
            browser.get("about:blank")
            browser.get(f"{url}#{link}")
            wait_for(browser, shown)
        forget(browser)


def test_answers_stay_while_one_reads_the_explanation_or_changes_the_language(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    watch = Watched()
    with served(example_folder(tmp_path), watch) as url:
        browser.get(url)
        wait_for(browser, "introduction")
        assert browser.title == "Habits and well-being"
        assert not browser.execute_script(WARNS)
        browser.find_element(By.ID, "agree").click()
        assert "only in the memory of this page" in text(browser, ".note")
        assert not browser.execute_script(WARNS)  # nothing would be lost
        browser.get("about:blank")
        browser.get(url)
        fill(browser)
        given = "return [...document.querySelectorAll('input')].map(i => i.checked || i.value)"
        before = browser.execute_script(given)
        assert browser.execute_script(WARNS)
        browser.back()
        wait_for(browser, "introduction")
        assert browser.execute_script(WARNS)
        assert text(browser, "#agree") == "Go on with the questions"
        browser.forward()
        wait_for(browser, "questions")
        assert browser.execute_script(given) == before
        browser.find_element(By.ID, "explanation").click()
        wait_for(browser, "introduction")
        speak(browser, "ar")
        assert browser.title == "العادات وحسن الحال"
        browser.find_element(By.ID, "agree").click()
        assert browser.execute_script(given) == before
        speak(browser, "en")
        assert state(browser) == "questions"
        assert browser.title == "Habits and well-being"
        assert browser.execute_script(given) == before
        browser.find_element(By.ID, "send").click()
        wait_for(browser, "done")
        # What was sent is over: no way back to the questions, and nothing to lose.
        assert not browser.execute_script(WARNS)
        browser.back()
        time.sleep(0.2)
        assert state(browser) == "done"
        assert len(watch.posts()) == 1
        forget(browser)


def test_a_missing_answer_is_marked_at_its_field(browser: webdriver.Chrome, tmp_path: Path) -> None:
    invalid = "return [...document.querySelectorAll('[aria-invalid=true]')].map(e => e.id)"
    with served(example_folder(tmp_path), Watched()) as url:
        browser.get(url)
        wait_for(browser, "introduction")
        browser.find_element(By.ID, "agree").click()
        browser.find_element(By.ID, "q0-1").click()
        browser.find_element(By.ID, "q3-number").send_keys("24.5")
        assert browser.execute_script(invalid) == []  # nobody is told off while answering
        browser.find_element(By.ID, "send").click()
        assert browser.execute_script(invalid) == ["q1", "q2", "q3-number", "q4"]
        assert browser.execute_script("return document.activeElement.id") == "missing"
        assert text(browser, "#q1-lacks") == "This question has no answer yet."
        assert text(browser, "#q3-lacks") == "Please type a number from 0 to 24."
        assert "q3-lacks" in browser.find_element(By.ID, "q3-number").get_attribute(
            "aria-describedby"
        )
        assert broken(browser) == []
        browser.find_element(By.CSS_SELECTOR, "#missing li:nth-child(2) button").click()
        assert browser.execute_script("return document.activeElement.id") == "q2-0"
        browser.find_element(By.ID, "q2-2").click()
        browser.find_element(By.ID, "q3-number").send_keys(Keys.BACKSPACE * 4 + "24")
        assert browser.execute_script(invalid) == ["q1", "q4"]
        assert len(browser.find_elements(By.CSS_SELECTOR, "#missing li")) == 2
        speak(browser, "ar")
        assert browser.execute_script(invalid) == ["q1", "q4"]
        assert text(browser, "#q1-lacks") == "هذا السؤال بلا إجابة بعد."


def test_enter_leads_on_and_digits_of_the_pages_script_are_understood(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    focus = "return document.activeElement.id"
    with served(example_folder(tmp_path), Watched()) as url:
        browser.get(url)
        wait_for(browser, "introduction")
        speak(browser, "ar")
        browser.find_element(By.ID, "agree").click()
        browser.find_element(By.ID, "q0-0").send_keys(Keys.SPACE, Keys.ENTER)
        for q in (1, 2):
            assert browser.execute_script(focus) == f"q{q}-0"
            browser.switch_to.active_element.send_keys(Keys.SPACE, Keys.ENTER)
        assert browser.execute_script(focus) == "q3-number"
        browser.switch_to.active_element.send_keys("٨٫٥")
        assert text(browser, "#q3-used") == "يُحسب هكذا: من 7 إلى أقل من 9 ساعات"
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        assert browser.execute_script(focus) == "q4-0"
        browser.switch_to.active_element.send_keys(Keys.SPACE, Keys.ENTER)
        assert browser.execute_script(focus) == "send"
        assert state(browser) == "questions"  # Enter in a field sends nothing
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        wait_for(browser, "done")
        forget(browser)


@pytest.mark.parametrize(("language", "saved"), [("en", False), ("ar", False), ("en", True)])
def test_the_texts_name_the_button_by_its_word(
    browser: webdriver.Chrome, tmp_path: Path, language: str, saved: bool
) -> None:
    folder, page = example_folder(tmp_path), tmp_path / "page.html"
    page.write_bytes(page_bytes(folder.study))
    with served(folder, Watched()) as url:
        browser.get(page.as_uri() if saved else url)
        wait_for(browser, "introduction")
        speak(browser, language)
        explained = text(browser, "ol")
        browser.find_element(By.ID, "agree").click()
        word = text(browser, "#send")
        assert any(f"{left}{word}{right}" in explained for left, right in ("“”", "«»"))


@pytest.mark.parametrize(
    ("language", "sending", "denied", "saved"),
    [
        ("en", "sen[dt]", "Nothing you type or click is sent", "save"),
        ("ar", "رسل", "لا يُرسل", "حفظ"),
    ],
)
def test_a_saved_page_never_states_that_something_is_sent(
    browser: webdriver.Chrome, tmp_path: Path, language: str, sending: str, denied: str, saved: str
) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(page_bytes(example_folder(tmp_path).study))
    browser.get(page.as_uri())
    wait_for(browser, "introduction")
    speak(browser, language)

    def everything() -> str:
        open_all = "document.querySelectorAll('#app details').forEach((one) => (one.open = true))"
        browser.execute_script(open_all)
        patient(browser).until(lambda _: absent(browser, "details:not([open])"))
        return bare(text(browser)).replace(bare(denied), "")

    seen = [everything()]
    browser.find_element(By.ID, "agree").click()
    wait_for(browser, "questions")
    seen.append(everything())
    forget(browser)
    browser.get(page.as_uri())
    wait_for(browser, "introduction")
    speak(browser, language)
    send(browser, "file")
    seen.append(everything())
    forget(browser)
    for said in seen:
        assert not re.search(sending, said), said
        assert saved in said.lower()


def bare(text: str) -> str:
    """Return a text without Arabic vowel signs."""
    return re.sub("[\u064b-\u0652]", "", text)


def test_how_an_answer_is_protected_is_shown_for_every_answer(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder = example_folder(tmp_path)
    mechanism = folder.study.design.mechanism
    kept = [round(100 * keep) for block in mechanism.blocks for keep in
            block.law.keep_probabilities()]  # fmt: skip
    with served(folder, Watched()) as url:
        browser.get(url)
        wait_for(browser, "introduction")
        browser.find_element(By.ID, "agree").click()
        for q, question in enumerate(folder.study.plain["questions"]):
            labels, same = question["texts"]["en"]["labels"], kept[q]
            lines = protection(browser, q)
            assert len(lines) == len(labels)
            for label, line in zip(labels, lines, strict=True):
                start = f"Of 100 people who would answer “{label}”, about {same} send “{label}”"
                assert line.startswith(f"{start} and {100 - same} ")
            assert ("send “Yes”." in lines[0]) == (len(labels) == 2)
            dots = browser.find_elements(By.CSS_SELECTOR, f"#q{q} .dots .same")
            assert len(dots) == same


def protection(browser: webdriver.Chrome, q: int) -> list[str]:
    """What is said for each answer of a question, opened."""
    browser.find_element(By.CSS_SELECTOR, f"#q{q} .protection summary").click()
    lines = f"#q{q} .protection p:not(.small)"
    return [line.text for line in browser.find_elements(By.CSS_SELECTOR, lines)]


def test_parts_under_a_matrix_intervals_and_answers_that_are_not_swapped(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    """What is kept of one part of a merged attribute depends on the other part here."""
    hours = Attribute("hours", bins=(0, 5, 7.5, 24))
    ill = Attribute("ill", ("0", "1"), labels={"0": "No", "1": "Yes"})
    region = Attribute("region", ("n", "s"), labels={"n": "North", "s": "South"})
    schema = Schema((Attribute.merged((ill, hours)), region), keep=("region",))
    columns = [[6, 2, 2, 2, 2, 2], [2, 5, 2, 2, 2, 3], [2, 2, 4, 2, 2, 4],
               [2, 2, 2, 6, 2, 2], [2, 2, 2, 2, 6, 2], [2, 2, 2, 2, 2, 6]]  # fmt: skip
    rows = tuple(zip(*columns, strict=True))
    plan = with_responses(schema, None, {"ill+hours": MatrixChannel((6,), 4, rows)})
    folder = StudyFolder.make(tmp_path / "study", opened(tmp_path, plan))
    with served(folder, Watched()) as url:
        browser.get(url)
        wait_for(browser, "introduction")
        assert "Answers to some questions are sent as you give them" in text(browser)
        browser.find_element(By.CSS_SELECTOR, "#try summary").click()
        everything = text(browser)
        browser.find_element(By.ID, "agree").click()
        assert protection(browser, 0) == [
            # 10, 9 and 8 of 16 parts, by what is answered to the other question
            "Of 100 people who would answer “No”: about 50–63 send “No”, about 38–50 send “Yes”.",
            "Of 100 people who would answer “Yes”: about 38 send “No”, about 63 send “Yes”.",
        ]
        lines = protection(browser, 1)
        assert "“5 to under 7.5”: about 25 send “0 to under 5”" in lines[1]
        assert text(browser, "#q2 .note").startswith("Sent as you answer it")
        assert text(browser, "#q1-bins").startswith("Of the number you type, only this is used")
        listed = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#q1 .bins li")]
        assert listed == ["0 to under 5", "5 to under 7.5", "7.5 to 24"]
        assert text(browser, "#q1-range") == "from 0 to 24"
        everything += text(browser)
        browser.find_element(By.ID, "q0-1").click()
        browser.find_element(By.ID, "q1-number").send_keys("7.5")
        assert text(browser, "#q1-used") == "Counts as: 7.5 to 24"
        browser.find_element(By.ID, "q2-0").click()
        browser.find_element(By.ID, "send").click()
        wait_for(browser, "done")
        assert text(browser, "tbody tr:last-child td") == "North (not swapped)"
        assert broken(browser) == []
        everything += text(browser)
        assert "[" not in everything
        forget(browser)


def test_numbers_in_intervals_without_an_end_are_typed(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    # Failed before: such a study could not be opened.
    hours = Attribute("hours", bins=(0, 20, float("inf")))
    change = Attribute("change", bins=(float("-inf"), 0, 10))
    study = opened(tmp_path, design(Schema((hours, change)), epsilon=3))
    with served(StudyFolder.make(tmp_path / "study", study), Watched()) as url:
        browser.get(url)
        wait_for(browser, "introduction")
        browser.find_element(By.ID, "agree").click()
        assert text(browser, "#q0-range") == "of 0 or more"
        assert text(browser, "#q1-range") == "up to 10"
        browser.find_element(By.ID, "q0-number").send_keys("9999")
        browser.find_element(By.ID, "q1-number").send_keys("11")
        assert text(browser, "#q0-used") == "Counts as: 20 and more"
        browser.find_element(By.ID, "send").click()
        assert text(browser, "#q1-lacks") == "Please type a number up to 10."
        browser.find_element(By.ID, "q1-number").send_keys(Keys.BACKSPACE * 2 + "-500")
        assert text(browser, "#q1-used") == "Counts as: under 0"
        browser.find_element(By.ID, "send").click()
        wait_for(browser, "done")
        assert broken(browser) == []
        forget(browser)


def test_numbers_and_dates_are_rounded_and_drawn_by_the_browser(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    born = (date(1950, 1, 1), date(2010, 1, 1))
    schema = Schema(
        (
            Attribute("income", range=(0, 200_000), grid=5, unit="EUR a year", missing="NA",
                      labels={"NA": "Prefer not to say"}),
            Attribute("born", range=born, grid=3),
            Attribute("rooms", range=(1, 9), grid=3, outside="clip"),
        )
    )  # fmt: skip
    plan = design(schema, epsilon=3)
    folder, watch = StudyFolder.make(tmp_path / "study", opened(tmp_path, plan)), Watched()
    page = tmp_path / "page.html"
    page.write_bytes(page_bytes(folder.study))
    with served(folder, watch) as url, first(browser, WATCHED_BITS):
        browser.get(url)
        wait_for(browser, "introduction")
        assert "Numbers and dates are first rounded by dice" in text(browser)
        browser.find_element(By.ID, "agree").click()
        assert text(browser, "#q0-range") == "from 0 to 200000 EUR a year"
        assert text(browser, "#q1-range") == "from January 1, 1950 to January 1, 2010"
        income = browser.find_element(By.ID, "q0-number")
        for typed in ("200001", "-1", "many"):
            income.send_keys(typed)
            browser.find_element(By.ID, "send").click()
            assert text(browser, "#q0-lacks") == "Please type a number from 0 to 200000."
            income.clear()
        assert watch.posts() == []
        income.send_keys("62500.5")
        said = "Counts as 50000 (about 75 times in 100) or as 100000 (about 25)."
        assert text(browser, "#q0-used") == said
        browser.find_element(By.ID, "q0-0").click()
        assert text(browser, "#q0-used") == ""
        assert income.get_attribute("value") == ""
        income.send_keys("62500.5")
        browser.execute_script(
            "const date = document.getElementById('q1-number'); date.value = arguments[0]; "
            "date.dispatchEvent(new Event('input'))", "1995-01-01",
        )  # fmt: skip
        browser.find_element(By.ID, "q2-number").send_keys("12")
        assert text(browser, "#q2-used") == "Counts as: 9"
        lines = protection(browser, 0)
        assert lines[0].startswith("Your answer is first rounded by dice")
        assert re.match(r"Of 100 people, about \d+ send the rounded answer", lines[1])
        assert len(lines) == 2
        assert broken(browser) == []
        browser.execute_script("takeDrawn()")
        browser.find_element(By.ID, "send").click()
        wait_for(browser, "done")
        source = vectors.GivenBits(bytes(browser.execute_script("return takeDrawn()")))
        true = {"income": 62500.5, "born": "1995-01-01", "rooms": 12}
        codes = [np.array([code]) for code in codes_of(schema, true, source)]
        drawn = [int(c[0]) for c in Randomizer(plan.mechanism, source).randomize(codes)]
        (body,) = watch.posts()
        assert folder.study.decode(json.loads(body)["record"]) == drawn
        rows = [row.text for row in browser.find_elements(By.CSS_SELECTOR, "tbody td")]
        assert rows[1] == schema.attributes[1].categories[drawn[1]]
        assert "62500" not in browser.page_source
        forget(browser)


def test_a_number_with_a_matrix_is_sent_as_one_of_its_values(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    missing = Attribute("hours", range=(0, 80), missing="NA", labels={"NA": "No work"})
    plan = design(Schema((missing,)), epsilon=2)
    values = plan.mechanism.output_labels[0]
    assert len(values) > len(plan.mechanism.schema.attributes[0].categories)
    watch, folder = Watched(), StudyFolder.make(tmp_path / "study", opened(tmp_path, plan))
    with served(folder, watch) as url:
        browser.get(url)
        wait_for(browser, "introduction")
        browser.find_element(By.ID, "agree").click()
        lines = protection(browser, 0)
        assert len(lines) == 4
        assert re.match(r"Of 100 people with 0, about 50 send a number from -?\d", lines[1])
        browser.find_element(By.ID, "q0-number").send_keys("38.5")
        browser.find_element(By.ID, "send").click()
        wait_for(browser, "done")
        (code,) = folder.study.decode(json.loads(watch.posts()[0])["record"])
        shown = "No work" if values[code] == "NA" else values[code]
        assert text(browser, "tbody td") == shown
        assert broken(browser) == []
        forget(browser)


def opened(tmp_path: Path, plan: Design) -> Study:
    """A study of a design, whose labels are the schema's."""
    (tmp_path / "m.json").write_bytes(to_json(mechanism_to_plain(plan)))
    asked = "".join(
        f'[[question]]\nattribute = "{part.name}"\ntext = "{part.name}?"\n'
        for attribute in plan.mechanism.schema.attributes
        for part in attribute.columns
    )
    head = 'title = "T"\npurpose = "p"\ncontact = "c"\ncloses = 2099-12-31\nrespondents = "open"\n'
    (tmp_path / "q.toml").write_text(head + 'consent = ["Up to you."]\n' + asked)
    return new_study(tmp_path / "m.json", tmp_path / "q.toml", TODAY)
