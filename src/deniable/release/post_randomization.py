"""The curator's mode: randomizing a whole table after it was collected (PRAM).

Plain PRAM needs nothing of its own: any law draws whole tables too, and its ε holds. Here is what
only a curator can do, because it looks at the table: invariant PRAM, a matrix per stratum, and the
contraction of numerical attributes. What each of them does and does not guarantee is said in the
``…_STATEMENT`` constants, which records and screens show.

Sources: Gouweleeuw, Kooiman, Willenborg and de Wolf (1998), "Post randomisation for statistical
disclosure control"; Ruiz, "λ-randomization", section 5.

The proofs are in docs/proofs/lambda.md, section 5.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws import InvariantChannel, Law
from deniable.laws.law import Sampler
from deniable.laws.response import check_attenuation
from deniable.randomness import BitSource

INVARIANT_STATEMENT = (
    "Invariant PRAM uses the data: its matrix is made from this table's own frequencies, so that "
    "they are kept in expectation. The frequencies themselves are protected by nothing, the record "
    "of the release gives them away, and as a whole the release is not differentially private. "
    "What holds instead: to someone who knows these frequencies already, a released record is at "
    "most e^ε times as likely under one possible true record as under another, with the ε stated "
    "for that case. A category that nobody has is never reported."
)

STRATUM_STATEMENT = (
    "Each stratum has its own matrix, and the column that forms the strata is released as it is: "
    "it is protected by nothing, and two records are compared only within a stratum."
)

NUMERICAL_STATEMENT = (
    "Numerical values are pulled towards their mean: λx + (1 − λ) times the mean. This is a "
    "fixed calculation, not a randomization, and carries no differential-privacy guarantee: the "
    "mean stays as it was, so whoever knows λ, or a single true value (a frequent one, such as 0, "
    "can be guessed), computes every value back exactly; and the order of the values is kept. λ is "
    "therefore not in the release. What it carries: the mean is the same (in each stratum, if "
    "there are strata), standard deviations are λ times "
    "what they were, a covariance is multiplied by the product of the two λ, and correlations do "
    "not change. For a guarantee, cut the attribute into bins fixed in advance and randomize those."
)


def refuse_other_tables(laws: Iterable[Law]) -> None:
    """Stop a law that was made from one table from randomizing another.

    Raises:
        InputError: if there is such a law.
    """
    if any(isinstance(law, InvariantChannel) for law in laws):
        raise InputError(
            "this mechanism is invariant PRAM, made from the frequencies of one table; it cannot "
            "randomize another: use pram on that table"
        )


def randomize_strata(
    columns: Sequence[NDArray[Any]],
    strata: NDArray[Any],
    samplers: Mapping[int, Sampler],
    source: BitSource,
    names: Sequence[str] | None = None,
) -> list[NDArray[Any]]:
    """Randomize each stratum's rows with its own sampler; rows stay in place.

    Args:
        columns: codes per attribute, shape (n,) each.
        strata: the stratum of every row, codes, shape (n,).
        samplers: by stratum; of laws or of :class:`~deniable.laws.InvariantChannel`.
        source: where random bits come from.
        names: the strata's names by code, for messages.

    Raises:
        InputError: if a stratum has no rows, or rows have a stratum without a sampler.
    """
    present = set(np.unique(strata).tolist())
    for stratum in sorted({*samplers, *present}):
        called = f"'{names[stratum]}'" if names is not None else f"number {stratum + 1}"
        if stratum not in present:
            raise InputError(f"stratum {called} has no rows; leave it out")
        if stratum not in samplers:
            raise InputError(f"stratum {called} occurs in the table but has no matrix; give it one")
    outputs: list[NDArray[Any]] = []
    for stratum in sorted(present):
        rows = np.flatnonzero(strata == stratum)
        drawn = samplers[stratum].randomize([column[rows] for column in columns], source)
        if not outputs:
            outputs = [np.empty(len(strata), dtype=part.dtype) for part in drawn]
        for output, part in zip(outputs, drawn, strict=True):
            output[rows] = part
    return outputs


def contract_to_mean(
    values: NDArray[np.float64], attenuation: float, strata: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Return λx + (1 − λ)x̄, Ruiz's randomization of a numerical attribute.

    Section 5: the n individuals are the categories, and x' = Px with P = λI + (1 − λ)P*, n × n. See
    ``NUMERICAL_STATEMENT``: no differential privacy, and undone by whoever knows λ.

    Args:
        values: shape (n,), finite.
        attenuation: λ.
        strata: the stratum of every row, shape (n,): the mean is then that of the row's stratum.

    Raises:
        InputError: if λ is not between 0 and 1, there are no values, or one is missing or infinite.
    """
    check_attenuation(attenuation)
    x = np.asarray(values, dtype=np.float64)
    if not x.size:
        raise InputError("there are no rows to randomize")
    if not np.all(np.isfinite(x)):
        row = int(np.argmin(np.isfinite(x)))
        raise InputError(
            f"row {row + 1} of a numerical attribute is missing or not a finite number; remove or "
            "replace it first"
        )
    groups = np.zeros(len(x), dtype=np.intp) if strata is None else np.asarray(strata)
    result = np.empty(len(x))
    for group in np.unique(groups):
        rows = groups == group
        members = x[rows]
        mean = math.fsum(members) / len(members)
        result[rows] = mean + attenuation * (members - mean)
    return result
