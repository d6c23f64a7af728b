"""All studies, in the order of a run of all."""

from typing import Any

from deniable.errors import InputError
from deniable_studies.beyond import (
    adult_release,
    coverage,
    foreign_tables,
    rare,
    record_budget,
    top_snps,
)
from deniable_studies.lambda_randomization import table_1
from deniable_studies.optrr import adult_columns, distributions, further, iterative, normal
from deniable_studies.privacy_optimized import (
    category_counts,
    genome,
    impact,
    levels,
    run_time,
)
from deniable_studies.study import Study

STUDIES: tuple[Study[Any], ...] = (
    levels.STUDY,
    category_counts.STUDY,
    genome.STUDY,
    impact.STUDY,
    run_time.STUDY,
    table_1.STUDY,
    normal.STUDY,
    distributions.STUDY,
    adult_columns.STUDY,
    iterative.STUDY,
    further.STUDY,
    record_budget.STUDY,
    adult_release.STUDY,
    coverage.STUDY,
    foreign_tables.STUDY,
    rare.STUDY,
    top_snps.STUDY,
)


def find(name: str) -> Study[Any]:
    """Return a study by its name.

    Raises:
        InputError: if no study has the name.
    """
    for study in STUDIES:
        if study.name == name:
            return study
    known = ", ".join(study.name for study in STUDIES)
    raise InputError(f"there is no study '{name}'; there are {known}, and all")


def reason_to_skip(study: Study[Any], *, adult: bool) -> str | None:
    """Return why a study cannot be run, or None.

    Args:
        study: which.
        adult: whether the Adult data is at hand.
    """
    if study.text.needs_adult and not adult:
        return "it needs the Adult data; give --adult PATH to adult.data of the UCI repository"
    return None
