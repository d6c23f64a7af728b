"""The proof of a law's accuracy: against random laws, and against its own law."""

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deniable.design.design import design
from deniable.errors import InputError
from deniable.laws import ScoreTable
from deniable.proofs.accuracy import Accuracy, kinds, own_errors, proved
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.record import mechanism_from_plain, mechanism_to_plain
from marked import slow_after

CASES = [
    ((2, 3, 5), {"epsilon": 2.0}),
    ((2, 3, 3), {"epsilon": 0.5, "pairs": 0.6}),
    ((4, 2, 9), {"epsilon": 4.0, "importance": {"a3": 5.0}, "at_most": {"a1": 0.7}}),
    ((3, 3, 3), {"epsilon": 3.0, "given_rest": "none"}),
    ((30, 2, 4), {"epsilon": 5.0, "given_rest": [None, 1.0, 2.0]}),
]


def made(shape: tuple[int, ...], request_: dict[str, Any]) -> tuple[Design, ScoreTable, Accuracy]:
    found = design(Schema.anonymous(shape), **request_)
    (block,) = found.mechanism.blocks
    assert isinstance(block.law, ScoreTable)
    assert found.accuracy is not None
    return found, block.law, found.accuracy


def caps_of(found: Design) -> list[float]:
    levels = found.mechanism.attribute_epsilon
    if found.given_rest is None:
        return [math.inf] * len(levels)
    if found.given_rest == "2x":
        return [2 * level for level in levels]
    return [math.inf if part == "none" else float(part) for part in found.given_rest.split(",")]


@pytest.mark.parametrize(("shape", "request_"), CASES)
def test_no_other_law_is_below_what_is_proved(
    shape: tuple[int, ...], request_: dict[str, Any]
) -> None:
    found, law, proof = made(shape, request_)
    shares, pairs = own_errors(law, kinds(shape, law.costs, proof.importance))
    a, k = np.array(shape, dtype=float), len(shape)
    changed = np.array(list(itertools.product([0, 1], repeat=k)))
    uniform = np.prod(np.where(changed, 1 - 1 / a, 1 / a), axis=1)
    sign, v, w = np.where(changed, -1 / (a - 1), 1.0), (a - 1) / a**2, np.array(proof.importance)
    own = np.array([law.densities[s] for s in changed @ np.array(law.costs)], dtype=float)
    rng, caps, seen = np.random.default_rng(1), caps_of(found), 0
    for draw in range(1000):
        # Near the law and far from it; every second one is at the limits.
        log = np.log(own) * rng.uniform(0.5, 1.0) + rng.normal(0, rng.uniform(0, 0.4), len(own))
        log = np.clip(log, log.max() - found.epsilon, None) if draw % 2 else log
        f = np.exp(log - log.max())
        mass = uniform * f / (uniform @ f)
        phi = mass @ sign
        kept = mass @ (1 - changed)
        levels = np.log(kept * (a - 1) / (1 - kept))
        cube = log.reshape((2,) * k)
        rest = [np.abs(np.diff(cube, axis=i)).max() for i in range(k)]
        both = {
            (i, j): mass @ (sign[:, i] * sign[:, j]) for i, j in itertools.combinations(range(k), 2)
        }
        if (
            np.ptp(log) > found.epsilon
            or (np.array(rest) > caps).any()
            or (levels > np.array(proof.at_most)).any()
            or phi.min() <= 0
            or min(both.values()) <= 0
        ):
            continue
        seen += 1
        of_pairs, total = 0.0, 0.0
        for (i, j), two in both.items():
            cell = v[i] * v[j] / two**2 + v[i] / a[j] ** 2 / phi[i] ** 2
            of_pairs += w[i] * w[j] * (cell + v[j] / a[i] ** 2 / phi[j] ** 2)
            total += w[i] * w[j]
        of_shares = (w * v / phi**2).sum() / w.sum()
        relative = (1 - proof.theta) * of_shares / shares + proof.theta * of_pairs / total / pairs
        assert relative >= proof.at_least
    assert seen > 12


@pytest.mark.parametrize("seed", slow_after(6, range(20)))
def test_any_multipliers_prove_something_true(seed: int) -> None:
    found, law, proof = made(*CASES[seed % len(CASES)])
    rng = np.random.default_rng(seed)

    def shaken(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(float(x * np.exp(rng.normal(0, 0.5))) for x in values)

    other = replace(
        proof.multipliers,
        single=shaken(proof.multipliers.single),
        double=shaken(proof.multipliers.double),
        levels=shaken(proof.multipliers.levels),
        caps=tuple(
            (t, likelier, score, float(value * rng.uniform(0, 2)))
            for t, likelier, score, value in proof.multipliers.caps
        ),
    )
    again = proved(
        law,
        found.epsilon,
        caps_of(found),
        proof.theta,
        proof.importance,
        proof.at_most,
        other,
    )
    assert again.at_least <= 1.0
    assert again.at_least < proof.at_least + 0.02


def test_a_record_states_its_accuracy_and_an_altered_one_is_refused() -> None:
    found, _, proof = made(*CASES[0])
    plain = json.loads(json.dumps(mechanism_to_plain(found)))
    assert mechanism_from_plain(plain).accuracy == proof
    for name, value in (
        ("at_least", 0.9999),
        ("single", [1.0, 1.0]),
        ("importance", [1.0, 1.0]),
        ("caps", [[0, True, 10**6, 1.0]]),
        ("all_patterns", False),
        ("pairs", 0.1),
    ):
        altered = plain | {"accuracy": plain["accuracy"] | {name: value}}
        with pytest.raises(InputError, match="has been altered"):
            mechanism_from_plain(altered)
