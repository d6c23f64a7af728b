"""Tables for the browser: made once, accepted within another machine's rounding."""

import base64

import numpy as np
import pytest

from deniable.collect.gates import MOST_WORDS, check_gates, gate_values, gates_of
from deniable.errors import InputError
from deniable.laws import ScoreTable
from unit.collect.vectors import laws

LAWS = laws()
VOTED = [name for name, law in LAWS.items() if gates_of(law)]


def text(values: np.ndarray) -> str:
    return base64.b64encode(values.astype("<f8").tobytes()).decode()


@pytest.mark.parametrize("name", VOTED)
def test_a_gate_is_what_python_draws_from_to_the_last_bit(name: str) -> None:
    parts = LAWS[name].sampler()._patterns.parts
    gates = [gate_values(gate) for gate in gates_of(LAWS[name])]
    for part, gate in zip(parts, gates, strict=True):
        assert np.array_equal(gate, part.backward.last())


@pytest.mark.parametrize("name", LAWS)
def test_another_machines_last_bits_are_accepted_and_more_is_not(name: str) -> None:
    law = LAWS[name]
    gates = gates_of(law)
    check_gates(law, gates)
    if gates:
        values = gate_values(gates[0]).copy()
        values[-1] = np.nextafter(values[-1], 0)
        check_gates(law, [text(values), *gates[1:]])
        values[-1] *= 1 - 1e-9
        with pytest.raises(InputError, match="a gate table is not that of its law"):
            check_gates(law, [text(values), *gates[1:]])
        with pytest.raises(InputError, match="not that of its law"):
            check_gates(law, [text(values[:-1]), *gates[1:]])
        with pytest.raises(InputError, match="cannot be read"):
            check_gates(law, ["?", *gates[1:]])
    with pytest.raises(InputError, match="lacks its gate tables"):
        check_gates(law, [*gates, "AAAA"])


def test_a_table_of_what_is_no_number_is_refused() -> None:
    law = LAWS["vote"]
    with pytest.raises(InputError, match="not that of its law"):
        check_gates(law, [text(np.full(len(gate_values(gates_of(law)[0])), np.nan))])


def test_scores_too_large_for_a_page_are_refused() -> None:
    sizes, costs = tuple(range(2, 202)), (14,) * 200
    densities = [1.0] * (14 * 200 + 1)
    law = ScoreTable.from_densities(sizes, costs, densities)
    assert law.words > MOST_WORDS
    with pytest.raises(InputError, match="a browser cannot hold the scores of this law"):
        gates_of(law)
    small = ScoreTable.from_densities(sizes[:100], costs[:100], densities[:1401])
    assert gates_of(small) == []
