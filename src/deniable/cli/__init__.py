"""The command line. It parses arguments and calls what the Python interface calls."""

from deniable.cli import designing, estimating, frontier, pram, releasing, reproduce, testing
from deniable.cli.app import main

__all__ = [
    "designing",
    "estimating",
    "frontier",
    "main",
    "pram",
    "releasing",
    "reproduce",
    "testing",
]
