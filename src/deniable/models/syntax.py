"""The syntax of formulas: from text to terms, without evaluation.

Every column is replaced by a placeholder, so that no name is taken for a function, an operator or a
keyword. Arguments of functions contain columns, constants, operators and the functions listed here,
checked node by node, so that no user code runs.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NoReturn

from deniable.errors import InputError
from deniable.estimate.query import value_among

MOST_TERMS = 1_000
MOST_OF_SMOOTH = 50
"""Degree or degrees of freedom of a polynomial or spline."""

_NUMPY = ("log", "log10", "log2", "log1p", "exp", "exp2", "expm1", "sqrt", "abs", "sign", "round")
SMOOTH = ("poly", "bs", "cr", "cs", "cc")
SPREAD = ("center", "scale", "standardize")
FUNCTIONS = ("C", "I", "log", "log10", "log2", "exp", "exp10", "exp2", "sqrt", "abs")
TREATMENTS = ("Treatment", "contr.treatment", "contr.SAS")
CONTRASTS = (
    *("Treatment", "Sum", "Helmert", "Poly", "Diff"),
    *("contr.treatment", "contr.sum", "contr.helmert", "contr.poly", "contr.diff", "contr.SAS"),
)
_KNOWN = {*FUNCTIONS, *SMOOTH, *SPREAD, *CONTRASTS, *(f"np.{name}" for name in _NUMPY)}

_NODES = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Load, ast.Constant),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.List, ast.Tuple, ast.operator, ast.unaryop),
    ast.cmpop,
)

_PLACEHOLDER = re.compile("ꙮꙮ|ꙮ([0-9]+)ꙮ")
"""A mark of a text, doubled, or a placeholder."""
_TOKENS = re.compile(
    r"""(?P<space>\s+)
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)
    |(?P<sign>%in%|\*\*|[=!<>]=|[-+*/:^~|&().,=<>\[\]])""",
    re.VERBOSE | re.DOTALL,
)

Term = tuple[str, ...]
"""The factors of a term: columns and functions of columns, by placeholders; none: the constant."""

_Terms = dict[frozenset[str], Term]


@dataclass(frozen=True)
class Terms:
    """The right side of a formula."""

    columns: tuple[str, ...]
    terms: tuple[Term, ...]

    def named(self, code: str) -> tuple[str, ...]:
        """Return the columns of a factor."""
        places = (int(place) for place in _PLACEHOLDER.findall(code) if place)
        return tuple(self.columns[place] for place in places if place < len(self.columns))

    def shown(self, text: str) -> str:
        """Return text with columns in place of placeholders, and texts as they were."""
        names = {str(place): shown_name(name) for place, name in enumerate(self.columns)}
        return _PLACEHOLDER.sub(
            lambda found: names.get(found[1], found[0]) if found[1] else "ꙮ", text
        )


def placeholder(place: int) -> str:
    """Return the name of a column by its number: a Python name that no formula contains.

    >>> placeholder(3).isidentifier()
    True
    """
    return f"ꙮ{place}ꙮ"


def marked(text: str) -> str:
    """Return a text, such as a category, with its placeholder characters escaped.

    >>> Terms(("age",), ()).shown(f"{placeholder(0)}[{marked(placeholder(0))}]")
    'age[ꙮ0ꙮ]'
    """
    return text.replace("ꙮ", "ꙮꙮ")


def shown_name(name: str) -> str:
    """Return a column's name as a formula has to have it."""
    if all(part.isidentifier() for part in name.split(".")):
        return name
    return f"`{name.replace('`', '``')}`"


def printable(text: str) -> str:
    """Return text with control characters escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def of_levels(factor: str, levels: Sequence[str]) -> str:
    """Return a factor of one column of categories, with numbers or texts replaced by the categories
    of equal value: in the reference of a treatment contrast and in comparisons.

    >>> of_levels("C(x, Treatment(20))", ("20.0", "30.0")), of_levels("I(x == '20')", ("20.0",))
    ("C(x, Treatment('20.0'))", "I(x == '20.0')")
    """
    return ast.unparse(_OfLevels(levels).visit(ast.parse(factor, mode="eval")))


class _OfLevels(ast.NodeTransformer):
    def __init__(self, levels: Sequence[str]) -> None:
        self.levels = levels

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) in TREATMENTS:
            node.args = [self._named(each) for each in node.args]
            for keyword in node.keywords:
                keyword.value = self._named(keyword.value)
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        node.left = self._named(node.left)
        node.comparators = [self._named(each) for each in node.comparators]
        return self.generic_visit(node)

    def _named(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Constant) or isinstance(node.value, bool | None):
            return node
        level = value_among(str(node.value), self.levels)
        return ast.Constant(str(node.value) if level is None else level)


def contained(term: Term, other: Term) -> bool:
    """Return whether another term contains a term: has all of its factors, a column coded by C()
    being the column."""
    return _keys(term) <= _keys(other)


def _keys(term: Term) -> set[str]:
    return {re.sub(r"^C\((ꙮ[0-9]+ꙮ)[,)].*", r"\1", code, flags=re.DOTALL) for code in term}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    space: bool
    """Whether a space is before it."""


def parse(text: str, others: Sequence[str] = ()) -> tuple[str | None, Terms]:
    """Return response and right side of a formula."""
    try:
        return _Reader(text, others).formula()
    except (RecursionError, MemoryError):
        raise InputError(f"formula '{text[:200]}' is nested too deeply") from None


class _Reader:
    """Precedence climbing: + and -, then * / and %in%, then :, then ^."""

    def __init__(self, text: str, others: Sequence[str]) -> None:
        self.text, self.others = printable(text), others
        self.columns: dict[str, int] = {}
        self.tokens = self._tokens(text)
        self.place = 0

    def formula(self) -> tuple[str | None, Terms]:
        tildes = [i for i, token in enumerate(self.tokens) if token.text == "~"]
        if len(tildes) != 1:
            raise InputError(
                f"'{self.text}' is not a formula; expected 'response ~ covariates', or '~ terms' "
                "for a log-linear model"
            )
        response, (tilde,) = None, tildes
        if tilde:
            if tilde != 1 or self.tokens[0].kind not in ("name", "quoted"):
                self._fail(
                    "the left side is one column, without functions; a name with other characters "
                    "than letters, digits, _ and . is written between backticks (`)"
                )
            response = _unquoted(self.tokens[0])
        self.place = tilde + 1
        self.others = [name for name in self.others if name != response]
        terms = self._sum(closed=False)
        if response in self.columns:
            self._fail(f"'{response}' is on both sides")
        ordered = sorted(terms.values(), key=len)
        return response, Terms(tuple(self.columns), tuple(ordered))

    # Tokens

    def _tokens(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        place, space = 0, False
        while place < len(text):
            here = text[place]
            name = self._name(text[place:]) if here.isidentifier() else ""
            found = None if name else _TOKENS.match(text, place)
            if not name and found is None:
                closing = {"`": "backtick", '"': "quote", "'": "quote"}.get(here)
                self._fail(
                    f"a {closing} is not closed" if closing else f"{here!r} has no meaning here"
                )
            kind, taken = ("name", name) if found is None else (str(found.lastgroup), found[0])
            if kind != "space":
                tokens.append(_Token(kind, taken, space))
            space = kind == "space"
            place += len(taken)
            last = [each.text for each in tokens[-4:]]
            if last[:2] == ["Q", "("] and last[3:] == [")"] and tokens[-2].kind == "text":
                name = _untexted(tokens[-2]).replace("`", "``")  # Q("name"), as in patsy
                tokens[-4:] = [_Token("quoted", f"`{name}`", tokens[-4].space)]
        return tokens

    @staticmethod
    def _name(text: str) -> str:
        return "".join(takewhile(lambda c: f"_{c}".isidentifier() or c == ".", text)).rstrip(".")

    @property
    def here(self) -> _Token:
        """The next token; at the end an empty one."""
        return self.tokens[self.place] if self.place < len(self.tokens) else _Token("end", "", True)

    def _taken(self, *signs: str) -> str:
        """Return the next sign and go past it if it is one of these; empty otherwise."""
        if self.here.kind == "sign" and self.here.text in signs:
            self.place += 1
            return self.tokens[self.place - 1].text
        return ""

    def _fail(self, why: str) -> NoReturn:
        raise InputError(f"formula '{self.text}': {printable(why)}")

    # Terms

    def _sum(self, *, closed: bool) -> _Terms:
        """Return a sum of terms, to a closing bracket or to the end; outside brackets it has a
        constant."""
        terms: _Terms = {} if closed else {frozenset(): ()}
        sign = self._taken("+", "-") or "+"
        while True:
            while extra := self._taken("+", "-"):
                sign = "-" if (sign == "-") != (extra == "-") else "+"
            zero = self.here.text == "0" and not closed
            more = self._product()
            if zero and not more:
                more, sign = {frozenset(): ()}, "-" if sign == "+" else "+"
            if sign == "-":
                terms = {key: term for key, term in terms.items() if key not in more}
            else:
                terms = self._joined(terms, more)
            if not (sign := self._taken("+", "-")):
                break
        if closed and not self._taken(")"):
            self._unexpected("an operator or )")
        if not closed and self.here.kind != "end":
            self._unexpected("an operator")
        return terms

    def _product(self) -> _Terms:
        left = self._interaction()
        while sign := self._taken("*", "/", "%in%"):
            right = self._interaction()
            if sign == "%in%":
                left, right = right, left
            if sign == "*":
                left = self._joined(left, right, self._crossed(left, right))
            else:
                whole = {frozenset().union(*left): tuple(dict.fromkeys(sum(left.values(), ())))}
                left = self._joined(left, self._crossed(whole, right))
        return left

    def _interaction(self) -> _Terms:
        left = self._power()
        while self._taken(":"):
            left = self._crossed(left, self._power())
        return left

    def _power(self) -> _Terms:
        terms = self._operand()
        while self._taken("^", "**"):
            power = self.here.text
            if not (power.isdigit() and power.isascii() and int(power[:5]) > 0):
                self._unexpected("a whole number from 1 on")
            self.place += 1
            whole, before = terms, 0
            for _ in range(int(power[:5]) - 1):
                if len(whole) == before:
                    break
                before, whole = len(whole), self._joined(whole, self._crossed(whole, terms))
            terms = whole
        return terms

    def _crossed(self, left: _Terms, right: _Terms) -> _Terms:
        pairs = ((one, other) for one in left.items() for other in right.items())
        return self._joined(
            *({a | b: tuple(dict.fromkeys((*one, *other)))} for (a, one), (b, other) in pairs)
        )

    def _joined(self, *parts: _Terms) -> _Terms:
        """Return the terms of all parts, each in its first spelling."""
        terms: _Terms = {}
        for part in parts:
            for key, term in part.items():
                terms.setdefault(key, term)
            if len(terms) > MOST_TERMS:
                self._fail(f"it has more than {MOST_TERMS:,} terms")
        return terms

    def _operand(self) -> _Terms:
        token = self.here
        if self._taken("("):
            return self._sum(closed=True)
        if self._taken("."):
            return {frozenset({code}): (code,) for code in map(self._column, self.others)}
        if token.kind == "number" and token.text in ("0", "1"):
            self.place += 1
            return {frozenset(): ()} if token.text == "1" else {}
        if token.kind not in ("name", "quoted"):
            self._unexpected("a column")
        self.place += 1
        if token.kind == "name" and self.here.text == "(":
            code = self._call(token.text)
        else:
            code = self._column(_unquoted(token))
        return {frozenset({code}): (code,)}

    def _unexpected(self, expected: str) -> NoReturn:
        found, hint = self.here, ""
        following = self.tokens[self.place + 1 : self.place + 2]
        if found.text == "|":
            self._fail("the right side has one part, without |")
        named = bool(following) and following[0].kind == "name" and not following[0].space
        if found.kind == "number" and named:
            hint = "; the name of a column that begins with a digit is written between backticks"
        where = f"before '{found.text}'" if found.text else "at its end"
        self._fail(f"expected {expected} {where}{hint}")

    def _column(self, name: str) -> str:
        if not name:
            self._fail("a column between backticks has no name")
        return placeholder(self.columns.setdefault(name, len(self.columns)))

    # Functions

    def _call(self, function: str) -> str:
        """Return a function's call as Python code with placeholders; the next token opens its
        brackets."""
        start, source, functions = self.place, [self._function(function)], [""]
        while True:
            token = self.here
            if token.kind == "end":
                self._fail(f"the bracket of {function}( is not closed")
            self.place += 1
            before, following = self.tokens[self.place - 2], self.here
            if token.kind == "name" and following.text == "(":
                source.append(self._function(token.text))
            elif token.kind == "name" and self._as_it_is(token, before, functions[-1]):
                source.append(token.text)
            elif token.kind in ("name", "quoted"):
                source.append(self._column(_unquoted(token)))
            elif token.kind == "text":
                source.append(repr(marked(_untexted(token))))
            else:
                source.append("**" if token.text == "^" else token.text)
            if token.text == "(":
                functions.append(before.text if before.kind == "name" else "")
            elif token.text == ")" and len(functions := functions[:-1]) == 1:
                break
        if self.place - start > MOST_TERMS:
            self._fail(f"the arguments of {function}() are too long")
        return self._checked(" ".join(source), function)

    def _as_it_is(self, token: _Token, before: _Token, function: str) -> bool:
        """Return whether a name in a call is an argument's, a constant or a contrast."""
        argument = before.text in ("(", ",") and self.here.text == "="
        if argument and token.text.startswith("_"):
            self._fail(f"no function has an argument '{token.text}'")
        contrast = function == "C" and before.text in (",", "=") and token.text in CONTRASTS
        return argument or contrast or token.text in ("True", "False", "None")

    def _function(self, name: str) -> str:
        if name not in _KNOWN:
            known = ", ".join((*FUNCTIONS, *SMOOTH, *SPREAD))
            self._fail(f"'{name}' is not a function of formulas; these are {known}")
        return name

    def _checked(self, source: str, function: str) -> str:
        """Return code as Python writes it, if all of it may be evaluated."""
        try:
            tree = ast.parse(source, mode="eval")
        except (SyntaxError, ValueError):
            self._fail(
                f"the arguments of {function}() are not an expression of columns, numbers, "
                "quoted texts and functions"
            )
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and not any(_PLACEHOLDER.findall(ast.unparse(node))):
                self._fail(f"write the result of a calculation without columns in {function}()")
            called = node.func if isinstance(node, ast.Call) else node
            unknown = called is not node or isinstance(node, ast.Attribute)
            unknown = unknown and ast.unparse(called) not in _KNOWN
            unpacked = isinstance(node, ast.keyword) and node.arg is None
            if unknown or unpacked or not isinstance(node, _NODES):
                self._fail(f"{function}() takes columns, constants, arithmetic and comparisons")
            if isinstance(node, ast.Call) and ast.unparse(node.func) in SMOOTH:
                values = [*node.args, *(keyword.value for keyword in node.keywords)]
                numbers = [v.value for v in values if isinstance(v, ast.Constant)]
                if any(isinstance(v, int | float) and v > MOST_OF_SMOOTH for v in numbers):
                    self._fail(f"{function}() has at most {MOST_OF_SMOOTH} columns")
        if not any(_PLACEHOLDER.findall(source)):
            self._fail(f"{function}() contains no column")
        return ast.unparse(tree)


def _unquoted(token: _Token) -> str:
    return token.text if token.kind == "name" else token.text[1:-1].replace("``", "`")


def _untexted(token: _Token) -> str:
    return re.sub(r"\\([\\'\"])", r"\1", token.text[1:-1])
