"""A frontier's folder: table, plot, matrices and certificates; written whole, checked when read.

``frontier.json`` holds a list of rows; ``about.json`` the request and its prior. Matrices
have one row per true category, as ``--matrix`` reads them.
"""

import csv
import io
import math
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from deniable.atomic_files import refuse_foreign_folder, replaced_folder
from deniable.errors import InputError
from deniable.frontier.methods import BOUND, METHODS
from deniable.frontier.priors import Prior
from deniable.frontier.proofs import certificate_from_plain, certificate_to_plain
from deniable.frontier.tracing import Frontier, Request, Row, measured
from deniable.laws.patterns import FloatArray
from deniable.proofs.prior import checked_prior
from deniable.proofs.rows import MAX_EXACT_CATEGORIES, Certificate
from deniable.report.frontier_page import render_frontier
from deniable.report.frontier_plot import Curve, draw
from deniable.schema import Schema
from deniable.solvers.matrices import response
from deniable.statement.record import to_json
from deniable.statement.stored import check_version, decoded, read_json
from deniable.strict_json import Rows, Software, from_json

FORMAT = "deniable frontier"
FORMAT_VERSION = 1
TABLE, ABOUT = "frontier.json", "about.json"
_FILES = {
    TABLE,
    ABOUT,
    "frontier.csv",
    "frontier.html",
    "frontier.png",
    "frontier.svg",
    "matrices",
    "certificates",
}

# Read back on another machine, sums may be added up in another order.
_AGREE = 1e-6


def check_output(path: Path, *, overwrite: bool) -> None:
    """Raise if the folder exists and must not be replaced."""
    refuse_foreign_folder(
        path, "a frontier", lambda present: {TABLE, ABOUT} <= present <= _FILES, overwrite=overwrite
    )


def write(path: Path, frontier: Frontier, *, overwrite: bool) -> None:
    """Write a frontier's folder, whole or not at all."""
    check_output(path, overwrite=overwrite)
    rows = [row_to_plain(row) for row in frontier.rows]
    with replaced_folder(path, overwrite=overwrite) as folder:
        for name in ("matrices", "certificates"):
            (folder / name).mkdir()
        for plain, matrix in zip(rows, frontier.matrices, strict=True):
            if matrix is not None:
                plain["matrix"] = f"matrices/{plain['method']}-{_file_text(plain['level'])}.json"
                (folder / plain["matrix"]).write_bytes(to_json(matrix.T.tolist()))
        for level, certificate in frontier.certificates.items():
            name = f"certificates/{_file_text(level)}.json"
            (folder / name).write_bytes(to_json(certificate_to_plain(certificate)))
            for plain in rows:
                if plain["level"] == level:
                    plain["certificate"] = name
        (folder / TABLE).write_bytes(to_json(rows))
        (folder / "frontier.csv").write_text(_csv(rows), encoding="utf-8", newline="")
        (folder / ABOUT).write_bytes(to_json(_about(frontier)))
        png, svg = draw(
            _curves(frontier),
            sorted({(row.level, row.lower_bound) for row in frontier.rows}),
            x_label=_x_label(frontier.request),
            y_label=f"mean squared error of a share, N = {frontier.request.n_records:,}",
            title=_title(frontier.request),
            exact=frontier.rows[0].bound == "exact",
            silent=None if frontier.request.local else 1.0 - max(frontier.request.prior.shares),
        )
        (folder / "frontier.png").write_bytes(png)
        (folder / "frontier.svg").write_bytes(svg)
        page = render_frontier(
            rows,
            _about(frontier),
            png,
            {name: METHODS[name].style.label for name in frontier.request.methods},
            _title(frontier.request),
        )
        (folder / "frontier.html").write_text(page, encoding="utf-8", newline="")


def row_to_plain(row: Row) -> dict[str, Any]:
    """Return a row as plain values for ``frontier.json``."""
    return msgspec.structs.asdict(row) | {"matrix": None, "certificate": None}


def _file_text(level: float) -> str:
    return f"{level:.9f}".rstrip("0").rstrip(".")


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["method"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _about(frontier: Frontier) -> dict[str, Any]:
    request = frontier.request
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": f"deniable {version('deniable')}",
        "attribute": Schema((request.prior.attribute,)).to_plain()["attribute"][0],
        "prior": list(request.prior.shares),
        "prior_source": request.prior.source,
        "prior_steps": request.prior.steps,
        "disclosure": request.prior.disclosure,
        "levels_are": "epsilon" if request.local else "privacy",
        "most_posterior": request.most_posterior,
        "methods": list(request.methods),
        "records": request.n_records,
        "seed": request.seed,
        "notes": list(frontier.notes),
        "hypervolume_share": frontier.hypervolume_share,
    }


def _x_label(request: Request) -> str:
    if request.local:
        return "ε in nats (local differential privacy)"
    return "privacy: error rate of the best guess from an answer"


def _title(request: Request) -> str:
    prior = request.prior
    text = f"{prior.attribute.n_categories} categories, {prior.source}"
    if request.most_posterior is not None:
        text += f", worst posterior {request.most_posterior:g}"
    return text


def _curves(frontier: Frontier) -> list[Curve]:
    curves = []
    for method in frontier.request.methods:
        points = [
            (row.level if frontier.request.local else row.privacy, row.mse)
            for row in frontier.rows
            if row.method == method and row.mse is not None and row.privacy is not None
        ]
        style = METHODS[method].style
        if method == BOUND and frontier.rows[0].bound != "exact":
            style = replace(style, label="mechanism nearest to the bound", line="--")
        if points:
            curves.append(Curve(style, points, method == BOUND))
    return curves


class StoredAbout(msgspec.Struct, forbid_unknown_fields=True):
    """``about.json``: the request and its prior."""

    format: Literal["deniable frontier"]
    format_version: Literal[1]
    software: Software
    attribute: dict[str, Any]
    prior: list[float]
    prior_source: str
    disclosure: str | None
    levels_are: Literal["epsilon", "privacy"]
    most_posterior: float | None
    methods: list[str]
    records: Rows
    seed: int
    notes: list[str]
    hypervolume_share: float | None
    prior_steps: Annotated[int, msgspec.Meta(ge=2, le=1 << 32)] | None = None


class StoredRow(Row, frozen=True, forbid_unknown_fields=True):
    """A row of ``frontier.json``: one method at one level, with the files of matrix and proof."""

    matrix: Annotated[str, msgspec.Meta(pattern=r"^matrices/[a-z-]+-[0-9.]+\.json$(?!\n)")] | None
    certificate: Annotated[str, msgspec.Meta(pattern=r"^certificates/[0-9.]+\.json$(?!\n)")] | None


@dataclass(frozen=True, eq=False)
class StoredFrontier:
    """A frontier's folder as read back."""

    path: Path
    prior: Prior
    local: bool
    most_posterior: float | None
    n_records: int
    rows: tuple[StoredRow, ...]
    certificates: dict[str, Certificate] = field(default_factory=dict)

    def load(self, row: StoredRow) -> FloatArray:
        """Return the matrix of a row, M[y, x] = Pr[y | x]."""
        if row.matrix is None:
            raise InputError(f"{self.path}: method {row.method} has a bound there, but no matrix")
        return self._matrix(self.path / row.matrix)

    def check(self, row: StoredRow) -> None:
        """Raise if a row's numbers differ from those of its matrix and proof."""
        self._check_bound(row)
        matrix = None if row.matrix is None else self._matrix(self.path / row.matrix)
        if matrix is not None and not self._within(matrix, row.level):
            raise self._altered(row, "the matrix is not within the limits")
        true = measured(matrix, np.array(self.prior.shares), self.n_records, row.lower_bound)
        for key, value in true.items():
            stated = getattr(row, key)
            if not _close(value, stated, true["condition"] if key == "condition" else None):
                raise self._altered(
                    row, f"{key} is stated as {stated}, and its matrix gives {value}"
                )
        if row.method not in METHODS:
            raise self._altered(row, "there is no such method")
        if row.bound != "proven" and len(self.prior.shares) > MAX_EXACT_CATEGORIES:
            raise self._altered(row, "the bound is not exact for this number of categories")

    def _within(self, matrix: FloatArray, level: float) -> bool:
        """Whether a matrix is within the limits of a level's bound."""
        if self.local:
            return float(response.epsilon(matrix)) <= level + _AGREE
        prior = np.array(self.prior.shares)
        surest = 1.0 if self.most_posterior is None else self.most_posterior
        return (
            float(response.privacy(matrix, prior)) >= level - _AGREE
            and float(response.worst_posterior(matrix, prior)) <= surest + _AGREE
        )

    def _altered(self, row: StoredRow, why: str) -> InputError:
        return InputError(
            f"{self.path}: it has been altered: of {row.method} at {row.level:g} {why}"
        )

    def _matrix(self, file: Path) -> FloatArray:
        rows = _read(file, list[list[float]])
        if len({len(each) for each in rows}) != 1:
            raise InputError(f"{file}: its rows differ in length")
        try:
            return response.checked_response(np.array(rows).T, len(self.prior.shares))
        except InputError as error:
            raise InputError(f"{file}: {error}") from None

    def _check_bound(self, row: StoredRow) -> None:
        if row.certificate is None:
            raise self._altered(row, "it has no proof of the bound")
        file = self.path / row.certificate
        if row.certificate not in self.certificates:
            try:
                self.certificates[row.certificate] = certificate_from_plain(read_json(file))
            except InputError as error:
                raise InputError(f"{file}: {error}") from None
        certificate = self.certificates[row.certificate]
        limits = certificate.limits
        level = limits.epsilon if self.local else 1.0 - (limits.success or 0.0)
        same = (
            np.array_equal(limits.prior, checked_prior(self.prior.shares))
            and _close(level, row.level)
            and limits.most_posterior == (None if self.local else self.most_posterior)
            and _close(certificate.record_mse / self.n_records, row.lower_bound)
        )
        if not same:
            raise InputError(f"{file}: its bound differs from the one in {TABLE}")


def read(path: Path) -> StoredFrontier:
    """Read a frontier's folder, and check every row."""
    if not (path / ABOUT).is_file():
        raise InputError(
            f"{path}: this is not a folder that frontier has made ({ABOUT} is missing)"
        )
    try:
        plain = read_json(path / ABOUT)
        check_version(plain, FORMAT, FORMAT_VERSION)
        about = decoded(plain, StoredAbout, "it")
    except InputError as error:
        raise InputError(f"{path / ABOUT}: {error}") from None
    rows = _read(path / TABLE, list[StoredRow])
    attribute = Schema.from_plain({"attribute": [about.attribute]}).attributes[0]
    if about.disclosure is not None and about.prior_steps is None:
        raise InputError(
            f"{path}: its prior was read off the data and is not rounded, so that counts follow "
            "from it; trace the frontier again"
        )
    prior = Prior(attribute, tuple(about.prior), about.prior_source, about.prior_steps)
    stored = StoredFrontier(
        path,
        prior,
        about.levels_are == "epsilon",
        about.most_posterior,
        about.records,
        tuple(rows),
    )
    for row in stored.rows:
        stored.check(row)
    return stored


def _read(file: Path, kind: Any) -> Any:
    try:
        return from_json(file.read_bytes(), kind)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: it has been altered ({error})") from None


def _close(true: float | None, stated: float | None, condition: float | None = None) -> bool:
    """Whether two numbers agree, within rounding, which a condition multiplies."""
    if true is None or stated is None:
        return true is stated
    tolerance = max(_AGREE, 1e-13 * (condition or 0.0))
    return math.isclose(true, stated, rel_tol=tolerance, abs_tol=1e-12)
