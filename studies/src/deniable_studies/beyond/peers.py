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
from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKAGE = "multi-freq-ldpy"

SPL, RSFD = "spl", "rsfd"
SMP = {"smp": "GRR", "smp-better": "ADP", "smp-subset": "SS", "smp-hashing": "LH"}
"""SMP, by the package's names for what answers its one question."""

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
        client: (tuple of codes, sizes, d, ε) → what one person sends.
        aggregate: (what was sent, sizes, d, ε) → one array of shares per attribute.
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
        epsilon: what the package calls the privacy guarantee, in nats.
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
