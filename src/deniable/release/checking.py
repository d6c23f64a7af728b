"""All reasons to refuse a release, collected before any draw or write."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from deniable.errors import InputError
from deniable.ledger import Spending
from deniable.mechanism.privacy import finite_or_none
from deniable.release.persons import refuse_rows_of_person
from deniable.release.release import (
    Layout,
    Options,
    Progress,
    check_ledger,
    check_output,
    given_back,
    look_at,
    open_rows,
    refuse_drafted,
    refuse_person,
)
from deniable.schema import Schema
from deniable.tables.reading import as_it_was, can_be_read_again


@dataclass(frozen=True)
class Problem:
    """A reason to refuse a release."""

    at: str
    sentence: str


class Problems:
    """Collects reasons, each once."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Record an InputError of the block as a reason about an argument."""
        try:
            yield
        except InputError as error:
            if str(error) not in [problem.sentence for problem in self.found]:
                self.found.append(Problem(name, str(error)))

    def refuse(self) -> None:
        """Raise if there is a reason."""
        sentences = [problem.sentence.replace("\n  ", "\n    ") for problem in self.found]
        if len(sentences) > 1:
            listed = "\n  ".join(sentences)
            raise InputError(f"refused for {len(sentences)} reasons:\n  {listed}")
        for problem in self.found:
            raise InputError(problem.sentence)


@dataclass
class Check:
    """Checks of a requested release."""

    schema: Schema
    output: Path
    options: Options
    problems: Problems
    spending: Spending | None = None
    numeric: Sequence[str] = ()
    rows: int | None = None
    rows_of_person: int = 1
    dropped: list[str] = field(default_factory=list)

    def request(self) -> None:
        """Check the request as far as it needs no table."""
        options, at = self.options, self.problems.at
        with at("output"):
            check_output(self.output, overwrite=options.overwrite)
        with at("ledger"):
            check_ledger(self.output, options.people)
        self._budget()
        with at("accept_drafted"):
            refuse_drafted(self.schema, options)
        with at("person"):
            refuse_person(options, Layout(self.schema, (), tuple(self.numeric)))

    def _budget(self) -> None:
        """Check the budget against all rows of a person, as far as these are known."""
        whose = self.options.people
        if whose is not None and self.spending is not None:
            with self.problems.at("ledger"):
                spending = self.spending.of_rows(self.rows_of_person)
                whose.check(spending, given_back(self.output, whose))

    def columns(self, source: Any) -> None:
        """Check the names and types of a table's columns, unless it is a stream."""
        a_file = isinstance(source, str | os.PathLike) and source != "-"
        if not (can_be_read_again(source) or (a_file and not os.path.lexists(source))):
            return
        with (
            self.problems.at("table"),
            as_it_was(source),
            open_rows(source, self.schema, self.options, self.numeric) as reader,
        ):
            known = {*self.schema.columns, *self.schema.keep, *self.numeric, *self.options.persons}
            self.dropped = [name for name in reader.all_names if name not in known]

    def refuse_before_rows(self, source: Any) -> None:
        """Check everything known before rows are read."""
        self.request()
        if self.problems.found:
            self.columns(source)
        self.problems.refuse()

    def look(self, source: Any, progress: Progress = lambda _fraction: None) -> None:
        """Compare all rows with the schema, also after other reasons were found."""
        settled = self.options
        if self.problems.found:
            settled = replace(settled, accept_drafted=True, drop_other_columns=True)
        rows_of = Counter[Any]() if settled.persons and self.spending else None
        with self.problems.at("table"):
            self.rows = look_at(source, self.schema, settled, self.numeric, progress, rows_of)
        if not rows_of or self.spending is None:
            return
        self.rows_of_person = max(rows_of.values())
        with self.problems.at("person_epsilon"):
            refuse_rows_of_person(
                self.rows_of_person, self.spending.epsilon, *settled.rows_of_person
            )
        if "ledger" not in [problem.at for problem in self.problems.found]:
            self._budget()

    def to_plain(self) -> dict[str, Any]:
        """Return the release and the reasons against it as plain values."""
        options, whose = self.options, self.options.people
        plain: dict[str, Any] = {
            "output": str(self.output),
            "replaces": self.output.exists(),
            "epsilon": None if self.spending is None else finite_or_none(self.spending.epsilon),
            "rows": self.rows,
            "rows_of_person": self.rows_of_person,
            "drafted": list(self.schema.drafted),
            "dropped": self.dropped,
            "kept": list(self.schema.keep),
            "key": None if options.signer is None else options.signer.public,
            "ledger": None,
        }
        if whose is not None and self.spending is not None:
            with self.problems.at("ledger"):
                spending = self.spending.of_rows(self.rows_of_person)
                plain["ledger"] = whose.outlook(spending, given_back(self.output, whose))
        return plain | {"problems": [asdict(problem) for problem in self.problems.found]}
