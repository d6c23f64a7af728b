"""Command line: parses arguments and calls the functions of the Python interface."""

from deniable.cli import (
    auditing,
    collecting,
    designing,
    example,
    frontier,
    ledger,
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
    "example",
    "frontier",
    "ledger",
    "main",
    "pram",
    "releasing",
    "reproduce",
    "studio",
    "synthesizing",
]
