"""One attribute: a column and its public categories, or several columns merged into one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

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
        ratio: fraction of a budget, relative to the other attributes' ratios.
        importance: weight of this attribute's accuracy when a budget is divided.
        parts: for an attribute merged from several columns, these, at least two. Its categories
            are their combinations (``yes+white``), the last part fastest; leave them empty. It is
            randomized as one attribute, and its parts can be estimated by their own names.

    Raises:
        InputError: if the declaration contradicts itself; the sentence names the attribute.

    Example:
        >>> age = Attribute("age", bins=(0, 30, 65, 100), labels={"[0,30)": "young"})
        >>> age.categories, age.label("[0,30)"), age.category_scores()
        (('[0,30)', '[30,65)', '[65,100]'), 'young', (15.0, 47.5, 82.5))
        >>> age.checked_scores([0, 1, 2])
        (0.0, 1.0, 2.0)
        >>> Attribute.merged([Attribute("smokes", ("no", "yes")), age]).categories[:2]
        ('no+[0,30)', 'no+[30,65)')
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
    parts: tuple["Attribute", ...] = ()

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the way to normalise a frozen dataclass
        where = f"attribute '{self.name}'"
        if not self.name:
            raise InputError("an attribute has an empty name; give it the column's name")
        categories = tuple(self.categories)
        set_field(self, "parts", tuple(self.parts))
        if self.parts:
            combined = self._combinations(where)
            if categories not in ((), combined):
                raise InputError(
                    f"{where} is merged from columns, so that its categories are their "
                    "combinations; leave them out"
                )
            categories = combined
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
            set_field(self, "scores", self.checked_scores(self.scores))
        for key in ("epsilon", "ratio", "importance"):
            value = getattr(self, key)
            if value is not None:
                check = check_level if key == "epsilon" else check_positive
                set_field(self, key, check(value, f"{where}, {key}"))

    def _combinations(self, where: str) -> tuple[str, ...]:
        if len(self.parts) < 2:
            raise InputError(f"{where} is merged from one column; name at least two parts")
        if self.bins is not None or self.ordered or self.missing is not None:
            raise InputError(
                f"{where} is merged from columns; bins, ordered and missing belong to its parts"
            )
        for part in self.parts:
            if part.parts:
                raise InputError(f"{where}: part '{part.name}' is merged itself; name its columns")
            if part.levels != (None, None, None):
                raise InputError(
                    f"{where}: part '{part.name}' has a level, ratio or importance of its own; "
                    f"what is randomized is '{self.name}', so give them there"
                )
        if (twice := first_duplicate([self.name, *(p.name for p in self.parts)])) is not None:
            raise InputError(f"{where}: two of its parts, or it and a part, are called '{twice}'")
        if math.prod(part.n_categories for part in self.parts) > MAX_CATEGORIES:
            raise InputError(f"{where} has more than {MAX_CATEGORIES} categories")
        return tuple(map("+".join, product(*(part.categories for part in self.parts))))

    @classmethod
    def merged(cls, attributes: Sequence["Attribute"]) -> "Attribute":
        """Return one attribute whose categories are the combinations of several, named ``a+b``.

        Raises:
            InputError: as for ``parts``.
        """
        return cls("+".join(a.name for a in attributes), parts=tuple(attributes))

    @property
    def columns(self) -> tuple["Attribute", ...]:
        """The columns of the table that it stands in: its parts, or itself."""
        return self.parts or (self,)

    @property
    def strides(self) -> tuple[int, ...]:
        """By which steps of the code each part moves: a part's code is code // stride % size."""
        sizes = [part.n_categories for part in self.parts]
        return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))

    @property
    def levels(self) -> tuple[float | None, float | None, float | None]:
        """The requested level, ratio and importance."""
        return self.epsilon, self.ratio, self.importance

    @property
    def n_categories(self) -> int:
        """How many categories there are."""
        return len(self.categories)

    def label(self, category: str) -> str:
        """Return the readable name of a category."""
        return self.labels.get(category, category)

    def checked_scores(self, scores: Sequence[float]) -> tuple[float, ...]:
        """Return scores that were given for the categories.

        Raises:
            InputError: if there is not one finite number per category.
        """
        if len(scores) != self.n_categories or not all(map(math.isfinite, scores)):
            raise InputError(
                f"attribute '{self.name}' needs {self.n_categories} scores, one finite number per "
                "category"
            )
        return tuple(float(score) for score in scores)

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


def category_text(value: str | int | bool) -> str:
    """Return the text a category is matched by: integers in decimal, booleans true or false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
