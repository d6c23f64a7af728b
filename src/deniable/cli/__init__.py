"""Command line: parses arguments and calls the functions of the Python interface."""

from deniable.cli.app import main

__all__ = ["main"]
