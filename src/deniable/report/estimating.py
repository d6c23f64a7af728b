"""How to get true shares and joint tables out of a release, with this software or by hand.

A pattern law multiplies every interaction component of a table by its attenuation φ. For a single
attribute with a categories the released share of a category is f = φ π + (1 − φ)/a; for two, the
part of the joint table that the margins do not explain is multiplied by φ of the pair.
"""

from dataclasses import dataclass
from math import ceil, log10, sqrt

from deniable.report import wording
from deniable.report.contents import Contents, PairAttenuation
from deniable.report.markup import bullets, code, escape, notice, paragraph, section
from deniable.schema import Attribute, Schema

_TRUE_SHARE = 0.3
"""The share that the worked example comes out at: any number would do, and no data are used."""

WEAK_PAIR = 0.1
"""A pair is called weak if its attenuation is below this part of the product of its singles'."""


@dataclass(frozen=True)
class Worked:
    """The formula for one attribute with numbers in it, as they are printed.

    Args:
        observed: share of released rows that hold a category.
        attenuation: φ of the attribute.
        estimate: what the formula gives.
    """

    observed: str
    attenuation: str
    estimate: str


def invert(observed: float, attenuation: float, n_categories: int) -> float:
    """Return π̂ = (f − (1 − φ)/a)/φ, the unbiased estimate of a true share."""
    return (observed - (1 - attenuation) / n_categories) / attenuation


def worked_example(attenuation: float, n_categories: int) -> Worked:
    """Return an example whose printed numbers give its printed result."""
    printed = wording.plain_number(attenuation)
    phi = float(printed)
    # So many decimals that the division by φ leaves three of them.
    places = 4 + max(0, ceil(-log10(abs(phi))))
    observed = f"{phi * _TRUE_SHARE + (1 - phi) / n_categories:.{places}f}"
    return Worked(observed, printed, f"{invert(float(observed), phi, n_categories):.3f}")


def estimating(contents: Contents) -> str:
    """Return the instructions."""
    schema = contents.schema()
    pair = _example_pair(contents)
    protected = [a.name for a in contents.protected()]
    names = list(pair.attributes) if pair else (_singles(contents) or protected)[:1]
    names = names or contents.randomized()[:1]
    strata = contents.expost is not None and contents.expost.strata is not None
    writable = [name for name in names if wording.fits_command(name)]
    parts = [
        notice("Do not read shares off the file.", _why_not(contents)),
    ]
    if writable:
        parts += [
            paragraph("With this software, in the folder that this page is in:"),
            code(wording.command("estimate", "--of", writable)),
        ]
    if names:
        parts += [
            paragraph("or in Python:"),
            code(python_example(None if strata else contents.release.file, names)),
        ]
    parts += _merged(schema)
    return section("How to estimate", *parts)


def by_hand(contents: Contents) -> list[str]:
    """Return how to estimate without this software, and which pairs will be poor."""
    by_name = {attribute.name: attribute for attribute in contents.schema().attributes}
    parts = []
    if (single := next(iter(_singles(contents)), None)) is not None:
        phi = contents.attenuation.single[single]
        assert phi is not None  # _singles lists only attributes that have one
        parts += _single_by_hand(by_name[single], phi, contents.release.rows)
    parts += _pair_by_hand(contents, _example_pair(contents))
    parts += _matrices_by_hand(contents)
    parts += _weak_pairs(contents)
    return parts


def _merged(schema: Schema) -> list[str]:
    paragraphs = []
    for attribute in schema.attributes:
        names = [part.name for part in attribute.parts]
        if not names:
            continue
        paragraphs.append(
            paragraph(
                f"{attribute.name} is merged from {wording.listed(names)}, and randomized as one. "
                "Any of them, or some together, are estimated by their own names; the estimate is "
                "that of the combinations, added up over the others"
                + (":" if all(map(wording.fits_command, names)) else ".")
            )
        )
        if all(map(wording.fits_command, names)):
            paragraphs.append(code(wording.command("estimate", "--of", names)))
    return paragraphs


def _why_not(contents: Contents) -> str:
    parts = ["They differ from the true ones on purpose, in a known way."]
    if _singles(contents):
        parts.append("A raw table is too even.")
    if contents.randomized_together():
        parts.append(
            "The attributes were randomized together, so a raw cross-table shows associations that "
            "are not there, and hides some that are."
        )
    elif len(_singles(contents)) > 1:
        parts.append("A raw cross-table shows associations weaker than they are.")
    parts.append("Estimate, as below; every estimate comes with its error.")
    return " ".join(parts)


def python_example(file: str | None, names: list[str]) -> str:
    """Return two lines of Python that print a table of estimates, from a file or the folder."""
    if file is None:
        return f"import deniable\nprint(deniable.estimate('.', of={names!r}).table())"
    return (
        "import deniable\n"
        f"print(deniable.estimate({file!r}, deniable.read_design('.'), "
        f"of={names!r}).table())"
    )


def _singles(contents: Contents) -> list[str]:
    """Return the protected attributes with an attenuation, in order."""
    singles = contents.attenuation.single
    return [a.name for a in contents.protected() if singles.get(a.name)]


def _example_pair(contents: Contents) -> PairAttenuation | None:
    """Return the pair of protected attributes that comes through best, or None if none is listed.

    The first of equals; never a pair whose joint table could not be estimated if another can.
    """
    protected = {a.name for a in contents.protected()}
    pairs = [p for p in contents.attenuation.pairs or () if protected.issuperset(p.attributes)]
    best = max(pairs, key=lambda p: abs(p.attenuation), default=None)
    return best if best is not None and best.attenuation else None


def _single_by_hand(attribute: Attribute, phi: float, n_rows: int) -> list[str]:
    n = attribute.n_categories
    example = worked_example(phi, n)
    share = float(example.observed)
    error = sqrt(share * (1 - share) / n_rows) / abs(phi) if n_rows else None
    category = attribute.label(attribute.categories[0])
    return [
        "<h3>By hand: one attribute</h3>",
        paragraph(
            "With f the share of released rows that hold a category, a the attribute's number of "
            "categories and φ its attenuation (in the table above), the true share is "
            "estimated without bias by"
        ),
        '<p class="formula">π̂ = ( f − (1 − φ)/a ) / φ</p>',
        paragraph(
            f"For example: {attribute.name} has a = {n} and φ = {example.attenuation}. If "
            f"f = {example.observed} of the released rows held “{category}”, the estimate would "
            f"be ({example.observed} − (1 − {example.attenuation})/{n}) / {example.attenuation} = "
            f"{example.estimate}."
            + (
                f" Its standard error is √(f(1 − f)/rows)/φ, here {wording.significant(error, 2)} "
                f"for {wording.count_text(n_rows, 'row', 'rows')}, if the rows are a sample of a "
                "larger population, and less if only the people in this table are meant."
                if error is not None
                else ""
            )
        ),
    ]


def _pair_by_hand(contents: Contents, pair: PairAttenuation | None) -> list[str]:
    if pair is None:
        if contents.attenuation.pairs is None and len(_singles(contents)) > 1:
            return [
                paragraph(
                    "The attenuations of pairs are not listed for so many attributes. "
                    + (
                        "Use the software for joint tables."
                        if contents.randomized_together()
                        else "The attributes are randomized independently, so that of a pair is "
                        "the product of the two."
                    )
                )
            ]
        return []
    first, second = pair.attributes
    return [
        "<h3>By hand: two attributes</h3>",
        paragraph(
            "With f the share of released rows that hold two categories together, f₁ and f₂ the "
            "shares of rows that hold the one and the other, π̂₁ and π̂₂ the estimates from these, "
            "and φ the attenuation of the pair, which record.json lists (attenuation, pairs):"
        ),
        '<p class="formula">π̂ = π̂₁/a₂ + π̂₂/a₁ − 1/(a₁a₂) + '
        "( f − f₁/a₂ − f₂/a₁ + 1/(a₁a₂) ) / φ</p>",
        f"<p>For {escape(first)} and {escape(second)}, φ = "
        f"{escape(wording.plain_number(pair.attenuation))}.</p>",
    ]


def _matrices_by_hand(contents: Contents) -> list[str]:
    if not (by_matrix := contents.by_matrix()):
        return []
    return [
        "<h3>By hand: a response matrix</h3>",
        paragraph(
            f"For {wording.listed(by_matrix)}: the released shares are M π, with M[y][x] the "
            "probability of answering y when x is true; solve for π, by least squares if there "
            "are more answers than categories. M is in record.json "
            "(mechanism, blocks, law): row y holds its weights for x in hexadecimal, to be divided "
            "by 2 to the power bits."
        ),
    ]


def _weak_pairs(contents: Contents) -> list[str]:
    singles = contents.attenuation.single
    pairs = contents.attenuation.pairs or []
    weak: list[tuple[float, PairAttenuation]] = []
    for pair in pairs:
        first, second = (singles.get(name) for name in pair.attributes)
        if first and second:
            part = abs(pair.attenuation / (first * second))
            if part < WEAK_PAIR:
                weak.append((part, pair))
    if not weak:
        return []
    weak.sort(key=lambda entry: entry[0])
    return [
        notice(
            "Joint tables that will be poor:",
            f"{len(weak)} of {wording.count_text(len(pairs), 'pair', 'pairs')} come through "
            f"with less than {WEAK_PAIR:.0%} of the product of their attributes' attenuations. "
            "Their joint tables are very uncertain, or cannot be estimated at all:".replace(
                "%", " %"
            ),
        ),
        bullets(
            f"{' × '.join(pair.attributes)}: {part:.1%} of it".replace("%", wording.PERCENT)
            for part, pair in weak[:10]
        ),
        paragraph(f"and {len(weak) - 10} more." if len(weak) > 10 else ""),
    ]
