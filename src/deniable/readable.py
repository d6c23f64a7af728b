"""The rule by which a share counts as readable: its numbers and its sentence."""

from statistics import NormalDist

HALF_WIDTH_ERRORS = NormalDist().inv_cdf(0.975)
"""Half-width of a 95 % interval, in standard errors."""

READABLE_ERRORS = 2.0
"""Least ratio of a readable share to its standard error."""

LARGEST_READABLE = 0.1
"""Largest value of `READABLE_ERRORS` standard errors of a readable share: 10 points."""

RULE = (
    "A share can be read if two standard errors of it are at most the share itself and at most "
    f"{100 * LARGEST_READABLE:g} points"
)
