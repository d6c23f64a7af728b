"""Formulas as text: names, terms, mistakes, and code that is not run."""

import random
import string

import pytest

from deniable.errors import InputError
from deniable.models.syntax import FUNCTIONS, contained, parse, placeholder, shown_name

NAMES = [
    *("C", "I", "Q", "poly", "bs", "cs", "log", "exp", "scale", "center", "lag", "np", "hashed"),
    *("class", "if", "None", "in", "__init__", "_0", "größe", "ﬁ", "gro\u0308ße", "race.x"),
    *("marital-status", "a b", " ", "a+b", "a:b", "a~b", "(a)", "a[T.b]", "a|b", "1a", "0", "."),
    *("it's", '"', "\\", "a\nb", "`", "a``b", "log(x)", "{x}", "%in%", "", "😀", placeholder(0)),
]


def terms(text: str, others: tuple[str, ...] = ()) -> list[str]:
    _, right = parse(text, others)
    return [right.shown(":".join(term)) or "1" for term in right.terms]


@pytest.mark.parametrize("name", [name for name in NAMES if name])
def test_every_name_is_a_column_in_backticks_and_an_identifier_without(name: str) -> None:
    quoted = f"`{name.replace('`', '``')}`"
    for written in [quoted, *([name] if name.isidentifier() else [])]:
        assert parse(f"{written} ~ ww")[0] == name
        with pytest.raises(InputError, match="is on both sides"):
            parse(f"{written} ~ {written}")
        inside = quoted if name == "None" else written
        _, right = parse(f"yy ~ {written}*ww + I({inside} + 1) - {quoted}:ww")
        assert right.columns == (name, "ww")
        assert len(right.terms) == 4
        assert right.shown(right.terms[1][0]) == shown_name(name)
    assert parse(f"yy ~ {shown_name(name)}")[1].columns == (name,)


def test_a_name_before_a_bracket_is_the_function() -> None:
    assert terms("y ~ log(log) + C (C)") == ["1", "log(log)", "C(C)"]
    assert terms("Q('a `b') ~ Q(\"c d\")") == ["1", "`c d`"]
    assert parse("Q('a `b') ~ x")[0] == "a `b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y ~ a*b + c", "1 a b c a:b"),
        ("y ~ a/b", "1 a a:b"),
        ("y ~ (a + b)/c", "1 a b a:b:c"),
        ("y ~ b %in% a", "1 a a:b"),
        ("y ~ (a + b + c)^2 - a:b", "1 a b c a:c b:c"),
        ("y ~ a:b + b:a", "1 a:b"),
        ("y ~ 0 + a", "a"),
        ("y ~ a - 1", "a"),
        ("y ~ a + 0 - 0", "1 a"),
        ("y ~ a - -b", "1 a b"),
        ("y ~ 1", "1"),
        ("y ~ .", "1 a b"),
        ("~ .^2 - y", "1 a b a:b a:y b:y"),
        ("y ~ . - a", "1 b"),
        ("y ~ (a + b)**500", "1 a b a:b"),
    ],
)
def test_terms_are_those_of_r(text: str, expected: str) -> None:
    assert " ".join(terms(text, ("a", "b", "y"))) == expected


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("y", "is not a formula; expected 'response ~ covariates'"),
        ("y ~~ a", "is not a formula"),
        ("y ~ a +", r"^formula 'y ~ a \+': expected a column at its end$"),
        ("y ~ (a", r"expected an operator or \) at its end"),
        ("y ~ a)", r"expected an operator before '\)'"),
        ("y ~ a b", "expected an operator before 'b'"),
        ("y ~ 2x", "a column that begins with a digit is written between backticks"),
        ("y ~ 2*a", "expected a column before '2'$"),
        ("y ~ `a", "a backtick is not closed"),
        ("y ~ C(a, 'b)", "a quote is not closed"),
        ("y ~ log(a", r"the bracket of log\( is not closed"),
        ("y ~ {a}", "'{' has no meaning here"),
        ("y ~ ``", "a column between backticks has no name"),
        ("y ~ a | b", r"the right side has one part, without \|"),
        ("y ~ a^b", "expected a whole number from 1 on before 'b'"),
        ("log(y) ~ a", "the left side is one column"),
        ("y + z ~ a", "the left side is one column"),
        ("y ~ " + "*".join(string.ascii_lowercase[:20]), "more than 1,000 terms"),
        ("y ~ " + "(" * 5000 + "a" + ")" * 5000, "nested too deeply"),
        ("y ~ foo(a)", "'foo' is not a function of formulas; these are C, I, log"),
        ("y ~ lag(a)", "'lag' is not a function"),
        ("y ~ poly(a, 10**9)", "write the result"),
        ("y ~ poly(a, 1000000000)", r"poly\(\) has at most 50 columns"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as error:
        parse(text)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    "code",
    [
        *("__import__('os').system('true')", "I(__import__('os'))", "I(a.__class__.__mro__)(1)"),
        *("I((lambda: a)())", "I([b for b in a])", "I((a)(1))", "I(a[0])", "I(f'{a}')", "a[0]"),
        *("I(**a)", "I(*a)", "I(9**9**9**9 + a)", "I('a' * 10**10 + a)", "np.load(a)", "I(1(a))"),
        *("C(a, _state=a)", "I(a := 1)", "eval('a')", "I(exec('a'))"),
    ],
)
def test_no_code_is_evaluated(code: str) -> None:
    with pytest.raises(InputError):
        parse(f"y ~ {code}")


def test_of_random_text_nothing_but_a_sentence_or_terms_comes() -> None:
    draw = random.Random(5)
    pieces = [*"~+-*/:^().,`'\"|=[]{}%\\ 0123", *NAMES, "y ~ ", *(f"{f}(" for f in FUNCTIONS)]
    for _ in range(3000):
        text = "y ~ " * draw.randint(0, 1) + "".join(draw.choices(pieces, k=draw.randint(0, 9)))
        try:
            _, right = parse(text)
        except InputError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            assert right.shown(":".join(f for term in right.terms for f in term)) is not None


def test_a_term_contains_another_if_it_has_all_of_its_factors() -> None:
    _, right = parse("y ~ a + g:a + C(a, Sum):x + I(a**2) + x")
    of = {right.shown(":".join(term)): term for term in right.terms}
    containing = [name for name, term in of.items() if contained(of["a"], term)]
    assert containing == ["a", "g:a", "C(a, Sum):x"]
    assert not contained(of["x"], of["I(a ** 2)"])
