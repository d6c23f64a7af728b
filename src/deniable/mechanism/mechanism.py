"""A mechanism: a schema and a tuple of independent blocks, frozen.

The sampler, the accountant and the estimator all read this one description.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import nan
from typing import TypeVar

import numpy as np

from deniable.errors import InputError
from deniable.laws.forms import PublishedForms
from deniable.laws.law import Law, checked_arithmetic
from deniable.laws.matrix import MatrixChannel
from deniable.mechanism import privacy
from deniable.schema import Schema
from deniable.schema.names import set_mark

_T = TypeVar("_T")

BOUNDED_ROUNDING = 1e-12
"""Relative, and in nats below one nat."""


@dataclass(frozen=True)
class Block:
    """A group of attributes with one law, independent of the other groups."""

    attributes: tuple[int, ...]
    law: Law


@dataclass(frozen=True)
class Claim:
    """The levels that a mechanism claims to keep, in nats; inf if unbounded.

    ``attribute_epsilon``: per attribute, against an observer of that column alone, shape (k,).
    ``epsilon_given_rest``: per attribute, against an observer of the whole released record with
    knowledge of all other true values, shape (k,).
    """

    epsilon: float
    attribute_epsilon: tuple[float, ...]
    epsilon_given_rest: tuple[float, ...]


@dataclass(frozen=True)
class Mechanism:
    """A complete randomization of a schema's rows; construction checks its claim.

    Args:
        schema: the attributes.
        blocks: their laws; every attribute belongs to exactly one block.
        claim: upper limits that the laws must keep; None for no claim.

    Raises:
        InputError: if the blocks do not cover the schema, or a claim does not hold.

    Examples:
        >>> from deniable.laws import ProductLaw
        >>> mechanism = Mechanism.of(ProductLaw.from_levels((2, 4), (1.0, 2.0)))
        >>> [round(level, 4) for level in (mechanism.epsilon, *mechanism.attribute_epsilon)]
        [3.0, 1.0, 2.0]
        >>> mechanism.subset_epsilon(["a1"]) == mechanism.promise().attribute_epsilon[0]
        True
        >>> mechanism.check_samplers()
        >>> mechanism.block_of(1)[1], mechanism.rounding(1.0) < 1e-8
        (1, True)
    """

    schema: Schema
    blocks: tuple[Block, ...]
    claim: Claim | None = None

    @classmethod
    def of(cls, law: Law, schema: Schema | None = None) -> "Mechanism":
        """Return the mechanism of one law on a schema, by default on anonymous attributes."""
        block = Block(tuple(range(len(law.n_categories))), law)
        return cls(Schema.anonymous(law.n_categories) if schema is None else schema, (block,))

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))
        covered = sorted(i for block in self.blocks for i in block.attributes)
        if covered != list(range(len(self.schema.attributes))):
            raise InputError("every attribute of the schema must be in exactly one block")
        protected = set(self.schema.protected)
        for block in self.blocks:
            declared = tuple(self.schema.n_categories[i] for i in block.attributes)
            if block.law.n_categories != declared:
                raise InputError(
                    "the mechanism and the schema disagree on the number of categories of "
                    + ", ".join(f"'{self.schema.names[i]}'" for i in block.attributes)
                )
            as_it_is = block.law.kept_as_it_is
            if any((i not in protected) != as_it_is for i in block.attributes):
                raise InputError(
                    "exactly the columns under keep in the schema are released unchanged"
                )
            self._check_responses(block)
        published = [b.law for b in self.blocks if isinstance(b.law, PublishedForms)]
        if len(published) > 1:
            raise InputError("a mechanism has one set of forms")
        for block in self.blocks:
            if isinstance(block.law, PublishedForms):
                broad = [self.schema.attributes[block.attributes[i]] for i in block.law.sets]
                if merged := [attribute.name for attribute in broad if attribute.parts]:
                    raise InputError(
                        f"'{merged[0]}' is released as several columns; answers that name sets "
                        "need one column"
                    )
        taken = {*self.schema.columns, *self.schema.names, *self.schema.keep}
        if published and published[0].column in taken:
            raise InputError(
                f"the column '{published[0].column}' is in the schema and cannot hold the number "
                "of the form; choose another name"
            )
        if self.claim is not None:
            self._check(self.claim)

    def _check_responses(self, block: Block) -> None:
        """Raise unless the declared responses are the laws, with a text for every answer."""
        for attribute in (self.schema.attributes[i] for i in block.attributes):
            if attribute.response and block.law != MatrixChannel.from_fractions(
                attribute.response_matrix
            ):
                raise InputError(
                    f"the schema declares the response '{attribute.response}' of "
                    f"'{attribute.name}', and the mechanism has another law"
                )
            if attribute.answers and (
                not isinstance(block.law, MatrixChannel)
                or block.law.n_outputs != (len(attribute.answers),)
            ):
                raise InputError(
                    f"the schema declares {len(attribute.answers)} answers of '{attribute.name}', "
                    "which need a response matrix with this number of answers"
                )

    def _check(self, claim: Claim) -> None:
        k = len(self.schema.attributes)
        if len(claim.attribute_epsilon) != k or len(claim.epsilon_given_rest) != k:
            raise InputError(f"a claim needs two levels for each of the {k} attributes")
        checks = [("the whole record", self.epsilon, claim.epsilon)]
        for name, alone, stated, given_rest, stated_given_rest in zip(
            self.schema.names,
            self.attribute_epsilon,
            claim.attribute_epsilon,
            self.epsilon_given_rest,
            claim.epsilon_given_rest,
            strict=True,
        ):
            checks.append((f"attribute '{name}' alone", alone, stated))
            checks.append((f"attribute '{name}' given the rest", given_rest, stated_given_rest))
        for subject, true, stated in checks:
            # Written so that NaN is refused too.
            if not true <= stated + self.rounding(stated):
                raise InputError(
                    f"the mechanism breaks its claim: ε of {subject} is {true:.9g}, "
                    f"not {stated:.9g}"
                )

    @cached_property
    def epsilon(self) -> float:
        """ε of the whole record, over the protected attributes, in nats, rounded up.

        Neighbouring records agree on the unchanged columns.
        """
        return privacy.compose(
            privacy.record_epsilon(block.law)
            for block in self.blocks
            if not block.law.kept_as_it_is
        )

    @cached_property
    def attribute_epsilon(self) -> tuple[float, ...]:
        """ε per attribute against an observer of that column alone, shape (k,), in nats."""
        return self._in_schema_order(privacy.attribute_epsilon(b.law) for b in self.blocks)

    @cached_property
    def epsilon_given_rest(self) -> tuple[float, ...]:
        """ε per attribute against an observer of the whole released record with knowledge of all
        other true values, shape (k,), in nats."""
        return self._in_schema_order(privacy.epsilon_given_rest(b.law) for b in self.blocks)

    @cached_property
    def given_rest_at_most(self) -> tuple[bool, ...]:
        """Per attribute whether :attr:`epsilon_given_rest` is a bound that may lie over one per
        cent above the true level, shape (k,)."""
        return self._in_schema_order(privacy.given_rest_at_most(b.law) for b in self.blocks)

    def subset_epsilon(self, names: Iterable[str]) -> float:
        """Return ε against an observer of these columns of the release only, in nats.

        Unchanged columns count as known and are left out.

        Raises:
            InputError: if a name is unknown or given twice.
        """
        positions = self.schema.positions(names)
        return privacy.compose(
            privacy.record_epsilon(
                block.law, [block.attributes.index(i) for i in positions if i in block.attributes]
            )
            for block in self.blocks
            if not block.law.kept_as_it_is
        )

    @cached_property
    def attribute_epsilon_floor(self) -> tuple[float, ...]:
        """ε per attribute against an observer of that column alone, rounded down, shape (k,), in
        nats."""
        return self._in_schema_order(privacy.attribute_epsilon_floor(b.law) for b in self.blocks)

    def rounding(self, level: float) -> float:
        """Return the largest difference from another machine's account of this level.

        0 for exact laws, which use integers only. A law with error bounds has margins far wider
        than the last places in which two machines' exponentials differ.
        """
        bounded = any(not block.law.exact for block in self.blocks)
        return BOUNDED_ROUNDING * max(1.0, level) if bounded else 0.0

    @cached_property
    def keep_probability(self) -> tuple[float, ...]:
        """Probability that an attribute is released unchanged, shape (k,), from 0 to 1 despite the
        rounding of its law's sums; NaN where the released values are not categories."""
        kept = self._in_schema_order(
            tuple(np.clip(b.law.keep_probabilities(), 0.0, 1.0).tolist()) for b in self.blocks
        )
        named = (a.answers for a in self.schema.attributes)
        return tuple(nan if texts else p for p, texts in zip(kept, named, strict=True))

    @cached_property
    def unprotected(self) -> tuple[str, ...]:
        """Columns without a bound: the unchanged ones, and attributes of unbounded ε."""
        unbounded = [
            name
            for name, level in zip(self.schema.names, self.attribute_epsilon, strict=True)
            if level == float("inf") and name not in self.schema.keep
        ]
        return (*self.schema.keep, *unbounded)

    @cached_property
    def n_outputs(self) -> tuple[int, ...]:
        """Number of values of each released attribute, shape (k,)."""
        return self._in_schema_order(b.law.n_outputs for b in self.blocks)

    @cached_property
    def output_labels(self) -> tuple[tuple[str, ...], ...]:
        """Labels of each attribute's released values: its answers or its categories, or, if
        a response matrix has more outputs than categories, "answer 1", "answer 2", …; under forms
        whose answers name sets, the categories and then, for each set, the number of its list and
        its first category, "2:single"."""
        return tuple(self._labels_of(i) for i in range(len(self.schema.attributes)))

    def _labels_of(self, position: int) -> tuple[str, ...]:
        attribute, count = self.schema.attributes[position], self.n_outputs[position]
        categories = attribute.categories
        if attribute.answers:
            return attribute.answers
        if count == len(categories):
            return categories
        block, place = self.block_of(position)
        if isinstance(block.law, PublishedForms):
            mark, numbers = set_mark(categories), range(1, 1 + len(block.law.sets[place].lists))
            sets = (f"{number}{mark}{first}" for number in numbers for first in categories)
            return (*categories, *sets)
        return tuple(f"answer {j}" for j in range(1, count + 1))

    def check_samplers(self) -> None:
        """Raise unless the samplers' tables match the laws.

        Tables of integers must equal the law's. Those of laws with error bounds must keep the
        stated levels: checked in fractions for up to six attributes, by forward and backward sums
        for more.

        Raises:
            InputError: if a table is not its law's.
        """
        for block in self.blocks:
            with checked_arithmetic():
                as_stated = block.law.sampler().draws(block.law)
            if not as_stated:
                raise InputError(
                    "the sampler's table of "
                    + ", ".join(f"'{self.schema.names[i]}'" for i in block.attributes[:12])
                    + " differs from the stated law; discard everything made with this mechanism"
                )

    @cached_property
    def forms(self) -> PublishedForms | None:
        """The published forms, if any; each row has one, and its number is released."""
        return next((b.law for b in self.blocks if isinstance(b.law, PublishedForms)), None)

    @property
    def positions_under_forms(self) -> tuple[int, ...]:
        """Positions in the schema of the attributes under forms, in the order of their block."""
        return next((b.attributes for b in self.blocks if b.law is self.forms), ())

    @property
    def form_column(self) -> str | None:
        """Name of the released column with each row's form, if there are forms."""
        return None if self.forms is None else self.forms.column

    def under(self, form: int, asked: Sequence[int] | None = None) -> "Mechanism":
        """Return the mechanism of the rows that have one of several forms.

        Args:
            form: its number, from 0.
            asked: if the form draws its attributes, the places in its block of the included ones;
                the law is then that of these.

        Examples:
            >>> import deniable
            >>> made = deniable.design(Schema.anonymous((2, 5)), epsilon=2, method="forms", pairs=0)
            >>> [round(level, 3) for level in made.mechanism.under(0).attribute_epsilon]
            [0.0, 2.0]
        """
        assert self.forms is not None
        law = self.forms.forms[form]
        law = law if asked is None else law.given(asked)
        blocks = (Block(b.attributes, law) if b.law is self.forms else b for b in self.blocks)
        return replace(self, blocks=tuple(blocks), claim=None)

    def form_for(self, text: str, salt: str) -> int:
        """Return a person's form by a public rule, so that the collector can assign it and refuse
        rows with another one: respondents who choose their form bias shares further.

        If texts are distinct, forms have their published shares. Attributes that a form draws are
        not decided by this rule.

        Args:
            text: unique to the person, such as the code of an invitation; no answer.
            salt: of this collection, public, fixed before there are texts.

        Returns:
            The number of the form in the release, from 1.

        Raises:
            InputError: if the mechanism has no forms.

        Examples:
            >>> import deniable
            >>> made = deniable.design(Schema.anonymous((2, 5)), epsilon=2, method="forms", pairs=0)
            >>> [made.mechanism.form_for(f"invitation {i}", "spring survey") for i in range(8)]
            [2, 2, 1, 2, 2, 1, 1, 2]
        """
        if self.forms is None:
            raise InputError("the mechanism has no forms to assign")
        first, second = salt.encode(), text.encode()
        hashed = hashlib.sha256(len(first).to_bytes(8, "big") + first + second).digest()
        drawn = int.from_bytes(hashed, "big") << self.forms.bits
        ends = accumulate(self.forms.shares)
        return 1 + sum(drawn >= end << 256 for end in ends)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the attributes and their laws, in hexadecimal; titles and claims are left
        out."""
        laws = [
            [[self.schema.names[i] for i in block.attributes], block.law.to_plain()]
            for block in self.blocks
        ]
        categories = [list(a.categories + a.answers) for a in self.schema.attributes]
        return hashlib.sha256(json.dumps([categories, laws], sort_keys=True).encode()).hexdigest()

    def promise(self) -> Claim:
        """Return the tightest claim that holds, from the privacy account."""
        return Claim(self.epsilon, self.attribute_epsilon, self.epsilon_given_rest)

    def block_of(self, position: int) -> tuple[Block, int]:
        """Return the block that holds an attribute, and the attribute's place in it."""
        for block in self.blocks:
            if position in block.attributes:
                return block, block.attributes.index(position)
        raise IndexError(position)

    def _in_schema_order(self, per_block: Iterable[Sequence[_T]]) -> tuple[_T, ...]:
        values: dict[int, _T] = {}
        for block, own in zip(self.blocks, per_block, strict=True):
            values.update(zip(block.attributes, own, strict=True))
        return tuple(values[i] for i in range(len(self.schema.attributes)))
