"""The plain-value record of a mechanism: stored, published, and checked when it is read.

A record contains the integers that the sampler draws from, so every number in it can be recomputed.
Reading recomputes all of them: levels are a function of the integers alone and the same on every
machine, so a record whose statements differ from its law has been altered, and is refused.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from deniable._checks import typed
from deniable.errors import InputError
from deniable.laws import MatrixChannel, PatternLaw, PublishedForms, ScoreTable, law_from_plain
from deniable.mechanism.mechanism import Block, Claim, Mechanism
from deniable.mechanism.privacy import finite_or_none
from deniable.proofs.accuracy import Accuracy, Multipliers, kinds, proved
from deniable.schema import Schema
from deniable.schema.responses import NAMED
from deniable.statement.account import Design, asked_shares
from deniable.statement.bound import lacks_proof, lower_bound
from deniable.statement.caps import caps_of_text
from deniable.statement.methods import METHODS, method_of_responses
from deniable.statement.stored import (
    FORMAT,
    FORMAT_VERSION,
    StoredAccuracy,
    StoredAttribute,
    StoredMechanism,
    check_version,
    decoded,
    fields_of,
    read_json,
)


def attribute_rows(design: Design) -> list[dict[str, Any]]:
    """Return the record's statements on each attribute, in the schema's order."""
    mechanism = design.mechanism
    strength, guesses = design.account.strength, design.account.best_guesses
    asked = asked_shares(mechanism)
    responses = {
        i: mechanism.schema.attributes[i].response or "matrix"
        for block in mechanism.blocks
        if isinstance(block.law, MatrixChannel)
        for i in block.attributes
    }
    return [
        {
            "name": attribute.name,
            "categories": attribute.n_categories,
            "requested_epsilon": design.requested_epsilon[i],
            "epsilon": finite_or_none(mechanism.attribute_epsilon[i]),
            "epsilon_given_rest": finite_or_none(mechanism.epsilon_given_rest[i]),
            "keep_probability": finite_or_none(mechanism.keep_probability[i]),
            "attenuation": strength.attenuation[i],
            # λI + (1 − λ)P* with 0 < λ < 1: not unchanged, and better than chance.
            "lambda": phi if (phi := strength.attenuation[i]) and 0 < phi < 1 else None,
            "strength": strength.attribute_strength[i],
            **({"asked": asked[i]} if i in asked else {}),
            **({"parts": [part.name for part in attribute.parts]} if attribute.parts else {}),
            **({"response": responses[i]} if i in responses else {}),
            # Only where a response matrix has a prior.
            **({"best_guess": g.to_plain()} if (g := guesses[i]) else {}),
        }
        for i, attribute in enumerate(mechanism.schema.attributes)
    ]


def design_to_plain(design: Design) -> dict[str, Any]:
    """Return a design's statements: the fields that ``design --json`` and ``inspect`` print.

    Whether a level given the rest is only a bound follows from the law, takes long to compute, and
    is in no record.
    """
    bounds = design.mechanism.given_rest_at_most
    rows = zip(attribute_rows(design), bounds, strict=True)
    return {
        "method": design.method,
        "epsilon": finite_or_none(design.epsilon),
        "epsilon_lower_bound": design.epsilon_lower_bound,
        "gap": design.gap,
        "optimal_epsilon": design.optimal_epsilon,
        "given_rest": design.given_rest,
        "pair_floor": design.pair_floor,
        **_accuracy_to_plain(design, _STATED),
        "budget": design.budget,
        "strength": design.account.strength.strength,
        "unprotected": list(design.mechanism.unprotected),
        "changed_levels": list(design.changed),
        "attributes": [row | {"epsilon_given_rest_at_most": bound} for row, bound in rows],
    }


_STATED = ("pairs", "at_least", "all_patterns")
"""Printed fields of the accuracy; the others are its proof."""


def _accuracy_to_plain(design: Design, names: Sequence[str]) -> dict[str, Any]:
    """Return the accuracy of a law for a total as plain values; nothing if it has none."""
    proof = design.accuracy
    if proof is None:
        return {}
    limits = [level if math.isfinite(level) else None for level in proof.at_most]
    plain = {
        "pairs": proof.theta,
        "at_least": proof.at_least,
        "all_patterns": proof.all_patterns,
        "importance": list(proof.importance),
        "at_most": limits,
        "single": list(proof.multipliers.single),
        "double": list(proof.multipliers.double),
        "levels": list(proof.multipliers.levels),
        "caps": [list(one) for one in proof.multipliers.caps],
    }
    return {"accuracy": {name: plain[name] for name in names}}


def certificate_to_plain(design: Design) -> dict[str, Any] | None:
    """Return the proof of the lower bound: the vector λ, one weight per protected attribute.

    The digest distinguishes an altered proof from another valid one.
    """
    if design.weights is None:
        return None
    return {"weights": list(design.weights), "digest": _digest(design.weights)}


def proof_to_plain(design: Design) -> dict[str, Any] | None:
    """Return the certificate for scripts: λ, and the laws of votes, whose weights and thresholds
    give the ε that λ bounds from below."""
    certificate = certificate_to_plain(design)
    if certificate is None:
        return None
    names = design.mechanism.schema.names
    laws = [
        {"attributes": [names[i] for i in block.attributes], "law": block.law.to_plain()}
        for block in design.mechanism.blocks
        if not block.law.exact
    ]
    return certificate | {"laws": laws}


def _digest(weights: Sequence[float]) -> str:
    return hashlib.sha256(" ".join(weight.hex() for weight in weights).encode()).hexdigest()


def mechanism_to_plain(design: Design) -> dict[str, Any]:
    """Return the whole record of a design: schema, laws, and the numbers that follow from them.

    The request and the optimum without a cap are left out: they cannot be checked from the record.
    """
    from importlib.metadata import version  # slow to import, and not needed for reading

    mechanism = design.mechanism
    names = mechanism.schema.names
    stated = design_to_plain(design)
    stated |= {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": f"deniable {version('deniable')}",
        "attributes": [fields_of(StoredAttribute, row) for row in stated["attributes"]],
        "certificate": certificate_to_plain(design),
        **_accuracy_to_plain(design, StoredAccuracy.__struct_encode_fields__),
        "schema": mechanism.schema.to_plain(),
        "blocks": [
            {"attributes": [names[i] for i in block.attributes], "law": block.law.to_plain()}
            for block in mechanism.blocks
        ],
    }
    return fields_of(StoredMechanism, stated)


def mechanism_from_plain(plain: Mapping[str, Any], rows: int | None = None) -> Design:
    """Rebuild a design from its record, and check every statement against the law."""
    check_version(plain, FORMAT, FORMAT_VERSION)
    stored = decoded(plain, StoredMechanism, "the mechanism")
    if stored.method not in METHODS:
        raise InputError("the mechanism has been altered: it names no known method")
    schema = Schema.from_plain(stored.schema)
    blocks = []
    for block in stored.blocks:
        places = schema.positions(block.attributes)
        n_categories = tuple(schema.n_categories[i] for i in places)
        blocks.append(Block(places, law_from_plain(block.law, n_categories)))
    if [a.name for a in stored.attributes] != list(schema.names):
        raise InputError("the mechanism has been altered: its attributes are not its schema's")
    claim = Claim(
        _or_infinite(stored.epsilon),
        tuple(_or_infinite(a.epsilon) for a in stored.attributes),
        tuple(_or_infinite(a.epsilon_given_rest) for a in stored.attributes),
    )
    mechanism = Mechanism(schema, tuple(blocks), claim)
    design = Design(
        mechanism,
        stored.method,
        (None,) * len(schema.attributes),
        stored.epsilon_lower_bound,
        stored.budget,
        None if stored.certificate is None else stored.certificate.weights,
        given_rest=stored.given_rest,
        pair_floor=stored.pair_floor,
        together=METHODS[stored.method].together,
        released_rows=rows,
    )
    _check_statements(design, stored)
    if stored.accuracy is not None:
        design = replace(design, accuracy=_proved_accuracy(design, stored.accuracy))
    return design


def _proved_accuracy(design: Design, stored: StoredAccuracy) -> Accuracy:
    """Return the accuracy that a record's proof proves, and refuse another that it states."""
    mechanism = design.mechanism
    laws = [block.law for block in mechanism.blocks if _is_solved(block)]
    k = len(mechanism.schema.protected)
    if len(laws) != 1 or not isinstance(laws[0], ScoreTable) or len(stored.importance) != k:
        raise InputError("the mechanism has been altered: its accuracy is of another law")
    law, solved = laws[0], mechanism.schema.protected
    alone = [mechanism.attribute_epsilon[i] for i in solved]
    of = kinds(law.n_categories, law.costs, stored.importance)
    shapes = [len(stored.at_most), len(stored.single), len(stored.levels), len(stored.double)]
    shape = [k, len(of.share), len(of.share), len(of.pairs)]
    scores, numbers = len(of.scores.costs), of.scores.values[-1]
    inside = all(t < scores and s + of.scores.costs[t] <= numbers for t, _, s, _ in stored.caps)
    if shapes != shape or not inside:
        raise InputError("the mechanism has been altered: its accuracy is of another law")
    made = proved(
        law,
        design.epsilon,
        caps_of_text(design.given_rest, alone),
        stored.pairs,
        stored.importance,
        [_or_infinite(level) for level in stored.at_most],
        Multipliers(stored.single, stored.double, stored.levels, stored.caps),
    )
    if not _close(made.at_least, stored.at_least) or made.all_patterns != stored.all_patterns:
        raise _altered("the record", "accuracy", made.at_least, stored.at_least)
    return made


def _check_statements(design: Design, stored: StoredMechanism) -> None:
    """Raise if a record's statements differ from its law.

    Building the mechanism has checked its claim from one side. Equality is required here: levels
    are computed from integers and repeat exactly; levels of laws with error bounds repeat within
    the rounding of another machine's mathematics.
    """
    rows = msgspec.to_builtins(stored.attributes)
    for true, stated in zip(attribute_rows(design), rows, strict=True):
        for key in ("epsilon", "epsilon_given_rest"):
            if not _same(true[key], stated[key], design.mechanism):
                raise _altered(f"'{true['name']}'", key, true[key], stated[key])
        for key in ("categories", "best_guess", "parts"):
            if true.get(key) != stated.get(key):
                raise _altered(f"'{true['name']}'", key, true.get(key), stated.get(key))
        for key in ("keep_probability", "attenuation", "lambda", "strength"):
            if not _close(true[key], stated[key]):
                raise _altered(f"'{true['name']}'", key, true[key], stated[key])
    if not _same(finite_or_none(design.epsilon), stored.epsilon, design.mechanism):
        raise _altered("the record", "epsilon", design.epsilon, stored.epsilon)
    strength = design.account.strength.strength
    if not _close(strength, stored.strength):
        raise _altered("the record", "strength", strength, stored.strength)
    if list(design.mechanism.unprotected) != stored.unprotected:
        raise InputError("the mechanism has been altered: it lists other unprotected columns")
    _check_limits(design)
    _check_bound(design, stored)
    _check_method(design)


def _check_limits(design: Design) -> None:
    """Raise if a record's laws exceed its total or caps, or miss its floor."""
    mechanism = design.mechanism
    if design.budget is not None and design.epsilon > design.budget:
        raise InputError("the mechanism has been altered: its ε is above the total it states")
    laws = [block for block in mechanism.blocks if _is_solved(block)]
    total = None if mechanism.forms is None else design.budget or design.epsilon
    solved = sorted(i for block in laws for i in block.attributes)
    floor = design.pair_floor
    if floor is not None and any(
        isinstance(b.law, PatternLaw) and not b.law.keeps_pair_floor(floor - _LIMIT_ROUNDING)
        for b in laws
    ):
        raise InputError("the mechanism has been altered: it does not keep its floor on pairs")
    try:
        alone = [mechanism.attribute_epsilon[i] for i in solved]
        caps = caps_of_text(design.given_rest, alone, total)
    except InputError as error:
        raise InputError(f"the mechanism has been altered: {error}") from None
    for i, cap in zip(solved, caps, strict=True):
        if cap is not None and mechanism.epsilon_given_rest[i] > cap * (1 + _LIMIT_ROUNDING):
            raise InputError(
                f"the mechanism has been altered: '{mechanism.schema.names[i]}' does not keep the "
                "stated cap on epsilon_given_rest"
            )


def _check_method(design: Design) -> None:
    """Raise if the record's method does not make its laws; methods with the same laws cannot be
    distinguished."""
    spec, mechanism = METHODS[design.method], design.mechanism
    families = {block.law.family for block in mechanism.blocks} - _BESIDE_ANY
    if spec.families is not None:
        makes_others = families - spec.families if spec.offered else families ^ spec.families
        if makes_others:
            raise InputError(
                f"the mechanism has been altered: method {design.method} makes no law of the "
                f"family {', '.join(sorted(families)) or 'matrix'}"
            )
    if design.method in NAMED and method_of_responses(mechanism.schema) != design.method:
        raise InputError(
            f"the mechanism has been altered: its schema does not declare {design.method}"
        )
    together = sum(len(block.attributes) for block in mechanism.blocks if _is_solved(block))
    if together and not spec.fewest <= together <= (spec.most or together):
        raise InputError(
            f"the mechanism has been altered: method {design.method} makes no law of {together} "
            "attributes"
        )
    if lacks_proof(design, spec):
        raise InputError(
            f"the mechanism has been altered: method {design.method} gives the smallest ε for its "
            "levels, and the record contains no proof of it"
        )


_BESIDE_ANY = {"identity", "matrix", "designed matrix"}
"""Families of unchanged columns and of attributes with their own matrix, under any method."""

_LIMIT_ROUNDING = 1e-5
"""Caps are written with six digits, and multiples are of requested levels."""


def _is_solved(block: Block) -> bool:
    return isinstance(block.law, PatternLaw | PublishedForms) and not block.law.kept_as_it_is


def _check_bound(design: Design, stored: StoredMechanism) -> None:
    """Verify the proof: the stored λ must prove the stored bound, and the bound lie below ε."""
    if stored.certificate is not None and stored.certificate.digest != _digest(
        stored.certificate.weights
    ):
        raise InputError("the mechanism has been altered: its certificate is not the one written")
    try:
        proved = lower_bound(design.mechanism, design.weights)
    except InputError as error:
        raise InputError(
            f"the mechanism has been altered: its certificate fails: {error}"
        ) from None
    if not _proves(proved, stored.epsilon_lower_bound, len(design.weights or ())):
        raise _altered("the record", "epsilon_lower_bound", proved, stored.epsilon_lower_bound)
    if proved is not None and proved > design.epsilon:
        raise InputError("the mechanism has been altered: its lower bound lies above its ε")
    if not _close(design.gap, stored.gap):
        raise _altered("the record", "gap", design.gap, stored.gap)


def _altered(subject: str, key: str, true: Any, stated: Any) -> InputError:
    return InputError(
        f"the mechanism has been altered: {key} of {subject} is stated as {stated}, and its law "
        f"gives {true}"
    )


def _same(true: float | None, stated: float | None, mechanism: Mechanism) -> bool:
    if true is None or stated is None:
        return true is stated
    return abs(true - stated) <= mechanism.rounding(stated)


def _close(true: float | None, stated: float | None) -> bool:
    if true is None or stated is None:
        return true is stated
    return math.isclose(true, stated, rel_tol=1e-9, abs_tol=1e-12)


def _proves(proved: float | None, stated: float | None, n_weights: int) -> bool:
    """Whether a certificate proves a stated bound.

    For few attributes the sum over all patterns repeats exactly. For many the mean is taken on a
    grid, and a smaller stated bound is true too.
    """
    from deniable.proofs.certificate import MAX_ENUMERATED

    if n_weights <= MAX_ENUMERATED or proved is None or stated is None:
        return _close(proved, stated)
    return stated <= proved * (1 + 1e-7)


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


def to_json(plain: Any) -> bytes:
    """Return strict JSON, indented, ending in a newline: no NaN, no Infinity, keys in order."""
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


@typed
def read_design(path: str | Path) -> Design:
    """Read a mechanism from ``mechanism.json``, a release's ``record.json``, or its folder.

    Raises:
        InputError: if there is none, or its parts are inconsistent; the message names the file.

    Examples:
        >>> import deniable
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 3)), epsilon=2)
        >>> _ = Path("mechanism.json").write_bytes(to_json(mechanism_to_plain(plan)))
        >>> read_design("mechanism.json").epsilon == plan.epsilon
        True
    """
    path = Path(path)
    if path.is_dir():
        path = path / "record.json"
    plain = read_json(path)
    if "expost" in plain and "mechanism" not in plain:
        raise InputError(
            f"{path}: this release has a mechanism per stratum, made for its table; it can only "
            "be inspected and estimated from"
        )
    rows = _rows_of(plain)
    if plain.get("format") != FORMAT and isinstance(plain.get("mechanism"), dict):
        plain = plain["mechanism"]
    try:
        return mechanism_from_plain(plain, rows)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def released_rows(path: Path) -> int | None:
    """Return the number of released rows in a record; None for the file of a mechanism."""
    return _rows_of(read_json(path))


def _rows_of(plain: dict[str, Any]) -> int | None:
    release = plain.get("release")
    rows = release.get("rows") if isinstance(release, dict) else None
    return rows if isinstance(rows, int) else None
