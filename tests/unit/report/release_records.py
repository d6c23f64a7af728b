"""Records of releases as ``share`` tells them to the page, made from real mechanisms."""

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from html import unescape
from typing import Any

import numpy as np

from deniable.design.design import design
from deniable.laws import MatrixChannel, PatternTable, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.release.record import Released, explained, release_to_plain
from deniable.schema import Attribute, Schema
from deniable.statement.account import Design
from deniable.statement.bound import lower_bound
from deniable.statement.strata import Designs

ROWS = 22_272


def release_record(
    made: Design,
    *,
    rows: int = ROWS,
    person: str | None = None,
    most_rows: int | None = None,
    seeded: bool = False,
    shuffled: bool = False,
) -> dict[str, Any]:
    """Return the record of a release of a design, with all that the page is told."""
    schema = made.mechanism.schema
    kept = [name for name in schema.keep if name not in schema.names]
    forms = [] if made.mechanism.form_column is None else [made.mechanism.form_column]
    released = Released(
        file="data.csv",
        sha256="5d41402abc4b2a76b9719d911017c592" * 2,
        columns=(*schema.names, *kept, *forms),
        n_rows=rows,
        shuffled=shuffled,
        secure=not seeded,
        person=person,
        most_rows=most_rows,
        command="deniable share table.csv --schema schema.toml --epsilon 4 --output release",
    )
    designs = Designs.one(made)
    return explained(release_to_plain(designs, released), designs, released)


def attribute(name: str, n_categories: int = 2, **more: Any) -> Attribute:
    """Return an attribute with categories c1, c2, …"""
    return Attribute(name, tuple(f"c{j}" for j in range(1, n_categories + 1)), **more)


def independent(title: str, sizes: dict[str, int], levels: float | Sequence[float]) -> Design:
    """Return a design of attributes that are randomized independently, by a total or by levels."""
    schema = Schema(tuple(attribute(name, n) for name, n in sizes.items()), title)
    asked = {"epsilon": levels} if isinstance(levels, float) else {"attribute_epsilon": levels}
    return design(schema, **asked, method="kronecker", allow_changed_levels=True)


def three() -> Design:
    """Return a design of three independent attributes."""
    return independent("Three questions", {"a": 2, "b": 3, "c": 5}, [0.5, 1.0, 1.5])


def joint_law() -> Design:
    """Return a design whose three attributes are changed together: a vote of the majority."""
    n_categories = (2, 3, 5)
    schema = Schema(tuple(map(attribute, "abc", n_categories)), "A vote")
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


def one_attribute() -> dict[str, Any]:
    return release_record(independent("One question", {"sex": 2}, 1.0))


def three_attributes() -> dict[str, Any]:
    return release_record(three(), shuffled=True)


def joint() -> dict[str, Any]:
    return release_record(joint_law())


@cache
def _sixty_attributes() -> dict[str, Any]:
    return release_record(
        independent("A long questionnaire", {f"item {i}": 4 for i in range(60)}, 60.0)
    )


def sixty_attributes() -> dict[str, Any]:
    return deepcopy(_sixty_attributes())


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
    made = independent("Visits", {"visit": 3, "ward": 6}, 2.0)
    return release_record(made, person="patient", most_rows=4)


def seeded() -> dict[str, Any]:
    return release_record(independent("A test", {"a": 2, "b": 3}, 2.0), seeded=True)


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
    return release_record(independent("", {"a": 2, "b": 3}, [30.0, 500.0]), rows=1)


def very_strong() -> dict[str, Any]:
    made = independent("Next to nothing", {"a": 2, "b": 300}, [1e-6, 1e-3])
    return release_record(made, rows=10)


def forms() -> dict[str, Any]:
    schema = Schema((Attribute("sex", ("f", "m")), Attribute("blood", ("A", "B", "0", "AB"))))
    return release_record(design(schema, epsilon=2, method="forms"), rows=80)


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    made.__name__: made
    for made in (
        one_attribute,
        three_attributes,
        joint,
        sixty_attributes,
        kept_columns,
        person_with_rows,
        seeded,
        matrix_without_bound,
        matrix_with_more_outputs,
        very_weak,
        very_strong,
        forms,
    )
}


def visible(page: str) -> str:
    """Return the text of a page, without style sheet and tags."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
