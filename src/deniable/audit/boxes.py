"""The audited programs, as functions of rows."""

import io
import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.counting import released_codes
from deniable.mechanism.mechanism import Mechanism
from deniable.numerals import count_text
from deniable.tables.trials import csv_bytes, trial_table

Box = Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]]
"""Takes codes, one array of shape (n,) per attribute; returns the codes of the released values in
the same rows, and under forms one more array, the rows' forms. Every call is a separate run."""


def rows_box(mechanism: Mechanism, randomize: Callable[[Any], Any]) -> Box:
    """Return the box of a function that randomizes a pyarrow table of true values."""

    def box(codes: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        released = released_codes(randomize(trial_table(mechanism.schema, codes)), mechanism)
        if len(released[0]) != len(codes[0]):
            raise InputError(
                f"{count_text(len(codes[0]), 'row')} went in and {len(released[0]):,} came back; "
                "return one row per input row, in the same order"
            )
        return [np.asarray(column) for column in released]

    return box


class _Output(io.BytesIO):
    """CSV output of a program, as an open file."""

    name = "the output of the program"


def command_box(mechanism: Mechanism, words: Sequence[str]) -> Box:
    """Return the box of a program that reads and writes CSV with a header."""

    def randomize(table: Any) -> Any:
        # These draws are about no person: no ledger counts them.
        environment = {k: v for k, v in os.environ.items() if k != "DENIABLE_LEDGER"}
        try:
            done = subprocess.run(
                list(words),
                input=csv_bytes(table),
                capture_output=True,
                check=False,
                env=environment,
            )
        except OSError as error:
            raise InputError(f"{words[0]}: cannot be run ({error.strerror or error})") from None
        if done.returncode:
            messages = done.stderr.decode(errors="replace").strip().splitlines()
            last = f": {messages[-1][:200]}" if messages else ""
            raise InputError(f"{words[0]}: failed with status {done.returncode}{last}")
        return _Output(done.stdout)

    return rows_box(mechanism, randomize)
