"""Adult released again and again: on people made up here, and the stated figures without people."""

import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from deniable.laws.patterns import attenuation
from deniable.schema import Schema
from deniable_studies import peers
from deniable_studies.adult import CATEGORICAL, COLUMNS, DOMAINS
from deniable_studies.adult_release import (
    DRAWN,
    OURS,
    equal_attenuation,
    mechanism_for,
    population_sampling,
    release_again,
    run_peers,
    sampling_error,
)
from deniable_studies.adult_release_claims import rounded_twice, stated_claim
from deniable_studies.adult_release_study import run
from deniable_studies.study import Findings, Setting, Verdict
from deniable_studies.values import csv_text


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
    return run(Setting(quick=True, adult=write_people(tmp_path_factory.mktemp("a") / "a", 3000)))


def test_errors_measured_on_made_up_people_are_those_expected(findings: Findings) -> None:
    (claim,) = [c for c in findings.claims if c.statement.startswith("The errors of a release")]
    assert claim.verdict is Verdict.REPRODUCED
    errors = findings.tables[0]
    assert len(errors.rows) == 2 * (2 * len(OURS) + 2) + 2


def test_a_wrong_expectation_would_be_seen(findings: Findings) -> None:
    for row in findings.tables[0].rows:
        values = dict(zip(findings.tables[0].columns, row, strict=True))
        if values["method"] == "kronecker" and values["tables"] == "pairs":
            doubled = 2 * float(values["expected_mean"])
            assert abs(float(values["measured_mean"]) - doubled) > 5 * float(
                values["standard_error"]
            )


def test_the_stated_variances_are_within_a_unit_and_were_rounded_twice() -> None:
    claim = stated_claim()
    assert claim.verdict is Verdict.PARTLY
    assert "rounded twice" in claim.why
    assert rounded_twice(7.4485e-4) == "7.5e-04"
    assert rounded_twice(7.444e-4) == "7.4e-04"


SIZES = (2, 3, 5)


@pytest.mark.parametrize("method", DRAWN)
def test_every_method_keeps_the_total_but_rsfd_as_stated(method: str) -> None:
    mechanism = mechanism_for(method, Schema.anonymous(SIZES), 2.0)
    if method == "rsfd-as-stated":
        assert mechanism.epsilon == pytest.approx(math.log(3 * math.expm1(2) + 1), rel=1e-9)
    else:
        assert mechanism.epsilon <= 2.0 + 1e-12
        assert mechanism.epsilon == pytest.approx(2.0, rel=1e-5)


def test_equal_lambda_spends_the_total_and_not_more() -> None:
    strength = equal_attenuation(SIZES, 2.0)
    total = sum(math.log(1 + a * strength / (1 - strength)) for a in SIZES)
    assert total <= 2.0
    assert total == pytest.approx(2.0, abs=1e-11)


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


def test_the_same_seed_draws_the_same_releases() -> None:
    schema = Schema.anonymous(SIZES)
    columns = [np.random.default_rng(1).integers(0, a, 500).astype(np.uint8) for a in SIZES]
    first, again, other = (
        release_again(columns, schema, "balanced", 3.0, 3, Setting(seed=seed), [0])
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_page_without_the_peers_says_so(findings: Findings) -> None:
    if peers.available():
        pytest.skip("multi-freq-ldpy is installed here")
    assert "was not run" in findings.remarks[0] or "were not run" in findings.remarks[0]
    assert csv_text(findings.tables[1]).count("\n") == 1


def test_peers_are_asked_as_they_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins with the documented signatures, which answer with the truth: only the call, and
    the level that RS+FD is asked for, are tried here."""
    asked: list[tuple[str, float]] = []

    def module(name: str, prefix: str) -> ModuleType:
        found = ModuleType(name)

        def client(input_tuple, lst_k, d, epsilon):
            assert all(type(code) is int for code in input_tuple)
            assert list(lst_k) == list(SIZES)
            assert d == len(SIZES) == len(input_tuple)
            return tuple(input_tuple)

        def aggregate(reports_tuple, lst_k, d, epsilon):
            asked.append((prefix, epsilon))
            counts = [
                np.bincount([r[i] for r in reports_tuple], minlength=lst_k[i]) for i in range(d)
            ]
            return np.array([c / c.sum() for c in counts], dtype="object")

        setattr(found, f"{prefix}_GRR_Client", client)
        setattr(found, f"{prefix}_GRR_Aggregator_MI", aggregate)
        return found

    package, inner = ModuleType("multi_freq_ldpy"), ModuleType("multi_freq_ldpy.mdim_freq_est")
    monkeypatch.setitem(sys.modules, "multi_freq_ldpy", package)
    monkeypatch.setitem(sys.modules, "multi_freq_ldpy.mdim_freq_est", inner)
    for name, prefix in (("RSpFD", "RSpFD"), ("SMP", "SMP"), ("SPL", "SPL")):
        setattr(inner, f"{name}_solution", module(f"{name}_solution", prefix))
    monkeypatch.setattr(peers, "seed", lambda _: None)
    columns = [np.random.default_rng(1).integers(0, a, 50).astype(np.uint8) for a in SIZES]
    runs = run_peers(columns, SIZES, 2.0, 1, Setting())
    assert [r.measured for r in runs] == pytest.approx([0, 0, 0, 0])
    nominal = math.log(1 + math.expm1(2.0) / 3)
    expected = [("SPL", 2.0), ("SMP", 2.0), ("RSpFD", nominal), ("RSpFD", 2.0)]
    assert [name for name, _ in asked] == [name for name, _ in expected]
    assert [e for _, e in asked] == pytest.approx([e for _, e in expected])


def test_the_real_peers_err_as_predicted() -> None:
    pytest.importorskip("multi_freq_ldpy")
    n, sizes, epsilon = 20_000, [4, 4, 4], 3.0
    columns = [np.random.default_rng(1).integers(0, 4, n) for _ in sizes]
    runs = {r.method: r.measured for r in run_peers(columns, sizes, epsilon, 6, Setting())}
    phi = {"spl": attenuation(4, 1.0), "rsfd": attenuation(4, epsilon) / 3}
    for method, value in phi.items():
        expected = (1 - 1 / 4) / 4 * (1 / value**2 - 1) / n
        assert runs[method] == pytest.approx(expected, rel=0.7)
    assert runs["smp"] == pytest.approx(sampling_error(sizes, [0.25] * 3, epsilon, n), rel=0.7)
