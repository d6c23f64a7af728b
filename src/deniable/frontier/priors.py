"""Where a prior comes from: a file, a column of a table, or a textbook distribution."""

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from deniable.errors import InputError
from deniable.estimate.tabulate import Tabulator
from deniable.schema import Attribute, FileFormat, Schema
from deniable.solvers.matrices.response import checked_prior
from deniable.strict_json import from_json
from deniable.tables import open_table
from deniable.tables.drafting import draft_schema
from deniable.tables.reading import AS_FOUND, column_names

DISCLOSURE = (
    "The prior was read from the data. It is itself a disclosure: the shares of {table}{also} "
    "are in these files exactly, protected by nothing. Use a published distribution, or an "
    "estimate from an earlier randomized release, if that is not meant."
)
MERGED_UP_TO = 16
"""Several attributes can be merged into one while it has at most so many categories."""


@dataclass(frozen=True)
class Prior:
    """A distribution over the categories of one attribute.

    Args:
        attribute: the attribute, with its public categories.
        shares: one per category, above 0, adding up to 1; shape (n,).
        source: where they come from, in a few words.
        disclosure: what reading them from data gives away, or None if no data was read.
    """

    attribute: Attribute
    shares: tuple[float, ...]
    source: str
    disclosure: str | None = None

    def __post_init__(self) -> None:
        shares = checked_prior(self.shares)
        if len(shares) != self.attribute.n_categories:
            raise InputError(
                f"prior: it has {len(shares)} shares, and attribute '{self.attribute.name}' has "
                f"{self.attribute.n_categories} categories"
            )
        object.__setattr__(self, "shares", tuple(float(share) for share in shares))


def from_file(path: Path) -> Prior:
    """Read a prior from a JSON list of shares, or an object of shares by category.

    Raises:
        InputError: if the file is neither, or its numbers are no distribution.
    """
    try:
        plain = from_json(path.read_bytes(), list[float] | dict[str, float])
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: expected a JSON list of shares such as [0.5, 0.3, 0.2], or an object of "
            f"shares by category ({error})"
        ) from None
    shares = list(plain.values()) if isinstance(plain, dict) else plain
    categories = list(plain) if isinstance(plain, dict) else [str(i) for i in range(len(shares))]
    try:
        return Prior(_attribute("a1", categories, shares), tuple(shares), f"the file {path.name}")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _attribute(name: str, categories: Sequence[str], shares: Sequence[float]) -> Attribute:
    checked_prior(shares)  # its sentence about too few numbers is the better one
    return Attribute(name, tuple(categories))


def from_distribution(text: str) -> Prior:
    """Return a distribution cut into bins of equal width: ``normal,10``, ``gamma,10``,
    ``uniform,10``.

    The normal distribution is cut within three standard deviations of its mean; Gamma(1, 2) within
    0 and its mean plus three standard deviations, 8.

    Raises:
        InputError: if it is none of them, or the number of categories is below 2.

    Source: Huang and Du, section VI; they do not say how they cut.
    """
    name, comma, count = text.partition(",")
    known: dict[str, Callable[[float], float]] = {
        "normal": lambda u: math.erf((6 * u - 3) / math.sqrt(2)),
        "gamma": lambda u: -math.exp(-8 * u / 2),
        "uniform": lambda u: u,
    }
    if not comma or name not in known or not count.strip().isdecimal():
        raise InputError(
            f"--distribution: expected one of {', '.join(known)} and a number of categories, such "
            "as normal,10"
        )
    n = int(count)
    if not 2 <= n <= 10_000:
        raise InputError(f"--distribution: the number of categories is from 2 to 10000, not {n}")
    shares = np.diff([known[name](j / n) for j in range(n + 1)])
    shares = shares / shares.sum()
    attribute = Attribute("a1", tuple(str(i) for i in range(n)))
    return Prior(attribute, tuple(shares.tolist()), f"a {name} distribution in {n} bins")


def from_column(
    text: str, schema: Schema | None = None, file_format: FileFormat = AS_FOUND
) -> Prior:
    """Read the shares of a column, or of several merged into one, from a table.

    Args:
        text: ``data.csv:age``, or ``data.csv:sex,smoker`` for the combinations of both.
        schema: declares the categories; without one they, too, are read off the table.
        file_format: how a text file holds the table, where the schema does not say or is wrong.

    Raises:
        InputError: if there is no such column, a value is none of the categories, or a category
            does not occur.
    """
    declared = schema is not None
    if schema is not None:
        file_format = schema.file.with_changes(file_format)
    path, names = _split(text, file_format)
    if schema is None:
        schema = _drafted(path, names, file_format)
        file_format = schema.file.with_changes(file_format)
    merged = merge([schema.attributes[i] for i in schema.positions(names)])
    also = "" if declared else ", and the list of its categories,"
    counter = Tabulator([merged.n_categories])
    with open_table(path, [merged], other_columns="drop", file_format=file_format) as reader:
        for batch in reader:
            counter.add(batch.codes)
    shares = counter.tabulation().frequencies.ravel()
    if len(absent := np.flatnonzero(shares == 0)):
        raise InputError(
            f"{path}, '{merged.name}': nobody has the category "
            f"'{merged.categories[int(absent[0])]}', and a prior of 0 cannot be designed for; "
            "give the shares by --prior, with a small one for it, or merge categories"
        )
    columns = ", ".join(f"'{column.name}'" for column in merged.columns)
    return Prior(
        merged,
        tuple(shares.tolist()),
        f"column{'s' if merged.parts else ''} {columns} of {path.name}",
        DISCLOSURE.format(table=f"'{merged.name}' in {path.name}", also=also),
    )


def outer(priors: Sequence[Prior]) -> Prior:
    """Merge priors of several attributes into one, as if these were independent.

    Raises:
        InputError: if the merged attribute has more than 16 categories.
    """
    if len(priors) == 1:
        return priors[0]
    named = [Attribute(f"a{i}", p.attribute.categories) for i, p in enumerate(priors, start=1)]
    shares = np.ones(1)
    for prior in priors:
        shares = np.outer(shares, prior.shares).ravel()
    sources = " and ".join(p.source for p in priors)
    return Prior(merge(named), tuple(shares.tolist()), f"{sources}, taken as independent")


def merge(attributes: Sequence[Attribute]) -> Attribute:
    """Return one attribute whose categories are the combinations, the last one fastest.

    Raises:
        InputError: if there are more than 16 combinations.
    """
    if len(attributes) == 1:
        return attributes[0]
    n = math.prod(a.n_categories for a in attributes)
    if n > MERGED_UP_TO:
        raise InputError(
            f"'{'+'.join(a.name for a in attributes)}' would have {n} categories; attributes can "
            f"be merged into one of at most {MERGED_UP_TO}"
        )
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
