"""Paths typed in the page: outputs remain below the folder of the draft."""

from pathlib import Path

from deniable.errors import InputError


def path_in(folder: Path, typed: str) -> Path:
    """Return the path of a file or folder below the folder of the draft, links followed."""
    path = _resolved(folder, typed)
    if not path.is_relative_to(folder.resolve()):
        raise InputError(
            f"'{typed}' is not in the folder that this page may look into and write to, "
            f"{folder.resolve()}; name a path below it, or start the studio in another folder"
        )
    return path


def new_path(folder: Path, typed: str) -> str:
    """Return the path, in the folder of the draft, of a folder to make."""
    path = path_in(folder, typed)
    if not path.parent.is_dir():
        raise InputError(f"'{typed}' has no folder to be made in; make that first")
    return str(path.relative_to(folder.resolve()))


def kept_path(folder: Path, typed: str, *, elsewhere: bool) -> str:
    """Return the path of a file that is made, or written on."""
    if not elsewhere:
        try:
            path_in(folder, typed)
        except InputError as error:
            raise InputError(f"{error}; or confirm that it lies elsewhere") from None
    return read_path(folder, typed)


def read_path(folder: Path, typed: str) -> str:
    """Return the path of something that a command only reads, which may lie anywhere."""
    path = _resolved(folder, typed)
    inside = path.is_relative_to(folder.resolve())
    shown = str(path.relative_to(folder.resolve()) if inside else path)
    return f"./{shown}" if shown.startswith("-") else shown  # no option


def _resolved(folder: Path, typed: str) -> Path:
    try:
        return (folder / Path(typed).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, ~nobody, a null byte
        raise InputError(f"{typed!r} is no path ({error}); correct it") from None
