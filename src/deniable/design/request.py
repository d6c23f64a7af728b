"""Requests for designs, with which every interface states its options.

Light to import: the command line makes its options from the fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deniable._checks import check_fields

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from deniable.laws import MatrixChannel

    Matrix = NDArray[np.float64] | MatrixChannel
else:
    Matrix = Any

PerAttribute = float | Mapping[str, float] | None
"""One number for every attribute that has none of its own, or numbers by name."""
Levels = Sequence[float] | Mapping[str, float] | None
"""One number per attribute, in the schema's order or by name."""
Caps = str | float | Sequence[float | None] | None
"""Caps on ``epsilon_given_rest``: a multiple such as ``"2x"``, ``"none"``, nats for all or each."""
PairFractions = Mapping[tuple[str, str], float]
Matrices = Mapping[str, Matrix]


@dataclass(frozen=True)
class StrengthRequest:
    """The strength of a randomization, in terms other than ε.

    A preserved fraction is λ_a λ_b (Ruiz, equation (9)), the strength H(P)/log₂ a (Definition 1);
    ``matrices[name][y, x]`` is Pr[output y | input x].

    Args:
        attenuation: λ, attenuation of an attribute, between 0 and 1.
        strength: least entropy of the response over its maximum, between 0 and 1.
        preserve: least fraction of a covariance to preserve, by pair of attributes.
        matrices: response matrices by attribute, of probabilities, one row per true category. The
            other fields are for the attributes without a matrix and without a response.

    Examples:
        >>> StrengthRequest().is_empty, StrengthRequest(attenuation=0.5).attenuation
        (True, 0.5)
    """

    attenuation: PerAttribute = None
    strength: PerAttribute = None
    preserve: PairFractions = field(default_factory=dict)
    matrices: Matrices = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def is_empty(self) -> bool:
        """Whether no strength is requested."""
        given = self.attenuation is not None or self.strength is not None
        return not (given or self.preserve or self.matrices)


@dataclass(frozen=True, kw_only=True)
class DesignRequest(StrengthRequest):
    """A request for a design: levels, a total or strengths, and options of the method.

    A total is divided by the schema's ratios if it has any; else, under ``balanced``, so that
    (1 − pairs) log(variance of shares) + pairs log(variance of cells of two attributes) is
    smallest; under ``optimal``, so that the sum over attributes of importance times the averaged
    variance of a share is; else in equal levels. Strengths are for method ``lambda`` (independent
    responses) and ``joint`` (one response on whole records, which takes one of ``epsilon``,
    ``attenuation`` and ``strength``).

    Args:
        epsilon: total for the whole record, in nats, divided among attributes.
        attribute_epsilon: level per attribute in nats, in place of those of the schema.
        method: method that finds the law; default: ``balanced``, or ``lambda`` with strengths.
        given_rest: cap on ε given the rest of the record: 2x its own ε (method forms: 0.75e, a
            part of the record's), nats, per attribute, or none; for methods balanced, lp and
            forms.
        pair_floor: least attenuation of a pair over the product of its two, 0 to 1, 0 for none,
            so that pairs can be estimated; for methods balanced (levels or ratios) and lp.
        importance: weight of the accuracy of an attribute, default 1, when a total is divided;
            adds to the schema's.
        at_most: largest level of single attributes in nats, when a total is divided.
        pairs: weight of tables of two attributes against shares, 0 to 1, for method forms and
            balanced with a total; default 0.2; at 0 some pairs cannot be estimated.
        max_questions: largest number of attributes in a form, 1 to 12, for method forms; default
            9, or any number of exchangeable attributes.
        form_column: column of the release with the number of the form, for method forms; default:
            form, if not taken.
        response: randomized response designs of attributes by name: warner:P, forced:P,YES,NO,
            unrelated:P,Q, crosswise:P, triangular:P, kuk:YES,NO[,N], mangat:P or disguised:P; as
            ``response`` in the schema.
        allow_changed_levels: accept a law that misses requested levels; they are listed.

    Raises:
        InputError: if a value has another type.

    Examples:
        >>> DesignRequest(epsilon=2, importance={"age": 3}).method is None
        True
    """

    epsilon: float | None = None
    attribute_epsilon: Levels = None
    method: str | None = None
    given_rest: Caps = None
    pair_floor: float | None = None
    importance: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    pairs: float | None = None
    max_questions: int | None = None
    form_column: str | None = None
    response: Mapping[str, str] = field(default_factory=dict)
    allow_changed_levels: bool = False
