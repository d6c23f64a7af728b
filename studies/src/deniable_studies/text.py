"""Words of a study, read from its TOML, with placeholders for numbers.

Placeholders are those of ``str.format``: ``{n_draws:,}`` is a value that the run computes.
Statements of claims have none: they were written before the run.
"""

from importlib.resources import files

import msgspec


class ClaimText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of a claim.

    Args:
        id: the name of its judge.
        statement: of the paper (or, beyond the papers, of this project), near its own words.
        source: where, such as "Yamamoto and Shibuya, section V-A, Figure 1".
        rule: criteria for reproduced and partly; fixed before the result was seen.
        why: the reason, where the claim does not hold in full; or several, by a name that the
            judge gives.
        always: whether the reason is given where the claim holds, too.
        full_only: whether a quick run leaves the claim out.
    """

    id: str
    statement: str
    source: str
    rule: str
    why: str | dict[str, str]
    always: bool = False
    full_only: bool = False


class FigureText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure's caption (axes with units, number of draws, level of intervals), and its size.

    Args:
        caption: below the figure.
        size: width and height in inches.
    """

    caption: str
    size: tuple[float, float] = (7.0, 4.6)


class TableText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table's caption and columns.

    Args:
        caption: one sentence: meaning of a row, units, number of draws.
        columns: names in snake_case, with the unit if there is one: ``epsilon_nats``.
        measured: whether it holds times, which differ from run to run. Every other table is the
            same, byte for byte, for the same seed on the same machine.
    """

    caption: str
    columns: tuple[str, ...]
    measured: bool = False


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All words of a study.

    Args:
        name: as typed after ``deniable reproduce``.
        title: one line.
        source: the paper and the table or figures, or "beyond the papers".
        question: one or two sentences.
        seconds: about how long it runs in full, measured on two cores.
        choices: one sentence for each choice that the source leaves open (a discretisation, a
            range, a seed); empty ones are left out.
        remarks: errors of the source, limits of a guarantee.
        claim: in the order of the page.
        figure: by the name of its file, in the order of the page.
        table: by the name of its file; every number in a figure is in one of them.
        needs_adult: whether the study needs the Adult data.
    """

    name: str
    title: str
    source: str
    question: str
    seconds: float
    choices: tuple[str, ...]
    remarks: tuple[str, ...]
    claim: tuple[ClaimText, ...]
    figure: dict[str, FigureText]
    table: dict[str, TableText]
    needs_adult: bool = False


def read_text(path: str) -> Text:
    """Return the text of a study.

    Args:
        path: of its TOML in this package, such as ``optrr/optrr-normal.toml``.
    """
    return msgspec.toml.decode(files("deniable_studies").joinpath(path).read_bytes(), type=Text)
