"""The last pages, for statisticians: how strongly each attribute was randomized, and formulas."""

from decimal import ROUND_CEILING

from deniable.report import wording
from deniable.report.contents import Contents
from deniable.report.estimating import by_hand
from deniable.report.markup import Row, definitions, escape, paragraph, section, table

_OPTIMAL_WITHIN = 1e-6
"""Below this distance from the lower bound, in nats, a law is shown as optimal."""

_NOTHING = "–"

_COLUMNS = [
    ("Attribute", ""),
    ("Attenuation φ", "λ of λ-randomization"),
    ("Rows, times", "1/φ²"),
    ("Strength", "entropy over its maximum"),
]


def statisticians(contents: Contents) -> str:
    """Return the appendix."""
    rows = [
        Row(
            escape(a.name),
            (
                _NOTHING
                if a.attenuation is None
                else wording.significant(a.attenuation, 4, trailing_zeros=True),
                _NOTHING if not a.attenuation else wording.significant(a.attenuation**-2, 3),
                _NOTHING if a.strength is None else wording.percent_text(a.strength),
            ),
        )
        for a in contents.mechanism.attributes
    ]
    return section(
        "Appendix: for statisticians",
        f'<div class="box">{table(_COLUMNS, rows)}</div>',
        definitions(
            [
                (
                    "Attenuation φ",
                    "what is left in the release of a difference between two shares; 1 is all of "
                    "it. Every component of a joint table that some attributes interact in is "
                    "multiplied by the φ of these attributes, and an estimate divides by it: the "
                    "variance of an estimated share goes with 1/φ², and so does the number of rows "
                    "that it takes. Ruiz calls it λ.",
                ),
                (
                    "Condition",
                    "of an estimated table (condition in --json): the largest 1/|φ| in it, the "
                    "factor by which noise is magnified in the worst direction.",
                ),
                (
                    "Strength",
                    "how uncertain the released value is on average when the true one is known: "
                    "entropy over its maximum. It bounds nothing about any one person; ε does."
                    + _of_record(contents),
                ),
                *(
                    [
                        (
                            "Response matrices",
                            "An attribute without an attenuation is randomized by a response "
                            "matrix, which is in record.json.",
                        )
                    ]
                    if contents.by_matrix()
                    else []
                ),
                ("How near the optimum", _optimality(contents)),
            ]
        ),
        *by_hand(contents),
        paragraph(
            "Intervals of shares are score intervals where they can be; the proofs of all formulas "
            "are in the documentation (proofs, estimation).",
            "soft small",
        ),
    )


def _of_record(contents: Contents) -> str:
    strength = contents.mechanism.strength
    return "" if strength is None else f" Of the whole record: {wording.percent_text(strength)}."


def _optimality(contents: Contents) -> str:
    epsilon = contents.mechanism.epsilon
    bound = contents.mechanism.epsilon_lower_bound
    if epsilon is None or bound is None:
        return "not known"
    gap = max(epsilon - bound, 0.0)
    law = (
        "(A pattern law draws, whatever the record is, which attributes change, and changes each "
        "to an evenly drawn other category.)"
    )
    if gap < _OPTIMAL_WITHIN:
        return (
            f"no pattern law with these ε alone has a record's ε more than {_OPTIMAL_WITHIN:f} "
            f"below this one's. {law}"
        )
    return (
        "no pattern law with these ε alone has a record's ε below "
        f"{wording.lower_bound_text(bound)}; this one's is {wording.epsilon_text(epsilon)}, at "
        f"most {wording.significant(gap, 2, ROUND_CEILING)} above that. {law}"
    )
