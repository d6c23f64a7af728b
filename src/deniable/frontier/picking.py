"""A point of a frontier as a mechanism."""

from dataclasses import replace
from pathlib import Path

from deniable.errors import InputError
from deniable.frontier.folder import StoredFrontier, StoredRow, read
from deniable.frontier.priors import merge
from deniable.laws import DesignedChannel
from deniable.mechanism.mechanism import Mechanism
from deniable.numerals import count_text, number_text
from deniable.schema import Attribute, Schema
from deniable.schema.names import split_names
from deniable.statement.account import Design
from deniable.statement.methods import MATRIX_METHOD

# A level typed as requested matches its own row despite rounding in the last digit.
_SAME = 1e-9


def pick(
    path: Path,
    *,
    privacy: float | None = None,
    epsilon: float | None = None,
    method: str | None = None,
    name: str | None = None,
    schema: Schema | None = None,
) -> tuple[Design, str]:
    """Return the mechanism of one point, and a sentence that describes the point.

    Among the points at least as private as requested, the one with the least error; of two with
    errors within a millionth the more private.

    ``epsilon``: the largest ε in nats; for a frontier under ε-LDP.
    """
    stored = read(path)
    row = _choose(stored, privacy, epsilon, method)
    matrix = stored.load(row)
    attribute = _attribute(stored, name, schema)
    prior = stored.prior
    law = DesignedChannel.for_prior(matrix, prior.shares, prior.source, prior.steps)
    mechanism = Mechanism.of(law, Schema((attribute,)))
    design = Design(
        replace(mechanism, claim=mechanism.promise()), MATRIX_METHOD, (None,), None, None
    )
    assert row.mse is not None
    measure = "ε" if stored.local else "privacy"
    sentence = (
        f"Method {row.method} at {measure} {number_text(row.level)}: mean squared error "
        f"{number_text(row.mse)} of a share "
        f"with {count_text(stored.n_records, 'record')}, {row.mse / row.lower_bound:.4f} times "
        "the proven least for any mechanism as private"
    )
    return design, sentence


def _choose(
    stored: StoredFrontier, privacy: float | None, epsilon: float | None, method: str | None
) -> StoredRow:
    if (privacy is None) == (epsilon is None):
        raise InputError("give either --privacy or --epsilon-ldp, as the frontier has it")
    if stored.local != (epsilon is not None):
        have = "--epsilon-ldp" if stored.local else "--privacy"
        raise InputError(f"{stored.path}: the levels of this frontier are chosen by {have}")
    rows = [row for row in stored.rows if row.matrix is not None and row.mse is not None]
    if not rows:
        raise InputError(f"{stored.path}: it holds bounds, but no mechanism; trace more methods")
    if method is not None:
        known = sorted({row.method for row in rows})
        rows = [row for row in rows if row.method == method]
        if not rows:
            raise InputError(
                f"{stored.path}: there is no matrix of method '{method}'; there are "
                f"{', '.join(known)}"
            )
    if epsilon is not None:
        enough = [row for row in rows if row.level <= epsilon + _SAME]
    else:
        assert privacy is not None
        enough = [row for row in rows if (row.privacy or 0.0) >= privacy - _SAME]
    if not enough:
        levels = [row.level if stored.local else row.privacy or 0.0 for row in rows]
        most = min(levels) if stored.local else max(levels)
        raise InputError(
            f"{stored.path}: no matrix there is that private; the most private is at {most:.6g}"
        )
    least = min(row.mse or 0.0 for row in enough)
    close = [row for row in enough if (row.mse or 0.0) <= least * (1 + 1e-6)]
    return max(close, key=lambda row: -row.level if stored.local else row.privacy or 0.0)


def _attribute(stored: StoredFrontier, name: str | None, schema: Schema | None) -> Attribute:
    own, named = stored.prior.attribute, name or stored.prior.attribute.name
    names = split_names(named)
    if (schema is not None and named in schema.names) or (not own.parts and len(names) < 2):
        return _declared(own, name, schema)
    if not own.parts:
        if schema is None:
            raise InputError(
                "--name has several columns, and the prior is one flat list; give their --schema, "
                "or trace from nested lists such as [[0.1, 0.2], [0.3, 0.4]]"
            )
        merged = merge([schema.attributes[i] for i in schema.positions(names)])
        if merged.n_categories != own.n_categories:
            raise InputError(
                f"'{merged.name}' has {merged.n_categories} combinations in the schema, and the "
                f"frontier is of {own.n_categories} categories"
            )
        return merged
    if named != own.name and len(names) != len(own.parts):
        raise InputError(
            f"the frontier is of {len(own.parts)} columns merged into one "
            f"({', '.join(part.name for part in own.parts)}); name as many by --name, as in a,b"
        )
    return Attribute.merged(
        [
            _declared(part, None if named == own.name else names[i], schema)
            for i, part in enumerate(own.parts)
        ]
    )


def _declared(own: Attribute, name: str | None, schema: Schema | None) -> Attribute:
    """Return an attribute, or a part of a merged one, with its declared name and categories."""
    if schema is None:
        return own if name is None else replace(own, name=name)
    if name is None and own.name not in schema.names and len(schema.attributes) > 1:
        raise InputError("--name: give the attribute of the schema that the mechanism is for")
    chosen = name or (own.name if own.name in schema.names else schema.names[0])
    declared = schema.attributes[schema.position(chosen)]
    if declared.n_categories != own.n_categories:
        raise InputError(
            f"'{declared.name}' has {declared.n_categories} categories in the schema, and the "
            f"frontier is of {own.n_categories}"
        )
    return replace(declared, epsilon=None, ratio=None, importance=None)
