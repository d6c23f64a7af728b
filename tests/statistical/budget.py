"""One budget for all the false alarms of this folder.

These tests draw fresh bits, as a release does, so a correct program fails them now and then. How
often is declared here: in one run of everything in this folder the probability that any check
raises a false alarm, or that any planted defect slips through, is at most ``TOTAL``. Every check
takes its share before it looks at its counts, and a share that is not there cannot be taken.
"""

from fractions import Fraction

TOTAL = Fraction(1, 10**6)
SHARE = 1e-9
"""What a check takes unless it says otherwise."""


class OverspentError(AssertionError):
    """More probability of a false alarm was asked for than had been declared."""


class Budget:
    """A sum that can be handed out once.

    Args:
        total: the probability that may be handed out.
    """

    def __init__(self, total: Fraction) -> None:
        self.total = total
        self.spent: dict[str, Fraction] = {}

    @property
    def left(self) -> Fraction:
        return self.total - sum(self.spent.values())

    def spend(self, name: str, share: float = SHARE) -> float:
        """Take a share for one check, under a name of its own, and return it.

        Raises:
            OverspentError: if so much is not left, or the name has been used.
        """
        if not share > 0:
            raise OverspentError(f"'{name}' asks for a share of {share}, which is no probability")
        if name in self.spent:
            raise OverspentError(f"'{name}' has already spent its share")
        if Fraction(share) > self.left:
            raise OverspentError(f"'{name}' asks for {share:g}, and {float(self.left):g} is left")
        self.spent[name] = Fraction(share)
        return share


BUDGET = Budget(TOTAL)
