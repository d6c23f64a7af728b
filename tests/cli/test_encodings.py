"""What a terminal's encoding cannot show, or what would command it, in names and values."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.cli import main
from marked import slow_after

NAME = "gr\u00f6\u00dfe \u6f22 \u2603"
CONTROLS = "a\x1b[31m\x07\r\n\x9b2J\u202eb\u2066"
ENCODINGS = ("ascii", "latin-1", "cp437", "cp1252", "cp932", "utf-16", "utf-8")


def people(folder: Path, name: str) -> None:
    label = json.dumps(name)
    schema = f'[[attribute]]\nname = {label}\ncategories = [{json.dumps(name + "1")}, "0"]\n'
    (folder / "s.toml").write_text(f"title = {label}\n{schema}", encoding="utf-8")
    rows = f'"{name}"\n' + f'"{name}1"\n0\n' * 500
    (folder / "t.csv").write_bytes(rows.encode())


def commands(name: str) -> list[list[str]]:
    share = ["share", "t.csv", "--schema", "s.toml", "--epsilon", "2", "--output", "r", "--force"]
    return [
        share,
        [*share, "--json"],
        ["inspect", "r"],
        ["inspect", "r", "--json"],
        ["estimate", "r", "--of", name],
        ["estimate", "r", "--of", name, "--json"],
        ["schema", "init", "t.csv"],
        ["design", "--schema", "s.toml", "--epsilon", "2", "--output", "-"],
        ["estimate", "r", "--of", name + "x"],
        [name],
    ]


def run(
    words: list[str], encoding: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, bytes, bytes]:
    """Run a command whose streams have an encoding and refuse what is not in it."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding, "strict", write_through=True) for _ in range(2)
    )
    status = 0
    with monkeypatch.context() as patch:
        for key, value in {"stdout": out, "stderr": err, "argv": ["deniable", *words]}.items():
            patch.setattr(sys, key, value)
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.buffer.getvalue(), err.buffer.getvalue()


@pytest.mark.parametrize("encoding", slow_after(1, ENCODINGS))
def test_every_encoding_keeps_exit_status_json_and_data(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people(tmp_path, NAME)
    results = [run(words, encoding, monkeypatch) for words in commands(NAME)]
    assert [status for status, _, _ in results] == [0] * 8 + [2] * 2
    for status, out, err in results:
        assert "Traceback" not in err.decode(encoding)
        assert bool(err) >= (status == 2)
        assert out or status
    for place in (1, 3, 5):
        assert NAME in json.dumps(
            json.loads(results[place][1].decode(encoding)), ensure_ascii=False
        )
    for place in (6, 7):  # files, which are UTF-8
        assert NAME in results[place][1].decode("utf-8")
    mark = "" if encoding in ("utf-8", "utf-16") else "?"
    assert mark in results[4][1].decode(encoding)


def test_names_that_command_a_terminal_are_shown_as_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people(tmp_path, CONTROLS)
    hidden = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    for words in commands(CONTROLS):
        if words[0] == "schema" or "-" in words:  # data
            continue
        status, out, err = run(words, "utf-8", monkeypatch)
        text = (out + err).decode()
        assert not hidden.search(text), (words, status)
        assert "\\x1b[31m" in text or "\\u001b[31m" in text or words[:1] == ["share"]


@pytest.mark.slow
def test_bytes_that_are_no_text_and_closed_streams_end_in_no_traceback(tmp_path: Path) -> None:
    people(tmp_path, NAME)
    odd = os.fsdecode(b"o\xffd")
    share = ["share", f"{odd}.csv", "--schema", "s.toml", "--epsilon", "30", "--output", odd]
    (tmp_path / f"{odd}.csv").write_bytes((tmp_path / "t.csv").read_bytes())
    cases: list[tuple[list[str], str, int]] = [
        (share, "", 0),
        (["inspect", odd, "--json"], "<&-", 0),
        (["estimate", odd, "--of", odd], "", 2),
        ([*share, "--force"], ">&-", 0),
        (["randomize", "t.csv", "--schema", "s.toml", "--epsilon", "2"], ">&-", 2),
        (["share", "t.csv", "--schema", "s.toml", "--encoding", odd], "", 2),
    ]
    for words, closed, status in cases:
        line = f'"$@" {closed}'
        done = subprocess.run(
            ["bash", "-c", line, "bash", sys.executable, "-m", "deniable", *words],
            cwd=tmp_path, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == status, (words, done.stderr)
        assert b"Traceback" not in done.stderr
