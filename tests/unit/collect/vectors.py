"""What a browser must draw from given bytes, and engines to ask: Python's sampler is the oracle."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.collect.client import codes_of
from deniable.collect.gates import gates_of
from deniable.collect.questionnaire import place
from deniable.collect.scripts import DRAWING, joined
from deniable.laws import (
    DesignedChannel,
    GatedSum,
    Identity,
    Law,
    MatrixChannel,
    PatternTable,
    ProductLaw,
    ScoreTable,
    SingleChangeMixture,
    VoteBlend,
)
from deniable.laws.score import ScoreSampler
from deniable.laws.votes.sampling import VoteSampler
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.schema import Attribute, Schema
from deniable.schema.attribute import EPOCH

RECORDS = int(os.environ.get("RECORDS", "2400"))  # of all mechanisms together: just records
MASK = (1 << 64) - 1
CORNERS = (0, MASK, 1 << 63, (1 << 63) - 1, MASK // 3, 2 * (MASK // 3), MASK // 5)


def laws() -> dict[str, Law]:
    """One law or more of every family, with weights that reach every branch of a comparison."""
    ones, half = np.ones(3), np.array([1.0, 0.5, 1 / 3])
    theta = np.array([0.0, 0.123, 0.5])
    n = (2, 3, 5)
    vote = GatedSum(n, np.array([3, 2, 4]), np.zeros(3), "vote", 4.5, 1.0, 2.0, ones)
    other = GatedSum(n, np.array([0, 5, 1]), theta, "vote", 2.0, 1.0, 2.0, ones)
    steep = GatedSum(n, np.array([1, 1, 1]), np.zeros(3), "vote", 2, 1, 599.0, ones)
    k12 = np.arange(7, 19)
    ramp = GatedSum(n, np.array([30, 20, 41]), theta, "ramp", 11.5, 60.0, 5.0, ones)
    twelve = GatedSum((5,) * 12, k12, np.linspace(0, 0.9, 12), "ramp", 20.0, 90.0, 6.0, np.ones(12))
    return {
        "product, few bits": ProductLaw(n, 3, (5, 4, 7)),
        "product, many bits": ProductLaw.from_levels(n, (1.0, 0.25, 40.0)),
        "many categories": ProductLaw.from_levels((2, 5000), (1.0, 9.0)),
        "pattern table": PatternTable((2, 3), 6, (1, 50, 12, 1)),
        "pattern table, wide": PatternTable((2, 3), 130, ((1 << 130) - 7, 1, 3, 3)),
        "pattern table, direct": PatternTable((2,) * 13, 16, (8,) * 8192),
        "scores": ScoreTable((2, 2, 3), (1, 1, 2), (40, 5, 6, 1, 7)),
        "scores, wide": ScoreTable((2, 3), (3, 1), (1 << 90, 5, 0, 9, 1)),
        "scores, direct": ScoreTable((2,) * 13, (1,) * 13, tuple(range(14, 0, -1))),
        "scores of kinds": ScoreTable(
            (2, 3, 2, 5) * 5, (1, 2, 1, 5) * 5, tuple(3 << (45 - s) for s in range(46))
        ),
        "single change": SingleChangeMixture(n, 4, 5, 6, (2, 0, 3)),
        "single change, zero weights": SingleChangeMixture(n, 70, (1 << 70) - 1, 0, (0, 0, 1)),
        "matrix": MatrixChannel((3,), 3, ((5, 0, 1), (3, 8, 0), (0, 0, 7))),
        "matrix, tall": MatrixChannel((2,), 70, ((1, 1 << 70), (5, 0), ((1 << 70) - 6, 0))),
        "designed matrix": DesignedChannel.for_prior(
            np.array([[0.7, 0.1], [0.2, 0.2], [0.1, 0.7]]), (0.5, 0.5)
        ),
        "identity": Identity(n),
        "vote": vote,
        "vote, dithered, retained": GatedSum(
            n, np.array([3, 0, 4]), theta, "vote", 3.25, 1.5, 0.7, half
        ),
        "vote, steep": steep,
        "ramp": replace(ramp, retention=half),
        "ramp, twelve": twelve,
        "blend": VoteBlend((vote, other), np.array([0.75, 1e-9]), half),
        "blend, of several heights": VoteBlend((ramp, vote), np.array([0.5, 2.0]), half),
        "blend, even": VoteBlend((vote, other, vote), np.array([1.0, 3.0, 0.1]), ones),
    }


def mechanisms() -> dict[str, Mechanism]:
    """A mechanism of each law but the identity, and one of several blocks, the identity among
    them, whose attributes are mixed."""
    made = laws()
    kept = made.pop("identity")
    parts = [kept, *(made[name] for name in ("vote", "matrix", "product, few bits", "ramp"))]
    order = list(np.random.default_rng(1).permutation(sum(len(p.n_categories) for p in parts)))
    blocks, sizes = [], dict[int, int]()
    for part in parts:
        places = tuple(int(order.pop()) for _ in part.n_categories)
        blocks.append(Block(places, part))
        sizes |= zip(places, part.n_categories, strict=True)
    schema = Schema.anonymous(tuple(sizes[i] for i in sorted(sizes)))
    schema = replace(schema, keep=tuple(schema.names[i] for i in blocks[0].attributes))
    alone = {name: mechanism_of(law) for name, law in made.items()}
    return alone | {"several blocks": Mechanism(schema, tuple(blocks))}


def mechanism_of(law: Law) -> Mechanism:
    block = Block(tuple(range(len(law.n_categories))), law)
    return Mechanism(Schema.anonymous(law.n_categories), (block,))


class RecordedBits:
    """Random words, half of them chosen at boundaries; keeps the bytes it handed out."""

    secure = False

    def __init__(self, seed: int, words: NDArray[np.uint64]) -> None:
        self._random = np.random.default_rng(seed)
        self._words = np.append(np.array(CORNERS, dtype=np.uint64), words)
        self.bytes = bytearray()

    def bits(self, dtype: Any, count: int) -> NDArray[Any]:
        kind = np.dtype(dtype)
        width = 8 * kind.itemsize
        drawn = self._random.integers(0, MASK, count, dtype=np.uint64, endpoint=True)
        chosen = self._words[self._random.integers(0, len(self._words), count)]
        words = np.where(self._random.random(count) < 0.5, chosen, drawn)
        result = (words >> np.uint64(64 - width)).astype(kind.newbyteorder("<"))
        self.bytes += result.tobytes()
        return result.astype(kind)


class GivenBits:
    """The bytes of a text, in order."""

    secure = False

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def bits(self, dtype: Any, count: int) -> NDArray[Any]:
        kind = np.dtype(dtype).newbyteorder("<")
        found = np.frombuffer(self.content, kind, count, self.at)
        self.at += count * kind.itemsize
        return found.astype(np.dtype(dtype))


def boundaries(law: Law) -> Iterator[int]:
    """Words at which a choice of a law of votes or scores is not yet decided, and neighbours."""
    sampler = law.sampler()
    if isinstance(sampler, ScoreSampler):
        for t, floors in enumerate(sampler._floors):
            for s in range(0, floors.shape[1], 5):
                *edges, total = accumulate(sampler._weights(t, s))
                for edge in edges if total else ():
                    first, rest = divmod(min(edge << 16, (total << 16) - 1), total)
                    word = (rest << 48) // total << 16
                    yield from (first << 48, word, word ^ 1 << 16)
    if not isinstance(sampler, VoteSampler):
        return
    found = [choice for choice in sampler._retained if choice is not None]
    for stage in sampler._patterns._built():
        found += [stage._change, stage._dither]
    for choice in found[:40]:
        for state in range(min(4, choice.n_states)):
            yes = choice.probability(state)
            smaller, flip = min(yes, 1 - yes), yes > Fraction(1, 2)
            first = int(smaller * 2**16)
            drawn = (MASK >> 48) - first if flip else first
            rest = int((smaller * 2**16 - first) * 2**64)
            yield from (drawn << 48, max(drawn - 1, 0) << 48, rest, rest + 1, max(rest - 1, 0))


def record_of(subject: Mechanism | Law) -> dict[str, Any]:
    """What a browser is told of a mechanism, or of one law."""
    if isinstance(subject, Law):
        blocks: tuple[Block, ...] = (Block(tuple(range(len(subject.n_categories))), subject),)
        sizes = subject.n_categories
        names = [f"a{i}" for i in range(1, len(sizes) + 1)]
    else:
        blocks, sizes = subject.blocks, subject.schema.n_categories
        names = list(subject.schema.names)
    return {
        "blocks": [
            {"attributes": [names[i] for i in block.attributes], "law": block.law.to_plain()}
            for block in blocks
        ],
        "gates": [gates_of(block.law) for block in blocks],
        "names": names,
        "sizes": list(sizes),
    }


def one_row(sampler: Any, codes: Sequence[int], source: Any) -> list[int]:
    """One row through a law's sampler."""
    columns = [np.array([code]) for code in codes]
    return [int(column[0]) for column in sampler.randomize(columns, source)]


def vectors(mechanism: Mechanism, count: int, seed: int) -> list[dict[str, Any]]:
    """Rows, the bytes they were drawn with, and what came out."""
    return next(batches(mechanism, count, seed, count))


def batches(
    mechanism: Mechanism, count: int, seed: int, size: int = 1000
) -> Iterator[list[dict[str, Any]]]:
    """Such rows in batches."""
    edges = chain.from_iterable(boundaries(block.law) for block in mechanism.blocks)
    words = np.fromiter(edges, dtype=np.uint64)
    random = np.random.default_rng(seed)
    randomizer = Randomizer(mechanism, RecordedBits(seed, words))
    for start in range(0, count, size):
        found = []
        for row in range(start, min(start + size, count)):
            randomizer.source = source = RecordedBits(seed * 1_000_003 + row, words)
            codes = [int(random.integers(n)) for n in mechanism.schema.n_categories]
            drawn = [int(c[0]) for c in randomizer.randomize([np.array([x]) for x in codes])]
            found.append({"codes": codes, "bytes": source.bytes.hex(), "drawn": drawn})
        yield found


NUMBERS = Schema(
    (
        Attribute("income", range=(0, 200_000), grid=5, missing="NA"),
        Attribute.merged(
            (
                Attribute("smokes", ("no", "yes")),
                Attribute("weight", range=(-30.5, 200.25), grid=7, outside="clip"),
            )
        ),
        Attribute("born", range=(-7305, 10956), grid=4, dates=True),
    )
)
"""Numbers, alone and merged, with a category, set to an end, and dates."""


@cache
def of_numbers(count: int, seed: int) -> str:
    """Rows of numbers as typed, for a browser: their texts, the bytes, and what came out."""
    law = ProductLaw.from_levels(NUMBERS.n_categories, (1.0, 2.0, 1.5))
    mechanism = Mechanism(NUMBERS, (Block((0, 1, 2), law),))
    parts = [part for attribute in NUMBERS.attributes for part in attribute.columns]
    random, found = np.random.default_rng(seed), []

    def tie(digits: int) -> str:
        """Half of a unit, so that the last digit decides."""
        return f"{random.integers(30)}.{random.integers(10 ** (digits - 1)):0{digits}d}5"

    # Words next to which further bits decide.
    steps = [part.number_grid.step for part in parts if part.number_grid is not None]
    edges = [(int(k) << 64) // m for m in steps for k in random.integers(1, m, 40)]
    randomizer = Randomizer(mechanism, RecordedBits(seed, words := np.array(edges, np.uint64)))
    for row in range(count):
        randomizer.source = source = RecordedBits(seed * 1_000_003 + row, words)
        chosen = [
            ["NA", "0", "200000", "50000", f"{random.uniform(0, 2e5):.6f}", tie(8)],
            ["no", "yes"],
            ["-30.5", "-40", "1000", f"{random.uniform(-30, 200):.11f}", "-" + tie(11)],
            [str(EPOCH + timedelta(days=int(random.integers(-7305, 10957))))],
        ]
        answers = [texts[int(random.integers(len(texts)))] for texts in chosen]
        codes = codes_of(NUMBERS, answers_of(NUMBERS, answers), source)
        drawn = [int(c[0]) for c in randomizer.randomize([np.array([x]) for x in codes])]
        found.append({"answers": answers, "bytes": source.bytes.hex(), "drawn": drawn})
    return json.dumps(
        {
            "schema": NUMBERS.to_plain(),
            "record": record_of(mechanism),
            "questions": [place(a, part) for a in NUMBERS.attributes for part in a.columns],
            "categories": [part.categories for part in parts],
            "vectors": found,
        },
        indent=1,
    )


def answers_of(schema: Schema, texts: Sequence[str]) -> dict[str, Any]:
    """Answers by column, with numbers as written."""
    return {
        name: Decimal(text) if re.fullmatch(r"-?[\d.]+", text) else text
        for name, text in zip(schema.columns, texts, strict=True)
    }


HARNESS = """
class Given {
  constructor(hex) { this.hex = hex; this.at = 0; }
  bytes(count) {
    const found = new Uint8Array(count);
    for (let i = 0; i < count; i++, this.at += 2) {
      if (this.at >= this.hex.length) throw new Error("more bytes than Python drew");
      found[i] = parseInt(this.hex.substr(this.at, 2), 16);
    }
    return found;
  }
}
// The codes of answers as typed.
function codesIn({ questions, categories, record }, { answers }, source) {
  const units = answers.map((text, q) => {
    const { grid } = questions[q];
    const place = categories[q].indexOf(text);
    if (!grid) return place;
    if (place >= grid.points) return BigInt(grid.step) * BigInt(place);
    return unitsOf(grid.dates ? String(Date.parse(text) / 86400000) : text, grid);
  });
  return codesOf(questions, record.names, units, source);
}
function wrongVectors(text) {
  const request = JSON.parse(text);
  const { record, vectors } = request;
  const sampler = new Sampler(record.blocks, record.gates, record.names, record.sizes);
  const wrong = [];
  vectors.forEach((vector, row) => {
    let got;
    try {
      const source = new Given(vector.bytes);
      const codes = vector.codes ?? codesIn(request, vector, source);
      got = sampler.draw(codes, source).join();
      if (source.at !== vector.bytes.length) got += " with bytes left over";
    } catch (error) {
      got = String(error);
    }
    if (got !== vector.drawn.join()) wrong.push(`${row}: ${got} for ${vector.drawn.join()}`);
  });
  return JSON.stringify(wrong);
}
"""


def script(code: str | None = None) -> str:
    """The drawing code, and a function that says which vectors it gets wrong."""
    return (joined(DRAWING) if code is None else code) + HARNESS


def request(mechanism: Mechanism, found: list[dict[str, Any]]) -> str:
    return json.dumps({"record": record_of(mechanism), "vectors": found})
