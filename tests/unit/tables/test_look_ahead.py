"""Items that a thread fetches ahead of their use."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from deniable.errors import InputError
from deniable.tables.look_ahead import read_ahead


def test_items_come_in_their_order_and_at_most_one_ahead() -> None:
    fetched = []

    def items() -> Iterator[int]:
        for n in range(50):
            fetched.append(n)
            yield n

    for expected, item in enumerate(read_ahead(items())):
        assert item == expected
        assert len(fetched) <= item + 2
    assert len(fetched) == 50


def test_an_error_arrives_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise InputError("row 2 is wrong")

    with closing(read_ahead(items())) as ahead:
        assert next(ahead) == 1
        with pytest.raises(InputError, match="row 2 is wrong"):
            next(ahead)


def test_fetching_ends_with_the_reader() -> None:
    fetched = []
    with closing(read_ahead(fetched.append(n) or n for n in range(1000))) as ahead:
        next(ahead)
    assert len(fetched) <= 3
