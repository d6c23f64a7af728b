"""One attribute: a column and its public categories, or several columns merged into one."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise, product
from typing import Literal, TypeVar

from deniable._checks import check_fields, check_level, check_positive, first_duplicate
from deniable.errors import InputError
from deniable.numerals import count_text
from deniable.schema.number_grid import GRIDS, NumberGrid
from deniable.schema.responses import Matrix, answer_texts, response_matrix

MAX_CATEGORIES = 1_000_000

BLANKS = " \t\r\n"
"""Characters ignored at the ends of a table's texts."""

_Value = TypeVar("_Value")
_EDGES = Sequence[float | date] | None


EPOCH = date(1970, 1, 1)
"""Origin of the days of dates."""


def edge_text(edge: float, *, dates: bool = False) -> str:
    """Return an edge as text: a number, or the date ``edge`` days after 1970-01-01.

    >>> edge_text(30.0), edge_text(30.0, dates=True)
    ('30', '1970-01-31')
    """
    if dates and math.isfinite(edge):
        return (EPOCH + timedelta(days=edge)).isoformat()
    return str(int(edge)) if float(edge).is_integer() and abs(edge) < 1e15 else repr(edge)


def interval_labels(edges: Sequence[float], *, dates: bool = False) -> tuple[str, ...]:
    """Return the labels of the intervals between edges: [e₀,e₁), …, the last one closed unless
    unbounded.

    >>> interval_labels((float("-inf"), 0, 40, float("inf")))
    ('(-inf,0)', '[0,40)', '[40,inf)')
    """
    texts = [edge_text(edge, dates=dates) for edge in edges]
    opening = "(" if math.isinf(edges[0]) else "["
    closing = ")" if math.isinf(edges[-1]) else "]"
    last = len(edges) - 2
    return tuple(
        f"{'[' if j else opening}{texts[j]},{texts[j + 1]}{closing if j == last else ')'}"
        for j in range(len(edges) - 1)
    )


@dataclass(frozen=True)
class Attribute:
    """One protected column and its public domain.

    Args:
        name: the column's name.
        categories: the public codebook, in order; for a binned attribute leave it empty.
        bins: increasing public edges of a numeric column; the randomized value is the interval,
            [e₀, e₁), …, the last one closed. A number outside the edges is an error. The first
            edge may be -inf and the last one inf, for an unbounded interval. Edges of a column
            of dates are dates, and are stored as days since 1970-01-01.
        ordered: whether the categories are ordered (always true for bins).
        labels: readable names of categories, for reports.
        missing: the category of missing values (added at the end if it is not one of
            the categories), or None if a missing value is an error.
        missing_codes: values of the table that are also missing, such as ``?`` or ``999``.
        scores: one number per category, for means; for bins the publicly known mean of
            the numbers in each, from a codebook or an earlier study. The score of missing values
            may be left out; they are then excluded from means.
        score_margins: largest publicly known distance of the mean of the numbers in each bin from
            its score; one number per score. Without them scores are exact.
        epsilon: requested privacy level of this attribute alone, in nats.
        ratio: fraction of a budget, relative to the other attributes' ratios.
        importance: weight of this attribute's accuracy when a budget is divided.
        parts: for an attribute merged from several columns, these, at least two. Its categories
            are their combinations (``yes+white``), the last part fastest; leave them empty. It is
            randomized as one attribute, and its parts can be estimated by their own names.
        dates: whether the bins are of dates (implied by edges that are dates).
        drafted: whether the categories or edges were read off the data, not a codebook.
        question: text of the question in the codebook.
        range: smallest and largest value of a number, public, in place of categories. A value is
            rounded at random, without bias, to one of two neighbouring points of a grid from one
            end to the other, and the point is randomized like a category. A range of dates is of
            dates. A declared missing category is added to the points.
        grid: number of points of the grid, 2 to 1,000, both ends included; without it, by
            ``purpose``, or by ε where the number has a law of its own.
        purpose: main use of a number: its ``mean`` (few points) or its ``distribution``; or the
            mean of ``typical`` numbers, seldom near an end of the range, if it has a law of its
            own: errors are least on average over the range, not at the least favourable number.
        outside: a number outside the range is refused, or set to the nearer end (``clip``); the
            count of these is shown.
        unit: unit of a number, shown in reports.
        response: randomized response design by its name and parameters, such as
            ``forced:2/3,1/6,1/6``, in place of a level; of two categories the last is the sensitive
            one.
        answers: texts of the released values under a response matrix, one per row of the matrix;
            by default the categories, under ``kuk`` the numbers of red cards.

    Raises:
        InputError: if the declaration contradicts itself; the message names the attribute.

    Examples:
        >>> age = Attribute("age", bins=(0, 30, 65, 100), labels={"[0,30)": "young"})
        >>> age.categories, age.label("[0,30)"), age.category_scores(), age.middles()
        (('[0,30)', '[30,65)', '[65,100]'), 'young', None, (15.0, 47.5, 82.5))
        >>> age.checked_scores([17, 44.5, 73])
        (17.0, 44.5, 73.0)
        >>> Attribute.merged([Attribute("smokes", ("no", "yes")), age]).categories[:2]
        ('no+[0,30)', 'no+[30,65)')
        >>> Attribute("born", bins=(date(1950, 1, 1), date(1980, 1, 1), float("inf"))).categories
        ('[1950-01-01,1980-01-01)', '[1980-01-01,inf)')
        >>> income = Attribute("income", range=(0, 200_000), grid=5, unit="EUR a year")
        >>> income.categories[:3], income.category_scores()[:3]
        (('0', '50000', '100000'), (0.0, 50000.0, 100000.0))
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
    missing_codes: tuple[str, ...] = ()
    dates: bool = False
    drafted: bool = False
    score_margins: tuple[float, ...] | None = None
    question: str = ""
    range: tuple[float, float] | None = None
    grid: int | None = None
    purpose: Literal["mean", "typical", "distribution"] = "mean"
    outside: Literal["refuse", "clip"] = "refuse"
    unit: str = ""
    response: str = ""
    answers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, bins=_EDGES, range=_EDGES)
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
            if any(isinstance(edge, date) for edge in self.bins):
                set_field(self, "dates", True)
            set_field(self, "bins", _checked_edges(self.bins, where))
            labels = interval_labels(self.bins, dates=self.dates)
            if categories and categories[: len(labels)] != labels:
                raise InputError(f"{where} has both categories and bins; declare one of them")
            categories = labels
            set_field(self, "ordered", True)
        if self.range is not None:
            points = self._declare_number(where)
            if categories[: len(points)] not in ((), points) or self.bins is not None:
                raise InputError(
                    f"{where} has a range, and categories or bins; declare one of them"
                )
            categories = points
        elif self.grid is not None or self.unit or self.outside != "refuse":
            raise InputError(
                f"{where} has a grid, unit or rule for numbers outside, and no range; declare the "
                "range, such as `range = [0, 100]`"
            )
        if self.missing is not None and self.missing not in categories:
            categories = (*categories, self.missing)
        set_field(self, "missing_codes", tuple(self.missing_codes))
        if self.missing_codes and self.missing is None:
            raise InputError(
                f'{where} has missing_codes; declare their category, such as `missing="NA"`'
            )
        if both := set(self.missing_codes) & {*categories} - {self.missing}:
            raise InputError(
                f"{where}: '{min(both)}' is both a category and a missing code; remove it "
                "from one of the two"
            )
        set_field(self, "categories", categories)
        set_field(self, "labels", dict(self.labels))
        if len(categories) < 2:
            raise InputError(
                f"{where} has {count_text(len(categories), 'category', 'categories')}; "
                f"randomized response needs at least 2"
            )
        if len(categories) > MAX_CATEGORIES:
            raise InputError(f"{where} has more than {MAX_CATEGORIES} categories")
        if "" in categories:
            raise InputError(
                f"{where}: a category is the empty text, which is a missing value; "
                'write `missing="NA"` instead'
            )
        for text in (*categories, *self.missing_codes):
            if text != text.strip(BLANKS):
                raise InputError(
                    f"{where}: '{text}' has blanks at an end, which tables ignore; remove them"
                )
        if (twice := first_duplicate(categories)) is not None:
            raise InputError(f"{where}: category '{twice}' is declared twice")
        if unknown := [c for c in self.labels if c not in categories]:
            raise InputError(
                f"{where}: the label of '{unknown[0]}' belongs to no category; remove it"
            )
        if self.scores is not None and self.range is None:
            set_field(self, "scores", self.checked_scores(self.scores))
        if self.score_margins is not None:
            set_field(self, "score_margins", self._checked_margins(where))
        for key in ("epsilon", "ratio", "importance"):
            value = getattr(self, key)
            if value is not None:
                check = check_level if key == "epsilon" else check_positive
                set_field(self, key, check(value, f"{where}, {key}"))
        self._check_response(where)

    def _check_response(self, where: str) -> None:
        answers = tuple(self.answers)
        if self.response:
            if self.levels != (None, None, None):
                raise InputError(
                    f"{where} has a response, which has the ε of its matrix; leave out epsilon, "
                    "ratio and importance"
                )
            rows = len(self.response_matrix)
            answers = answers or answer_texts(self.response, rows)
            if answers and len(answers) != rows:
                raise InputError(f"{where}: its response has {rows} answers, not {len(answers)}")
        if answers and self.parts:
            raise InputError(f"{where} is merged from columns; leave answers out")
        if "" in answers or (first_duplicate(answers)) is not None:
            raise InputError(f"{where}: its answers need distinct texts that are not empty")
        object.__setattr__(self, "answers", answers)

    @property
    def response_matrix(self) -> Matrix:
        """The matrix of :attr:`response`, ``matrix[y][x]`` = Pr[answer y | category x]."""
        try:
            return response_matrix(self.response, self.categories)
        except InputError as error:
            raise InputError(f"attribute '{self.name}': {error}") from None

    def _declare_number(self, where: str) -> tuple[str, ...]:
        """Check the range and set what follows from it; return the points of the grid as texts."""
        ends = tuple(self.range or ())
        if len(ends) != 2:
            raise InputError(f"{where}: a range has two ends, such as `range = [0, 100]`")
        set_field = object.__setattr__
        if any(isinstance(end, date) for end in ends):
            set_field(self, "dates", True)
        low, high = (float((e - EPOCH).days if isinstance(e, date) else e) for e in ends)
        set_field(self, "range", (low, high))
        if self.scores is not None or self.score_margins is not None:
            raise InputError(
                f"{where} has a range, whose points are its scores; leave the scores out"
            )
        set_field(self, "ordered", True)
        grid = self.number_grid
        assert grid is not None
        if not self.dates:
            return grid.texts
        texts = tuple(edge_text(round(point), dates=True) for point in grid.points)
        if first_duplicate(texts) is not None:
            raise InputError(f"{where}: the grid has more points than the range has days")
        return texts

    @cached_property
    def number_grid(self) -> NumberGrid | None:
        """The grid of a number; None for an attribute with categories.

        Raises:
            InputError: if the range or the number of points is invalid.
        """
        if self.range is None:
            return None
        try:
            return NumberGrid(*self.range, self.grid or GRIDS[self.purpose])
        except InputError as error:
            raise InputError(f"attribute '{self.name}': {error}") from None

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
            if part.response or part.answers:
                raise InputError(
                    f"{where}: part '{part.name}' has a response of its own; the merged attribute "
                    "is randomized as one"
                )
            if part.levels != (None, None, None):
                raise InputError(
                    f"{where}: part '{part.name}' has a level, ratio or importance of its own; "
                    f"move it to '{self.name}', which is randomized"
                )
        if (twice := first_duplicate([self.name, *(p.name for p in self.parts)])) is not None:
            raise InputError(
                f"{where}: two of its parts, or it and a part, have the name '{twice}'"
            )
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
        """Its columns in the table: its parts, or itself."""
        return self.parts or (self,)

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each part: a part's code is code // stride % size."""
        sizes = [part.n_categories for part in self.parts]
        return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))

    @property
    def levels(self) -> tuple[float | None, float | None, float | None]:
        """The requested level, ratio and importance."""
        return self.epsilon, self.ratio, self.importance

    @property
    def n_categories(self) -> int:
        """Number of categories."""
        return len(self.categories)

    def label(self, category: str) -> str:
        """Return the readable name of a category."""
        return self.labels.get(category, category)

    def names_of_categories(self) -> dict[str, str]:
        """Return the category of each text: itself, or its readable name if that is unique.

        >>> Attribute("sex", ("1", "2"), labels={"1": "male"}).names_of_categories()
        {'male': '1', '1': '1', '2': '2'}
        """
        count = Counter(self.labels.values())
        named = {label: category for category, label in self.labels.items() if count[label] == 1}
        return named | {category: category for category in self.categories}

    def checked_scores(self, scores: Sequence[float]) -> tuple[float, ...]:
        """Return given scores of the categories after checking them.

        Raises:
            InputError: if there is not one finite number per category; the category of missing
                values may be left out.
        """
        allowed = {self.n_categories, self.n_categories - (self.missing is not None)}
        if len(scores) not in allowed or not all(map(math.isfinite, scores)):
            leave_out = "; that of missing values may be left out" if len(allowed) > 1 else ""
            raise InputError(
                f"attribute '{self.name}' needs {self.n_categories} scores, one finite number per "
                f"category{leave_out}"
            )
        return tuple(float(score) for score in scores)

    def _checked_margins(self, where: str) -> tuple[float, ...]:
        margins = tuple(map(float, self.score_margins or ()))
        if self.scores is None:
            raise InputError(
                f"{where} has score_margins, the largest distances of means from scores; declare "
                "scores too"
            )
        if len(margins) != len(self.scores) or not all(0 <= m < math.inf for m in margins):
            raise InputError(
                f"{where} needs {len(self.scores)} score_margins, one finite number from 0 on per "
                "score"
            )
        return margins

    def score_ranges(self) -> tuple[tuple[float, float] | None, ...] | None:
        """Return the range of the mean of each category by its score and margin, None for missing
        values without a score; or None without margins.

        >>> hours = Attribute("hours", bins=(0, 20, 40), scores=(11, 30), score_margins=(2, 12))
        >>> hours.score_ranges()
        ((9.0, 13.0), (20.0, 40.0))
        """
        if self.scores is None or self.score_margins is None:
            return None
        # The mean of the numbers in a bin lies in it.
        limits = [(-math.inf, math.inf)] * len(self.scores)
        if self.bins is not None:
            limits[: len(self.bins) - 1] = pairwise(self.bins)
        rows = zip(self.scores, self.score_margins, limits, strict=True)
        return self._with_missing(
            tuple((max(score - m, low), min(score + m, high)) for score, m, (low, high) in rows)
        )

    def category_scores(
        self, given: Sequence[float] | None = None
    ) -> tuple[float | None, ...] | None:
        """Return one number per category, None for missing values without a score, which are
        excluded; or None without scores. The scores of a number are the points of its grid.

        Args:
            given: instead of the declared scores.

        Raises:
            InputError: as :meth:`checked_scores`.
        """
        scores = self.scores if given is None else self.checked_scores(given)
        if scores is None and self.number_grid is not None:
            scores = self.number_grid.points
        return None if scores is None else self._with_missing(scores)

    def answer_values(self) -> tuple[float | None, ...] | None:
        """Return the numbers that a matrix releases, None for missing values; or None if its
        answers are no numbers.

        Examples:
            >>> Attribute("share", range=(0, 1), grid=2, answers=("-0.5", "1.5")).answer_values()
            (-0.5, 1.5)
        """
        texts = [None if text == self.missing else text for text in self.answers]
        try:
            values = tuple(None if text is None else float(text) for text in texts)
        except ValueError:
            return None
        return values or None

    def bounds(self) -> tuple[tuple[float, float] | None, ...] | None:
        """Return the edges of each category's interval, None for missing values; or None without
        bins.

        >>> Attribute("age", bins=(18.0, 65.0, float("inf"))).bounds()
        ((18.0, 65.0), (65.0, inf))
        """
        return None if self.bins is None else self._with_missing(tuple(pairwise(self.bins)))

    def middles(self) -> tuple[float | None, ...] | None:
        """Return the middle of each interval, None for missing values; or None without bins.

        Raises:
            InputError: if an interval is unbounded.
        """
        if self.bins is None:
            return None
        if math.isinf(self.bins[0]) or math.isinf(self.bins[-1]):
            raise InputError(
                f"attribute '{self.name}' has an unbounded interval, which has no middle; "
                "give one score per interval"
            )
        return self._with_missing(tuple((low + high) / 2 for low, high in pairwise(self.bins)))

    def _with_missing(self, values: tuple[_Value, ...]) -> tuple[_Value | None, ...]:
        # ``values``: of all categories, or of all but that of missing values.
        if self.missing is None or len(values) == self.n_categories:
            return values
        place = self.categories.index(self.missing)
        return (*values[:place], None, *values[place:])


def _checked_edges(bins: Sequence[float], where: str) -> tuple[float, ...]:
    edges = tuple(float((edge - EPOCH).days if isinstance(edge, date) else edge) for edge in bins)
    if len(edges) < 3:
        raise InputError(f"{where}: bins need at least three edges, for two intervals")
    if not all(math.isfinite(edge) for edge in edges[1:-1]) or any(map(math.isnan, edges)):
        raise InputError(
            f"{where}: a bin edge is not a number; only the first may be -inf and the last inf"
        )
    if any(high <= low for low, high in pairwise(edges)):
        raise InputError(f"{where}: bin edges must increase")
    return edges


def category_text(value: str | float | bool | date) -> str:
    """Return the text of a category: integers in decimal, booleans as true or false, dates as
    2025-12-31."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
