"""From an unknown table to a release: schema init, the draft, the first look, share."""

import json
import re

SECRET = "Rumpelstiltskin"
LEVELS = ["--attribute-epsilon", "1,2,1.5", "--method", "kronecker"]
SHARE = ["share", "people.csv", "--schema", "people.toml", *LEVELS, "--output", "r"]


def test_a_draft_is_refused_until_it_is_accepted_and_then_said_everywhere(deniable, people):
    made = deniable("schema", "init", "people.csv", "--output", "draft.toml")
    assert made.status == 0
    assert "drafted = true" in (people / "draft.toml").read_text()
    assert (people / "draft.toml").stat().st_mode & 0o777 == 0o600  # it tells of the rows
    words = ["people.csv", "--schema", "draft.toml"]
    share = ["share", *words, "--epsilon", "3", "--method", "kronecker", "--output", "r"]
    refused = deniable(*share)
    assert refused.status == 2
    assert "'sex', 'age', 'blood' were read off the data" in refused.err
    assert "--accept-drafted" in refused.err
    assert not (people / "r").exists()
    accepted = deniable(*share, "--accept-drafted")
    assert accepted.status == 0, accepted.err
    record = json.loads((people / "r" / "record.json").read_text())
    assert record["guarantee"]["drafted"] == ["sex", "age", "blood"]
    report = (people / "r" / "report.html").read_text()
    for text in (accepted.out, report):
        assert "ranges were read off the data: they are themselves a disclosure" in text
    assert deniable("inspect", "r").status == 0
    pram = ["pram", *words, "--attenuation", "0.5", "--output", "p"]
    assert "--accept-drafted" in deniable(*pram).err
    assert deniable(*pram, "--accept-drafted").status == 0
    deniable("design", "--schema", "draft.toml", "--epsilon", "3", "--output", "m.json")
    draw = ["randomize", "people.csv", "--mechanism", "m.json"]
    assert "--accept-drafted" in deniable(*draw).err
    assert deniable(*draw, "--accept-drafted").status == 0


def wrong_table(people) -> None:
    rows = ["f,25,A", f"{SECRET},31,A", "m,121,B", ",30,0", f"m,{SECRET},{SECRET}"] * 3
    (people / "people.csv").write_text("sex,age,blood\n" + "\n".join(rows) + "\n")


def test_every_kind_of_mismatch_is_listed_with_its_count_and_first_row_before_a_design(
    deniable, people, monkeypatch
):
    wrong_table(people)
    monkeypatch.setattr("deniable.cli.releasing.find_design", None)  # a design would be a TypeError
    result = deniable(*SHARE)
    assert result.status == 2
    assert SECRET not in result.err
    first, *listed = result.err.splitlines()
    assert first.startswith("deniable: people.csv: 5 kinds of values do not fit the schema")
    assert "data rows are counted from 1, without the header" in first
    expected = [
        ("data row 2, column 'sex': 3 values are not one of the declared categories; add it"),
        ("data row 4, column 'sex': 3 values are missing; fill it in, or declare"),
        ("data row 3, column 'age': 3 values lie outside the declared bins; widen"),
        ("data row 5, column 'age': 3 values are neither a number nor the label"),
        ("data row 5, column 'blood': 3 values are not one of the declared categories"),
    ]
    assert sorted(line.strip().removeprefix("the first in ")[:40] for line in listed) == sorted(
        line[:40] for line in expected
    )
    for line in expected:
        assert any(line in each for each in listed), line
    shown = deniable(*SHARE, "--show-values")
    assert f"(such as '{SECRET}')" in shown.err


def test_one_kind_of_mismatch_is_one_sentence(deniable, people):
    (people / "people.csv").write_text("sex,age,blood\nf,25,A\nm,121,0\nf,3000,\n")
    (line,) = deniable(*SHARE).err.splitlines()
    assert line.startswith("deniable: people.csv, the first in data row 2, column 'age': 2 values")


def test_rows_of_nobody_are_found_at_the_first_look(deniable, people):
    rows = ["f,25,A,p1", "m,61,0,", "f,30,A,p1", "m,59,AB,"]
    (people / "people.csv").write_text("sex,age,blood,who\n" + "\n".join(rows) + "\n")
    result = deniable(*SHARE, "--person", "who")
    assert (
        "the first in data row 2, column 'who': 2 values are empty; fill in the person"
        in result.err
    )


def test_pram_looks_first_too(deniable, people):
    wrong_table(people)
    words = [
        "pram",
        "people.csv",
        "--schema",
        "people.toml",
        "--attenuation",
        "0.5",
        "--output",
        "p",
    ]
    assert "5 kinds of values do not fit" in deniable(*words).err
    assert not (people / "p").exists()


def test_standard_input_is_looked_at_too(deniable, people, monkeypatch):
    text = (people / "people.csv").read_text()
    done = deniable("share", "-", *SHARE[2:], stdin=text)
    assert done.status == 0, done.err
    assert json.loads((people / "r" / "record.json").read_text())["release"]["rows"] == 5
    pram = ["--schema", "people.toml", "--attenuation", "0.5", "--output", "p"]
    assert deniable("pram", "-", *pram, stdin=text).status == 0
    wrong_table(people)
    text = (people / "people.csv").read_text()
    monkeypatch.setattr("deniable.cli.releasing.find_design", None)  # a design would be a TypeError
    for words in (["share", "-", *SHARE[2:-1], "q"], ["pram", "-", *pram[:-1], "q"]):
        refused = deniable(*words, stdin=text)
        assert refused.status == 2
        assert "5 kinds of values do not fit the schema" in refused.err
        assert SECRET not in refused.err


def test_randomize_lists_every_mismatch_of_a_file_and_the_first_of_a_stream(deniable, people):
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    wrong_table(people)
    draw = ["--mechanism", "m.json", "--output", "out.csv"]
    refused = deniable("randomize", "people.csv", *draw)
    assert "5 kinds of values do not fit the schema" in refused.err
    stream = deniable("randomize", "-", *draw, stdin=(people / "people.csv").read_text())
    assert "standard input, data row 2, column 'sex'" in stream.err
    assert not (people / "out.csv").exists()


def test_one_of_a_thing_is_said_in_the_singular(deniable, people):
    (people / "people.csv").write_text("sex,age,blood\nf,25,A\n")
    words = ["--schema", "people.toml", "--attribute-epsilon", "0.5,0.2,0.3", "--output", "r"]
    shared = deniable("share", "people.csv", *words, "--method", "kronecker", "--verbose")
    assert "ε of the whole record 1 nat;" in shared.out
    assert "Half-widths (95 %) of 1 row:" in shared.out
    shown = deniable("estimate", "r", "--of", "sex")
    assert "Shares of sex: 1 row, of these rows" in shown.out
    page = (people / "r" / "report.html").read_text()
    screens = shared.out + shown.out + page
    planned = deniable("plan", "--categories", "2,2", "--epsilon", "9", "--error", "50pt")
    assert planned.out.startswith("1 row at ε = 9")
    for wrong in ("1 nats", "1 rows", "1 records", "1 attributes", "1 categories", "1 points"):
        assert not re.search(rf"(?<![0-9.,]){wrong}", screens + planned.out), wrong


def test_it_is_said_that_a_row_is_counted_without_the_header(deniable, people):
    (people / "people.csv").write_text("sex,age,blood\nf,25,A\nx,25,A\n")
    refused = deniable(*SHARE)
    assert "data row 2, column 'sex'" in refused.err
    assert "(data rows are counted from 1, without the header)" in refused.err


def test_the_mechanism_that_is_given_is_looked_at_with_its_own_schema(deniable, people):
    deniable("design", "--schema", "people.toml", *LEVELS, "--output", "m.json")
    wrong_table(people)
    result = deniable("share", "people.csv", "--mechanism", "m.json", "--output", "r")
    assert "5 kinds of values do not fit" in result.err


def test_a_stop_during_the_first_look_leaves_nothing(deniable, people, monkeypatch):
    before = sorted(path.name for path in people.iterdir())

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deniable.tables.encode.ColumnEncoder.look", stopped)
    result = deniable(*SHARE)
    assert result.status == 130
    assert "interrupted; no incomplete output remains" in result.err
    assert sorted(path.name for path in people.iterdir()) == before


def test_init_takes_what_is_known_of_the_file_and_share_reads_what_init_read(deniable, tmp_path):
    rows = [f" {'m' if i % 2 else 'f'} ; {i % 70},5 " for i in range(200)]
    (tmp_path / "t.data").write_text("\n".join(rows) + "\n", encoding="latin-1")
    init = ["schema", "init", "t.data", "--output", "s.toml"]
    refused = deniable(*init, "--encoding", "latin-1", "--separator", ";")
    assert "the first row looks like data; set --no-header" in refused.err
    told = ["--no-header", "--columns", "sex,hours", "--decimal", ",", "--encoding", "latin-1"]
    assert deniable(*init, *told).status == 0
    again = deniable(*init, *told)
    assert again.status == 2
    assert "it exists already" in again.err
    assert "releases" not in again.err
    renamed = ["--header", "--columns", "sex,hours", "--decimal", ","]
    assert deniable(*init, *renamed, "--force").status == 0
    assert deniable(*init, *told, "--force").status == 0
    share = ["share", "t.data", "--schema", "s.toml", "--accept-drafted", "--output", "r"]
    done = deniable(*share, "--attribute-epsilon", "40,40", "--method", "kronecker")
    assert done.status == 0, done.err


def test_a_headerless_file_shows_nobodys_values(deniable, people):
    rows = (people / "people.csv").read_text().splitlines()[1:]
    (people / "people.csv").write_text("\n".join([f"{SECRET},25,blood", *rows]) + "\n")
    refused = deniable(*SHARE)
    assert refused.status == 2
    assert "there is no column 'sex'; the table has 1 of the schema's columns and 2" in refused.err
    assert SECRET not in refused.err
    assert SECRET in deniable(*SHARE, "--show-values").err


def test_dates_are_read_as_the_file_writes_them(deniable, tmp_path):
    days = [f"{1 + i % 12}.{1 + i % 11}.{1960 + i % 47}" for i in range(60)]
    rows = "".join(f"{day},{'fm'[i % 2]}\n" for i, day in enumerate(days))
    (tmp_path / "t.csv").write_text(f"born,sex\n{rows}")
    init = deniable("schema", "init", "t.csv", "--output", "s.toml", "--dates", "31.12.2025")
    assert init.status == 0, init.err
    assert 'dates = "31.12.2025"' in (tmp_path / "s.toml").read_text()
    accepted = ["t.csv", "--schema", "s.toml", "--accept-drafted"]
    levels = ["--attribute-epsilon", "40,40", "--method", "kronecker"]
    done = deniable("share", *accepted, *levels, "--output", "r")
    assert done.status == 0, done.err
    text = (tmp_path / "s.toml").read_text().replace('dates = "31.12.2025"\n', "")
    (tmp_path / "s.toml").write_text(text)
    refused = deniable("share", *accepted, *levels, "--output", "q")
    assert "or give the form of dates with --dates, or in the schema's [file]" in refused.err
    told = ["--dates", "31.12.2025"]
    assert deniable("share", *accepted, *levels, "--output", "q", *told).status == 0
    assert deniable("pram", *accepted, "--attenuation", "0.5", "--output", "p", *told).status == 0
    drawn = ["randomize", "t.csv", "--mechanism", "r", "--output", "o.csv", "--accept-drafted"]
    assert deniable(*drawn, *told).status == 0
    wrong = deniable("share", *accepted, *levels, "--output", "z", "--dates", "12.31.25")
    assert "the last day of 2025 in their form, such as 31.12.2025" in wrong.err


def test_share_without_a_schema_shows_a_draft_and_the_ways_to_a_schema(deniable, tmp_path):
    rows = "\n".join(f"p{i},{i % 3},{'yes' if i % 2 else 'no'}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"who,kids,smokes\n{rows}\n")
    done = deniable("share", "t.csv", "--epsilon", "4", "--output", "r")
    assert done.status == 2
    shown = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "kids 3 0, 1, 2 yes" in shown
    assert "smokes 2 no, yes yes" in shown
    assert "who left out: an identifier, or text" in shown
    assert done.err.startswith("deniable: there is no schema, so nothing was released.")
    assert "deniable schema init t.csv --output draft.toml" in done.err
    assert not (tmp_path / "r").exists()


def test_share_without_a_schema_of_a_table_that_has_nothing_to_draft(deniable, tmp_path):
    rows = "\n".join(f"person number {i} of them" for i in range(60))
    (tmp_path / "t.csv").write_text(f"who\n{rows}\n")
    done = deniable("share", "t.csv", "--epsilon", "4", "--output", "r")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("deniable: give either --schema FILE")
