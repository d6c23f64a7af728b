"""Records of releases as ``share`` writes them, made from real mechanisms, for these tests."""

import re
from collections.abc import Callable
from html import unescape
from itertools import combinations
from typing import Any

import numpy as np

from deniable.design.account import Design
from deniable.design.design import design
from deniable.design.plan import lower_bound
from deniable.design.record import mechanism_to_plain, to_json
from deniable.design.worth import worth
from deniable.laws import MatrixChannel, PatternTable, ProductLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.prediction import expected_error
from deniable.mechanism.privacy import finite_or_none
from deniable.mechanism.strength import mechanism_strength
from deniable.schema import Attribute, Schema

ROWS = 22_272


def release_record(
    made: Design,
    *,
    rows: int = ROWS,
    person: dict[str, Any] | None = None,
    seeded: bool = False,
    shuffled: bool = False,
    pairs_up_to: int = 50,
) -> dict[str, Any]:
    """Return the record of a release of a design, as plain JSON values."""
    mechanism = made.mechanism
    schema = mechanism.schema
    protected = [schema.names[i] for i in schema.protected]
    singles = dict(zip(schema.names, mechanism_strength(mechanism).attenuation, strict=True))
    invertible = [name for name in protected if singles[name] is not None]
    pairs = [
        {
            "attributes": [a, b],
            "attenuation": float(Channel(mechanism, (a, b)).forward.eigenvalues[1, 1]),
        }
        for a, b in combinations(invertible, 2)
    ]
    undeclared = [name for name in schema.keep if name not in schema.names]
    return {
        "format": "deniable release",
        "format_version": 1,
        "software": "deniable 0.1.0",
        "title": schema.title,
        "release": {
            "file": "data.csv",
            "sha256": "5d41402abc4b2a76b9719d911017c592" * 2,
            "rows": rows,
            "columns": [*schema.names, *undeclared],
            "row_order": "shuffled" if shuffled else "kept",
            "randomness": "seeded" if seeded else "operating system",
        },
        "guarantee": {
            "epsilon": finite_or_none(made.epsilon),
            "person": person,
            "unprotected": list(mechanism.unprotected),
            "sentence": "Every record was randomized on its own before it was released.",
        },
        "attenuation": {
            "single": singles,
            "pairs": pairs if len(protected) <= pairs_up_to else None,
        },
        "expected_error": [
            {
                "attribute": name,
                "standard_error": expected_error(Channel(mechanism, (name,)), rows).worst,
            }
            for name in protected
        ],
        "command": "deniable share table.csv --schema schema.toml --epsilon 4 --output release",
        "worth": worth(made.account).to_plain(rows),
        "small_print": ["Releases add up.", "Whether a person is in the table is not protected."],
        "mechanism": mechanism_to_plain(made),
    }


def attribute(name: str, n_categories: int = 2, **more: Any) -> Attribute:
    """Return an attribute with categories c1, c2, …"""
    return Attribute(name, tuple(f"c{j}" for j in range(1, n_categories + 1)), **more)


def one_attribute() -> dict[str, Any]:
    schema = Schema((attribute("sex"),), "One question")
    return release_record(design(schema, epsilon=1.0, method="kronecker"))


def three_attributes() -> dict[str, Any]:
    schema = Schema((attribute("a", 2), attribute("b", 3), attribute("c", 5)), "Three questions")
    return release_record(
        design(schema, attribute_epsilon=[0.5, 1.0, 1.5], method="kronecker"), shuffled=True
    )


def joint_law() -> Design:
    """Return a design whose three attributes are changed together: a vote of the majority."""
    n_categories = (2, 3, 5)
    schema = Schema(
        tuple(attribute(name, n) for name, n in zip("abc", n_categories, strict=True)), "A vote"
    )
    changed = np.indices((2, 2, 2)).sum(axis=0)
    others = np.array([1, 2, 4])
    outputs = np.prod(
        [np.where(axis == 1, n, 1) for axis, n in zip(np.indices((2, 2, 2)), others, strict=True)],
        axis=0,
    )
    law = PatternTable.from_probabilities(n_categories, np.where(changed <= 1, 4.0, 1.0) * outputs)
    mechanism = Mechanism(schema, (Block((0, 1, 2), law),))
    asked = tuple(mechanism.attribute_epsilon)
    return Design(mechanism, "optimal", asked, lower_bound(mechanism, None))


def twelve_attributes() -> dict[str, Any]:
    schema = Schema(
        tuple(attribute(f"question{i}", 2 + i % 6) for i in range(1, 13)), "Twelve questions"
    )
    return release_record(design(schema, epsilon=6.0, method="kronecker"))


def sixty_attributes() -> dict[str, Any]:
    schema = Schema(tuple(attribute(f"item {i}", 4) for i in range(60)), "A long questionnaire")
    return release_record(design(schema, epsilon=60.0, method="kronecker"))


def kept_columns() -> dict[str, Any]:
    schema = Schema(
        (
            Attribute("hours", bins=(0, 1, 20, 35.5, 99), missing="unknown"),
            attribute("region", 4, labels={"c1": "North", "c2": "South"}),
            attribute("race", 3),
        ),
        "With kept columns",
        keep=("region", "weight"),
    )
    return release_record(design(schema, epsilon=2.0, method="kronecker"))


def person_with_rows() -> dict[str, Any]:
    schema = Schema((attribute("visit", 3), attribute("ward", 6)), "Visits")
    made = design(schema, epsilon=2.0, method="kronecker")
    person = {"column": "patient", "most_rows": 4, "epsilon": 4 * made.epsilon}
    return release_record(made, person=person)


def seeded() -> dict[str, Any]:
    schema = Schema((attribute("a", 2), attribute("b", 3)), "A test")
    return release_record(design(schema, epsilon=2.0, method="kronecker"), seeded=True)


def matrix_without_bound() -> dict[str, Any]:
    """Return a record with a response matrix that gives some answers away, and a product law."""
    schema = Schema((attribute("test", 2), attribute("age", 4)), "A one-sided matrix")
    channel = MatrixChannel.from_probabilities(np.array([[0.75, 0.0], [0.25, 1.0]]))
    law = ProductLaw.from_levels((4,), (1.0,))
    mechanism = Mechanism(schema, (Block((0,), channel), Block((1,), law)))
    return release_record(Design(mechanism, "kronecker", (None, 1.0), None))


def matrix_with_more_outputs() -> dict[str, Any]:
    schema = Schema((attribute("test", 2),), "Three answers to a yes-or-no question")
    matrix = np.array([[0.6, 0.2], [0.2, 0.2], [0.2, 0.6]])
    mechanism = Mechanism(schema, (Block((0,), MatrixChannel.from_probabilities(matrix)),))
    return release_record(Design(mechanism, "kronecker", (None,), None))


def very_weak() -> dict[str, Any]:
    schema = Schema((attribute("a", 2), attribute("b", 3)))
    return release_record(
        design(
            schema, attribute_epsilon=[30.0, 500.0], allow_changed_levels=True, method="kronecker"
        ),
        rows=1,
    )


def very_strong() -> dict[str, Any]:
    schema = Schema((attribute("a", 2), attribute("b", 300)), "Next to nothing")
    return release_record(
        design(schema, attribute_epsilon=[1e-6, 1e-3], method="kronecker"), rows=10
    )


def asked_by_forms() -> Schema:
    """Return two attributes that not everybody is asked."""
    return Schema((Attribute("sex", ("f", "m")), Attribute("blood", ("A", "B", "0", "AB"))))


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    made.__name__: made
    for made in (
        one_attribute,
        three_attributes,
        twelve_attributes,
        sixty_attributes,
        kept_columns,
        person_with_rows,
        seeded,
        matrix_without_bound,
        matrix_with_more_outputs,
        very_weak,
        very_strong,
    )
} | {"joint_law": lambda: release_record(joint_law())}


def as_json(record: dict[str, Any]) -> bytes:
    """Return the record as strict JSON: what is not plain fails here."""
    return to_json(record)


def visible(page: str) -> str:
    """Return the text of a page, without style sheet and tags."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
