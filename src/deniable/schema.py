"""What a table contains: the attributes to protect, their categories, and columns kept as they are.

A domain is declared, never read off the data: which categories occur is itself something about the
people in the table. Labels become codes (0 … a−1, in the declared order) where a table is read, and
codes become labels where one is written; everything between works on codes.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from deniable._checks import check_level, check_positive, first_duplicate
from deniable.errors import InputError

MAX_CATEGORIES = 1_000_000


def _number_text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def interval_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """Name the intervals between edges: [e₀,e₁), …, the last one closed."""
    texts = [_number_text(edge) for edge in edges]
    last = len(edges) - 2
    return tuple(
        f"[{texts[j]},{texts[j + 1]}{']' if j == last else ')'}" for j in range(len(edges) - 1)
    )


@dataclass(frozen=True)
class Attribute:
    """One protected column and its public domain.

    Args:
        name: the column's name.
        categories: the public codebook, in order; for a binned attribute leave it empty.
        bins: increasing public edges of a numeric column; the randomized value is the interval,
            [e₀, e₁), …, the last one closed. A number outside the edges is an error.
        ordered: whether the order of the categories means something (always so for bins).
        labels: readable names of categories, for reports.
        missing: the category that a missing value stands for (added at the end if it is not one of
            the categories), or None if a missing value is an error.
        scores: one number per category, for means; by default the middles of the bins.
        epsilon: requested privacy level of this attribute alone, in nats.
        ratio: share of a budget relative to the other attributes' ratios.
        importance: weight of this attribute's accuracy when a budget is divided.

    Raises:
        InputError: if the declaration contradicts itself; the sentence names the attribute.
    """

    name: str
    categories: tuple[str, ...] = ()
    bins: tuple[float, ...] | None = None
    ordered: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: str | None = None
    scores: tuple[float, ...] | None = None
    epsilon: float | None = None
    ratio: float | None = None
    importance: float | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the way to normalise a frozen dataclass
        where = f"attribute '{self.name}'"
        if not self.name:
            raise InputError("an attribute has an empty name; give it the column's name")
        categories = tuple(self.categories)
        if self.bins is not None:
            if categories and categories[: len(self.bins) - 1] != interval_labels(self.bins):
                raise InputError(f"{where} has both categories and bins; declare one of them")
            set_field(self, "bins", _checked_edges(self.bins, where))
            categories = interval_labels(self.bins)
            set_field(self, "ordered", True)
        if self.missing is not None and self.missing not in categories:
            categories = (*categories, self.missing)
        set_field(self, "categories", categories)
        set_field(self, "labels", dict(self.labels))
        if len(categories) < 2:
            raise InputError(
                f"{where} has {len(categories)} categories; randomized response needs at least 2"
            )
        if len(categories) > MAX_CATEGORIES:
            raise InputError(f"{where} has more than {MAX_CATEGORIES} categories")
        if "" in categories:
            raise InputError(
                f"{where}: a category is the empty text, which stands for a missing value; "
                'write missing = "category:NA" instead'
            )
        if (twice := first_duplicate(categories)) is not None:
            raise InputError(f"{where}: category '{twice}' is declared twice")
        if unknown := [c for c in self.labels if c not in categories]:
            raise InputError(f"{where}: there is a label for '{unknown[0]}', which is no category")
        if self.scores is not None:
            set_field(self, "scores", tuple(float(s) for s in self.scores))
            if len(self.scores) != len(categories):
                raise InputError(
                    f"{where}: {len(self.scores)} scores were given for {len(categories)} "
                    "categories"
                )
            if not all(math.isfinite(score) for score in self.scores):
                raise InputError(f"{where}: a score is not finite")
        for key in ("epsilon", "ratio", "importance"):
            value = getattr(self, key)
            if value is not None:
                check = check_level if key == "epsilon" else check_positive
                set_field(self, key, check(value, f"{where}, {key}"))

    @property
    def n_categories(self) -> int:
        """How many categories there are."""
        return len(self.categories)

    def label(self, category: str) -> str:
        """Return the readable name of a category."""
        return self.labels.get(category, category)

    def category_scores(self) -> tuple[float, ...] | None:
        """Return one number per category: the declared scores, or the middles of the bins.

        None if the attribute has neither. A category for missing values has no score of its own
        in a binned attribute, so it too gives None; declare ``scores`` to include it.
        """
        if self.scores is not None:
            return self.scores
        if self.bins is None or len(self.bins) - 1 != self.n_categories:
            return None
        return tuple((low + high) / 2 for low, high in pairwise(self.bins))


def _checked_edges(bins: Sequence[float], where: str) -> tuple[float, ...]:
    edges = tuple(float(edge) for edge in bins)
    if len(edges) < 3:
        raise InputError(f"{where}: bins need at least three edges, for two intervals")
    if not all(math.isfinite(edge) for edge in edges):
        raise InputError(f"{where}: a bin edge is not finite; use the widest value possible")
    if any(high <= low for low, high in pairwise(edges)):
        raise InputError(f"{where}: bin edges must increase")
    return edges


@dataclass(frozen=True)
class Schema:
    """The attributes of a table, in order, and the columns released as they are.

    Args:
        attributes: the protected attributes.
        title: what the table is.
        keep: columns that are released unchanged and protected by nothing. Two records count as
            neighbours only if they agree on them. A kept column may also be declared as an
            attribute; its categories are then known and it can be used in joint tables.

    Raises:
        InputError: if there is no attribute, or a column is declared twice.
    """

    attributes: tuple[Attribute, ...]
    title: str = ""
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "keep", tuple(self.keep))
        if (twice := first_duplicate(a.name for a in self.attributes)) is not None:
            raise InputError(f"attribute '{twice}' is declared twice")
        if (twice := first_duplicate(self.keep)) is not None:
            raise InputError(f"column '{twice}' is kept twice")
        if not self.protected:
            raise InputError("the schema protects no attribute; declare at least one [[attribute]]")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(a.name for a in self.attributes)

    @cached_property
    def n_categories(self) -> tuple[int, ...]:
        """The attributes' numbers of categories, in order."""
        return tuple(a.n_categories for a in self.attributes)

    @cached_property
    def protected(self) -> tuple[int, ...]:
        """Positions of the attributes that are randomized: those not kept."""
        kept = set(self.keep)
        return tuple(i for i, a in enumerate(self.attributes) if a.name not in kept)

    def position(self, name: str) -> int:
        """Return an attribute's position.

        Raises:
            InputError: if there is no such attribute.
        """
        try:
            return self._positions[name]
        except KeyError:
            known = ", ".join(self.names[:12]) + (", …" if len(self.names) > 12 else "")
            raise InputError(
                f"there is no attribute '{name}' in the schema; it has {known}"
            ) from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def positions(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return several attributes' positions, in the order asked.

        Raises:
            InputError: if one is unknown or named twice.
        """
        names = list(names)
        if (twice := first_duplicate(names)) is not None:
            raise InputError(f"attribute '{twice}' is named twice")
        return tuple(self.position(name) for name in names)

    @classmethod
    def anonymous(cls, n_categories: Sequence[int]) -> "Schema":
        """Return a schema with attributes a1, a2, … whose categories are 0, 1, …

        For a design that is made before there is a codebook.

        Raises:
            InputError: if a number of categories is below 2.
        """
        if too_many := [n for n in n_categories if n > MAX_CATEGORIES]:
            raise InputError(
                f"an attribute with {too_many[0]} categories is more than {MAX_CATEGORIES}"
            )
        return cls(
            tuple(
                Attribute(f"a{i}", tuple(str(c) for c in range(n)))
                for i, n in enumerate(n_categories, start=1)
            )
        )

    @classmethod
    def from_toml(cls, path: str | Path) -> "Schema":
        """Read a schema file.

        Raises:
            InputError: if the file cannot be read, is not TOML, or declares something wrong.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"{path}: the schema cannot be read ({error.strerror or error})"
            ) from None
        except UnicodeDecodeError:
            raise InputError(f"{path}: the schema is not UTF-8 text") from None
        try:
            return cls.from_plain(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path}: not valid TOML: {error}") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Schema":
        """Build a schema from plain values: a TOML document or the schema part of a record.

        Raises:
            InputError: if something is missing, misspelt, of the wrong type or contradictory.
        """
        try:
            document = msgspec.convert(plain, _Document)
        except msgspec.ValidationError as error:
            raise InputError(f"in the schema, {error}") from None
        keep = list(document.keep)
        attributes: list[Attribute] = []
        for declaration in document.attribute:
            # TOML puts a key written after an [[attribute]] header into that attribute, so a
            # trailing keep = [...] arrives here; it means the same.
            keep += declaration.keep
            attributes += declaration.attributes()
        return cls(tuple(attributes), document.title, tuple(keep))

    def to_plain(self) -> dict[str, Any]:
        """Return the schema as plain values, readable by :meth:`from_plain`."""
        plain: dict[str, Any] = {}
        if self.title:
            plain["title"] = self.title
        if self.keep:
            plain["keep"] = list(self.keep)
        plain["attribute"] = [_plain_attribute(a) for a in self.attributes]
        return plain


def _plain_attribute(attribute: Attribute) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": attribute.name}
    if attribute.bins is not None:
        plain["bins"] = [int(e) if e.is_integer() else e for e in attribute.bins]
    else:
        plain["categories"] = list(attribute.categories)
        if attribute.ordered:
            plain["ordered"] = True
    if attribute.labels:
        plain["labels"] = dict(attribute.labels)
    if attribute.missing is not None:
        plain["missing"] = f"category:{attribute.missing}"
    if attribute.scores is not None:
        plain["scores"] = list(attribute.scores)
    for key in ("epsilon", "ratio", "importance"):
        if getattr(attribute, key) is not None:
            plain[key] = getattr(attribute, key)
    return plain


class _Declaration(msgspec.Struct, forbid_unknown_fields=True):
    """One [[attribute]] table as written: it may name several columns."""

    name: str | None = None
    names: list[str] = []
    categories: list[str | int | bool] = []
    bins: list[float] | None = None
    ordered: bool = False
    labels: dict[str, str] = {}
    missing: str = "error"
    scores: list[float] | None = None
    epsilon: float | None = None
    ratio: float | None = None
    importance: float | None = None
    keep: list[str] = []

    def attributes(self) -> list[Attribute]:
        if (self.name is None) == (not self.names):
            raise InputError('each [[attribute]] needs either name = "…" or names = ["…", "…"]')
        names = self.names or [str(self.name)]
        missing: str | None = None
        if self.missing != "error":
            kind, _, missing = self.missing.partition(":")
            if kind != "category" or not missing:
                raise InputError(
                    f'attribute \'{names[0]}\': missing must be "error" or "category:NAME"'
                )
        return [
            Attribute(
                name=name,
                categories=tuple(category_text(c) for c in self.categories),
                bins=None if self.bins is None else tuple(self.bins),
                ordered=self.ordered,
                labels=self.labels,
                missing=missing,
                scores=None if self.scores is None else tuple(self.scores),
                epsilon=self.epsilon,
                ratio=self.ratio,
                importance=self.importance,
            )
            for name in names
        ]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """A schema file as written."""

    attribute: list[_Declaration]
    title: str = ""
    keep: list[str] = []


def category_text(value: str | int | bool) -> str:
    """Return the text a category is matched by: integers in decimal, booleans true or false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
