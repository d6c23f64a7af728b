"""The entropy accounting of bistochastic privacy: strength of a mechanism, in bits.

Source: Ruiz, "λ-randomization", section 2.2 (entropy rate, Definition 1) and Theorem 2. The entropy
rate of a response matrix is the mean entropy of its answers over equally likely categories. The
strength is the entropy rate over its maximum, log₂ of the number of categories.

It measures uncertainty on average and bounds no person's disclosure; ε does that.

The proofs are in docs/proofs/lambda.md, Theorem 4.
"""

import math
from dataclasses import dataclass

from deniable.laws.entropy import NotComputedError
from deniable.mechanism.mechanism import Mechanism


@dataclass(frozen=True)
class Strength:
    """The entropy account of a mechanism.

    ``entropy``: entropy rate of the whole record's response in bits, over the protected attributes;
    None if it is not computed. ``most_entropy``: its maximum, Σ log₂ r, in bits.
    ``attribute_strength``: the β of bistochastic privacy per attribute, of the response seen in
    that column alone, shape (k,); 0 for unchanged columns, None where not defined.
    ``attenuation``: λ per attribute, shape (k,); None under a matrix other than λI + (1 − λ)P*.
    """

    entropy: float | None
    most_entropy: float
    attribute_strength: tuple[float | None, ...]
    attenuation: tuple[float | None, ...]
    not_computed: str = ""

    @property
    def strength(self) -> float | None:
        """Joint strength: Σ H/Σ log₂ r for a product (Theorem 2)."""
        return None if self.entropy is None else self.entropy / self.most_entropy


def mechanism_strength(mechanism: Mechanism) -> Strength:
    """Return the entropy account of a mechanism; blocks are independent, so entropies add."""
    k = len(mechanism.schema.attributes)
    strengths: list[float | None] = [None] * k
    attenuations: list[float | None] = [None] * k
    record = most = 0.0
    why = ""
    for block in mechanism.blocks:
        singles = zip(
            block.attributes,
            block.law.n_categories,
            block.law.attribute_entropies(),
            block.law.attribute_lambdas(),
            strict=True,
        )
        for position, n, entropy, attenuation in singles:
            # Rounding of a law's sums may leave either just outside its range.
            if entropy is not None:
                strengths[position] = min(max(entropy / math.log2(n), 0.0), 1.0)
            if attenuation is not None:
                attenuations[position] = min(max(attenuation, -1 / (n - 1)), 1.0)
        if block.law.kept_as_it_is:
            continue
        try:
            record += block.law.record_entropy()
        except NotComputedError as reason:
            why = str(reason)
        most += sum(math.log2(n) for n in block.law.n_categories)
    return Strength(
        None if why else min(max(record, 0.0), most),
        most,
        tuple(strengths),
        tuple(attenuations),
        why,
    )
