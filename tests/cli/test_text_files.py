"""Text files as they come from spreadsheets and archives, through every command that reads one."""

import pytest

ROWS = [("m", "25,5", "A"), ("f", "61", "0"), ("m", "30", ""), ("f", "59,25", "AB")] * 5
HEADERLESS = "".join(f" {sex} ; {age} ; {blood} \n" for sex, age, blood in ROWS)
TOLD = ["--separator", ";", "--decimal", ",", "--no-header", "--columns", "sex,age,blood"]
NEARLY = "0.999999999999"
LEVELS = ["--attribute-epsilon", "40,40,40", "--method", "kronecker"]  # nothing ever changes


def expected() -> list[str]:
    labels = {"25,5": '"[0,30)"', "61": '"[60,120]"', "30": '"[30,60)"', "59,25": '"[30,60)"'}
    return [f"{sex},{labels[age]},{blood or 'NA'}" for sex, age, blood in ROWS]


@pytest.fixture
def spreadsheet(people):
    (people / "table.csv").write_text(HEADERLESS, encoding="utf-16")
    return people


def test_share_randomize_and_pram_read_what_the_options_say(deniable, spreadsheet):
    schema = ["--schema", "people.toml"]
    told = ["table.csv", *TOLD]
    shared = deniable("share", *told, *schema, *LEVELS, "--output", "r")
    assert shared.status == 0, shared.err
    assert (spreadsheet / "r" / "data.csv").read_text().splitlines()[1:] == expected()
    design = deniable("design", *schema, *LEVELS, "--output", "m.json")
    assert design.status == 0
    done = deniable("randomize", *told, "--mechanism", "m.json")
    assert done.out.splitlines() == ["sex,age,blood", *expected()]
    done = deniable(
        "pram", *told, *schema, "--attenuation", NEARLY, "--output", "p", "--encoding", "utf-16"
    )
    assert done.status == 0, done.err
    assert (spreadsheet / "p" / "data.csv").read_text().splitlines()[1:] == expected()


def test_a_schema_says_it_once_for_all_commands_and_an_option_goes_before_it(deniable, spreadsheet):
    schema = (spreadsheet / "people.toml").read_text()
    file = '[file]\nseparator = ";"\ndecimal = ","\ncolumns = ["sex", "age", "blood"]\n'
    (spreadsheet / "people.toml").write_text(schema + file)
    words = ["share", "table.csv", "--schema", "people.toml", *LEVELS]
    assert deniable(*words, "--output", "r").status == 0
    # The release is written in one way, and the record may say how the original was.
    assert deniable("estimate", "r", "--of", "age").status == 0
    assert deniable("inspect", "r").status == 0
    wrong = deniable(*words, "--output", "q", "--separator", "|")
    assert wrong.status == 2
    assert "3 columns are named, and the first row has 1 field" in wrong.err


def test_numbers_with_a_decimal_comma_are_pulled_towards_their_mean(deniable, people):
    (people / "table.csv").write_text("sex;w\n" + "f;1,5\nm;2,5\n" * 5)
    (people / "s.toml").write_text('[[attribute]]\nname = "sex"\ncategories = ["f", "m"]\n')
    words = [
        "pram",
        "table.csv",
        "--schema",
        "s.toml",
        "--attenuation",
        NEARLY,
        "--numeric",
        "w=0.5",
    ]
    assert "does not hold a number" in deniable(*words, "--output", "p").err
    assert deniable(*words, "--decimal", ",", "--output", "p").status == 0
    assert (people / "p" / "data.csv").read_text().splitlines()[1:3] == ["f,1.75", "m,2.25"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_wide_text_without_a_byte_order_mark_is_one_clear_sentence(deniable, people, encoding):
    # Failed before with a traceback: Python raises no UnicodeDecodeError there.
    for words in (
        ["schema", "init", "people.csv"],
        ["share", "people.csv", "--schema", "people.toml", "--epsilon", "4", "--output", "r"],
    ):
        refused = deniable(*words, "--encoding", encoding)
        assert refused.status == 2
        assert refused.err.startswith("deniable: ")
        assert refused.err.count("\n") == 1
        assert f"{encoding} text" in refused.err
        if encoding == "utf-16":
            assert "set --encoding to utf-16-le or utf-16-be" in refused.err
