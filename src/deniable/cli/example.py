"""example: the shipped table, its schema and a notebook, for an installation without a checkout."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from deniable.cli import console
from deniable.cli.arguments import AsJson

NAMES = ("README.md", "example.ipynb", "insurance.csv", "insurance.toml")
"""Copied files; pyproject.toml includes these files of ``examples`` in the wheel."""


def example(
    output: Annotated[Path, Parameter(name="FOLDER", help="Folder to make.")] = Path("example"),
    /,
    *,
    as_json: AsJson = False,
) -> None:
    from deniable.atomic_files import replaced_folder

    packed = files("deniable").joinpath("example")
    source = packed if packed.is_dir() else Path(__file__).parents[3] / "examples"  # a checkout
    with replaced_folder(output, overwrite=False) as made:
        for name in NAMES:
            (made / name).write_bytes(source.joinpath(name).read_bytes())
    console.answer(
        {"files": [str(output / name) for name in NAMES]},
        f"The example is in {output}. Next: cd {output}, then deniable share insurance.csv "
        "--schema insurance.toml --epsilon 4 --shuffle --output release",
        as_json=as_json,
    )
