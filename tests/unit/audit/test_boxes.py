import sys

import numpy as np
import pytest

import deniable
from deniable import Attribute, InputError, Schema, design
from deniable.audit import command_box, rows_box

SCHEMA = Schema(
    (
        Attribute("age", bins=(-np.inf, 0, 30.5, 60), missing="NA"),
        Attribute("both", parts=(Attribute("a", ("x", 'y"z')), Attribute("b", ("1", "2", "3")))),
        Attribute("sex", ("f", "m")),
    ),
    keep=("region",),
)


@pytest.fixture(scope="module")
def mechanism():
    return design(SCHEMA, attribute_epsilon=[40, 40, 40], method="kronecker").mechanism


def codes() -> list[np.ndarray]:
    return [np.array([0, 1, 2, 3]), np.array([0, 3, 5, 4]), np.array([1, 0, 0, 1])]


def test_the_public_function_gets_true_values_and_its_answers_are_codes(mechanism):
    # At 40 nats nothing changes: what comes back is what went in.
    box = rows_box(mechanism, lambda frame: deniable.randomize(frame, mechanism))
    for given, back in zip(codes(), box(codes()), strict=True):
        assert back.tolist() == given.tolist()


def test_a_program_gets_the_same_as_csv(mechanism, tmp_path):
    program = tmp_path / "p.py"
    labels = "{'': 'NA', '-1': '(-inf,0)', '0': '[0,30.5)', '30.5': '[30.5,60]'}"
    program.write_text(
        "import csv, sys\n"
        f"labels = {labels}\n"
        "rows = csv.DictReader(sys.stdin)\n"
        "out = csv.DictWriter(sys.stdout, rows.fieldnames)\n"
        "out.writeheader()\n"
        "for row in rows: out.writerow(row | {'age': labels[row['age']]})\n"
    )
    box = command_box(mechanism, [sys.executable, str(program)])
    assert [column.tolist() for column in box(codes())] == [c.tolist() for c in codes()]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('no licence')", "failed with status 1: no licence"),
        ("print('age,a,b,sex')", "4 rows went in and 0 came back"),
        ("print('age,a,b,sex\\nNA,x,1,f')", "4 rows went in and 1 came back"),
        (
            "print('age,a,b,sex\\nNA,x,1,f\\nNA,x,1,q')",
            "^the output of the program, data row 2, column 'sex': the value is not",
        ),
        ("print('a,b')", "the output of the program.*age"),
        ("print('age,a,b,sex\\n1')", "the output of the program, data row 1: 1 field"),
        ("pass", "the output of the program"),
    ],
)
def test_what_a_program_does_wrong_is_one_sentence(mechanism, code, said):
    with pytest.raises(InputError, match=said):
        command_box(mechanism, [sys.executable, "-c", code])(codes())


def test_a_program_that_is_not_there_is_one_sentence(mechanism):
    with pytest.raises(InputError, match="no-such-program: cannot be run"):
        command_box(mechanism, ["no-such-program"])(codes())


def test_what_is_drawn_for_an_audit_is_in_no_ledger(mechanism, monkeypatch):
    monkeypatch.setenv("DENIABLE_LEDGER", "l")
    code = "import os, sys; sys.exit(os.environ.get('DENIABLE_LEDGER', 'none'))"
    with pytest.raises(InputError, match="status 1: none"):
        command_box(mechanism, [sys.executable, "-c", code])(codes())
