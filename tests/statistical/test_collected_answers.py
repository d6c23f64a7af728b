"""What is estimated from a study's store holds the truth about those who answered it."""

import http.client
import itertools
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray
from selenium.webdriver.common.by import By

from deniable.collect.collector import submission_of
from deniable.collect.counting import collected_by
from deniable.collect.folder import StudyFolder
from deniable.collect.releasing import unpacked
from deniable.collect.watching import leverage
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Tabulation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.prediction import Target
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from statistical.budget import BUDGET
from statistical.coverage import Columns, check_coverage, frequencies, intervals, tables
from unit.collect.chromium import CHROMIUM, DRIVER, forget, launched, wait_for
from unit.collect.studies import example_folder, served

TARGETS: tuple[Target, ...] = ("table", "population")


def population(mechanism: Mechanism) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Shares of all records: habits that go together."""
    sizes = mechanism.schema.n_categories
    random = np.random.default_rng(20)
    return random.dirichlet(np.full(int(np.prod(sizes)), 0.4)), sizes


def drawn_from(mechanism: Mechanism, count: int) -> Columns:
    shares, sizes = population(mechanism)
    cells = np.random.default_rng().choice(len(shares), size=count, p=shares)
    return [column.astype(np.uint8) for column in np.unravel_index(cells, sizes)]


def truth(mechanism: Mechanism, names: Sequence[str]) -> NDArray[np.float64]:
    """Shares of the population."""
    shares, sizes = population(mechanism)
    kept = mechanism.schema.positions(names)
    others = tuple(i for i in range(len(sizes)) if i not in kept)
    return np.asarray(shares.reshape(sizes).sum(axis=others))


def check_estimates(name: str, folder: StudyFolder, answered: Columns) -> tuple[int, int]:
    """Fail if an estimate of one question or two is farther from the truth, of those who answered
    or of the population, than Hoeffding's inequality allows: a record moves it by no more than its
    leverage. Return how many intervals held the truth, and of how many."""
    mechanism, n = folder.study.design.mechanism, len(answered[0])
    columns = mechanism.schema.columns
    asked = [*itertools.combinations(columns, 1), *itertools.combinations(columns, 2)]
    share = BUDGET.spend(f"collected: {name}") / (len(TARGETS) * len(asked))
    release, held, cells = collected_by(folder), 0, 0
    for target, names in itertools.product(TARGETS, asked):
        (found,) = Shares(names, target=target).run(release)
        assert found.n_records == n
        true = (
            frequencies(answered, mechanism, names)
            if target == "table"
            else truth(mechanism, names)
        )
        bound = leverage(Channel(mechanism, names)) * np.sqrt(np.log(2 * true.size / share) / 2 / n)
        assert (np.abs(found.unbiased - true) <= bound).all(), (target, names)
        low, high = found.confidence_interval(0.95)
        held += int(((low <= true) & (true <= high)).sum())
        cells += true.size
    return held, cells


def post_all(url: str, bodies: Sequence[bytes]) -> None:
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        for body in bodies:
            connection.request("POST", "/submissions", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            assert response.status == 201


@pytest.mark.weekly
def test_intervals_of_what_twenty_thousand_people_posted_cover(tmp_path: Path) -> None:
    """All of them together, and as a hundred studies of two hundred."""
    people, studies = 20_000, 100
    folder = example_folder(tmp_path)
    study, mechanism = folder.study, folder.study.design.mechanism
    answered = drawn_from(mechanism, people)
    codes = Randomizer(mechanism, SystemRandomness()).randomize(answered)
    names = SystemRandomness().bits(np.uint8, 32 * people).tobytes().hex()
    bodies = [
        json.dumps(
            {
                "study": study.identity,
                "token": "",
                "receipt": names[64 * person : 64 * person + 64],
                "record": study.encode(row),
            },
            separators=(",", ":"),
        ).encode()
        for person, row in enumerate(zip(*(column.tolist() for column in codes), strict=True))
    ]
    with served(folder, per_minute=10**9) as url, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda part: post_all(url, bodies[part::8]), range(8)))
    held, cells = check_estimates("posted", folder, answered)
    print(f"\n{held} of {cells} intervals of {people} posted records hold the truth")

    # As they lie in the store, in the order of the people.
    with folder.opened() as store, store._engine.connect() as connection:
        taken = [submission_of(study, body) for body in bodies]
        stored, _ = store._records(connection).known([(each.id, b"") for each in taken])
        packed = b"".join(stored[each.id] for each in taken)
    rows = np.frombuffer(packed, np.uint8).reshape(people, study.record_size)
    kept = list(unpacked(study, rows).values())
    each = people // studies
    for question, target in itertools.product(
        [("smokes",), ("lonely",), ("smokes", "lonely")], TARGETS
    ):
        share = BUDGET.spend(f"collected: {question}, {target}")
        answer = intervals(mechanism, [question], target)
        inside = []
        counts = tables(kept, mechanism, question, studies)
        for number, table in enumerate(counts):
            low, high = answer(0, Tabulation.from_counts(table))
            own = [column[number * each : (number + 1) * each] for column in answered]
            true = (
                frequencies(own, mechanism, question)
                if target == "table"
                else truth(mechanism, question)
            )
            inside.append(((low <= true) & (true <= high)).ravel())
        covered = np.array(inside)
        print(f"{' and '.join(question)}, {target}: {covered.mean():.3f} of {covered.size}")
        check_coverage(covered, share, slack=0.02)


RESPONDENTS = int(os.environ.get("RESPONDENTS", "0"))
HOURS = ("4", "6", "8", "10")  # of sleep, one in each interval


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and its driver")
@pytest.mark.skipif(RESPONDENTS < 100, reason="takes a second a respondent: just respondents")
def test_intervals_of_what_people_clicked_cover(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    answered = drawn_from(folder.study.design.mechanism, RESPONDENTS)
    with served(folder) as url, launched() as browser:
        for codes in zip(*(column.tolist() for column in answered), strict=True):
            browser.get(url)
            wait_for(browser, "introduction")
            browser.find_element(By.ID, "agree").click()
            for question, code in enumerate(codes):
                if question == 3:
                    browser.find_element(By.ID, "q3-number").send_keys(HOURS[code])
                else:
                    browser.find_element(By.ID, f"q{question}-{code}").click()
            browser.find_element(By.ID, "send").click()
            wait_for(browser, "done")
            forget(browser)
            browser.get("about:blank")
    held, cells = check_estimates("clicked", folder, answered)
    print(f"\n{held} of {cells} intervals of {RESPONDENTS} clicked records hold the truth")
