"""Options of a release: checked types, and those that only a folder has."""

import pytest

import deniable
from deniable.errors import InputError
from deniable.release.release import opened

PLAN = deniable.design(deniable.Schema.anonymous((2,)), epsilon=1)


@pytest.mark.parametrize(
    ("name", "value"), [("shuffle", True), ("person", "x"), ("sign", "k"), ("also", ["csv"])]
)
def test_rows_take_no_option_of_a_folder(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^`{name}` is for a folder to publish"):
        deniable.randomize(None, PLAN, deniable.Publication(**{name: value}))  # type: ignore[arg-type]


def test_options_open_the_ledger_and_name_the_command(tmp_path: object) -> None:
    options = opened(deniable.Publication(ledger=f"{tmp_path}/l", population="us"), "deniable …")
    assert options.people is not None
    assert (options.people.name, options.command) == ("us", "deniable …")
    with pytest.raises(InputError, match="`population` needs a ledger"):
        opened(deniable.Publication(population="us"), "")
    with pytest.raises(InputError, match=r"^also is a list of texts, not str"):
        deniable.Publication(also="csv")
