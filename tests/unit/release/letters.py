"""A table of four rows and its release."""

import pyarrow as pa

from deniable.design.design import design
from deniable.randomness import SystemRandomness
from deniable.release.release import Options, share
from deniable.schema import Attribute, Schema

SCHEMA = Schema(
    (Attribute("a", ("x", "y")), Attribute("b", ("1", "2", "3")), Attribute("c", ("n", "s"))),
    title="Letters",
    keep=("c",),
)
DESIGN = design(SCHEMA, attribute_epsilon=(1, 1))
ROWS = {"a": ["x", "y", "x", "y"], "b": [1, 2, 3, 1], "c": ["n", "s", "s", "n"]}


def released(tmp_path, rows, name="r", **options):
    share(pa.table(rows), DESIGN, tmp_path / name, Options(**options), SystemRandomness())
    return tmp_path / name
