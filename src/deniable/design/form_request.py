"""What a request for a split questionnaire says besides the total."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deniable.statement.caps import GivenRest

Broad = Literal["auto", "never"]
"""Whether answers under forms name sets of categories: where that gains, or never."""

DEFAULT_BROAD: Broad = "auto"


@dataclass(frozen=True)
class FormRequest:
    """What a method that divides people among forms is told besides the total.

    Args:
        importance: of single attributes, by name; adds to the schema's.
        at_most: largest level of single attributes alone in nats, by name.
        pairs: how much tables of two attributes count against shares, 0 to 1.
        asked: most attributes that a form may ask; None for what is best of what can be found.
        column: the column of the release that holds the number of the form.
        given_rest: cap on ``epsilon_given_rest``.
        broad: whether answers may name sets of categories; `DEFAULT_BROAD` if not given.
    """

    importance: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    pairs: float | None = None
    asked: int | None = None
    column: str | None = None
    given_rest: GivenRest = None
    broad: Broad | None = None

    def __bool__(self) -> bool:
        """Whether something is asked for that is for forms only."""
        return any(each is not None for each in (self.pairs, self.asked, self.column, self.broad))
