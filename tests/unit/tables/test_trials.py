import io
from datetime import date

import numpy as np

from deniable.schema import Attribute, Schema
from deniable.tables import open_table
from deniable.tables.trials import csv_bytes, trial_table

ATTRIBUTES = (
    Attribute("plain", ("no", "yes, or", 'a "b"')),
    Attribute("bins", bins=(-np.inf, -5, 0.25, np.inf)),
    Attribute("wide", bins=(0, 1, 2), missing="NA"),
    Attribute("born", bins=(-np.inf, date(1950, 1, 1), date(1980, 1, 1), np.inf)),
    Attribute("both", parts=(Attribute("x", ("1", "2")), Attribute("y", ("u", "v", "w")))),
)


def codes_in(table: object) -> list[np.ndarray]:
    with open_table(table, ATTRIBUTES, other_columns="drop") as reader:
        pieces = [batch.codes for batch in reader]
    return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


def test_what_is_written_for_a_code_is_read_as_that_code() -> None:
    schema = Schema(ATTRIBUTES, keep=("place",))
    generator = np.random.default_rng(4)
    codes = [generator.integers(0, a.n_categories, 500) for a in ATTRIBUTES]
    table = trial_table(schema, codes)
    assert set(table.column_names) == {"plain", "bins", "wide", "born", "x", "y", "place"}
    for shown in (table, io.BytesIO(csv_bytes(table))):
        for given, back in zip(codes, codes_in(shown), strict=True):
            np.testing.assert_array_equal(given, back)
