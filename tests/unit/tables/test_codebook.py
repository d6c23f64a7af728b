import pytest

from deniable.errors import InputError
from deniable.tables.codebook import Entry, read_codebook

DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5"><stdyDscr/><dataDscr>
<var name="happy" nature="ordinal"><labl>Happiness</labl>
<qstn><qstnLit>How happy
 are you?</qstnLit></qstn>
<invalrng><item VALUE="-9"/><range min="90" max="99"/></invalrng>
<catgry><catValu>1</catValu><labl>not at <b>all</b></labl><catStat type="freq">7</catStat></catgry>
<catgry><catValu>2</catValu><labl>very</labl></catgry>
<catgry><catValu>-9</catValu><labl>refused</labl></catgry>
<catgry missing="Y"><catValu>-8</catValu><labl>do not know</labl></catgry>
<catgry><catValu>97</catValu><labl>other</labl></catgry></var>
<var name="age"><labl>Age in years</labl></var>
</dataDscr></codeBook>"""


def written(folder, text, name="codebook.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(folder, text):
    with pytest.raises(InputError) as caught:
        read_codebook(written(folder, text))
    return str(caught.value)


def test_a_csv_codebook_names_values_missing_ones_and_questions(tmp_path):
    text = (
        "\ufeffName;Value;Label;Question;Missing\n"
        'sex;1;male;"Your sex;\nplease";\nsex;2;female;;no\n'
        "sex;-9;refused;;yes\n\nage;;;How old?;\n"
    )
    found = read_codebook(written(tmp_path, text))
    assert found["sex"] == Entry(
        {"1": "male", "2": "female"}, {"-9": "refused"}, question="Your sex;\nplease"
    )
    assert found["age"] == Entry(question="How old?")


def test_a_ddi_codebook_names_the_same(tmp_path):
    found = read_codebook(written(tmp_path, DDI, "codebook.xml"))
    happy = found["happy"]
    assert happy.labels == {"1": "not at all", "2": "very"}
    assert happy.missing == {"-9": "refused", "-8": "do not know", "97": "other"}
    assert happy.question == "How happy are you?"
    assert happy.ordered
    assert found["age"] == Entry(question="Age in years")
    assert [happy.is_missing(value) for value in ("1", "93", "-8", "89", "x")] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_range_without_an_end_is_open(tmp_path):
    text = DDI.replace('min="90" max="99"', 'max="0"')
    happy = read_codebook(written(tmp_path, text))["happy"]
    assert happy.is_missing("-5")
    assert not happy.is_missing("1")
    assert "no number" in refusal(tmp_path, DDI.replace('min="90"', 'min="ninety"'))


CATEGORY = "<catgry><catValu>%s</catValu><labl>%s</labl></catgry>"


def of_var(content):
    return f'<codeBook><var name="v">{content}</var></codeBook>'


def test_two_missing_values_may_have_one_label(tmp_path):
    text = "name,value,label,missing\nsex,1,m,\nsex,8,none,yes\nsex,9,none,yes\n"
    assert read_codebook(written(tmp_path, text, "c.csv"))["sex"].missing == dict.fromkeys(
        "89", "none"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "has no column 'name'"),
        ("name,value,label\nsex,1,m\nsex,1,f\n", "line 3: value '1' of 'sex' is repeated"),
        ("name,value,label\n,1,m\n", "line 2: no column is named"),
        ("name,value,label\nsex,1,m\nsex,01,f\n", "value '01' of 'sex' is repeated"),
        ("name,value,label\nsex,1,m\nsex,1.0,f\n", "line 3: value '1.0' of 'sex'"),
        ("name,value,label,missing\nsex,1,m,\nsex, 1,no,yes\n", "line 3: value '1' of"),
        ("name,value,label\nsex,1,m\nage,1,old\nsex,2,m\n", "line 4: values '1' and '2'"),
        ("name,value,label,missing\nsex,1,m,\nsex,9,m,yes\n", "have one label, 'm'"),
        ("name,value,label,missing\nsex,9,m,yes\nsex,1,m,\n", "have one label, 'm'"),
        ("name,value,label,missing\nsex,1,m,perhaps\n", "missing is 'perhaps'"),
        ("name,value,label,label\nsex,1,m,f\n", "two columns 'label'"),
        ("name,value,label\nsex,1,m,f\n", "line 2: the row has more fields"),
        ("name,value,label\nsex,,m\n", "line 2: the row has no value"),
        ("name,value,label,question\na,1,x,Q?\na,2,y,R?\n", "line 3: 'a' has a different question"),
        (of_var(CATEGORY % ("1", "a") + CATEGORY % ("1", "b")), "value '1' of 'v' is repeated"),
        (of_var(CATEGORY % ("1", "a") + CATEGORY % ("1.0", "b")), "first as '1'"),
        (of_var(CATEGORY % ("1", "a") + CATEGORY % ("2", "a")), "have one label, 'a'"),
        (of_var(CATEGORY % ("1", "a</labl><labl>b")), "two elements labl, 'a' and 'b'"),
        (of_var("<labl>a</labl><labl>b</labl>"), "var 'v': two elements labl"),
        (
            of_var("<qstn><qstnLit>a</qstnLit></qstn><qstn><qstnLit>b</qstnLit></qstn>"),
            "two elements qstnLit",
        ),
        (
            of_var(
                '<invalrng><item VALUE="9"/></invalrng>'
                + (CATEGORY % ("9", "a")).replace("<catgry", '<catgry missing="N"')
            ),
            "value '9' is missing by invalrng",
        ),
        ("name,value,label\n", "has no entry"),
        (b"name,value,label\nsex,1,m\xe4nnlich\n", "UTF-8"),
        ("<html></html>", "not a DDI-Codebook"),
        (DDI[:300], "well-formed"),
        ("<codeBook><var/></codeBook>", "has no name"),
        ('<codeBook><var name="a"/><var name="a"/></codeBook>', "two entries for 'a'"),
    ],
)
def test_what_is_no_codebook_is_refused(tmp_path, text, said):
    assert said in refusal(tmp_path, text)


def test_entities_are_refused_before_they_grow(tmp_path):
    laughs = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    bomb = f'<!DOCTYPE codeBook [<!ENTITY l0 "ha">{laughs}]><codeBook>&l9;</codeBook>'
    assert "entities" in refusal(tmp_path, bomb)
    secret = written(tmp_path, "secret", "secret.txt")
    outside = f'<!DOCTYPE c [<!ENTITY x SYSTEM "file://{secret}">]><codeBook>&x;</codeBook>'
    assert "entities" in refusal(tmp_path, outside)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_codebook(tmp_path / "none.csv")
