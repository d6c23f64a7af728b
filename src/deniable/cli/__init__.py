"""The command line. It parses arguments and calls what the Python interface calls."""

from deniable.cli import (
    auditing,
    collecting,
    designing,
    estimating,
    example,
    frontier,
    independence,
    ledger,
    modelling,
    pram,
    releasing,
    reproduce,
    studio,
    synthesizing,
)
from deniable.cli.app import main

__all__ = [
    "auditing",
    "collecting",
    "designing",
    "estimating",
    "example",
    "frontier",
    "independence",
    "ledger",
    "main",
    "modelling",
    "pram",
    "releasing",
    "reproduce",
    "studio",
    "synthesizing",
]
