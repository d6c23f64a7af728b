"""A client without a browser: answers a study, and checks the page that a server sends."""

import http.client
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from deniable.collect.questionnaire import plain_labels
from deniable.collect.store import receipt_id
from deniable.collect.study import Study, check_study
from deniable.errors import InputError
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import BitSource, SystemRandomness, happens
from deniable.schema import Attribute, Schema, category_text
from deniable.schema.attribute import EPOCH, edge_text

_MOST = 4_000_000
"""Largest response in bytes: twice the largest page (``page.MOST_BYTES``)."""

_SECONDS = 30
"""Timeout of a request, in seconds."""

WAITS = (1.0, 2.0, 4.0, 8.0)
"""Delays before a record without acknowledgement is sent again, in seconds."""


@dataclass(frozen=True)
class Sent:
    """A sent record with its receipt; ``answers`` are the released categories by attribute,
    ``called`` their labels."""

    body: bytes
    receipt: str
    answers: dict[str, str]
    called: dict[str, str]


def draw(study: Study, answers: Mapping[str, Any], token: str, bits: BitSource) -> Sent:
    """Randomize answers, once."""
    mechanism = study.design.mechanism
    codes = codes_of(mechanism.schema, answers, bits)
    columns = [np.array([code]) for code in codes]
    drawn = [int(c[0]) for c in Randomizer(mechanism, bits).randomize(columns)]
    receipt = bits.bits(np.uint8, 16).tobytes().hex()
    body = {
        "study": study.identity,
        "token": "" if study.open_to_all else token,
        "receipt": receipt_id(receipt).hex(),
        "record": study.encode(drawn),
    }
    labels = {
        name: texts[code]
        for name, texts, code in zip(
            mechanism.schema.names, mechanism.output_labels, drawn, strict=True
        )
    }
    called = dict(labels)
    for attribute, texts, code in zip(
        mechanism.schema.attributes, mechanism.output_labels, drawn, strict=True
    ):
        if tuple(texts) == attribute.categories:  # not sets of categories, or parts
            called[attribute.name] = plain_labels(attribute)[code]
    body_bytes = json.dumps(body, separators=(",", ":")).encode()
    return Sent(body_bytes, receipt, labels, called)


def codes_of(schema: Schema, answers: Mapping[str, Any], bits: BitSource) -> list[int]:
    """Return the codes of true answers, in the schema's order. Once all are checked, numbers are
    rounded to a point next to them."""
    if unknown := [name for name in answers if name not in schema.columns]:
        raise InputError(f"there is no question '{unknown[0]}' in the study")
    columns = {part.name: part for attribute in schema.attributes for part in attribute.columns}
    if missing := [name for name in columns if name not in answers]:
        raise InputError(f"there is no answer to '{missing[0]}'; answer all questions")
    found = {name: _code(part, answers[name]) for name, part in columns.items()}
    codes = []
    for attribute in schema.attributes:
        code = 0
        for part in attribute.columns:
            place, grid = found[part.name], part.number_grid
            if grid is not None:
                place, above = divmod(place, grid.step)
                place += int(happens(np.array([above]), grid.step, bits)[0])
            code = code * part.n_categories + place
        codes.append(code)
    return codes


def _code(attribute: Attribute, answer: Any) -> int:
    """Return the code of an answer; of a number the units of its grid from the lowest point."""
    edges, grid = attribute.bins, attribute.number_grid
    is_number = isinstance(answer, int | float) and not isinstance(answer, bool)
    if grid is not None and (number := _number(attribute, answer)) is not None:
        offset, largest = grid.offset(number), grid.step * (grid.n_points - 1)
        if attribute.outside == "clip":
            offset = min(max(offset, 0), largest)
        if 0 <= offset <= largest:
            return offset
    elif edges is not None and is_number:
        if math.isfinite(answer) and edges[0] <= answer <= edges[-1]:
            return min(int(np.searchsorted(edges, answer, side="right")) - 1, len(edges) - 2)
    elif isinstance(answer, str | int | float) and category_text(answer) in attribute.categories:
        place = attribute.categories.index(category_text(answer))
        return place if grid is None else place * grid.step
    if grid is not None:
        ends = " to ".join(edge_text(end, dates=attribute.dates) for end in (grid.low, grid.high))
        kind = "date" if attribute.dates else "number"
        raise InputError(f"the answer to '{attribute.name}' should be a {kind} from {ends}")
    raise InputError(
        f"the answer to '{attribute.name}' is not one of its categories, or out of range"
    )


def _number(attribute: Attribute, answer: Any) -> Fraction | None:
    """Return the number of an answer as written, of a date the days since 1970-01-01; None of any
    other answer."""
    try:
        if attribute.dates:
            return Fraction((date.fromisoformat(answer) - EPOCH).days)
        return None if isinstance(answer, bool | str) else Fraction(str(answer))
    except (TypeError, ValueError):
        return None


def fetch(url: str, path: str, body: bytes | None = None) -> tuple[int, bytes, dict[str, str]]:
    """Send a request; return status, body and headers. Redirects are not followed."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        where = parts.path.rsplit("/", 1)[0] + "/" + path
        if parts.scheme not in ("http", "https") or not host or not where.isascii():
            raise ValueError
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(host, port, timeout=_SECONDS)
    except (ValueError, http.client.InvalidURL):
        raise InputError(f"{url.split('#')[0]}: give the address of a study, http(s)://…") from None
    try:
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", where, body, headers)
        response = connection.getresponse()
        content = response.read(_MOST)
        return response.status, content, {k.lower(): v for k, v in response.getheaders()}
    except (OSError, http.client.HTTPException) as error:
        raise InputError(
            f"{parts.scheme}://{parts.netloc} cannot be reached ({error or type(error).__name__})"
        ) from None
    finally:
        connection.close()


def fetch_study(url: str) -> Study:
    """Return the study of a server, checked in full."""
    status, content, _ = fetch(url, "study.json")
    if status != 200:
        raise InputError(f"{url.split('#')[0]} has no study (status {status})")
    study = Study(content)
    check_study(study)
    return study


def answer(url: str, answers: Mapping[str, Any], bits: BitSource | None = None) -> Sent:
    """Answer a study: draw once, and send that record until it is acknowledged."""
    study, token = fetch_study(url), urlsplit(url).fragment
    if not (study.open_to_all or re.fullmatch("[0-9a-f]{32}", token)):
        raise InputError(
            "this study is by invitation; give the whole link, which ends in # and a code of 32 "
            "characters (nothing was drawn)"
        )
    status, content, _ = fetch(url, "readyz")
    if _said(content, status, "status") == "closed":
        raise InputError("the study is closed and takes no answers (nothing was drawn)")
    sent = draw(study, answers, token, bits or SystemRandomness())
    for wait in (*WAITS, None):
        try:
            status, content, _ = fetch(url, "submissions", sent.body)
            problem = _said(content, status)
        except InputError as error:
            status, problem = 0, str(error)
        if status in (200, 201):
            return sent
        if 0 < status < 500 and status != 429:
            raise InputError(
                f"the study did not accept the record: {problem}; it was drawn and sent, under the "
                f"receipt {sent.receipt}, and answering again draws another, which adds to it"
            )
        if wait is not None:
            time.sleep(wait)
    raise InputError(
        f"it is not known whether the record arrived ({problem}); if it did, the receipt "
        f"{sent.receipt} withdraws it, and answering again draws another record, which adds to it"
    )


def _said(content: bytes, status: int, key: str = "error") -> str:
    try:
        return str(json.loads(content)[key])
    except (ValueError, KeyError, TypeError):
        return f"status {status}"


def page_at(where: str) -> bytes:
    """Return the page at an address or in a file."""
    if "://" in where:
        status, content, _ = fetch(where, "")
        if status != 200:
            raise InputError(f"{where.split('#')[0]} has no page (status {status})")
        return content
    try:
        return Path(where).read_bytes()
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror or error})") from None
