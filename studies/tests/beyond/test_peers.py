"""The public package: how it is called, and whether it errs as predicted where it is installed."""

import math
import sys
from types import ModuleType

import numpy as np
import pytest

from deniable.laws.response import attenuation
from deniable_studies.beyond import peers
from deniable_studies.beyond.adult_release import sampling_error
from deniable_studies.beyond.peers import run_peers
from deniable_studies.study import Setting

SIZES = (2, 3, 5)


def test_peers_are_asked_as_they_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins with the documented signatures, which answer with the truth: only the call, and
    the level that RS+FD is asked for, are tried here."""
    asked: list[tuple[str, float]] = []

    def module(name: str, prefix: str, *oracles: str) -> ModuleType:
        made = ModuleType(name)

        def client(input_tuple, lst_k, d, epsilon):
            assert all(type(code) is int for code in input_tuple)
            assert list(lst_k) == list(SIZES)
            assert d == len(SIZES) == len(input_tuple)
            return tuple(input_tuple)

        def aggregate(reports_tuple, lst_k, d, epsilon):
            asked.append((prefix, epsilon))  # the oracles of SMP are called alike
            counts = [
                np.bincount([r[i] for r in reports_tuple], minlength=lst_k[i]) for i in range(d)
            ]
            return np.array([c / c.sum() for c in counts], dtype="object")

        for oracle in ("GRR", *oracles):
            setattr(made, f"{prefix}_{oracle}_Client", client)
            setattr(made, f"{prefix}_{oracle}_Aggregator_MI", aggregate)
        return made

    package, inner = ModuleType("multi_freq_ldpy"), ModuleType("multi_freq_ldpy.mdim_freq_est")
    monkeypatch.setitem(sys.modules, "multi_freq_ldpy", package)
    monkeypatch.setitem(sys.modules, "multi_freq_ldpy.mdim_freq_est", inner)
    for prefix, oracles in (("RSpFD", ()), ("SMP", ("ADP", "SS", "LH")), ("SPL", ())):
        setattr(inner, f"{prefix}_solution", module(f"{prefix}_solution", prefix, *oracles))
    monkeypatch.setattr(peers, "seed", lambda _: None)
    columns = [np.random.default_rng(1).integers(0, a, 50).astype(np.uint8) for a in SIZES]
    runs = run_peers(columns, SIZES, 2.0, 1, Setting())
    assert [r.measured for r in runs] == pytest.approx([0] * 7)
    nominal = math.log(1 + math.expm1(2.0) / 3)
    expected = [("SPL", 2.0), *[("SMP", 2.0)] * 4, ("RSpFD", nominal), ("RSpFD", 2.0)]
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
