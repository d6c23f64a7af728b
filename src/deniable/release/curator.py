"""Curator's mode: a whole table is read, randomized and released (PRAM).

:func:`deniable.release.release.share` reads row by row; here the whole table determines the
frequencies preserved by invariant PRAM, the strata, and the means to which numbers are contracted.
Plain PRAM needs none of these: any law draws whole tables too, and its ε holds. The guarantees of
the others are the ``…_STATEMENT`` constants of :mod:`deniable.release.statements`, shown in records
and on screens.

Sources: Gouweleeuw, Kooiman, Willenborg and de Wolf (1998), "Post randomisation for statistical
disclosure control"; Ruiz, "λ-randomization", section 5. Proofs: docs/proofs/lambda.md, section 5.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.atomic_files import leaves_nothing, replaced_folder
from deniable.design.design import design_of
from deniable.design.request import DesignRequest, StrengthRequest
from deniable.errors import InputError
from deniable.laws import InvariantChannel, MatrixChannel, PatternLaw
from deniable.laws.bistochastic import bistochastic_channel
from deniable.laws.response import check_attenuation
from deniable.ledger import Spending, remembered
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.mechanism.strata import Strata
from deniable.randomness import BitSource
from deniable.release.release import (
    Layout,
    Options,
    Progress,
    Rows,
    check_ledger,
    check_output,
    count_release,
    given_back,
    remove_unfinished,
    write_rows,
    write_statements,
)
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.methods import INVARIANT_METHOD, STRENGTH_METHOD
from deniable.statement.strata import Designs
from deniable.tables import Batch
from deniable.tables.arrays import from_numpy
from deniable.tables.rows import concatenated, groups_of, numbers_of

MAX_STRATA = 10_000
"""Largest number of strata: a mechanism takes about 2 kB of the record each, 20 MB together."""


@dataclass(frozen=True)
class Treatment:
    """Treatment of a table by a curator.

    ``by``: a kept column whose values form strata; ``strata``: their requests, instead of
    ``request``. ``invariant``: preserve the frequencies (of each stratum) in expectation;
    ``alpha``: α, a value is unchanged with probability 1 − α. ``numeric``: λ by column of numbers,
    which is contracted to its mean (of its stratum).
    """

    schema: Schema
    request: StrengthRequest
    by: str | None = None
    strata: Mapping[str, StrengthRequest] = field(default_factory=dict)
    invariant: bool = False
    alpha: float = 1.0
    numeric: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.strata and self.by is None:
            raise InputError("requests per stratum need `by`, the column of the strata")
        if self.by is not None and self.by not in self.schema.keep:
            raise InputError(
                f"'{self.by}' forms the strata, so it is released unchanged and unprotected; list "
                "it under keep in the schema, or choose another column"
            )
        if not 0 < self.alpha <= 1:
            raise InputError(
                f"α of invariant PRAM must be above 0 and at most 1, not {self.alpha:g}"
            )
        if self.alpha != 1 and not self.invariant:
            raise InputError("α needs invariant PRAM; set `invariant`, or leave α out")
        for name, value in self.numeric.items():
            check_attenuation(value, f"column '{name}': ")
            if name in self.schema.columns:
                raise InputError(
                    f"'{name}' is an attribute of the schema, randomized by category; remove it "
                    "from the schema, or do not treat it as a column of numbers"
                )
            if name in self.schema.keep:
                raise InputError(
                    f"'{name}' is released unchanged; remove it from keep in the schema to "
                    "contract it to its mean"
                )


def pram(
    source: Any,
    treatment: Treatment,
    output: Path,
    options: Options,
    bits: BitSource,
    progress: Progress = lambda _fraction: None,
) -> dict[str, Any]:
    """Randomize a whole table in memory and write the folder to publish."""
    check_output(output, overwrite=options.overwrite)
    check_budget(treatment, options, output)
    schema = treatment.schema
    labels = [attribute.categories for attribute in schema.attributes]
    layout = Layout(schema, labels, tuple(treatment.numeric))
    check_ledger(output, options.people)
    remove_unfinished(output)
    decimal = schema.file.with_changes(options.file_format).decimal or "."
    made: list[Designs] = []  # set when the table is randomized

    def treat(batches: Iterator[Batch], table: str) -> Iterator[Rows]:
        held = list(batches)
        progress(None)  # the rest takes longer than reading
        if sum(batch.n_rows for batch in held):
            designs, rows = _treated(held, treatment, bits, table, decimal)
            made.append(designs)
            yield rows

    numeric = tuple(treatment.numeric)
    traceless = leaves_nothing(output)
    foreseen = Spending(0.0) if options.people is None else _foreseen(treatment)
    with (
        remembered(options.people, foreseen, "pram", traceless=traceless) as entry,
        replaced_folder(output, overwrite=options.overwrite) as folder,
    ):

        def count(rows_of: Counter[Any]) -> None:
            (designs,) = made  # a table without rows was refused
            count_release(entry, Spending.of(designs.strata, numeric), rows_of, options)

        released = write_rows(source, layout, folder, options, bits, progress, treat, count)
        released = replace(released, expost=True, numeric=numeric)
        return write_statements(made[0], released, folder, signer=options.signer, entry=entry)


def check_budget(treatment: Treatment, options: Options, output: Path) -> None:
    """Raise, before any row is read, if the population's budget does not allow the release."""
    if options.people is not None:
        whose = options.people
        whose.check(_foreseen(treatment), given_back(output, whose))


def _foreseen(treatment: Treatment) -> Spending:
    """Return upper bounds of the release's levels for any table."""
    levels = Spending(0.0)
    for stratum, request in [(None, treatment.request), *treatment.strata.items()]:
        if not request.is_empty:
            mechanism = _design(treatment, request, stratum).mechanism
            levels = levels.largest(Spending.of(Strata.one(mechanism)))
    if treatment.invariant:
        levels = replace(levels, epsilon=math.inf)
    return levels


def _design(treatment: Treatment, request: StrengthRequest, stratum: str | None) -> Design:
    schema = treatment.schema
    protected = [schema.attributes[i] for i in schema.protected]
    by_matrix = all(a.response or a.name in request.matrices for a in protected)
    try:
        method = None if by_matrix else STRENGTH_METHOD
        return design_of(schema, DesignRequest(**vars(request), method=method))
    except InputError as error:
        where = f"stratum '{stratum}': " if stratum in treatment.strata else ""
        raise InputError(f"{where}{error}") from None


def _treated(
    held: Sequence[Batch], treatment: Treatment, bits: BitSource, table: str, decimal: str
) -> tuple[Designs, Rows]:
    """Return the whole table randomized, and the designs used."""
    codes = [np.concatenate(parts) for parts in zip(*(b.codes for b in held), strict=True)]
    kept = concatenated([batch.kept for batch in held]) if held[0].kept else {}
    if treatment.by is None:
        strata, names = np.zeros(len(codes[0]), dtype=np.int64), [""]
    else:
        strata, names = _strata(kept[treatment.by])
    designs = _designs(treatment, codes, strata, names)
    outputs = randomize_strata(codes, strata, [made.mechanism for made in designs], bits)
    for name, attenuation in treatment.numeric.items():
        numbers = numbers_of(kept[name], name, table, 1, decimal)
        try:
            kept[name] = from_numpy(contract_to_mean(numbers, attenuation, strata))
        except InputError as error:
            raise InputError(f"{table}, column '{name}': {error}") from None
    sizes = np.bincount(strata, minlength=len(names)).tolist()
    by_name = dict(zip(names, designs, strict=True))
    return Designs(by_name, treatment.by, dict(zip(names, sizes, strict=True))), (outputs, kept)


def _designs(
    treatment: Treatment,
    codes: Sequence[NDArray[Any]],
    strata: NDArray[np.int64],
    names: Sequence[str],
) -> list[Design]:
    """Return a design per stratum, in the order of ``names``."""
    if len(names) > MAX_STRATA:
        raise InputError(
            f"'{treatment.by}' forms more than {MAX_STRATA} strata; choose a coarser column"
        )
    if absent := sorted(set(treatment.strata) - set(names)):
        raise InputError(f"stratum '{absent[0]}' has no rows; leave it out")
    # Strata with one request object share a design.
    known: dict[int, Design] = {}
    designs = []
    for i, name in enumerate(names):
        request = treatment.strata.get(name, treatment.request)
        if request.is_empty:
            where = f"stratum '{name}' of the table has no request: " if treatment.by else ""
            raise InputError(
                f"{where}set how strongly to randomize with "
                "`attenuation`, `strength`, `preserve` or `matrices`"
            )
        if id(request) not in known:
            known[id(request)] = _design(treatment, request, name if treatment.by else None)
        made = known[id(request)]
        if treatment.invariant:
            rows = np.flatnonzero(strata == i)
            made = invariant_design(made, [column[rows] for column in codes], treatment.alpha)
        designs.append(made)
    return designs


def _strata(column: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Return each row's stratum, shape (n,), and the strata's names in order."""
    codes, labels = groups_of(column)
    # A missing value and the empty text are one stratum, as in grouping.
    names, places = np.unique(np.array(labels, dtype=object), return_inverse=True)
    return places[codes], names.tolist()


def randomize_strata(
    columns: Sequence[NDArray[Any]],
    strata: NDArray[Any],
    mechanisms: Sequence[Mechanism],
    source: BitSource,
) -> list[NDArray[Any]]:
    """Randomize each stratum's rows in place with its own mechanism.

    ``columns``: codes per attribute, shape (n,) each. ``strata``: the index of every row's
    mechanism, shape (n,).
    """
    outputs: list[NDArray[Any]] = []
    for stratum, mechanism in enumerate(mechanisms):
        rows = np.flatnonzero(strata == stratum)
        drawn = Randomizer(mechanism, source).randomize([column[rows] for column in columns])
        if not outputs:
            outputs = [np.empty(len(strata), dtype=part.dtype) for part in drawn]
        for output, part in zip(outputs, drawn, strict=True):
            output[rows] = part
    return outputs


def contract_to_mean(
    values: NDArray[np.float64], attenuation: float, strata: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Return λx + (1 − λ)x̄, Ruiz's randomization of a numerical attribute (section 5: x' = Px over
    the n individuals with P = λI + (1 − λ)P*). It has no differential privacy:
    :data:`~deniable.release.statements.NUMERICAL_STATEMENT`.

    ``values``: shape (n,), finite. ``strata``: the stratum of every row, shape (n,), whose mean is
    then used.
    """
    check_attenuation(attenuation)
    x = np.asarray(values, dtype=np.float64)
    if not x.size:
        raise InputError("the table has no rows; a mean needs some")
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


def invariant_design(base: Design, codes: Sequence[NDArray[Any]], alpha: float = 1.0) -> Design:
    """Return the design whose matrices preserve a table's frequencies in expectation.

    ``codes``: the table, one array per attribute, shape (n,).
    """
    blocks = []
    for block in base.mechanism.blocks:
        if block.law.kept_as_it_is:
            blocks.append(block)
            continue
        for place, position in enumerate(block.attributes):
            first = _single(block, place)
            channel = InvariantChannel.for_codes(first, codes[position], alpha)
            blocks.append(Block((position,), channel))
    mechanism = Mechanism(base.mechanism.schema, tuple(blocks))
    return Design(
        replace(mechanism, claim=mechanism.promise()),
        INVARIANT_METHOD,
        (None,) * len(base.requested_epsilon),
        None,
    )


def _single(block: Block, place: int) -> MatrixChannel:
    """Return the matrix of one attribute in a block of independent responses."""
    law = block.law
    if isinstance(law, MatrixChannel):
        return law
    assert isinstance(law, PatternLaw)
    n, attenuation = law.n_categories[place], float(law.attenuations()[place])
    return bistochastic_channel(attenuation * np.eye(n) + (1 - attenuation) / n)
