"""What a release promises, and what it does not, in sentences.

The wording follows the definitions in `docs/guarantees.md`; a stated ε or factor is rounded up.
"""

import math
from decimal import ROUND_CEILING

from deniable.best_guess import best_guess, best_guess_sentence
from deniable.mechanism import Mechanism
from deniable.report.wording import factor_text, significant


def guarantee_sentence(mechanism: Mechanism, per_person: float) -> str:
    """Return the guarantee as it may be cited, in one sentence."""
    kept = mechanism.schema.keep
    among = f" that agree on {', '.join(kept)}" if kept else ""
    if math.isinf(per_person):
        unbounded = [n for n in mechanism.unprotected if n not in kept]
        sentences = [
            "No ε-differential privacy holds for the whole record, because some released values of "
            f"{', '.join(unbounded)} are possible for some true values only."
        ]
        for name in unbounded:
            guess = best_guess(mechanism, mechanism.schema.position(name))
            if guess is not None:
                sentences.append(best_guess_sentence(name, guess))
        return " ".join(sentences)
    level = significant(per_person, 6, ROUND_CEILING)
    return (
        f"Every record was randomized on its own with ε = {level} (local "
        f"differential privacy): whatever is released of a person, it is at most "
        f"{factor_text(per_person)} times as likely under that person's true values as under any "
        f"other values{among}."
    )


def small_print(
    mechanism: Mechanism, *, shuffled: bool, person: str | None, secure: bool
) -> list[str]:
    """Return what the guarantee does not cover, one sentence or two each."""
    lines = []
    if not secure:
        lines.append(
            "NOT PRIVATE: this release was made from a seed, for a test or a reproduction. Whoever "
            "knows or guesses the seed can undo the randomization."
        )
    if kept := mechanism.schema.keep:
        lines.append(
            "Released as they are and protected by nothing: "
            + ", ".join(kept)
            + ". The guarantee compares records that agree on them."
        )
    if unbounded := [n for n in mechanism.unprotected if n not in kept]:
        lines.append(
            "Randomized, but without ε-differential privacy: " + ", ".join(unbounded) + ". A "
            "released value can rule out some true values for certain."
        )
    lines += [
        "Whether a person is in the table at all, and how many rows it has, is not protected.",
        "The order of the rows was shuffled and says nothing."
        if shuffled
        else "The rows are in their original order. If that order goes by something sensitive, "
        "such as place or date, neighbouring rows together can give it away; shuffle them.",
    ]
    if person is None:
        lines.append(
            "The guarantee is per row. If a person has several rows, the ε of that person is the "
            "sum over the rows."
        )
    else:
        lines.append(
            f"The guarantee per person multiplies ε by the most rows that one person has "
            f"(column '{person}', which was dropped); that number itself is read from the data."
        )
    lines += [
        "Releases add up: if the same people's data are randomized and released again, the ε of "
        "all releases together is the sum.",
        "What can be learned about the population as a whole, and from that about anyone in it, is "
        "the purpose of the release and not a breach of the guarantee.",
        "The random bits come from AES-256 in counter mode, keyed by the operating system: the "
        "guarantee holds against anyone who cannot break that cipher or read this computer's "
        "memory while the release was made.",
    ]
    return lines
