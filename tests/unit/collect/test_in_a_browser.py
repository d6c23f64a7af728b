"""The page in Chromium: what is drawn, what leaves the browser, and what is shown."""

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from deniable.collect import collector as module
from deniable.collect.client import codes_of
from deniable.collect.page import page_bytes
from deniable.collect.releasing import add
from deniable.collect.store import receipt_id
from deniable.collect.study import Study, law_digest, study_bytes
from deniable.mechanism.randomizer import Randomizer
from unit.collect import studies, vectors
from unit.collect.chromium import (
    CHROMIUM,
    DRIVER,
    FULL,
    NO_STORAGE,
    NOTHING_IS_SENT,
    WARNS,
    WATCHED_BITS,
    Watched,
    absent,
    broken,
    fill,
    first,
    forget,
    kill,
    launched,
    patient,
    send,
    served,
    sized,
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


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    driver = launched()
    yield driver
    driver.quit()


@pytest.mark.parametrize("name", vectors.mechanisms())
def test_chromium_draws_what_python_draws_from_the_same_bytes(
    browser: webdriver.Chrome, name: str
) -> None:
    mechanisms = vectors.mechanisms()
    mechanism, count = mechanisms[name], -(-vectors.RECORDS // len(mechanisms))
    browser.get("about:blank")
    code = f"{vectors.script()}; return wrongVectors(arguments[0]);"
    rows = 0
    for found in vectors.batches(mechanism, count, seed=int(time.time())):
        assert browser.execute_script(code, vectors.request(mechanism, found)) == "[]"
        rows += len(found)
    assert rows == count


def test_one_person_one_draw_one_submission(browser: webdriver.Chrome, tmp_path: Path) -> None:
    folder, watch = example_folder(tmp_path), Watched()
    study = folder.study
    with served(folder, watch) as url, first(browser, WATCHED_BITS):
        browser.get(url)
        wait_for(browser, "introduction")
        one, two = (e.text for e in browser.find_elements(By.CSS_SELECTOR, ".chances li"))
        assert "a chance of 1 in 100, then" in one
        assert "9.2 in 100 at most" in one
        assert "a chance of 1 in 2, then" in two
        assert "90.9 in 100 at most" in two
        fill(browser)
        browser.execute_script("takeDrawn()")
        clock = "document.getElementById('send').addEventListener('click', "
        browser.execute_script(clock + "e => { globalThis.clicked = e.timeStamp; }, true)")
        browser.find_element(By.ID, "send").click()
        wait_for(browser, "done")
        # What was stored is what Python draws from the bytes that the browser drew from.
        source = vectors.GivenBits(bytes(browser.execute_script("return takeDrawn()")))
        true = studies.ANSWERS | {"alcohol": "daily"}
        schema = study.design.mechanism.schema
        codes = [np.array([code]) for code in codes_of(schema, true, source)]
        drawn = Randomizer(study.design.mechanism, source).randomize(codes)
        receipt = source.bits(np.uint8, 16).tobytes().hex()
        assert source.at == len(source.content)
        (body,) = watch.posts()
        sent = json.loads(body)
        assert study.decode(sent["record"]) == [int(column[0]) for column in drawn]
        assert sent["receipt"] == receipt_id(receipt).hex()
        assert len(body) == module.submission_size(study)
        # Three requests in all, the last not sooner than half a second after the click.
        assert [(m, path) for m, path, *_ in watch.requests] == [
            ("GET", "/"),
            ("GET", "/readyz"),
            ("POST", "/submissions"),
        ]
        assert browser.execute_script("return left - clicked") > 499  # timers count whole ones
        shown = browser.find_element(By.ID, "receipt").text.replace(" ", "")
        assert shown == receipt
        labels = study.plain["questions"][0]["texts"]["en"]["labels"]
        row = browser.find_element(By.CSS_SELECTOR, "tbody td").text
        assert row == labels[int(drawn[0][0])]
        # Nothing of it stays but that it was answered.
        assert stored(browser) == [{"state": "answered", "receipt": receipt}]
        assert absent(browser, "input")
        browser.refresh()
        wait_for(browser, "answered")
        browser.find_element(By.CSS_SELECTOR, "#withdraw summary").click()
        browser.find_element(By.CSS_SELECTOR, "#withdraw button").click()
        wait_for(browser, "withdrawn")
    store = folder.open_store()
    assert (store.totals().records, store.totals().withdrawn) == (0, 1)
    store.dispose()
    assert browser.get_log("browser") == []


def test_opposite_answers_give_requests_of_one_size_and_no_trace(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    sizes = set()
    for number, choice in enumerate((0, -1)):
        (tmp_path / str(number)).mkdir()
        folder, watch = example_folder(tmp_path / str(number)), Watched()
        with served(folder, watch) as url:
            browser.get(url)
            send(browser, "done", choice, hours="3.14159" if choice else "8.71828")
            canary = b"3.14159" if choice else b"8.71828"
            everything = b"".join(
                path.encode() + heads + body for _, path, heads, body, _ in watch.requests
            )
            script = "return JSON.stringify(arguments[0]) + JSON.stringify(localStorage) + "
            script += "JSON.stringify(sessionStorage) + document.cookie + "
            script += "document.title + location.href + JSON.stringify(history.state) + "
            script += "document.documentElement.outerHTML"
            assert canary not in everything
            assert canary.decode() not in browser.execute_script(script, stored(browser))
            ((_, _, heads, body, _),) = [r for r in watch.requests if r[1] == "/submissions"]
            sizes.add((len(body), sum(1 for _ in heads.splitlines())))
    assert len(sizes) == 1


def test_whatever_fails_the_same_record_is_sent_again(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder, watch = example_folder(tmp_path), Watched(refuse=math.inf, lose=math.inf)
    with served(folder, watch) as url:
        browser.get(url)
        send(browser, "retry")
        patient(browser).until(lambda shown: shown.find_element(By.ID, "again").click() is None)
        wait_for(browser, "retry")
        watch.refuse = 0
        browser.refresh()  # a crash between sending and confirmation
        wait_for(browser, "retry")
        browser.get("about:blank")
        watch.lose = 1
        browser.get(f"{url}#someone-else")
        wait_for(browser, "done")
        assert len(watch.posts()) >= 4
        assert len(set(watch.posts())) == 1
    store = folder.open_store()
    assert store.totals().records == 1
    store.dispose()


def test_two_tabs_send_one_record(browser: webdriver.Chrome, tmp_path: Path) -> None:
    folder, watch = example_folder(tmp_path), Watched(refuse=math.inf)
    one = browser.current_window_handle
    with served(folder, watch) as url:
        browser.get(url)
        fill(browser)
        browser.switch_to.new_window("tab")
        browser.get(url)
        send(browser, "retry", choice=0)
        browser.switch_to.window(one)
        browser.find_element(By.ID, "send").click()
        assert state(browser) == "sending"  # its answers are gone while the other tab tries
        assert absent(browser, "input")
        watch.refuse = 0
        wait_for(browser, "answered")
        assert len(set(watch.posts())) == 1
        for handle in browser.window_handles:
            if handle != one:
                browser.switch_to.window(handle)
                browser.close()
        browser.switch_to.window(one)


def test_a_wrong_link_costs_nobody_a_second_draw(browser: webdriver.Chrome, tmp_path: Path) -> None:
    folder, watch = example_folder(tmp_path, respondents='"invited"'), Watched()
    store = folder.open_store()
    (token,) = studies.invited(store, 1)
    with served(folder, watch) as url:
        browser.get(url)
        wait_for(browser, "no-token")
        for link, end in (("0" * 32, "not-taken"), (token, "done")):
            browser.get("about:blank")
            browser.get(f"{url}#{link}")
            if end == "not-taken":
                fill(browser)
                browser.find_element(By.ID, "send").click()
            wait_for(browser, end)
        first, second = map(json.loads, watch.posts())
        assert (first["token"], second["token"]) == ("0" * 32, token)
        assert (first["record"], first["receipt"]) == (second["record"], second["receipt"])
        # In another browser the invitation is spent, and stays so.
        forget(browser)
        browser.refresh()
        send(browser, "not-taken")
        assert "has been used already" in browser.find_element(By.TAG_NAME, "h1").text
        browser.refresh()
        wait_for(browser, "answered")
    assert store.totals().records == 1
    store.dispose()


def test_a_closed_study_leaves_the_receipt_of_a_form_that_may_have_arrived(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder = example_folder(tmp_path)
    with folder.opened() as store:
        watch = Watched(lose=1)  # the first answer, and then the study is closed
        watch.after = store.close
        with served(folder, watch) as url:
            browser.get(url)
            send(browser, "not-taken")
            for _ in range(2):
                assert "it counts" in browser.find_element(By.TAG_NAME, "h1").text
                assert browser.find_element(By.ID, "receipt").is_displayed()
                assert broken(browser) == []
                browser.refresh()  # sends the same again
                wait_for(browser, "not-taken")
            browser.find_element(By.CSS_SELECTOR, "#withdraw summary").click()
            browser.find_element(By.CSS_SELECTOR, "#withdraw button").click()
            wait_for(browser, "withdrawn")
            assert (store.totals().records, store.totals().withdrawn) == (0, 1)
            forget(browser)


def test_on_a_shared_device_a_refused_form_is_sent_again_and_not_drawn_again(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder, watch = example_folder(tmp_path, shared_device="true"), Watched()
    watch.deny = 422
    with served(folder, watch) as url:
        browser.get(url)
        send(browser, "not-taken")
        assert "no other is made" in browser.find_element(By.ID, "app").text
        assert broken(browser) == []
        browser.refresh()  # its sender, or the next person
        wait_for(browser, "arrived")
        assert broken(browser) == []
        assert len(watch.posts()) == 2
        assert len(set(watch.posts())) == 1
        # Who comes next finds neither the record nor the receipt, on the screen or in storage.
        assert absent(browser, "table, #receipt")
        assert stored(browser) == []
        browser.find_element(By.ID, "another").click()
        send(browser, "done")
        assert stored(browser) == []
        browser.refresh()
        fill(browser)
        with folder.opened() as store:
            store.close()
        browser.find_element(By.ID, "send").click()
        wait_for(browser, "not-taken")
        assert "is closed" in browser.find_element(By.TAG_NAME, "h1").text
        assert stored(browser) == [{"state": "closed"}]
        browser.find_element(By.CSS_SELECTOR, "#withdraw summary").click()
        browser.find_element(By.CSS_SELECTOR, "#withdraw button").click()
        patient(browser).until(lambda shown: "no form with" in shown.page_source)
        browser.refresh()
        wait_for(browser, "not-taken")
        assert absent(browser, "#receipt")
        browser.refresh()
        wait_for(browser, "not-taken")
        assert len(watch.posts()) == 4
        forget(browser)


def test_on_a_shared_device_every_invitation_is_drawn_for_once(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder = example_folder(tmp_path, shared_device="true", respondents='"invited"')
    watch, wrong = Watched(), "0" * 32
    with folder.opened() as store:
        one, two, three = studies.invited(store, 3)
    with served(folder, watch) as url:
        for link, end in ((one, "done"), (wrong, "not-taken")):
            browser.get(f"{url}#{link}")  # in the same tab
            send(browser, end)
        assert "No other form is made with this link" in browser.find_element(By.ID, "app").text
        assert broken(browser) == []
        for link, end in ((one, "answered"), (wrong, "not-taken")):
            browser.get(f"{url}#{link}")
            wait_for(browser, end)
            assert absent(browser, "table, #receipt, #withdraw")
        assert len(watch.posts()) == 2
        assert sorted(each["status"] for each in stored(browser)) == [201, 403]
        # A form that waits is delivered by the next person's page, which shows nothing of it.
        watch.refuse = math.inf
        browser.get(f"{url}#{two}")
        send(browser, "retry")
        browser.get("about:blank")
        watch.refuse = 0
        browser.get(f"{url}#{three}")
        wait_for(browser, "introduction")
        assert len(set(watch.posts())) == 3
        send(browser, "done")
        assert len(set(watch.posts())) == 4
        forget(browser)
    with folder.opened() as store:
        assert (store.totals().records, store.totals().spent) == (3, 3)


def test_on_a_shared_device_a_saved_page_keeps_a_form_until_its_file_is_saved(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(page_bytes(example_folder(tmp_path, shared_device="true").study))
    browser.get(page.as_uri())
    send(browser, "file")
    browser.refresh()
    wait_for(browser, "file")
    assert absent(browser, "table, #receipt")
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "deny"})
    browser.find_element(By.ID, "file").click()
    patient(browser).until(lambda _: stored(browser) == [])
    browser.refresh()
    wait_for(browser, "introduction")


def test_without_storage_the_page_says_what_a_second_form_costs(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder, watch = example_folder(tmp_path), Watched(refuse=1)
    with served(folder, watch) as url, first(browser, NO_STORAGE):
        browser.get(url)
        wait_for(browser, "introduction")
        note = browser.find_element(By.CLASS_NAME, "note").text
        assert "Please answer only once" in note
        send(browser, "done")
        assert len(watch.posts()) == 2
        assert len(set(watch.posts())) == 1


@pytest.mark.parametrize("when", ["introduction", "questions"])
def test_a_full_storage_is_said_and_one_record_is_sent(
    browser: webdriver.Chrome, tmp_path: Path, when: str
) -> None:
    folder, watch = example_folder(tmp_path), Watched(refuse=math.inf)
    with served(folder, watch) as url:
        full = {"origin": url.rstrip("/"), "quotaSize": 1}
        try:
            if when == "introduction":
                browser.execute_cdp_cmd("Storage.overrideQuotaForOrigin", full)
            browser.get(url)
            wait_for(browser, "introduction")
            said = "Please answer only once" in browser.find_element(By.ID, "app").text
            assert said == (when == "introduction")
            if when == "questions":
                browser.execute_script(FULL)
            send(browser, "retry")
            patient(browser).until(
                lambda shown: (
                    "do not answer again" in shown.find_element(By.CLASS_NAME, "note").text
                )
            )
            assert browser.execute_script(WARNS)  # closing the tab would lose the draw
            watch.refuse = 1
            wait_for(browser, "done")
            assert not browser.execute_script(WARNS)
        finally:
            del full["quotaSize"]
            browser.execute_cdp_cmd("Storage.overrideQuotaForOrigin", full)
        assert len(watch.posts()) >= 2
        assert len(set(watch.posts())) == 1


@pytest.mark.parametrize(
    "moment", ["drawn", "sent", pytest.param("confirmed", marks=pytest.mark.weekly)]
)
def test_a_killed_browser_sends_the_same_record_again(tmp_path: Path, moment: str) -> None:
    folder, watch = example_folder(tmp_path), Watched(lose=math.inf if moment == "sent" else 0)
    profile = tmp_path / "profile"
    with served(folder, watch) as url:
        one = launched(f"--user-data-dir={profile}")
        with first(one, NOTHING_IS_SENT * (moment == "drawn")):
            one.get(url)
        fill(one)
        one.find_element(By.ID, "send").click()
        if moment == "drawn":
            while not stored(one):
                time.sleep(0.005)
            assert watch.posts() == []
        else:
            wait_for(one, "retry" if moment == "sent" else "done")
        kill(one, profile)
        watch.lose = 0
        other = launched(f"--user-data-dir={profile}")
        try:
            other.get(url)
            wait_for(other, "answered" if moment == "confirmed" else "done")
        finally:
            other.quit()
        assert len(watch.posts()) >= 2 if moment == "sent" else len(watch.posts()) == 1
        assert len(set(watch.posts())) == 1
    with folder.opened() as store:
        assert store.totals().records == 1


def altered(study: Study, change: Callable[[dict[str, Any]], None]) -> bytes:
    plain = json.loads(study.content)
    change(plain)
    return page_bytes(Study(study_bytes(plain)))


def lower_epsilon(plain: dict[str, Any]) -> None:
    plain["mechanism"]["epsilon"] *= 0.99


def lower_attribute(plain: dict[str, Any]) -> None:
    plain["mechanism"]["attributes"][2]["epsilon"] *= 0.99


def one_bit(plain: dict[str, Any]) -> None:
    """Raise the largest density by a bit that makes ε exceed the promise, by some 1e-10."""
    densities = plain["mechanism"]["blocks"][0]["law"]["densities"]
    largest = max(int(density, 16) for density in densities)
    lowest = largest.bit_length() - 34
    bit = next(bit for bit in range(lowest, lowest + 34) if not largest >> bit & 1)
    densities[densities.index(f"{largest:x}")] = f"{largest | 1 << bit:x}"


def one_bit_with_its_digest(plain: dict[str, Any]) -> None:
    one_bit(plain)
    plain["law_digest"] = law_digest(plain["mechanism"]["blocks"], plain["gates"])


@pytest.mark.parametrize(
    "change", [lower_epsilon, lower_attribute, one_bit, one_bit_with_its_digest]
)
def test_a_study_that_promises_too_much_is_asked_by_nobody(
    browser: webdriver.Chrome, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    study = example_folder(tmp_path).study
    page = tmp_path / "page.html"
    page.write_bytes(altered(study, change))
    browser.get(page.as_uri())
    wait_for(browser, "refused")
    assert absent(browser, "input, button")


def test_a_saved_page_writes_a_record_that_can_be_added(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder = example_folder(tmp_path)
    page = tmp_path / "page.html"
    page.write_bytes(page_bytes(folder.study))
    browser.get(page.as_uri())
    send(browser, "file")
    read = "const d = arguments[1]; fetch(arguments[0]).then(r => r.text()).then(d, () => d(''))"
    link = browser.find_element(By.ID, "file").get_attribute("href")
    assert browser.execute_async_script(read, link) == ""  # no request is allowed, not even this
    (kept,) = stored(browser)
    forget(browser)
    record = tmp_path / "record.json"
    record.write_text(kept["body"])
    assert add(folder, [record], TODAY) == {"stored": 1}


def test_the_whole_form_works_by_keyboard_in_both_directions(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder, watch = example_folder(tmp_path), Watched()
    with served(folder, watch) as url:
        browser.get(url)
        wait_for(browser, "introduction")
        script = "const s = document.getElementById('language'); s.value = 'ar'; "
        browser.execute_script(script + "s.dispatchEvent(new Event('change'))")
        assert browser.execute_script("return document.documentElement.dir") == "rtl"
        press(browser, lambda focus: focus == "agree", Keys.ENTER)
        wait_for(browser, "questions")
        for q in (0, 1, 2):
            press(browser, lambda focus, q=q: focus == f"q{q}-0", Keys.SPACE)
        press(browser, lambda focus: focus == "q3-number", "8")
        press(browser, lambda focus: focus == "q4-0", Keys.SPACE)
        press(browser, lambda focus: focus == "send", Keys.ENTER)
        wait_for(browser, "done")
        assert browser.execute_script("return document.activeElement.tagName") == "H1"
        assert len(watch.posts()) == 1


def press(browser: webdriver.Chrome, there: Callable[[str], bool], key: str) -> None:
    """Go on with the tab key to an element, and press a key on it."""
    for _ in range(40):
        element = browser.switch_to.active_element
        if there(element.get_attribute("id") or ""):
            element.send_keys(key)
            return
        element.send_keys(Keys.TAB)
    raise AssertionError("the tab key does not lead there")


@pytest.mark.parametrize(("language", "widths"), [("en", (320, 1280)), ("ar", (320,))])
def test_no_rule_of_accessibility_is_broken_in_any_state(
    browser: webdriver.Chrome, tmp_path: Path, language: str, widths: tuple[int, ...]
) -> None:
    for name in ("open", "invited"):
        (tmp_path / name).mkdir()
    watch, page = Watched(refuse=math.inf), tmp_path / "page.html"
    invited = example_folder(tmp_path / "invited", respondents='"invited"')
    agent = browser.execute_script("return navigator.userAgent")
    tell = "Emulation.setUserAgentOverride"
    browser.execute_cdp_cmd(tell, {"userAgent": agent, "acceptLanguage": language})
    try:
        with served(example_folder(tmp_path / "open"), watch) as url:
            browser.get(url)
            wait_for(browser, "introduction")
            assert browser.execute_script("return document.documentElement.lang") == language
            browser.find_element(By.CSS_SELECTOR, "#try summary").click()
            assert broken(browser, widths) == []
            browser.find_element(By.ID, "agree").click()
            for summary in browser.find_elements(By.CSS_SELECTOR, "summary"):
                summary.click()
            browser.find_element(By.ID, "send").click()  # lists what has no answer
            assert broken(browser, widths) == []
            browser.get("about:blank")
            browser.get(url)
            send(browser, "retry")
            assert broken(browser, widths) == []
            watch.refuse = 0
            wait_for(browser, "done")
            browser.find_element(By.CSS_SELECTOR, "#withdraw summary").click()
            assert broken(browser, widths) == []
            browser.refresh()
            wait_for(browser, "answered")
            assert broken(browser, widths) == []
        with served(invited, Watched()) as url:
            browser.get(url)
            wait_for(browser, "no-token")
            assert broken(browser, widths) == []
            page.write_bytes(page_bytes(invited.study))
            for address, end in ((url, "not-taken"), (page.as_uri(), "file")):
                browser.get("about:blank")
                browser.get(f"{address}#{'0' * 32}")
                send(browser, end)
                assert broken(browser, widths) == []
            forget(browser)
        page.write_bytes(altered(invited.study, lower_epsilon))
        browser.get(page.as_uri())
        wait_for(browser, "refused")
        assert broken(browser, widths) == []
    finally:
        browser.execute_cdp_cmd(tell, {"userAgent": agent, "acceptLanguage": ""})
    browser.execute_script("document.body.append(Object.assign(new Image(), {src: 'x'}))")
    assert broken(browser, widths) != []  # an image without a text


def test_the_stewards_page_is_let_in_once_and_breaks_no_rule(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    folder = example_folder(tmp_path)
    studies.fill(folder, 6000)
    with studies.stewarded(folder) as url:
        browser.get(f"{url}enter/{folder.secret}")
        assert browser.current_url == url  # the secret is not where one may look over a shoulder
        assert browser.execute_script("return document.cookie") == ""
        browser.find_element(By.CSS_SELECTOR, "#and option[value=lonely]").click()
        browser.find_element(By.TAG_NAME, "button").click()
        patient(browser).until(lambda shown: "and=lonely" in shown.current_url)
        assert broken(browser) == []
        # On a phone every cell is seen whole: nothing is cut, and nothing has to be pushed aside.
        with sized(browser, 320):
            right = browser.execute_script(
                "return [...document.querySelectorAll('.estimates tbody :is(th, td, svg)')]"
                ".map((cell) => [cell.getBoundingClientRect().right, cell.scrollWidth, "
                "cell.clientWidth, document.documentElement.clientWidth])"
            )
            assert len(right) >= 6 * 6
            assert all(end <= width for end, _, _, width in right)
            assert all(inner <= outer for _, inner, outer, _ in right if inner)
        browser.get("about:blank")
        browser.get(url)  # by the cookie
        assert browser.find_elements(By.TAG_NAME, "table")
        browser.find_element(By.NAME, "sure").click()
        browser.find_element(By.CSS_SELECTOR, "form[action='/close'] button").click()
        patient(browser).until(lambda shown: absent(shown, "[name=sure]"))
        assert "closed" in browser.find_element(By.TAG_NAME, "table").text
        browser.delete_all_cookies()
        browser.get(url)
        assert "open the page by the address" in browser.find_element(By.TAG_NAME, "body").text


def test_the_form_works_enlarged_and_in_forced_colours(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    """200 % of a screen of 1,280 px is 640 px of twice the density; colours are the system's."""
    folder, watch = example_folder(tmp_path), Watched()
    forced = {"features": [{"name": "forced-colors", "value": "active"}]}
    colours = "const s = getComputedStyle(arguments[0]); return [s.backgroundColor, s.borderColor]"

    try:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", forced)
        with served(folder, watch) as url, sized(browser, 640, 450, dense=2):
            browser.get(url)
            wait_for(browser, "introduction")
            assert browser.execute_script("return matchMedia('(forced-colors: active)').matches")
            assert broken(browser, ()) == []
            browser.find_element(By.ID, "agree").click()
            browser.find_element(By.CSS_SELECTOR, "fieldset summary").click()
            same, other = (
                browser.execute_script(colours, browser.find_element(By.CSS_SELECTOR, dot))
                for dot in (".dots .same", ".dots i:not(.same)")
            )
            assert same[0] != other[0]  # the dots differ without the page's own colours
            assert other[1] == same[0]
            assert broken(browser, ()) == []
            browser.get("about:blank")
            browser.get(url)
            send(browser, "done")
            assert broken(browser, ()) == []
        assert len(watch.posts()) == 1
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


PAIRS = int(os.environ.get("PAIRS", "0"))


@pytest.mark.slow
@pytest.mark.skipif(PAIRS < 30, reason="takes two seconds a pair: just opposite")
def test_when_the_request_starts_tells_nothing_of_the_answers(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    """Pairs of opposite answers, in random order: which of them starts later is a fair coin, at a
    false alarm in a million (Hoeffding), up to differences below what the browser's clock shows."""
    folder, watch, starts = example_folder(tmp_path), Watched(), {0: [], -1: []}
    with served(folder, watch) as url, first(browser, WATCHED_BITS):
        for swapped in np.random.default_rng().integers(0, 2, PAIRS):
            for choice in (0, -1) if swapped else (-1, 0):
                browser.get(url)
                fill(browser, choice, hours="4" if choice else "9")
                clock = "document.getElementById('send').addEventListener('click', "
                browser.execute_script(clock + "e => { globalThis.clicked = e.timeStamp; }, true)")
                browser.find_element(By.ID, "send").click()
                wait_for(browser, "done")
                starts[choice].append(browser.execute_script("return left - clicked"))
                forget(browser)
                browser.get("about:blank")
    later = np.sign(np.array(starts[0]) - np.array(starts[-1]))
    print(f"\n{PAIRS} pairs: {int((later > 0).sum())} later, {int((later < 0).sum())} sooner")
    assert abs(later.sum()) <= np.sqrt(2 * PAIRS * np.log(2e6))
    assert {len(body) for body in watch.posts()} == {module.submission_size(folder.study)}
