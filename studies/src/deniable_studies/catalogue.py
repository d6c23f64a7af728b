"""Which studies there are, in the order in which all of them are run."""

from deniable.errors import InputError
from deniable_studies import (
    adult_release_study,
    category_counts,
    coverage_study,
    genome,
    lambda_table,
    optrr_adult,
    optrr_distributions,
    optrr_iterative,
    optrr_normal,
    privacy_levels,
    record_budget_study,
    run_time_study,
)
from deniable_studies.study import Study

STUDIES: tuple[Study, ...] = (
    privacy_levels.STUDY,
    category_counts.STUDY,
    genome.STUDY,
    run_time_study.STUDY,
    lambda_table.STUDY,
    optrr_normal.STUDY,
    optrr_distributions.STUDY,
    optrr_adult.STUDY,
    optrr_iterative.STUDY,
    record_budget_study.STUDY,
    adult_release_study.STUDY,
    coverage_study.STUDY,
)


def find(name: str) -> Study:
    """Return a study by its name.

    Raises:
        InputError: if there is none of that name.
    """
    for study in STUDIES:
        if study.name == name:
            return study
    known = ", ".join(study.name for study in STUDIES)
    raise InputError(f"there is no study '{name}'; there are {known}, and all")


def reason_to_skip(study: Study, *, adult: bool) -> str | None:
    """Return why a study cannot be run, or None.

    Args:
        study: which.
        adult: whether the Adult data is at hand.
    """
    if study.needs_adult and not adult:
        return "it needs the Adult data; give --adult PATH to adult.data of the UCI repository"
    return None
