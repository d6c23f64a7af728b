"""Texts of the page and translations of the library's sentences."""

import re
import tomllib
from functools import cache
from typing import Any

from deniable.report.rendering import read

_IN_BRACES = re.compile(r"\{(\w+)\}")


@cache
def texts(language: str) -> dict[str, Any]:
    """Return the texts of a language."""
    return tomllib.loads(read("deniable.studio", "texts", f"{language}.toml"))


def translated(sentence: str, language: str) -> str | None:
    """Return a sentence of the package in a language; None if it exists in English only.

    Braces in ``[sentences]`` of a language match any text, which is translated in turn where
    possible; numbers in it get the decimal separator of the language.
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
    """Return patterns and their translations, longest first."""
    said: dict[str, str] = texts(language)["sentences"]
    found = []
    for english in sorted(said, key=lambda text: -len(_IN_BRACES.sub("", text))):
        pieces = _IN_BRACES.split(english)
        pieces[::2] = map(re.escape, pieces[::2])
        pieces[1::2] = [f"(?P<{name}>.+?)" for name in pieces[1::2]]
        found.append((re.compile("".join(pieces), re.DOTALL), said[english]))
    return found
