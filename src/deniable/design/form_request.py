"""Options of a request for a total, among them those of split questionnaires."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from deniable.statement.caps import GivenRest


@dataclass(frozen=True)
class FormRequest:
    """Options of a request besides the total.

    Args:
        importance: of single attributes, by name; adds to the schema's.
        at_most: largest level of single attributes alone in nats, by name.
        pairs: weight of tables of two attributes against shares, 0 to 1.
        max_questions: largest number of attributes in a form; None for the default limit.
        column: the column of the release that holds the number of the form.
        given_rest: cap on ``epsilon_given_rest``.
    """

    importance: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    pairs: float | None = None
    max_questions: int | None = None
    column: str | None = None
    given_rest: GivenRest = None

    def __bool__(self) -> bool:
        """Whether an option for forms only is given."""
        return self.max_questions is not None or self.column is not None
