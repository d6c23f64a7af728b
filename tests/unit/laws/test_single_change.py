"""A single-change mixture needs weights that make a distribution."""

import pytest

from deniable.errors import InputError
from deniable.laws import SingleChangeMixture, law_from_plain

MIXTURE = {
    "family": "single-change-mixture",
    "bits": 4,
    "uniform_weight": "8",
    "unchanged_weight": "5",
    "change_weights": ["1", "2"],
}


@pytest.mark.parametrize(
    ("sizes", "uniform", "unchanged", "changes", "problem"),
    [
        ((2, 3), 0, 10, (3, 3), "the uniform record needs a weight above 0"),
        ((2, 3), -1, 11, (3, 3), "the uniform record needs a weight above 0"),
        ((2, 3), 14, -2, (2, 2), "is negative"),
        ((2, 3), 14, 2, (2, -2), "is negative"),
        ((2, 3), 8, 4, (2, 1), "must add up to 2"),
        ((2, 3), 8, 4, (2, 3), "must add up to 2"),
        ((2, 3), 8, 4, (4,), "a change weight for each"),
        ((), 8, 8, (), "needs at least one attribute"),
    ],
)
def test_a_single_change_mixture_with_wrong_weights_is_refused(
    sizes: tuple[int, ...], uniform: int, unchanged: int, changes: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        SingleChangeMixture(sizes, 4, uniform, unchanged, changes)


def test_an_edited_mixture_is_refused() -> None:
    for key in ("uniform_weight", "unchanged_weight"):
        for entry in (None, 3, "x"):
            with pytest.raises(InputError, match="Expected `str`"):
                law_from_plain({**MIXTURE, key: entry}, (2, 3))
