"""Crafted and broken input for every parser, in a process that has limits.

    python tests/fuzzing.py [--inputs 1000000] [--seed 7] [--only record,csv]

An input is a golden file or a small example with some of its bytes, words, numbers, lines or
branches changed, doubled or taken out. It may be accepted, or refused with an InputError. Another
exception, more than two seconds of CPU or more than a gigabyte is a defect: the input is written to
a file, which is named. `just fuzz` reads a million, the gate ten thousand (tests/test_fuzzing.py).
"""

import argparse
import gzip
import io
import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from deniable.cli import options
from deniable.collect.questionnaire import read_questionnaire
from deniable.collect.study import Study, check_study, new_study
from deniable.design.matrices import response_from_file
from deniable.errors import InputError, Notice
from deniable.frontier import folder as frontier_folder
from deniable.frontier.priors import Prior, from_file
from deniable.frontier.tracing import Request, trace
from deniable.ledger import Ledger, Spending, balances
from deniable.release.job import begin, open_job
from deniable.release.record import verify
from deniable.release.release import Options
from deniable.release.signing import SIGNATURE, SUMS, Signer, check_signature, read_signer
from deniable.schema import Attribute, Schema
from deniable.statement.record import read_design
from deniable.statement.strata import read_designs
from deniable.tables import open_table
from deniable.tables.codebook import read_codebook

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
TODAY = date(2026, 11, 22)
SECONDS = 2.0
GIGABYTE = 1 << 30

WORDS = [
    *("", "0", "-1", "1e999", "nan", "inf", "null", "true", "[]", "{}", '"', "\\u0000", "\ufeff"),
    *("9" * 40, "f" * 300, "0x1p-1074", "5e-324", "1e308", "-0.0", "../../x", "é", "\U0001f600"),
    *(",", ";", "\t", "\n", "\r", "=", ":", "@", "a" * 2000, "[" * 3000, "{" * 200, "1" * 5000),
]
NUMBERS = [
    *(0, 1, -1, 2, 255, 256, 65535, 1 << 31, 1 << 53, 1 << 64, 10**30, -(10**30)),
    *(0.0, -0.0, 0.5, 5e-324, 1e-300, 1e300, 1.7976931348623157e308),
]


def mutated_bytes(content: bytes, chance: random.Random) -> bytes:
    """Some bytes of a text changed, doubled, taken out, or replaced by a word."""
    text = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 8))):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + int(chance.expovariate(0.2)) + 1)
        match chance.randrange(6):
            case 0 if at < len(text):
                text[at] ^= 1 << chance.randrange(8)
            case 1:
                del text[at:end]
            case 2:
                text[at:at] = text[at:end] * chance.choice((1, 1, 3, 50))
            case 3:
                text[at:end] = chance.choice(WORDS).encode()
            case 4:
                text[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 4)))
            case _:
                del text[end if chance.random() < 0.2 else len(text) :]
    return bytes(text)


def branches(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in plain values: what holds it, and its key."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inside:
        yield value, key
        if isinstance(item, dict | list):
            yield from branches(item)


def mutated_plain(content: bytes, chance: random.Random) -> bytes:
    """Some values of a JSON file replaced, moved, doubled or taken out."""
    value = json.loads(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(branches(value)) if isinstance(value, dict | list) else []
        if not places:
            break
        held, key = chance.choice(places)
        match chance.randrange(7):
            case 0:
                del held[key]
            case 1:
                held[key] = chance.choice(NUMBERS)
            case 2:
                held[key] = chance.choice(WORDS)
            case 3:
                other, where = chance.choice(places)
                held[key] = json.loads(
                    json.dumps(
                        other.get(where)
                        if isinstance(other, dict)
                        else other[where]
                        if where < len(other)
                        else None
                    )
                )
            case 4 if isinstance(held[key], int | float):
                held[key] = held[key] * chance.choice((-1, 2, 1.01, 1e300)) + chance.choice((0, 1))
            case 5 if isinstance(held[key], str) and held[key]:
                held[key] = mutated_bytes(held[key].encode(), chance).decode(errors="replace")
            case _ if isinstance(held, dict):
                held[chance.choice(WORDS)] = held[key]
            case _:
                held.insert(key, held[key])
    try:
        return json.dumps(value, allow_nan=chance.random() < 0.5).encode()
    except ValueError:
        return content[:-1]


DDI = b"""<codeBook xmlns="ddi:codebook:2_5"><dataDscr><var name="happy" nature="ordinal">
<labl>Happiness</labl><qstn><qstnLit>How happy?</qstnLit></qstn>
<invalrng><item VALUE="-9"/><range min="90" max="99"/></invalrng>
<catgry><catValu>1</catValu><labl>not</labl></catgry>
<catgry missing="Y"><catValu>-8</catValu><labl>unknown</labl></catgry></var></dataDscr>
</codeBook>"""


@dataclass(frozen=True)
class Parser:
    """Something that reads what others wrote.

    Args:
        read: takes the bytes, and a folder to write into.
        seeds: what is changed.
        json: whether values are changed too, and not only bytes.
        dear: whether one takes milliseconds, so that it gets a tenth of the others' share.
    """

    read: Callable[[bytes, Path], Any]
    seeds: list[bytes]
    json: bool = False
    dear: bool = False


def _golden(*patterns: str, most: int = 60_000) -> list[bytes]:
    paths = sorted(path for pattern in patterns for path in GOLDEN.glob(pattern))
    return [path.read_bytes() for path in paths if path.stat().st_size < most]


def _written(name: str, read: Callable[[Path], Any]) -> Callable[[bytes, Path], Any]:
    def written(content: bytes, scratch: Path) -> Any:
        (scratch / name).write_bytes(content)
        return read(scratch / name)

    return written


SCHEMA = b"""
title = "T"
keep = ["region"]
[file]
separator = ";"
[[attribute]]
name = "sex"
categories = ["f", "m"]
scores = [0, 1]
[[attribute]]
name = "age"
bins = [0, 30, 60.5, 120]
[[attribute]]
name = "a+b"
[[attribute.part]]
name = "a"
categories = ["A", "B"]
missing = "category:NA"
[[attribute.part]]
name = "b"
categories = ["x", "y", "z"]
"""
TABLE = 'sex,age,region\nf,25,"no, rth"\nm,61,south\nf,,\n"m",7e1, x\n'
PEOPLE = """
keep = ["region"]
[[attribute]]
name = "sex"
categories = ["f", "m"]
[[attribute]]
name = "age"
bins = [0, 30, 60, 120]
missing = "category:NA"
"""


def _table(path: Path) -> None:
    schema = Schema.from_toml(path.parent / "people.toml")
    with open_table(path, schema.attributes, schema.keep, other_columns="drop") as reader:
        for _ in reader:
            pass


def _parquet() -> bytes:
    file = io.BytesIO()
    columns = {"sex": ["f", "m"] * 20, "age": [1.0, 70.5] * 20, "region": ["n", None] * 20}
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


NAMES = ["age", "sex", "a,b"]
OPTIONS: tuple[Callable[[str], Any], ...] = (
    lambda text: options.numbers_per_attribute(text, NAMES, "--attribute-epsilon"),
    lambda text: options.number_or_numbers(text, NAMES, "--attenuation"),
    lambda text: options.numbers_by_name(text, NAMES, "--importance"),
    lambda text: options.numbers_by_name(text, None, "--numeric"),
    lambda text: options.share(text, "--error"),
    lambda text: options.whole_numbers(text, "--categories"),
    lambda text: options.caps(text, NAMES, "--given-rest"),
    lambda text: options.floor(text, NAMES, "--pair-floor"),
    lambda text: options.numbers(text, "--scores"),
    lambda text: options.pairs([text], "--where"),
    lambda text: options.preserved([text], NAMES, "--preserve"),
)
TEXTS = ["1,2,1.5", "age=1,sex=2", "2x", "none", "a:b=0.4", "region=north", "2pt", "2%", "0.5"]


def _option(content: bytes, scratch: Path) -> None:
    text = content.decode(errors="replace")
    if "@" not in text:  # names a file
        for parse in OPTIONS:
            try:
                parse(text)
            except InputError:
                continue


def _mechanism(content: bytes, scratch: Path) -> None:
    (scratch / "m.json").write_bytes(content)
    design = read_design(scratch / "m.json")
    design.mechanism.check_samplers()


def _study(content: bytes, scratch: Path) -> None:
    check_study(Study(content))


def _ledger(content: bytes, scratch: Path) -> None:
    (scratch / "l").write_bytes(content)
    balances(Ledger(scratch / "l").events())


def _in_place(file: Path, read: Callable[[], Any]) -> Callable[[bytes, Path], Any]:
    """One of several files that are read together."""
    before = file.read_bytes()

    def replaced(content: bytes, scratch: Path) -> None:
        file.write_bytes(content)
        try:
            read()
        finally:
            file.write_bytes(before)

    return replaced


def _frontier(folder: Path) -> None:
    stored = frontier_folder.read(folder)
    for row in stored.rows:
        if row.matrix is not None:
            stored.load(row)


def _job(folder: Path) -> None:
    job = open_job(folder)
    job.design, job.options, job.layout  # noqa: B018
    job.stages, job.units, job.remaining("draw")


def _key(content: bytes, scratch: Path) -> None:
    file = scratch / "key"
    file.write_bytes(content)
    file.chmod(0o600)
    read_signer(file, lambda: None)


def _genotypes(folder: Path) -> None:
    attributes = [Attribute(name, ("0", "1", "2", "NA"), missing="NA") for name in "rs"]
    with open_table(folder / "t.bed", attributes, ["SEX"], other_columns="drop") as reader:
        for _ in reader:
            pass


def parsers(scratch: Path) -> dict[str, Parser]:
    """Every parser, with what it is fed."""
    from unit.collect.studies import example_files

    (scratch / "people.toml").write_text(PEOPLE)
    mechanism, questionnaire = example_files(scratch)
    schema = read_design(mechanism).mechanism.schema
    study = new_study(mechanism, questionnaire, TODAY)
    with Ledger(scratch / "book").release("p", Spending(1.0, {"a": 1.0}, {"a": 1.0}), "x") as entry:
        entry.count()
    levels = Attribute("blood", ("A", "B", "0"))
    prior = Prior(levels, (0.5, 0.3, 0.2), "a test", 10)
    request = Request(prior, (0.3,), most_posterior=0.9, methods=("warner", "bound"))
    front, release, people = scratch / "front", scratch / "signed", scratch / "plink"
    frontier_folder.write(front, trace(request), overwrite=False)
    matrix, certificate = (sorted(front.glob(f"**/{word}*"))[0] for word in ("warner", "bound"))
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    ssh = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    release.mkdir()
    (release / "record.json").write_text("{}")
    (scratch / "public").write_bytes(public)
    Signer(key).sign(release)
    table = scratch / "job.csv"
    table.write_text("smokes,alcohol,cannabis,sleep,lonely\n")
    job = begin([table], read_design(mechanism), scratch / "parts", Options(command="x")).folder
    people.mkdir()
    (people / "t.bed").write_bytes(b"\x6c\x1b\x01" + bytes(range(4)))
    (people / "t.bim").write_text("1 r 0 5 A C\n1 s 0 9 G T\n")
    (people / "t.fam").write_text("".join(f"{i} {i} 0 0 {i % 3} -9\n" for i in range(8)))

    def of_frontier(file: Path) -> Parser:
        read = _in_place(file, lambda: _frontier(front))
        return Parser(read, [file.read_bytes()], json=True, dear=True)

    def of_genotypes(suffix: str) -> Parser:
        file = people / f"t{suffix}"
        return Parser(_in_place(file, lambda: _genotypes(people)), [file.read_bytes()])

    def of_signature(name: str) -> Parser:
        file = release / name
        check = _in_place(file, lambda: check_signature(release, scratch / "public"))
        return Parser(check, [file.read_bytes()])

    return {
        "schema": Parser(_written("s.toml", Schema.from_toml), [SCHEMA, PEOPLE.encode()]),
        "mechanism": Parser(_mechanism, _golden("*/*.json", most=9_000), json=True, dear=True),
        "record": Parser(
            _written("r.json", verify), _golden("*/*/record.json"), json=True, dear=True
        ),
        "strata": Parser(
            _written("r.json", read_designs),
            _golden("*/pram-strata/record.json"),
            json=True,
            dear=True,
        ),
        "frontier-about": of_frontier(front / "about.json"),
        "frontier-rows": of_frontier(front / "frontier.json"),
        "frontier-matrix": of_frontier(matrix),
        "frontier-certificate": of_frontier(certificate),
        "codebook": Parser(
            _written("c.csv", read_codebook),
            [b"name;value;label;missing\nsex;1;male;\nsex;2;female;\nsex;-9;refused;yes\n"],
        ),
        "codebook-xml": Parser(_written("c.xml", read_codebook), [DDI]),
        "prior": Parser(
            _written("p.json", from_file),
            [b"[0.5, 0.3, 0.2]", b'{"a": 0.25, "b": 0.75}'],
            json=True,
        ),
        "matrix": Parser(
            _written("x.json", lambda path: response_from_file(path, levels)),
            [
                b"[[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]]",
                *_golden("*/designed-matrix.json"),
            ],
            json=True,
        ),
        "questionnaire": Parser(
            _written("q.toml", lambda path: read_questionnaire(path, schema, TODAY)),
            [questionnaire.read_bytes()],
        ),
        "study": Parser(_study, [study.content], json=True, dear=True),
        "job": Parser(
            _in_place(job / "job.json", lambda: _job(job)),
            [(job / "job.json").read_bytes()],
            json=True,
            dear=True,
        ),
        "key": Parser(_key, [pem, ssh]),
        "public-key": Parser(
            _in_place(scratch / "public", lambda: check_signature(release, scratch / "public")),
            [public],
        ),
        "signed-list": of_signature(SUMS),
        "signature": of_signature(SIGNATURE),
        "ledger": Parser(_ledger, [(scratch / "book").read_bytes()]),
        "csv": Parser(_written("t.csv", _table), [TABLE.encode(), TABLE.encode("utf-16")]),
        "gzip": Parser(
            _written("t.csv.gz", _table), [gzip.compress(TABLE.encode() * n) for n in (1, 9)]
        ),
        "parquet": Parser(_written("t.parquet", _table), [_parquet()]),
        **{f"genotypes{suffix}": of_genotypes(suffix) for suffix in (".bed", ".bim", ".fam")},
        "options": Parser(_option, [text.encode() for text in TEXTS]),
    }


def made(name: str, parser: Parser, seed: int, number: int) -> bytes:
    """The input of a number: the same wherever it is made."""
    chance = random.Random(f"{seed} {name} {number}")
    content = chance.choice(parser.seeds)
    change = mutated_plain if parser.json and chance.random() < 0.7 else mutated_bytes
    return change(content, chance)


@dataclass
class Found:
    """What came of some inputs.

    Args:
        outcomes: how many were accepted and refused, by parser.
        defects: what went wrong, a sentence each.
    """

    outcomes: Counter[tuple[str, str]]
    defects: list[str]


def _limited() -> None:
    """Give this process a gigabyte more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + GIGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def _late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS:g} seconds of CPU")


def _read_some(
    name: str, parser: Parser, seed: int, numbers: range, scratch: Path, report: Path
) -> None:
    """Read inputs and write what comes of each; leaves at the first that is a defect."""
    signal.signal(signal.SIGVTALRM, _late)
    counts: Counter[str] = Counter()
    for number in numbers:
        content = made(name, parser, seed, number)
        report.write_text(json.dumps([number, counts, ""]))
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            parser.read(content, scratch)
            counts["accepted"] += 1
        except InputError:
            counts["refused"] += 1
        except BaseException:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            report.write_text(json.dumps([number, counts, traceback.format_exc(limit=-6)]))
            os._exit(1)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    report.write_text(json.dumps([numbers.stop, counts, ""]))
    os._exit(0)


def fuzz(inputs: int, seed: int, only: list[str], kept: Path | None = None) -> Found:
    """Read so many inputs, divided among the parsers.

    Args:
        inputs: how many in all.
        seed: which.
        only: names of parsers; all if empty.
        kept: where to write inputs that are defects.
    """
    found = Found(Counter(), [])
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", Notice)
        scratch = Path(place)
        known = {k: v for k, v in parsers(scratch).items() if not only or k in only}
        report = scratch / "report"
        whole = sum(0.1 if parser.dear else 1 for parser in known.values())
        for name, parser in known.items():
            start, stop = 0, math.ceil(inputs / whole / (10 if parser.dear else 1))
            while start < stop:
                child = os.fork()
                if not child:
                    _limited()
                    _read_some(name, parser, seed, range(start, stop), scratch, report)
                status = os.waitpid(child, 0)[1]
                number, counts, problem = json.loads(report.read_text())
                for outcome, count in counts.items():
                    found.outcomes[name, outcome] += count
                start = number + bool(status)
                if status:
                    problem = (
                        problem or f"the process ended with {os.waitstatus_to_exitcode(status)}"
                    )
                    found.defects.append(f"{name} {number}: {problem}")
                    if kept is not None:
                        (kept / f"{name}-{seed}-{number}").write_bytes(
                            made(name, parser, seed, number)
                        )
                    if len(found.defects) >= 20:
                        return found
    return found


def main() -> None:
    """Read inputs and say what came of them."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--inputs", type=int, default=1_000_000)
    words.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    words.add_argument("--only", default="")
    words.add_argument("--keep", type=Path, default=Path())
    given = words.parse_args()
    found = fuzz(given.inputs, given.seed, [w for w in given.only.split(",") if w], given.keep)
    for (name, outcome), count in sorted(found.outcomes.items()):
        print(f"{name:15} {outcome:9} {count:>9,}")
    for defect in found.defects:
        print(defect)
    print(f"{found.outcomes.total():,} inputs of seed {given.seed}: {len(found.defects)} defects")
    sys.exit(bool(found.defects))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
