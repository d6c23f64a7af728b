"""The mechanisms of a release: one for each stratum, most often one for the whole table.

Why the least protected stratum decides: docs/proofs/accounting.md, Theorem 3.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from deniable.errors import InputError
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Schema


@dataclass(frozen=True)
class Strata:
    """A mechanism for each stratum of a table; guarantees hold within a stratum.

    The column that forms the strata is released unchanged, so that neighbouring records lie in one
    stratum, and every level is that of the least protected one. An undivided table is one stratum
    (:meth:`one`).
    """

    mechanisms: Mapping[str, Mechanism]
    column: str | None = None

    def __post_init__(self) -> None:
        if not self.mechanisms:
            raise InputError("the release has no stratum and so no mechanism")
        if any(m.schema != self.schema for m in self.mechanisms.values()):
            raise InputError("the mechanisms of the strata are for different schemas")
        if self.column is None:
            if len(self.mechanisms) > 1:
                raise InputError("a table that no column divides has one mechanism")
        elif self.column not in self.schema.keep:
            raise InputError(
                f"'{self.column}' forms the strata and is released unchanged; list it under keep"
            )

    @classmethod
    def one(cls, mechanism: Mechanism) -> "Strata":
        """Return the single stratum of an undivided table."""
        return cls({"": mechanism})

    @classmethod
    def by_value(cls, mechanisms: Mapping[str, Mechanism], column: str) -> "Strata":
        """Return the strata by the values of a kept column, whose mechanisms may have declared
        different responses of the same attributes."""
        plain = {}
        for value, mechanism in mechanisms.items():
            attributes = (replace(a, response="") for a in mechanism.schema.attributes)
            schema = replace(mechanism.schema, attributes=tuple(attributes))
            plain[value] = replace(mechanism, schema=schema)
        if len({m.output_labels for m in plain.values()}) > 1:
            raise InputError("the mechanisms of the strata have different answers")
        return cls(plain, column)

    def mechanism_of(self, stratum: str) -> Mechanism:
        """Return the mechanism of a stratum's rows."""
        if self.column is None:
            return self._first
        if stratum not in self.mechanisms:
            raise InputError(
                f"'{self.column}' has a value for which the record has no mechanism; the rows "
                "are not those of this release"
            )
        return self.mechanisms[stratum]

    @property
    def _first(self) -> Mechanism:
        return next(iter(self.mechanisms.values()))

    @property
    def schema(self) -> Schema:
        """The schema of all strata."""
        return self._first.schema

    @property
    def epsilon(self) -> float:
        """ε of the whole record in the least protected stratum, in nats."""
        return max(m.epsilon for m in self.mechanisms.values())

    @property
    def attribute_epsilon(self) -> tuple[float, ...]:
        """ε per attribute seen alone, in the least protected stratum, shape (k,), in nats."""
        return _largest(m.attribute_epsilon for m in self.mechanisms.values())

    @property
    def epsilon_given_rest(self) -> tuple[float, ...]:
        """ε per attribute given the rest, in the least protected stratum, shape (k,), in nats."""
        return _largest(m.epsilon_given_rest for m in self.mechanisms.values())

    @property
    def unprotected(self) -> tuple[str, ...]:
        """Columns without a bound in some stratum."""
        return tuple(dict.fromkeys(n for m in self.mechanisms.values() for n in m.unprotected))

    @property
    def n_outputs(self) -> tuple[int, ...]:
        """Number of values of each released attribute, shape (k,); equal in all strata."""
        return self._first.n_outputs

    @property
    def output_labels(self) -> tuple[tuple[str, ...], ...]:
        """The texts of each attribute's released values; alike in all strata."""
        return self._first.output_labels


def _largest(levels: Iterable[Sequence[float]]) -> tuple[float, ...]:
    return tuple(map(max, zip(*levels, strict=True)))
