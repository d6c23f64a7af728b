"""Public baselines for shares of several attributes: SPL, SMP and RS+FD of multi-freq-ldpy.

The package (Arcolezi, Couchot, Gambs, Palamidessi and Zolfaghari, 2022) is the optional extra
``peers``. Its functions are called as documented, one person after the other, with k-ary randomized
response ("GRR"), for SMP also with subset selection ("SS"), local hashing ("LH") and the better of
k-ary response and unary encoding ("ADP"), and with matrix inversion ("MI"). It estimates shares of
single attributes only, and sets negative estimates to zero and divides by the sum, so that its
estimates are biased. It has no RS+RFD.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable_studies.beyond.baselines import RSFD, RSFD_STATED, fake_data_given_rest
from deniable_studies.study import Setting

PACKAGE = "multi-freq-ldpy"

SPL = "spl"
SMP = {"smp": "GRR", "smp-better": "ADP", "smp-subset": "SS", "smp-hashing": "LH"}
"""SMP, by the package's names for the response to its one question."""

NAMES = (SPL, *SMP, RSFD)


def available() -> bool:
    """Return whether the package is installed."""
    return find_spec("multi_freq_ldpy") is not None


def installed_version() -> str:
    """Return the installed version, such as "0.2.5"."""
    return version(PACKAGE)


@dataclass(frozen=True)
class _Solution:
    """A method of the package.

    Args:
        client: (tuple of codes, sizes, d, ε) → one person's message.
        aggregate: (messages, sizes, d, ε) → one array of shares per attribute.
    """

    client: Callable[..., Any]
    aggregate: Callable[..., Any]


def _solution(name: str) -> _Solution:
    from multi_freq_ldpy.mdim_freq_est import RSpFD_solution, SMP_solution, SPL_solution

    if name == SPL:
        return _Solution(SPL_solution.SPL_GRR_Client, SPL_solution.SPL_GRR_Aggregator_MI)
    if name in SMP:
        oracle = f"SMP_{SMP[name]}"
        client, aggregate = f"{oracle}_Client", f"{oracle}_Aggregator_MI"
        return _Solution(getattr(SMP_solution, client), getattr(SMP_solution, aggregate))
    return _Solution(RSpFD_solution.RSpFD_GRR_Client, RSpFD_solution.RSpFD_GRR_Aggregator_MI)


def shares(
    name: str, columns: Sequence[NDArray[Any]], n_categories: Sequence[int], epsilon: float
) -> list[NDArray[np.float64]]:
    """Return one release's estimated shares, one array per attribute.

    Args:
        name: one of ``NAMES``.
        columns: codes per attribute, shape (n,) each.
        n_categories: of the attributes, shape (k,).
        epsilon: the package's "privacy guarantee", in nats.
    """
    solution = _solution(name)
    sizes, d = [int(n) for n in n_categories], len(n_categories)
    people = np.stack(columns, axis=1).tolist()
    sent = [solution.client(person, sizes, d, epsilon) for person in people]
    found = solution.aggregate(sent, sizes, d, epsilon)
    return [np.asarray(values, dtype=np.float64) for values in found]


def seed(value: int) -> None:
    """Make the package's draws repeatable: it draws from numpy's and numba's global generators."""
    import numba

    numba.njit(_seed_global)(value % 2**32)
    _seed_global(value % 2**32)


def _seed_global(value: int) -> None:
    np.random.seed(value)  # noqa: NPY002 - the generator that the package uses


@dataclass(frozen=True)
class PeerRun:
    """A baseline as the public package runs it.

    Args:
        method: ``spl``, one of ``SMP``, ``rsfd`` (requested such that the record's ε is the
            total) or ``rsfd-as-stated`` (requested with the total, so that the record's ε is above
            it).
        asked: the total, in nats.
        measured: mean squared error of marginals (negative estimates set to 0, then divided by the
            sum).
        standard_error: of it; NaN from one release.
        n_releases: how many.
    """

    method: str
    asked: float
    measured: float
    standard_error: float
    n_releases: int


def run_peers(
    columns: Sequence[NDArray[Any]],
    n_categories: Sequence[int],
    epsilon: float,
    n_releases: int,
    setting: Setting,
) -> list[PeerRun]:
    """Return the errors of the public package's methods, which has to be installed.

    Args:
        columns: codes per attribute, shape (n,) each.
        n_categories: shape (k,).
        epsilon: the total, in nats.
        n_releases: of each method.
        setting: for seed and progress.
    """
    truths = [
        np.bincount(c, minlength=a) / len(c) for c, a in zip(columns, n_categories, strict=True)
    ]
    # At ln(1 + (e^ε − 1)/k) RS+FD answers at ε, which is then the record's level.
    nominal = fake_data_given_rest(len(n_categories), epsilon)
    runs = [
        (SPL, SPL, epsilon),
        *((name, name, epsilon) for name in SMP),
        (RSFD, RSFD, nominal),
        (RSFD_STATED, RSFD, epsilon),
    ]
    done = []
    for place, (method, name, asked) in enumerate(runs):
        seed(setting.release_seed(9, place))
        errors = []
        for release in range(n_releases):
            with setting.step(place * n_releases + release, len(runs) * n_releases):
                estimates = shares(name, columns, n_categories, asked)
                squares = [np.mean((e - t) ** 2) for e, t in zip(estimates, truths, strict=True)]
                errors.append(float(np.mean(squares)))
        spread = float(np.std(errors, ddof=1)) if n_releases > 1 else float("nan")
        done.append(PeerRun(method, epsilon, fmean(errors), spread / n_releases**0.5, n_releases))
    return done
