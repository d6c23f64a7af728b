"""The plain-value record of a mechanism: what is stored, published, and checked when read back.

A record holds the integers that the sampler draws from, so whoever has it can recompute every
number in it. Reading one recomputes them all: the levels are a function of the integers alone and
come out the same on every machine, so a record whose statements differ from its law has been
altered, and is refused.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from deniable.design.account import Design
from deniable.design.methods import METHODS
from deniable.design.plan import lower_bound
from deniable.errors import InputError
from deniable.laws import law_from_plain
from deniable.mechanism.mechanism import Block, Claim, Mechanism
from deniable.schema import Schema

FORMAT = "deniable mechanism"
FORMAT_VERSION = 1


def finite_or_none(value: float) -> float | None:
    """Return a number as JSON can hold it: null for "unbounded" or "not defined"."""
    return value if math.isfinite(value) else None


def attribute_rows(design: Design) -> list[dict[str, Any]]:
    """Return what is stated of each attribute, in the schema's order."""
    mechanism = design.mechanism
    strength, guesses = design.account.strength, design.account.best_guesses
    return [
        {
            "name": attribute.name,
            "categories": attribute.n_categories,
            "requested_epsilon": design.requested_epsilon[i],
            "epsilon": finite_or_none(mechanism.attribute_epsilon[i]),
            "epsilon_given_rest": finite_or_none(mechanism.epsilon_given_rest[i]),
            "keep_probability": finite_or_none(mechanism.keep_probability[i]),
            "attenuation": strength.attenuation[i],
            "lambda": _proper(strength.attenuation[i]),
            "strength": strength.attribute_strength[i],
            **({"parts": [part.name for part in attribute.parts]} if attribute.parts else {}),
            # Only where a response matrix has a prior; there is nothing to say of the others.
            **({"best_guess": g.to_plain()} if (g := guesses[i]) else {}),
        }
        for i, attribute in enumerate(mechanism.schema.attributes)
    ]


def _proper(attenuation: float | None) -> float | None:
    # λI + (1 − λ)P* with 0 < λ < 1: neither released as it is, nor told less often than by chance.
    return attenuation if attenuation is not None and 0 < attenuation < 1 else None


def design_to_plain(design: Design) -> dict[str, Any]:
    """Return a design's statements: the fields that ``design --json`` and ``inspect`` print."""
    return {
        "method": design.method,
        "epsilon": finite_or_none(design.epsilon),
        "epsilon_lower_bound": design.epsilon_lower_bound,
        "gap": design.gap,
        "optimal_epsilon": design.optimal_epsilon,
        "given_rest": design.given_rest,
        "pair_floor": design.pair_floor,
        "budget": design.budget,
        "strength": design.account.strength.strength,
        "unprotected": list(design.mechanism.unprotected),
        "changed_levels": list(design.changed),
        "attributes": attribute_rows(design),
    }


def certificate_to_plain(design: Design) -> dict[str, Any] | None:
    """Return the proof of the lower bound: the vector λ, one weight per protected attribute.

    The digest tells a proof that was tampered with from one that proves as much with other numbers.
    """
    if design.weights is None:
        return None
    return {"weights": list(design.weights), "digest": _digest(design.weights)}


def proof_to_plain(design: Design) -> dict[str, Any] | None:
    """Return the certificate for scripts: λ, and beside it the laws of votes, whose weights and
    thresholds give the ε that λ bounds from below."""
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
    """Return the whole record of a design: schema, laws, statements."""
    mechanism = design.mechanism
    names = mechanism.schema.names
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": f"deniable {version('deniable')}",
        **design_to_plain(design),
        "certificate": certificate_to_plain(design),
        "schema": mechanism.schema.to_plain(),
        "blocks": [
            {"attributes": [names[i] for i in block.attributes], "law": block.law.to_plain()}
            for block in mechanism.blocks
        ],
    }


def mechanism_from_plain(plain: Mapping[str, Any]) -> Design:
    """Rebuild a design from its record, and check every statement against the law.

    Raises:
        InputError: if the record is not one, is of a later version, or states something that its
            law does not bear out.
    """
    if plain.get("format") != FORMAT:
        raise InputError("this is not a mechanism written by deniable")
    if plain.get("format_version") != FORMAT_VERSION:
        raise InputError("the mechanism was written by a later version of deniable; update it")
    try:
        stored = msgspec.convert(plain, _Stored)
    except msgspec.ValidationError as error:
        raise InputError(f"the mechanism has been altered: {error}") from None
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
        tuple(a.requested_epsilon for a in stored.attributes),
        stored.epsilon_lower_bound,
        stored.budget,
        None if stored.certificate is None else stored.certificate.weights,
        stored.optimal_epsilon,
        stored.given_rest,
        stored.pair_floor,
    )
    _check_statements(design, stored)
    return design


def _check_statements(design: Design, stored: "_Stored") -> None:
    """Refuse a record that says more, less or other than its law.

    The claim has been checked against the law from one side when the mechanism was built; equality
    is required here, because the levels are computed from integers and repeat exactly; levels of
    laws with error bounds, within what another machine's mathematics may change.
    """
    rows = msgspec.to_builtins(stored.attributes)
    for true, stated in zip(attribute_rows(design), rows, strict=True):
        for key in ("epsilon", "epsilon_given_rest"):
            if not _same(true[key], stated[key], design.mechanism):
                raise _altered(f"'{true['name']}'", key, true[key], stated[key])
        if (guess := true.get("best_guess")) != stated["best_guess"]:
            raise _altered(f"'{true['name']}'", "best_guess", guess, stated["best_guess"])
        if (parts := true.get("parts")) != stated["parts"]:
            raise _altered(f"'{true['name']}'", "parts", parts, stated["parts"])
        for key in ("keep_probability", "attenuation", "lambda", "strength", "categories"):
            if not _close(true[key], stated[key]):
                raise _altered(f"'{true['name']}'", key, true[key], stated[key])
    if not _same(finite_or_none(design.epsilon), stored.epsilon, design.mechanism):
        raise _altered("the record", "epsilon", design.epsilon, stored.epsilon)
    strength = design.account.strength.strength
    if not _close(strength, stored.strength):
        raise _altered("the record", "strength", strength, stored.strength)
    if list(design.mechanism.unprotected) != stored.unprotected:
        raise InputError("the mechanism has been altered: it lists other unprotected columns")
    if list(design.changed) != stored.changed_levels:
        raise InputError("the mechanism has been altered: it lists other changed levels")
    _check_bound(design, stored)


def _check_bound(design: Design, stored: "_Stored") -> None:
    """Verify the proof: the stored bound must be what the stored λ proves, and lie below ε."""
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
    if not _close(proved, stored.epsilon_lower_bound):
        raise _altered("the record", "epsilon_lower_bound", proved, stored.epsilon_lower_bound)
    if design.budget is not None and design.epsilon > design.budget:
        raise InputError("the mechanism has been altered: its ε is above the total it states")
    optimal = design.optimal_epsilon
    if optimal is not None and not (proved or 0.0) - 1e-9 <= optimal <= design.epsilon + 1e-9:
        raise InputError("the mechanism has been altered: its optimum is not between bound and ε")
    if proved is not None and proved > design.epsilon:
        raise InputError("the mechanism has been altered: its lower bound lies above its ε")
    if not _close(design.gap, stored.gap):
        raise _altered("the record", "gap", design.gap, stored.gap)


def _altered(what: str, key: str, true: Any, stated: Any) -> InputError:
    return InputError(
        f"the mechanism has been altered: {key} of {what} is stated as {stated}, and its law gives "
        f"{true}"
    )


def _same(true: float | None, stated: float | None, mechanism: Mechanism) -> bool:
    if true is None or stated is None:
        return true is stated
    return abs(true - stated) <= mechanism.rounding(stated)


def _close(true: float | None, stated: float | None) -> bool:
    if true is None or stated is None:
        return true is stated
    return math.isclose(true, stated, rel_tol=1e-9, abs_tol=1e-12)


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


class _StoredBestGuess(msgspec.Struct, omit_defaults=True):
    before: float
    success: float
    worst_posterior: float
    parts: list[dict[str, Any]] | None = None


class _StoredAttribute(msgspec.Struct):
    name: str
    categories: int
    requested_epsilon: float | None
    epsilon: float | None
    epsilon_given_rest: float | None
    keep_probability: float | None
    attenuation: float | None
    attenuation_proper: float | None = msgspec.field(name="lambda")
    strength: float | None
    best_guess: _StoredBestGuess | None = None
    parts: list[str] | None = None


class _StoredBlock(msgspec.Struct):
    attributes: list[str]
    law: dict[str, Any]


class _StoredCertificate(msgspec.Struct):
    weights: tuple[float, ...]
    digest: str


class _Stored(msgspec.Struct):
    method: str
    epsilon: float | None
    epsilon_lower_bound: float | None
    gap: float | None
    optimal_epsilon: float | None
    given_rest: str | None
    pair_floor: float | None
    budget: float | None
    certificate: _StoredCertificate | None
    strength: float | None
    unprotected: list[str]
    changed_levels: list[str]
    attributes: list[_StoredAttribute]
    schema: dict[str, Any]
    blocks: list[_StoredBlock]

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method!r}")


def to_json(plain: Any) -> bytes:
    """Return strict JSON, indented, ending in a newline: no NaN, no Infinity, keys in order."""
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        InputError: if there is no such file or it holds something else.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a JSON object ({error})") from None


def read_design(path: str | Path) -> Design:
    """Read a mechanism from ``mechanism.json``, a release's ``record.json``, or its folder.

    Raises:
        InputError: if there is none, or it does not hold together; the sentence names the file.

    Example:
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
            f"{path}: the strata of this release have a mechanism each, made for its table; it can "
            "be inspected and estimated from, and nothing else"
        )
    if isinstance(plain.get("mechanism"), dict):
        plain = plain["mechanism"]
    try:
        return mechanism_from_plain(plain)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
