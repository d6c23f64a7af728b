"""What the page says in a language, and how it says the library's sentences in it."""

import re
import tomllib
from functools import cache
from typing import Any

from deniable.report.rendering import read

_IN_BRACES = re.compile(r"\{(\w+)\}")


@cache
def texts(language: str) -> dict[str, Any]:
    """Return what the page says in a language."""
    return tomllib.loads(read("deniable.studio", "texts", f"{language}.toml"))


def translated(sentence: str, language: str) -> str | None:
    """Return a sentence of the package in a language; None if the page has it in English only.

    What stands between braces in ``[sentences]`` of the language's texts is any text, which is
    translated itself if it is there too; numbers in it get the language's decimal point.

    >>> translated("ε: this is not a number; one is written as 3.5 or 3,5", "de")
    'ε: Das ist keine Zahl; man schreibt zum Beispiel 3,5'
    >>> translated("something else", "de"), translated("something else", "en")
    (None, 'something else')
    """
    if language == "en":
        return sentence
    for pattern, text in _patterns(language):
        if found := pattern.fullmatch(sentence):
            return text.format(**{k: _part(v, language) for k, v in found.groupdict().items()})
    return None


def _part(text: str, language: str) -> str:
    if re.fullmatch(r"-?[\d.,]*\d", text, re.ASCII):
        marks = texts(language)["separators"]
        return text.translate({ord("."): marks[0], ord(","): marks[1]})
    return translated(text, language) or text


@cache
def _patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Return what to look for, that with most words first, and what it becomes."""
    said: dict[str, str] = texts(language)["sentences"]
    found = []
    for english in sorted(said, key=lambda text: -len(_IN_BRACES.sub("", text))):
        pieces = _IN_BRACES.split(english)
        pieces[::2] = map(re.escape, pieces[::2])
        pieces[1::2] = [f"(?P<{name}>.+?)" for name in pieces[1::2]]
        found.append((re.compile("".join(pieces), re.DOTALL), said[english]))
    return found
