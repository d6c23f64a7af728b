"""The table of input formats, and the texts that list them."""

import re
from pathlib import Path

import pytest

from deniable.cli import arguments
from deniable.errors import InputError
from deniable.studio.opening import OPENED
from deniable.tables import open_table
from deniable.tables.files import files_of
from deniable.tables.formats import INPUT_FORMATS, TABLE_ENDINGS


def test_help_names_the_usual_ending_of_every_format():
    named = re.findall(r"\.\w+", arguments.TABLES)
    assert [one.name for one in INPUT_FORMATS if one.endings[0] not in named] == []


def test_folders_and_dialogs_list_every_ending(tmp_path):
    for ending in TABLE_ENDINGS:
        (tmp_path / f"t{ending}").touch()
    assert len(files_of(tmp_path)) == len(TABLE_ENDINGS) == len(set(TABLE_ENDINGS))
    assert set(TABLE_ENDINGS) <= set(OPENED)


@pytest.mark.parametrize("ending", [e for one in INPUT_FORMATS[:-1] for e in one.endings])
def test_a_text_under_the_ending_of_another_format_is_refused(ending, tmp_path: Path):
    path = tmp_path / f"t{ending.upper()}"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"this is no .* file; it is damaged"):
        open_table(path, [])
