"""The Adult data of the UCI repository: people as codes and numbers, read from its own files.

Lines without a header, values between ", ", a missing value as "?", and in ``adult.test`` a full
stop after the last value. The domains below are those of the repository's description
(``adult.names``), independent of the data.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.schema import Attribute, Schema

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
)  # fmt: skip
"""Of the files, in their order."""

CONTINUOUS = (
    "age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week",
)  # fmt: skip

DOMAINS: dict[str, tuple[str, ...]] = {
    "workclass": (
        "Federal-gov", "Local-gov", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov",
        "Without-pay",
    ),
    "education": (
        "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
        "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school",
        "Doctorate",
    ),
    "marital-status": (
        "Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent",
        "Never-married", "Separated", "Widowed",
    ),
    "occupation": (
        "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing",
        "Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv",
        "Prof-specialty", "Protective-serv", "Sales", "Tech-support", "Transport-moving",
    ),
    "relationship": (
        "Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife",
    ),
    "race": ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"),
    "sex": ("Female", "Male"),
    "native-country": (
        "Cambodia", "Canada", "China", "Columbia", "Cuba", "Dominican-Republic", "Ecuador",
        "El-Salvador", "England", "France", "Germany", "Greece", "Guatemala", "Haiti",
        "Holand-Netherlands", "Honduras", "Hong", "Hungary", "India", "Iran", "Ireland", "Italy",
        "Jamaica", "Japan", "Laos", "Mexico", "Nicaragua", "Outlying-US(Guam-USVI-etc)", "Peru",
        "Philippines", "Poland", "Portugal", "Puerto-Rico", "Scotland", "South", "Taiwan",
        "Thailand", "Trinadad&Tobago", "United-States", "Vietnam", "Yugoslavia",
    ),
    "income": ("<=50K", ">50K"),
}  # fmt: skip
"""The nine categorical columns and their categories.

People of the working class "Never-worked" have no occupation in the files, so complete cases do not
contain it; it is left out.
"""

CATEGORICAL = tuple(DOMAINS)

_MISSING = "?"
_TRAINING, _TEST = "adult.data", "adult.test"


@dataclass(frozen=True, eq=False)
class Adult:
    """The complete cases: people of whom no value is missing.

    Args:
        codes: one array of codes per name of ``CATEGORICAL``, into ``DOMAINS``; shape (n_people,).
        numbers: one array per name of ``CONTINUOUS``; shape (n_people,).
        n_incomplete: how many people were left out since a value of theirs is missing.
        source: which files were read.
    """

    codes: dict[str, NDArray[np.intp]]
    numbers: dict[str, NDArray[np.int64]]
    n_incomplete: int
    source: str

    @property
    def n_people(self) -> int:
        """How many people there are, all of them complete."""
        return len(self.codes[CATEGORICAL[0]])

    def table(self, names: Sequence[str] = CATEGORICAL) -> NDArray[np.intp]:
        """Return the codes of some categorical columns, shape (n_people, len(names))."""
        return np.stack([self.codes[name] for name in names], axis=1)


def schema(names: Iterable[str] = CATEGORICAL) -> Schema:
    """Return the schema of some of the categorical columns, in the order given."""
    return Schema(tuple(Attribute(name, DOMAINS[name]) for name in names))


def read_adult(path: Path) -> Adult:
    """Read the complete cases.

    Args:
        path: a file such as ``adult.data``, which is then all that is read; or the folder that
            holds it, from which ``adult.test`` is read as well if it is there. Both files together
            have 48,842 people, of whom 45,222 are complete.

    Raises:
        InputError: if there is no such file, or a line of it is not one of the Adult data.
    """
    people: list[list[str]] = []
    n_incomplete = 0
    files = _files(path)
    for file in files:
        for fields in _lines(file):
            if _MISSING in fields:
                n_incomplete += 1
            else:
                people.append(fields)
    if not people:
        raise InputError(f"{path}: there is no complete line in it; give UCI's {_TRAINING}")
    columns = dict(zip(COLUMNS, zip(*people, strict=True), strict=True))
    codes = {}
    for name, categories in DOMAINS.items():
        place = {category: code for code, category in enumerate(categories)}
        codes[name] = np.array([place[value] for value in columns[name]], dtype=np.intp)
    numbers = {name: np.array(columns[name], dtype=np.int64) for name in CONTINUOUS}
    return Adult(codes, numbers, n_incomplete, " and ".join(file.name for file in files))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    if not (path / _TRAINING).is_file():
        raise InputError(f"{path}: the folder holds no {_TRAINING} of the UCI repository")
    return [file for name in (_TRAINING, _TEST) if (file := path / name).is_file()]


def _lines(file: Path) -> Iterable[list[str]]:
    """Yield the values of each person, checked."""
    known = {name: frozenset((*domain, _MISSING)) for name, domain in DOMAINS.items()}
    known["workclass"] |= {"Never-worked"}
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InputError(f"{file}: cannot be read ({reason})") from None
    for number, line in enumerate(text.splitlines(), start=1):
        # The repository's adult.test begins with a line that is a note, and both end in an empty
        # one.
        if not line.strip() or line.startswith("|"):
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(COLUMNS):
            raise InputError(
                f"{file}, line {number}: it has {len(fields)} values and not {len(COLUMNS)}; give "
                f"{_TRAINING} unchanged from the UCI repository"
            )
        fields[-1] = fields[-1].removesuffix(".")
        for name, value in zip(COLUMNS, fields, strict=True):
            if not (value in known[name] if name in known else value.isdecimal()):
                raise InputError(
                    f"{file}, line {number}, {name}: this is no value of the Adult data; give "
                    f"{_TRAINING} unchanged from the UCI repository"
                )
        if fields[COLUMNS.index("workclass")] == "Never-worked":
            fields[COLUMNS.index("occupation")] = _MISSING
        yield fields
