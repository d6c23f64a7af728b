"""The page's own check of a law, against Python's account and against brute force."""

import base64
import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import laws.strategies as strategies
from deniable.collect.gates import gate_values, gates_of
from deniable.collect.scripts import CHECKING, DRAWING, joined
from deniable.errors import InputError
from deniable.laws import GatedSum, Law, VoteBlend
from deniable.laws.votes.backward import Backward
from deniable.laws.votes.vote_law import LARGEST_NORMAL
from deniable.mechanism import privacy
from deniable.report import wording
from unit.collect import vectors

quickjs = pytest.importorskip("quickjs")

LAWS = vectors.laws()
Density = dict[tuple[int, ...], Fraction]
HARNESS = """
const plain = (key, value) => value === Infinity ? "inf" : Number.isNaN(value) ? "nan" : value;
function ask(text) {
  try {
    const { record, stated } = JSON.parse(text);
    const sampler = new Sampler(record.blocks, record.gates, record.names, record.sizes);
    return JSON.stringify(stated ? checkStatements(sampler, stated) : account(sampler), plain);
  } catch (error) {
    return JSON.stringify({ refused: error.message });
  }
}
"""
CONTEXT = quickjs.Context()
CONTEXT.eval(joined(DRAWING + CHECKING) + HARNESS)


def text(gate: np.ndarray) -> str:
    return base64.b64encode(gate.astype("<f8").tobytes()).decode()


def ask(record: dict[str, Any], stated: dict[str, Any] | None = None) -> dict[str, Any]:
    return dict(json.loads(CONTEXT.eval("ask")(json.dumps({"record": record, "stated": stated}))))


def statements(law: Law) -> dict[str, Any]:
    """What a record states of a law."""
    rows = zip(
        privacy.attribute_epsilon(law),
        privacy.epsilon_given_rest(law),
        law.keep_probabilities().tolist(),
        strict=True,
    )
    return {
        "epsilon": privacy.record_epsilon(law),
        "attributes": [
            {
                "name": f"a{i}",
                "epsilon": alone,
                "epsilon_given_rest": rest,
                "keep_probability": None if math.isnan(keep) else keep,
            }
            for i, (alone, rest, keep) in enumerate(rows, start=1)
        ],
    }


@pytest.mark.parametrize("prior", [0.01, 0.5])
def test_the_page_states_chances_as_the_report_does(prior: float) -> None:
    for epsilon in np.concatenate([np.geomspace(1e-3, 30, 400), [0, 2.3, 710, 1e4]]):
        percent = CONTEXT.eval(f"posterior({prior}, {epsilon})")
        odds = Fraction(prior) / (1 - Fraction(prior)) * Fraction(math.exp(min(epsilon, 700)))
        assert percent == 100 or Fraction(percent) / 100 >= odds / (1 + odds) - Fraction(1, 10**15)
        said = wording.posterior_text(prior, epsilon)
        shown = "100" if said == wording.NEAR_CERTAINTY else said.removesuffix(wording.PERCENT)
        assert float(shown) == percent


PRIVATE = [n for n, law in LAWS.items() if 1e-9 < privacy.record_epsilon(law) < 1000]


@settings(max_examples=20)
@given(strategies.sizes(3).flatmap(strategies.laws))
def test_every_honest_study_is_accepted_and_the_keep_probabilities_are_the_records(
    law: Law,
) -> None:
    stated = statements(law)
    if not math.isfinite(stated["epsilon"]):
        return
    found = ask(vectors.record_of(law), stated)
    assert "refused" not in found
    for row, claim in zip(found["rows"], stated["attributes"], strict=True):
        if claim["keep_probability"] is not None:
            assert abs(row["keep"] - claim["keep_probability"]) <= 1e-12


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("key", ["record", "epsilon", "epsilon_given_rest", "keep_probability"])
def test_a_statement_that_is_one_percent_too_low_is_refused(name: str, key: str) -> None:
    law = LAWS[name]
    stated = statements(law)
    if key == "record":
        stated["epsilon"] *= 0.99
    else:
        row = stated["attributes"][-1]
        if not row[key] or row[key] < 1e-9:
            return
        row[key] *= 0.99
    below = ("vote, dithered, retained", "blend")
    if key == "epsilon_given_rest" and name in below:
        stated["attributes"][-1][key] *= 0.5  # the page's own bound is below the record's there
    assert "the study states" in ask(vectors.record_of(law), stated)["refused"]


@pytest.mark.parametrize("name", [n for n in PRIVATE if LAWS[n].exact])
def test_a_changed_weight_is_refused(name: str) -> None:
    """Weights add up, or the keep probabilities they give are stated."""
    record = vectors.record_of(LAWS[name])
    law = record["blocks"][0]["law"]
    for key in ("keep_weights", "weights", "change_weights", "densities"):
        if key in law:
            line = law[key][0] if isinstance(law[key][0], list) else law[key]
            line[0] = f"{int(line[0], 16) ^ (1 << max(int(line[0], 16).bit_length() - 3, 0)):x}"
            break
    else:
        law["keep_weight"] = f"{int(law['keep_weight'], 16) - (1 << law['bits'] - 3):x}"
    assert "refused" in ask(record, statements(LAWS[name]))


def test_a_law_without_epsilon_is_refused() -> None:
    stated = statements(LAWS["product, few bits"])
    stated["attributes"], stated["epsilon"] = stated["attributes"][:1], 5.0
    assert "too low" in ask(vectors.record_of(LAWS["matrix"]), stated)["refused"]


def as_drawn(vote: GatedSum, gate: list[float]) -> Density:
    """The density of every pattern from a table, whatever made it, in exact arithmetic."""
    back = Backward(vote)
    low, high = back.bounds(vote.n_attributes)
    density = {}
    for pattern in product((0, 1), repeat=vote.n_attributes):
        sums = {0: Fraction(1)}
        for changed, n, theta in zip(pattern, back.weights, back.dither, strict=True):
            after: dict[int, Fraction] = {}
            for s, mass in sums.items():
                steps = ((s + n + 1, Fraction(theta)), (s + n, 1 - Fraction(theta)))
                for to, part in ((s, Fraction(1)),) if changed else steps:
                    after[to] = after.get(to, Fraction(0)) + mass * part
            sums = after
        density[pattern] = sum(
            (m * Fraction(gate[min(max(s, low), high) - low]) for s, m in sums.items()), Fraction(0)
        )
    return density


def own_responses(density: Density, law: GatedSum | VoteBlend) -> Density:
    for i, (a, kept) in enumerate(zip(law.n_categories, law.retention.tolist(), strict=True)):
        stays, r = Fraction(kept), Fraction(1, a)
        blurred = {}
        for pattern, value in density.items():
            pair = [density[(*pattern[:i], c, *pattern[i + 1 :])] for c in (0, 1)]
            mean = r * pair[0] + (1 - r) * pair[1]
            blurred[pattern] = stays * value + (1 - stays) * mean
        density = blurred
    return density


def random_law(random: np.random.Generator) -> GatedSum:
    """Few attributes whose sums reach most states that the tables tell apart."""
    k = int(random.integers(2, 5))
    weights = random.integers(1, 4, k)
    dither = np.where(random.random(k) < 0.7, 0.0, random.random(k))
    sizes = tuple(random.integers(2, 6, k).tolist())
    retention = np.where(random.random(k) < 0.6, 1.0, random.uniform(0.3, 1.0, k))
    width = float(weights.sum()) + 1.0
    return GatedSum(sizes, weights, dither, "ramp", 0.0, width, 2.0, retention)


def random_blend(random: np.random.Generator) -> VoteBlend:
    """Three gates of other weights over the same attributes."""
    law = random_law(random)
    k = law.n_attributes
    parts = [
        replace(law, weights=random.permutation(law.weights), retention=np.ones(k))
        for _ in range(3)
    ]
    return VoteBlend(tuple(parts), random.uniform(0.5, 2.0, 3), law.retention)


@pytest.mark.parametrize("made", [random_law, random_blend])
def test_the_bounds_hold_for_any_table_whatever_made_it(
    made: Callable[[np.random.Generator], GatedSum | VoteBlend],
) -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        law = made(random)
        parts, alpha = (law.parts, law.alpha) if isinstance(law, VoteBlend) else ((law,), [1.0])
        record = vectors.record_of(law)
        gates = []
        for text_made in record["gates"][0]:
            size = len(gate_values(text_made))
            gate = np.exp(random.uniform(0.3, 3.0) * random.standard_normal(size))
            gates.append(np.sort(gate) if random.random() < 0.6 else gate)
        record["gates"] = [[text(gate) for gate in gates]]
        found = ask(record)
        sizes = law.n_categories
        f: Density = dict.fromkeys(product((0, 1), repeat=len(sizes)), Fraction(0))
        for share, part, gate in zip(alpha, parts, gates, strict=True):
            for pattern, value in as_drawn(part, gate.tolist()).items():
                f[pattern] += Fraction(float(share)) * value
        f = own_responses(f, law)
        whole = math.log(max(f.values()) / min(f.values()))
        assert whole <= found["epsilon"] + 1e-13
        if all(np.all(np.diff(gate) >= 0) for gate in gates):
            assert found["epsilon"] <= whole + 1e-12  # both ends are reached
        weight = {
            s: value
            * math.prod(Fraction(a - 1 if c else 1, a) for a, c in zip(sizes, s, strict=True))
            for s, value in f.items()
        }
        for i, row in enumerate(found["rows"]):
            fates = [(s, (*s[:i], 1, *s[i + 1 :])) for s in f if s[i] == 0]
            rest = max(abs(math.log(f[kept] / f[changed])) for kept, changed in fates)
            assert rest <= row["rest"] + 1e-13
            kept = sum(w for s, w in weight.items() if s[i] == 0)
            changed = sum(w for s, w in weight.items() if s[i])
            assert abs(math.log(kept * (sizes[i] - 1) / changed)) <= row["alone"] + 1e-13
            assert abs(float(kept / (kept + changed)) - row["keep"]) <= 1e-12


def test_a_table_with_a_hole_is_refused() -> None:
    for value in (0.0, -1.0, math.nan, math.inf):
        record = copy.deepcopy(vectors.record_of(LAWS["vote"]))
        gate = gate_values(record["gates"][0][0]).copy()
        gate[0] = value
        record["gates"][0][0] = text(gate)
        assert "no density" in ask(record)["refused"]


def test_tables_up_to_the_largest_height_of_a_browser_are_read() -> None:
    ones = np.ones(2)
    law = GatedSum((2, 3), np.array([1, 1]), np.zeros(2), "vote", 1.0, 1.0, LARGEST_NORMAL, ones)
    with pytest.raises(InputError, match="a browser cannot draw from a law with ε above 640"):
        gates_of(law.at_height(641.0))
    record = vectors.record_of(law)
    assert "refused" not in ask(record, statements(law))
    record["gates"][0][0] = text(gate_values(record["gates"][0][0]) * 1.001)
    assert "no density" in ask(record)["refused"]
