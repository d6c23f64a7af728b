"""Small outputs written aside and renamed: a killed run leaves the old file, or none."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deniable.errors import InputError


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Stop before any work if an output exists and was not meant to be replaced.

    Raises:
        InputError: if so, or if there is no folder to write into.
    """
    if path.exists() and not overwrite:
        raise InputError(
            f"{path} exists; choose another name, or --force to replace it (releases of the same "
            "people add up: a copy of the old one that someone has still counts)"
        )
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")


def write_file(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a file under a temporary name in the same folder, flush it to disk, and rename it.

    Raises:
        InputError: if the file exists and ``overwrite`` is false, or it cannot be written.
    """
    refuse_existing(path, overwrite=overwrite)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.absolute().parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def replaced_folder(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give an empty folder that gets its name only when the block has ended without an exception.

    It stands beside its final place meanwhile, under a name that begins with a dot, and is removed
    if anything goes wrong; an old folder stays until the new one is complete.

    Raises:
        InputError: if the folder exists and ``overwrite`` is false, or cannot be made.
    """
    path = path.absolute()
    refuse_existing(path, overwrite=overwrite)
    aside = None
    try:
        aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        new = aside / "new"
        new.mkdir()
        yield new
        if path.exists():
            path.rename(aside / "old")
        new.rename(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    # The only way to read the umask is to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
