"""The command line. It parses arguments and calls what the Python interface calls."""

from deniable.cli import designing, estimating, frontier, independence, pram, releasing, reproduce
from deniable.cli.app import main

__all__ = [
    "designing",
    "estimating",
    "frontier",
    "independence",
    "main",
    "pram",
    "releasing",
    "reproduce",
]
