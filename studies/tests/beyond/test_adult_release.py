"""Adult released again and again: on people made up here, and the stated figures without people."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deniable.laws.response import attenuation
from deniable.schema import Schema
from deniable_studies.adult import CATEGORICAL, COLUMNS, DOMAINS
from deniable_studies.beyond import peers
from deniable_studies.beyond.adult_release import (
    STUDY,
    population_sampling,
    rounded_twice,
    sampling_error,
    stated,
)
from deniable_studies.beyond.releases import FORMS, OURS, release_again
from deniable_studies.study import Findings, Setting, Verdict


def write_people(path: Path, n: int) -> Path:
    """A file like UCI's, with people made up at random."""
    random = np.random.default_rng(8)
    lines = []
    for _ in range(n):
        person = dict.fromkeys(COLUMNS, "1")
        person |= {name: DOMAINS[name][random.integers(len(DOMAINS[name]))] for name in CATEGORICAL}
        lines.append(", ".join(person[name] for name in COLUMNS))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return STUDY.run(
        Setting(quick=True, adult=write_people(tmp_path_factory.mktemp("a") / "a", 3000))
    )


def test_errors_measured_on_made_up_people_are_those_expected(findings: Findings) -> None:
    (claim,) = [c for c in findings.claims if c.statement.startswith("The errors of a release")]
    assert claim.verdict is Verdict.REPRODUCED
    errors = findings.tables[0]
    at = [errors.columns.index(name) for name in ("method", "tables")]
    measured = Counter(tuple(row[place] for place in at) for row in errors.rows)
    for method in (*OURS, *FORMS):
        assert measured[method, "marginals"] == 2  # totals
        # Forms for shares alone ask some pairs at one of them, and none at the other.
        assert measured[method, "pairs"] == (1 if method == "forms-shares" else 2)
    assert not any(tables == "pairs" for method, tables in measured if method.startswith("rsfd"))


def test_a_wrong_expectation_would_be_seen() -> None:
    columns = [np.random.default_rng(1).integers(0, a, 3000).astype(np.uint8) for a in (2, 3, 5)]
    schema = Schema.anonymous((2, 3, 5))
    released = release_again(columns, schema, "kronecker", 8.0, 60, Setting(quick=True), [0])
    for errors in released.kinds.values():
        assert abs(errors.deviation) < 5
        assert abs(replace(errors, expected=2 * errors.expected).deviation) > 5


def test_the_stated_variances_are_within_a_unit_and_were_rounded_twice() -> None:
    claim = STUDY.claim("stated", stated())
    assert claim.verdict is Verdict.PARTLY
    assert "rounded twice" in claim.why
    assert rounded_twice(7.4485e-4) == "7.5e-04"
    assert rounded_twice(7.444e-4) == "7.4e-04"


def test_the_predicted_error_of_smp_is_that_of_answers_drawn_by_hand() -> None:
    random = np.random.default_rng(3)
    n, k, a, epsilon = 600, 3, 4, 1.5
    truth = random.integers(0, a, n)
    shares = np.bincount(truth, minlength=a) / n
    phi = attenuation(a, epsilon)
    keep = phi + (1 - phi) / a
    errors = []
    for _ in range(4000):
        answering = truth[random.random(n) < 1 / k]
        lies = (answering + random.integers(1, a, len(answering))) % a
        sent = np.where(random.random(len(answering)) < keep, answering, lies)
        estimate = (np.bincount(sent, minlength=a) / len(sent) - (1 - phi) / a) / phi
        errors.append(np.mean((estimate - shares) ** 2))
    expected = sampling_error([a] * k, [float(shares @ shares)] * k, epsilon, n)
    assert np.mean(errors) == pytest.approx(expected, rel=0.03)
    assert population_sampling([a] * k, epsilon, n) == pytest.approx(
        (1 - 1 / a) / a * k / (phi**2 * n)
    )


def test_a_page_without_the_peers_says_so(findings: Findings) -> None:
    if peers.available():
        pytest.skip("multi-freq-ldpy is installed here")
    assert "was not run" in findings.remarks[0] or "were not run" in findings.remarks[0]
    assert findings.table("peers").csv_text().count("\n") == 1


def test_every_figure_can_be_drawn(findings: Findings, draw_all) -> None:
    draw_all(findings)
