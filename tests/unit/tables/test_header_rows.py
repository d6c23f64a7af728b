"""Header rows that survey services export below the first."""

import pytest

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import open_table
from deniable.tables.drafting import draft_schema


def test_header_rows_of_a_survey_service_are_refused_before_values_are(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('age,note\nHow old?,x\n"{""ImportId"":""QID1""}",y\n30,z\n')
    age = Attribute("age", bins=(0, 50, 100))
    for read in (list, lambda reader: reader.look()):
        with (
            open_table(path, [age], ["note"]) as reader,
            pytest.raises(InputError, match="data rows 1 and 2 are header rows of a Qualtrics"),
        ):
            read(reader)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            ["Q1,Q2", "How old?,Sex?", '"{""ImportId"":""QID1""}","{""ImportId"":""QID2""}"'],
            "data rows 1 and 2 are header rows of a Qualtrics export",
        ),
        (["Q1,Q2", "\"{'ImportId': 'QID1'}\",x"], "data row 1 is a header row of a Qualtrics"),
        (["Respondent ID,Q1,Q2", ",Response,Response"], "header row of a SurveyMonkey export"),
        (["Q1,Q2", "Open-Ended Response,Response"], "header row of a SurveyMonkey export"),
        (["Q1,Q2", "How old?,When?"], "data row 1 holds a text in 'Q1' and 'Q2'"),
    ],
)
def test_further_header_rows_are_no_respondents(tmp_path, rows, said):
    path = tmp_path / "t.csv"
    ids = "7," * (rows[0].count(",") - 1)
    answers = [f"{ids}3{n},2020-01-0{n}" for n in range(1, 5)]
    path.write_text("\n".join([*rows, *answers]) + "\n")
    with pytest.raises(InputError, match=said):
        draft_schema(path)
    path.write_text("\n".join([rows[0], *answers]) + "\n")
    assert "Q1" in draft_schema(path)
    path.write_text("\n".join([rows[0], f"{ids}Response,2020-01-01", *answers]) + "\n")
    assert "Response" in draft_schema(path)
