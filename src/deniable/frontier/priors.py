"""Priors from a file, a column of a table, or a textbook distribution."""

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from deniable.atomic_files import as_text
from deniable.errors import InputError
from deniable.estimate.tabulate import Tabulator
from deniable.proofs.prior import checked_prior
from deniable.schema import Attribute, FileFormat, Schema
from deniable.strict_json import from_json
from deniable.tables import open_table
from deniable.tables.drafting import draft_schema
from deniable.tables.reading import AS_FOUND, column_names

DISCLOSURE = (
    "The prior was read off the data and rounded to 1/{steps}. It is a disclosure of its own: the "
    "rounded shares of '{attribute}'{also} are in these files, and in every mechanism made from "
    "them. Rounding is no differential privacy, and no ε covers it. Use a published distribution, "
    "or an estimate from an earlier randomized release, if that is not meant."
)


@dataclass(frozen=True)
class Prior:
    """A distribution over the categories of one attribute.

    ``shares``: one per category, above 0, adding up to 1; shape (n,).
    """

    attribute: Attribute
    shares: tuple[float, ...]
    source: str
    steps: int | None = None

    def __post_init__(self) -> None:
        shares = checked_prior(self.shares)
        if len(shares) != self.attribute.n_categories:
            raise InputError(
                f"prior: it has {len(shares)} shares, and attribute '{self.attribute.name}' has "
                f"{self.attribute.n_categories} categories"
            )
        object.__setattr__(self, "shares", tuple(float(share) for share in shares))

    @property
    def disclosure(self) -> str | None:
        """Sentence on the disclosure by reading shares off the data; None if no data was read."""
        if self.steps is None:
            return None
        drafted = any(a.drafted for a in (self.attribute, *self.attribute.parts))
        also = ", and the list of its categories," if drafted else ""
        return DISCLOSURE.format(steps=self.steps, attribute=self.attribute.name, also=also)


def from_file(path: Path) -> Prior:
    """Read a prior from a JSON list of shares, or an object of shares by category; nested ones are
    the joint prior of several attributes, which are merged."""
    try:
        categories, shares = _shares(from_json(path.read_bytes()))
        checked_prior(shares)  # its sentence about too few numbers is the better one
        merged = merge([Attribute(f"a{i}", tuple(of)) for i, of in enumerate(categories, start=1)])
        return Prior(merged, tuple(shares), f"the file {as_text(path.name)}")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise InputError(
            f"{path}: expected a JSON list of shares such as [0.5, 0.3, 0.2], or an object of "
            f"shares by category, or for several attributes lists of lists ({error})"
        ) from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _shares(plain: Any) -> tuple[list[list[str]], list[float]]:
    """Return the categories of every attribute, and the shares, the last attribute fastest."""
    if not isinstance(plain, list | dict):
        raise TypeError("neither a list nor an object")
    categories = list(plain) if isinstance(plain, dict) else [str(i) for i in range(len(plain))]
    parts = list(plain.values()) if isinstance(plain, dict) else plain
    if not any(isinstance(part, list | dict) for part in parts):
        return [categories], msgspec.convert(parts, list[float])
    inner = [_shares(part) for part in parts]
    if any(names != inner[0][0] for names, _ in inner):
        raise TypeError("inner lists or objects differ in length or categories")
    return [categories, *inner[0][0]], [share for _, shares in inner for share in shares]


def from_distribution(text: str) -> Prior:
    """Return a distribution cut into bins of equal width: ``normal,10``, ``gamma,10``,
    ``uniform,10``, or ``gamma,10,2.5`` with a shape other than 1.

    The normal distribution is cut within three standard deviations of its mean, Gamma(α, β) within
    0 and its mean plus three standard deviations, (α + 3√α) β; so β has no effect.

    Source: Huang and Du, section VI, with Gamma(1, 2), which does not state the cuts.
    """
    name, *numbers = (part.strip() for part in text.split(","))
    known: dict[str, Callable[[float], float]] = {
        "normal": lambda u: math.erf((6 * u - 3) / math.sqrt(2)),
        "gamma": lambda u: -math.exp(-8 * u / 2),
        "uniform": lambda u: u,
    }
    takes = (1, 2) if name == "gamma" else (1,)
    if name not in known or len(numbers) not in takes or not numbers[0].isdecimal():
        raise InputError(
            f"--distribution: expected one of {', '.join(known)} and a number of categories, such "
            "as normal,10, and of gamma perhaps the shape, such as gamma,10,2.5"
        )
    n = int(numbers[0])
    if not 2 <= n <= 10_000:
        raise InputError(f"--distribution: the number of categories is from 2 to 10000, not {n}")
    below, source = known[name], f"a {name} distribution in {n} bins"
    if len(numbers) == 2:
        below = _gamma(numbers[1])
        source = f"a gamma distribution of shape {numbers[1]} in {n} bins"
    shares = np.diff([below(j / n) for j in range(n + 1)])
    shares = shares / shares.sum()
    attribute = Attribute("a1", tuple(str(i) for i in range(n)))
    return Prior(attribute, tuple(shares.tolist()), source)


def _gamma(text: str) -> Callable[[float], float]:
    """Return the distribution function of a gamma distribution on 0 to 1, less a constant."""
    from scipy.special import gammaincc  # only here: loading it takes a fifth of a second

    try:
        shape = float(text)
    except ValueError:
        shape = math.nan
    if not 0.01 <= shape <= 1e6:
        raise InputError("--distribution: the shape of gamma is a number from 0.01 to a million")
    end = shape + 3 * math.sqrt(shape)
    return lambda u: -float(gammaincc(shape, end * u))


def from_column(
    text: str, schema: Schema | None = None, file_format: FileFormat = AS_FOUND
) -> Prior:
    """Read the shares of a column, or of several merged into one, from a table, and round them.

    Only the rounded shares (:func:`rounded_shares`) leave this function.
    """
    if schema is not None:
        file_format = schema.file.with_changes(file_format)
    path, names = _split(text, file_format)
    if schema is None:
        schema = _drafted(path, names, file_format)
        file_format = schema.file.with_changes(file_format)
    merged = merge([schema.attributes[i] for i in schema.positions(names)])
    counter = Tabulator([merged.n_categories])
    with open_table(path, [merged], other_columns="drop", file_format=file_format) as reader:
        for batch in reader:
            counter.add(batch.codes)
    shares, steps = rounded_shares(counter.tabulation().counts.ravel().astype(int).tolist())
    columns = ", ".join(f"'{column.name}'" for column in merged.columns)
    source = f"column{'s' if merged.parts else ''} {columns} of {as_text(path.name)}"
    source += f", rounded to 1/{steps}"
    if len(shares) == steps:
        source += " (all alike: there are too few rows for more)"
    return Prior(merged, shares, source, steps)


def rounded_shares(counts: Sequence[int]) -> tuple[tuple[float, ...], int]:
    """Return shares as multiples of 1/D, rounded so far that no count follows from them, and D.

    D is 1, 2 or 5 times a power of ten, at most n/10, and at most 100 or 20 per category, so that
    rare categories, of one step each, take up a twentieth at most. Steps are apportioned by largest
    remainders; every category without a step then takes one from the category with most. Where
    there are no more steps than categories, all shares are equal.

    No count follows: with s = n/D ≥ 10 and k categories, w comes from about s^(k−1) vectors of
    counts, because largest remainders map all counts of a lattice cell to its steps w and the cells
    contain the segments from w to w ± (e_i − e_j)/2. Every count then takes at least ⌊s⌋ values,
    and an absent category has the same share as one with s/2 rows. D depends on n and k only. The
    shares of several groupings of one column narrow its counts further, and rounding is no
    differential privacy.

    ``counts``: rows per category, shape (k,).
    """
    n, k = sum(counts), len(counts)
    most = min(n // 10, max(100, 20 * k))
    steps = max((d * 10**j for j in range(7) for d in (1, 2, 5) if d * 10**j <= most), default=0)
    if steps <= k:
        return (1 / k,) * k, k
    parts = [count * steps // n for count in counts]
    by_remainder = sorted(range(k), key=lambda i: -(counts[i] * steps % n))
    for i in by_remainder[: steps - sum(parts)]:
        parts[i] += 1
    while 0 in parts:
        parts[parts.index(max(parts))] -= 1
        parts[parts.index(0)] += 1
    return tuple(part / steps for part in parts), steps


def outer(priors: Sequence[Prior]) -> Prior:
    """Merge priors of several attributes into one, as if these were independent."""
    if len(priors) == 1:
        return priors[0]
    parts = [part for p in priors for part in p.attribute.parts or (p.attribute,)]
    named = [replace(part, name=f"a{i}") for i, part in enumerate(parts, start=1)]
    shares = np.ones(1)
    for prior in priors:
        shares = np.outer(shares, prior.shares).ravel()
    sources = " and ".join(p.source for p in priors)
    return Prior(merge(named), tuple(shares.tolist()), f"{sources}, taken as independent")


def merge(attributes: Sequence[Attribute]) -> Attribute:
    """Return one attribute whose categories are the combinations, the last one fastest."""
    if len(attributes) == 1:
        return attributes[0]
    # Levels are for other methods; a prior has none.
    return Attribute.merged(
        [replace(a, epsilon=None, ratio=None, importance=None) for a in attributes]
    )


def _split(text: str, file_format: FileFormat) -> tuple[Path, list[str]]:
    # The first colon after which a file's name is complete: names of either may hold one.
    places = [i for i, letter in enumerate(text) if letter == ":"]
    if not places or not text[places[-1] + 1 :]:
        raise InputError("--column: expected a table and a column, such as data.csv:age")
    at = next((i for i in places if Path(text[:i]).is_file()), places[-1])
    path, rest = Path(text[:at]), text[at + 1 :]
    if rest in column_names(path, file_format):
        return path, [rest]
    return path, [name.strip() for name in rest.split(",") if name.strip()]


def _drafted(path: Path, names: Sequence[str], file_format: FileFormat) -> Schema:
    # The draft comes first: it refuses a first row that holds data and no names.
    drafted = tomllib.loads(draft_schema(path, file_format))
    present = column_names(path, file_format)
    for name in names:
        if name not in present:
            raise InputError(
                f"{path}: there is no column '{name}'; the table has {', '.join(present[:12])}"
            )
    declared = {attribute["name"] for attribute in drafted.get("attribute", [])}
    for name in names:
        if name not in declared:
            raise InputError(
                f"{path}, column '{name}': it has fewer than 2 or more than 50 distinct values; "
                "declare its categories or bins in a schema, and give --schema"
            )
    return Schema.from_plain(drafted)
