"""Examples of how to get true shares and joint tables out of a release, for its page.

A pattern law multiplies every interaction component of a table by its attenuation φ. For a single
attribute with a categories the released share of a category is f = φ π + (1 − φ)/a; for two, the
part of the joint table that the margins do not explain is multiplied by φ of the pair.
"""

from dataclasses import dataclass
from math import ceil, log10, sqrt

from deniable.report import wording
from deniable.report.contents import Contents, PairAttenuation

_TRUE_SHARE = 0.3
"""The share that the worked example comes out at: any number would do, and no data are used."""

WEAK_PAIR = 0.1
"""A pair is called weak if its attenuation is below this part of the product of its singles'."""


@dataclass(frozen=True)
class Worked:
    """Worked example of the formula for one attribute, numbers as printed."""

    observed: str
    attenuation: str
    estimate: str

    def standard_error(self, n_rows: int) -> float:
        """Return the estimate's standard error, of a population that the rows are a sample of."""
        share = float(self.observed)
        return sqrt(share * (1 - share) / n_rows) / abs(float(self.attenuation))


def invert(observed: float, attenuation: float, n_categories: int) -> float:
    """Return π̂ = (f − (1 − φ)/a)/φ, the unbiased estimate of a true share."""
    return (observed - (1 - attenuation) / n_categories) / attenuation


def worked_example(attenuation: float, n_categories: int) -> Worked:
    """Return an example whose printed numbers give its printed result."""
    printed = wording.plain_number(attenuation)
    phi = float(printed)
    # Enough decimals for three after the division by φ.
    places = 4 + max(0, ceil(-log10(abs(phi))))
    observed = f"{phi * _TRUE_SHARE + (1 - phi) / n_categories:.{places}f}"
    return Worked(observed, printed, f"{invert(float(observed), phi, n_categories):.3f}")


def singles(contents: Contents) -> dict[str, float]:
    """Return the attenuations of the protected attributes that have one, in order."""
    known = contents.attenuation.single
    return {a.name: phi for a in contents.protected() if (phi := known.get(a.name))}


def example_pair(contents: Contents) -> PairAttenuation | None:
    """Return the pair of protected attributes that comes through best, or None if none is listed.

    The first of equals; never a pair whose joint table could not be estimated if another can.
    """
    protected = {a.name for a in contents.protected()}
    pairs = [p for p in contents.attenuation.pairs or () if protected.issuperset(p.attributes)]
    best = max(pairs, key=lambda p: abs(p.attenuation), default=None)
    return best if best is not None and best.attenuation else None


def example_names(contents: Contents) -> list[str]:
    """Return the attributes whose shares the examples estimate: two if they can be."""
    pair = example_pair(contents)
    protected = [a.name for a in contents.protected()]
    names = list(pair.attributes) if pair else ([*singles(contents)] or protected)[:1]
    return names or contents.randomized()[:1]


def weak_pairs(contents: Contents) -> list[tuple[float, PairAttenuation]]:
    """Return the pairs whose joint tables will be poor, weakest first: each with its attenuation as
    a part of the product of its attributes'."""
    known = contents.attenuation.single
    weak = []
    for pair in contents.attenuation.pairs or []:
        first, second = (known.get(name) for name in pair.attributes)
        if first and second and (part := abs(pair.attenuation / (first * second))) < WEAK_PAIR:
            weak.append((part, pair))
    return sorted(weak, key=lambda entry: entry[0])


def python_example(contents: Contents, names: list[str]) -> str:
    """Return two lines of Python that print a table of estimates: from the released file, or from
    the folder where strata have mechanisms of their own."""
    if contents.expost is not None and contents.expost.strata is not None:
        source = "'.'"
    else:
        source = f"{contents.release.file!r}, deniable.read_design('.')"
    return f"import deniable\nprint(deniable.open({source}).shares({names!r}).table())"
