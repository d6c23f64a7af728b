"""What a study says: read from the TOML beside it, in which numbers are left open.

Sentences are filled as by ``str.format``: ``{n_draws:,}`` is a value that the run computes. The
statements of claims have nothing to fill: they were written before anything was computed.
"""

from importlib.resources import files

import msgspec


class ClaimText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of a claim.

    Args:
        id: the name of its judge.
        statement: what the paper (or, beyond the papers, this project) says, near its own words.
        source: where, such as "Yamamoto and Shibuya, section V-A, Figure 1".
        rule: what counts as reproduced, and what as partly; fixed before the result was seen.
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
    """A figure's caption (axes with units, number of draws, what an interval covers), and its size.

    Args:
        caption: what is shown.
        size: width and height in inches.
    """

    caption: str
    size: tuple[float, float] = (7.0, 4.6)


class TableText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table's caption and columns.

    Args:
        caption: one sentence: what a row is, units, number of draws.
        columns: names in snake_case, with the unit if there is one: ``epsilon_nats``.
        measured: whether it holds times, which differ from run to run. Every other table is the
            same, byte for byte, for the same seed on the same machine.
    """

    caption: str
    columns: tuple[str, ...]
    measured: bool = False


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a study says.

    Args:
        name: as typed after ``deniable reproduce``.
        title: one line.
        source: the paper and the table or figures, or "beyond the papers".
        question: one or two sentences.
        seconds: about how long it runs in full, measured on two cores.
        choices: what the source leaves open (a discretisation, a range, a seed) and what was
            chosen, one sentence each; one that turns out empty is left out.
        remarks: what else a reader has to know: errors of the source, what a guarantee does not
            cover.
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
