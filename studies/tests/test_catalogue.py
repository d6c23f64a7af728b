"""Every study of the package: its text is complete, and every text belongs to a study."""

from importlib.resources import files

import pytest

from deniable.errors import InputError
from deniable_studies import catalogue
from deniable_studies.text import read_text

FOLDERS = ("privacy_optimized", "lambda_randomization", "optrr", "beyond")


def test_every_text_in_the_package_is_that_of_a_study() -> None:
    package = files("deniable_studies")
    texts = [
        read_text(f"{folder}/{file.name}")
        for folder in FOLDERS
        for file in package.joinpath(folder).iterdir()
        if file.name.endswith(".toml")
    ]
    names = [study.name for study in catalogue.STUDIES]
    assert len(set(names)) == len(names) == 17
    assert sorted(text.name for text in texts) == sorted(names)


@pytest.mark.parametrize("study", catalogue.STUDIES, ids=lambda study: study.name)
def test_a_study_says_everything_about_its_claims(study) -> None:
    claims = study.text.claim
    assert set(study.judges) == {claim.id for claim in claims}
    assert len({claim.statement for claim in claims}) == len(claims)
    for claim in claims:
        reasons = [claim.why] if isinstance(claim.why, str) else list(claim.why.values())
        for words in (claim.statement, claim.source, claim.rule, *reasons):
            assert words == " ".join(words.split()) != ""
        assert "{" not in claim.statement + claim.source


def test_a_study_is_found_by_its_name_and_others_are_named() -> None:
    assert catalogue.find("genome").name == "genome"
    with pytest.raises(InputError, match=r"there are privacy-levels, .*, top-snps, and all"):
        catalogue.find("genom")


def test_only_studies_of_the_adult_data_are_skipped_without_it() -> None:
    skipped = [s.name for s in catalogue.STUDIES if catalogue.reason_to_skip(s, adult=False)]
    assert skipped == ["optrr-adult", "adult-release"]
    assert not any(catalogue.reason_to_skip(s, adult=True) for s in catalogue.STUDIES)
