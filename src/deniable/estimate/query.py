"""The base class of queries, which select and count rows and estimate from the counts.

Queries are in the modules of their results.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar, cast

from deniable._checks import check_fields
from deniable.errors import InputError
from deniable.estimate.columns import Answers, Tabular
from deniable.estimate.source import Release
from deniable.estimate.survey import NO_SAMPLE, SampleColumns
from deniable.estimate.tabulate import Counts
from deniable.schema import Schema
from deniable.schema.names import names_of
from deniable.tables.selection import Selection
from deniable.tables.selection import Where as Where
from deniable.tables.selection import value_among as value_among

Answer = TypeVar("Answer", bound=Tabular)


@dataclass(frozen=True)
class Query(ABC, Generic[Answer]):
    """A query of some attributes of a release.

    A new query is a subclass with :meth:`answer`, from counts to results, and :meth:`to_plain`
    unless results have a ``to_plain(level)`` of their own.

    Args:
        of: attributes, as a list or one text: ``a`` or ``a,b``, a name with a comma in double
            quotes. Parts of merged attributes count as attributes.
        by: attributes or kept columns that form subgroups, written like the attributes.
        where: conditions on kept columns, by which rows are selected.
        weights: kept column with a weight per row; rows without one are left out.
        level: probability that an interval holds.
        answered: only respondents whose true value is the declared missing category of none of
            these attributes.

    Raises:
        InputError: if no attribute is named, or the query does not take ``answered``.
    """

    takes_answered: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    of_all: ClassVar[bool] = False
    """Whether no name in ``of`` means all attributes."""
    lists: ClassVar[tuple[str, ...]] = ()
    """Other fields that take a list or one text."""

    of: Sequence[str]
    _: KW_ONLY
    by: Sequence[str] = ()
    where: Where = None
    weights: str | None = None
    level: float = 0.95
    answered: bool = False

    def __post_init__(self) -> None:
        for name in ("of", "by", *self.lists):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, names_of(given, name))
        check_fields(self)
        if self.answered and not self.takes_answered:
            raise InputError(
                "`answered` is for shares, means, quantiles, covariances, comparisons, models and "
                "the test of independence, not for this query"
            )
        if self.weights is not None and not self.takes_weights:
            raise InputError(f"{type(self).__name__} takes no weights; leave them out")
        if not (self.of or self.of_all):
            raise InputError("no attribute is named; name one or more in `of`")

    @property
    def sample(self) -> SampleColumns:
        """The columns that describe a sample."""
        return NO_SAMPLE

    @abstractmethod
    def answer(self, counts: Counts) -> Sequence[Answer]:
        """Return the results for one group of rows."""

    def to_plain(self, answers: Sequence[Answer]) -> dict[str, Any]:
        """Return one answer as plain values for strict JSON, and several under ``groups``."""
        return one_or_groups([cast(Any, answer).to_plain(self.level) for answer in answers])

    def run(self, release: Release) -> Answers[Answer]:
        """Return the results for every group of rows, in the order of the groups' values."""
        (answers,) = run_together([self], release)
        return answers

    def selection(self, counts: Counts) -> Selection:
        """Return the selection of rows and respondents."""
        if not self.answered:
            return counts.selection
        schema = counts.schema
        names = [n for n in (*self.of, *self.by) if n in schema.names or n in schema.columns]
        missing = [n for n in names if schema.variable(n).attribute.missing is not None]
        if not missing:
            raise InputError(
                f"none of {', '.join(names)} has a declared missing category; leave `answered` out"
            )
        return replace(counts.selection, answered=tuple(missing))

    def subgroups(self, schema: Schema) -> list[str]:
        """Return those names of ``by`` that are attributes, or parts of merged ones."""
        return [name for name in self.by if name in schema.names or name in schema.columns]


@dataclass(frozen=True, kw_only=True)
class SampleQuery(Query[Answer]):
    """A query whose errors may be those of a survey sample.

    Args:
        cluster: kept column with the cluster of each row (primary sampling unit), for the errors of
            a survey, of the population.
        strata: kept column with the stratum of each row, within which clusters were drawn.
    """

    cluster: str | None = None
    strata: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sample.names and getattr(self, "target", "population") == "table":
            raise InputError(
                "`cluster` and `strata` are for errors of the population that a sample was drawn "
                "from; set `target` to population"
            )

    @property
    def sample(self) -> SampleColumns:
        """The columns that describe the sample."""
        return SampleColumns(self.cluster, self.strata)


def refuse_randomized_groups(schema: Schema, by: Sequence[str], subject: str) -> None:
    """Raise if a name is not a kept column."""
    for name in by:
        if name not in schema.keep:
            schema.variables([name])
            raise InputError(
                f"{subject} not tested within subgroups of '{name}', which is randomized; group by "
                "a kept column"
            )


def run_together(queries: Sequence[Query[Answer]], release: Release) -> list[Answers[Answer]]:
    """Return the results of several queries of the same rows, which are read once."""
    first = queries[0]
    schema = release.strata.schema
    subgroups = first.subgroups(schema)
    counted = release.count_tables(
        [[*query.of, *subgroups] for query in queries],
        by=[name for name in first.by if name not in subgroups],
        where=first.where,
        weights=first.weights,
        sample=first.sample,
    )
    return [
        Answers(
            (answer for counts in groups for answer in query.answer(counts)),
            query.selection(groups[0]),
        )
        for query, groups in zip(queries, counted, strict=True)
    ]


def one_or_groups(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the plain values of one result, or those of several under ``groups``."""
    return answers[0] if len(answers) == 1 else {"groups": list(answers)}
