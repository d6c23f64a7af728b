"""A draft of a schema from a frame is marked, warned of, and refused where it would be released."""

import pyarrow as pa
import pytest

import deniable
from deniable import Schema
from deniable.errors import InputError, Notice


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_schema_drafted_from_a_frame_is_marked_and_warned_of(kind: str) -> None:
    # There was no way from a frame to a schema but by a file.
    rows = {"who": [f"p{i}" for i in range(200)], "sex": ["f", "m"] * 100, "age": [*range(200)]}
    table = pa.table(rows)
    frame = {
        "pandas": table.to_pandas,
        "polars": lambda: pytest.importorskip("polars").from_arrow(table),
        "pyarrow": lambda: table,
    }[kind]()
    with pytest.warns(Notice) as caught:
        schema = Schema.from_frame(frame)
    said = [str(one.message) for one in caught]
    assert [sentence.split(".")[0] for sentence in said] == [
        "WARNING: this draft was read off the data",
        "the draft leaves out columns: 'who' has a value of its own in every row; "
        "'age' has a value of its own in every row",
    ]
    assert (schema.names, schema.drafted, schema.title) == (("sex",), ("sex",), "")
    assert "p17" not in "".join(said)
    plan = deniable.design(schema, epsilon=2)
    with pytest.raises(InputError, match="read off the data"):
        deniable.randomize(frame, plan, deniable.Publication(drop_other_columns=True))
    deniable.randomize(
        frame, plan, deniable.Publication(drop_other_columns=True, accept_drafted=True)
    )


def test_no_schema_is_drafted_of_what_is_no_frame_or_declares_nothing() -> None:
    for source in ("people.csv", [1, 2], pa.table({"a": ["x", "y"]}).to_reader()):
        with pytest.raises(InputError, match=r"dataframe .* for a file: `deniable schema init"):
            Schema.from_frame(source)
    with pytest.raises(
        InputError, match="would declare no column of the table: 'a' has fewer than two"
    ):
        Schema.from_frame(pa.table({"a": ["x", "x"]}))
    with pytest.raises(InputError, match="has no rows"):
        Schema.from_frame(pa.table({"a": pa.array([], pa.string())}))
