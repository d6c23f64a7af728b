"""The runs of the genome study: accuracy over k, and p-values where nothing is to be found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.estimate.chi_square import chi_square, released_chi_square
from deniable.laws import JointLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable_studies.genome_snps import (
    LEVELS,
    N_COPIES,
    channel_of,
    examine,
    laws,
    records_of,
    release,
    simulate,
    statistic,
)
from deniable_studies.study import Setting

METHODS = ("kronecker", "heuristic", "optimal")
IN_THE_NOTEBOOK = METHODS[:2]

GENOME_WIDE = 5e-8
"""The usual level of a single SNP in a study of a whole genome."""

NULL_EPSILON = 1.5
CASE_SHARE = 0.2
ALLELE_SHARES = (0.05, 0.5)
_SNPS_AT_ONCE = 250


@dataclass(frozen=True)
class Run:
    """One method in one run at one k; differences are averages over the k SNPs.

    Args:
        n_snps: k.
        method: which.
        number: of the run.
        total: the total that may be spent, in nats.
        spent: ε of a record, in nats.
        mean_level: average level of a SNP's attribute, in nats.
        gap: the optimum's distance from its lower bound at most, in nats; 0 for the others.
        original: χ² of the true tables.
        naive: absolute difference between the released χ² and the true one.
        corrected: absolute difference between the corrected χ² and the true one.
        bias: corrected χ² less the true one.
        found: share of SNPs that the corrected test finds at the genome-wide level.
        notebook: absolute difference between χ² of *the last SNP's* copies, randomized at this
            SNP's level, and the true χ² of this SNP; NaN for the optimum.
    """

    n_snps: int
    method: str
    number: int
    total: float
    spent: float
    mean_level: float
    gap: float
    original: float
    naive: float
    corrected: float
    bias: float
    found: float
    notebook: float


def accuracy(setting: Setting, n_runs: Mapping[int, int]) -> list[Run]:
    """Return all runs, so many for every k."""
    work = [(k, number) for k, many in n_runs.items() for number in range(many)]
    whole = sum(k + 30 for k, _ in work)
    runs, done = [], 0
    for k, number in work:
        runs += _runs(setting, k, number)
        done += k + 30
        setting.advance(done / whole)
    return sorted(runs, key=lambda run: (run.n_snps, METHODS.index(run.method), run.number))


def runs_text(runs: Sequence[Run]) -> str:
    """Return how many runs there are, such as "10 runs"."""
    counts = Counter(run.n_snps for run in runs if run.method == METHODS[0])
    if len(set(counts.values())) == 1:
        return f"{next(iter(counts.values()))} runs"
    return ", ".join(f"{many} runs at k = {k}" for k, many in counts.items())


def _runs(setting: Setting, k: int, number: int) -> list[Run]:
    generator = setting.generator(1, k, number)
    found = laws(generator.uniform(*LEVELS, k).tolist())
    tables = simulate(generator, k)
    original = statistic(tables)
    records = records_of(tables, generator)
    runs = []
    for place, method in enumerate(METHODS):
        mechanism = found.mechanisms[method]
        released = release(mechanism, records, setting.release_seed(1, k, number, place))
        tested = examine(released, mechanism.keep_probability)
        difference = tested.corrected - original
        seed = setting.release_seed(2, k, number, place)
        runs.append(
            Run(
                k,
                method,
                number,
                found.total,
                mechanism.epsilon,
                float(np.mean(np.array(mechanism.attribute_epsilon))),
                found.gap if method == "optimal" else 0.0,
                float(original.mean()),
                float(np.abs(tested.naive - original).mean()),
                float(np.abs(difference).mean()),
                float(difference.mean()),
                float(np.mean(tested.p_value < GENOME_WIDE)),
                _as_in_the_notebook(mechanism, records[-1], original, seed)
                if method in IN_THE_NOTEBOOK
                else float("nan"),
            )
        )
    return runs


def _as_in_the_notebook(
    mechanism: Mechanism, last: NDArray[np.uint8], original: NDArray[np.float64], seed: int
) -> float:
    # Its loop over SNPs fills one array of copies, so that the last SNP's are left; then each SNP
    # is randomized from that array, independently of the others, at its own level.
    k = len(original)
    levels = [float(level) for level in mechanism.attribute_epsilon]
    apart = design(mechanism.schema, attribute_epsilon=levels, method="kronecker").mechanism
    return float(np.abs(statistic(release(apart, [last] * k, seed)) - original).mean())


@dataclass(frozen=True)
class PValues:
    """P-values of SNPs that have nothing to do with the disease, ascending.

    Args:
        corrected: of the corrected test.
        naive: of Pearson's test on the released counts.
    """

    corrected: NDArray[np.float64]
    naive: NDArray[np.float64]


def nothing_to_find(setting: Setting, n_snps: int) -> PValues:
    """Return p-values where allele and status are independent; both are randomized together."""
    law = JointLaw.from_epsilon((2, 2), NULL_EPSILON)
    schema = Schema.anonymous((2, 2))
    mechanism = Mechanism(schema, (Block((0, 1), law),))
    forward, inverse = channel_of(float(law.keep_weight) / 2**law.bits)
    generator = setting.generator(3)
    corrected, naive = [], []
    for start in range(0, n_snps, _SNPS_AT_ONCE):
        many = min(_SNPS_AT_ONCE, n_snps - start)
        allele = np.repeat(generator.uniform(*ALLELE_SHARES, many), N_COPIES)
        records = [
            (generator.random(allele.size) < share).astype(np.uint8)
            for share in (allele, CASE_SHARE)
        ]
        random = SeededRandomness(setting.release_seed(3, start))
        first, second = Randomizer(mechanism, random).randomize(records)
        cells = np.repeat(np.arange(many), N_COPIES) * 4 + 2 * first.astype(np.intp) + second
        counts = np.bincount(cells, minlength=4 * many).reshape(many, 2, 2).astype(np.float64)
        corrected += [chi_square(table, forward, inverse).p_value for table in counts]
        naive += [released_chi_square(table).p_value for table in counts]
        setting.advance((start + many) / n_snps)
    return PValues(np.sort(corrected), np.sort(naive))


def distance_from_uniform(p_values: NDArray[np.float64]) -> float:
    """Return the largest distance of the distribution of ascending p-values from the uniform."""
    n = len(p_values)
    ranks = np.arange(n + 1) / n
    return float(np.maximum(ranks[1:] - p_values, p_values - ranks[:-1]).max())
