"""The files around the code say what is so: recipes, lock, versions, hooks, workflows."""

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The packages of the dev and docs extras that bring a command of another name than their own.
COMMANDS = {"mkdocs": "mkdocs", "just": "rust-just", "python": "", "pip": "", "deniable": ""}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def recipes() -> dict[str, list[str]]:
    """The justfile: the commands of every recipe, as they are typed without just."""
    found: dict[str, list[str]] = {}
    for line in text("justfile").splitlines():
        if heading := re.fullmatch(r"([a-z-]+):", line):
            found[heading.group(1)] = []
        elif line.startswith("    "):
            found[list(found)[-1]].append(line.strip().replace("{{bin}}", ".venv/bin"))
    return found


def installed_commands() -> set[str]:
    """What `sh scripts/setup dev,docs` puts into .venv/bin, of what the project asks for."""
    extras = PROJECT["project"]["optional-dependencies"]
    names = {re.split(r"[\[<>=]", wanted)[0] for wanted in extras["dev"] + extras["docs"]}
    return names | {command for command, package in COMMANDS.items() if package in {*names, ""}}


def missing(command: str) -> list[str]:
    """What a command names that does not exist."""
    words = command.split()
    files = [word for word in words[1:] if re.search(r"\.(py|sh|toml|yml)$", word)]
    gone = [file for file in files if not (ROOT / file).is_file()]
    if words[0].startswith(".venv/bin/") and words[0][10:] not in installed_commands():
        gone.append(words[0])
    return gone


@pytest.mark.parametrize(
    "name", ["fmt", "lint", "test", "test-all", "weekly", "coverage", "docs", "bench"]
)
def test_every_command_of_a_recipe_names_what_exists(name: str) -> None:
    commands = recipes()[name]
    assert commands
    assert [gone for command in commands for gone in missing(command)] == []


def test_a_recipe_that_names_nothing_would_be_noticed() -> None:
    assert missing(".venv/bin/python benchmarks/bench_nothing.py") == [
        "benchmarks/bench_nothing.py"
    ]
    assert missing(".venv/bin/flake8 src") == [".venv/bin/flake8"]


def test_every_benchmark_is_run_by_a_recipe() -> None:
    run = " ".join(recipes()["bench"])
    assert [p.name for p in (ROOT / "benchmarks").glob("bench_*.py") if p.name not in run] == []


def test_hooks_and_workflows_use_what_setting_up_installs() -> None:
    hooks = re.findall(r"entry: (.+)", text(".pre-commit-config.yaml"))
    steps = re.findall(r"(?:run: |&& )(\.venv/bin/.+)", text(".github/workflows/ci.yml"))
    assert len(hooks) == 4
    assert steps
    assert [gone for command in hooks + steps for gone in missing(command)] == []
    for recipe in re.findall(r"\.venv/bin/just (\S+)", text(".github/workflows/ci.yml")):
        assert recipe in recipes()


def test_the_gate_checks_what_just_lint_checks() -> None:
    gate = text(".ci/run")
    assert [command for command in recipes()["lint"] if command not in gate] == []


def test_the_version_is_the_same_wherever_it_stands() -> None:
    version = PROJECT["project"]["version"]
    assert tomllib.loads(text("studies/pyproject.toml"))["project"]["version"] == version
    assert re.search(r"^version: (.+)$", text("CITATION.cff"), re.MULTILINE)[1] == version
    date = re.search(r"^date-released: (.+)$", text("CITATION.cff"), re.MULTILINE)[1]
    headings = re.findall(r"^## (.+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert headings[:2] == ["[Unreleased]", f"[{version}] - {date}"]


def test_the_lock_names_the_public_index_and_no_other() -> None:
    lock = text("uv.lock")
    hosts = set(re.findall(r"https?://[^/\"]+", lock))
    assert hosts == {"https://pypi.org", "https://files.pythonhosted.org"}
    assert 'path = "' not in lock
    assert set(re.findall(r'registry = "([^"]+)"', lock)) == {"https://pypi.org/simple"}


def test_the_project_gives_one_address_everywhere() -> None:
    urls = PROJECT["project"]["urls"]
    assert f"  repository: {urls['Repository']}\n" in text("mkdocs.yml")
    assert f"repository-code: {urls['Repository']}\n" in text("CITATION.cff")
    assert all(url.startswith(urls["Repository"]) for url in urls.values())


def test_htmx_is_the_file_whose_version_and_digest_stand_beside_it() -> None:
    folder = ROOT / "src" / "deniable" / "studio" / "browser"
    said = (folder / "htmx.txt").read_text(encoding="utf-8")
    content = (folder / "htmx.min.js").read_bytes()
    assert f"SHA-256: {hashlib.sha256(content).hexdigest()}\n" in said
    version = re.search(rb'version:"([0-9.]+)"', content)[1].decode()
    assert f"htmx.org {version}, unchanged" in said


def test_no_page_of_the_site_asks_another_host() -> None:
    site = text("mkdocs.yml")
    assert "font: false" in site
    # Material's script asks the repository's host how many stars it has.
    assert not re.search(r"^(repo_url|repo_name):", site, re.MULTILINE)


def test_a_section_with_examples_is_called_what_the_site_knows() -> None:
    # `Example:` is text to it, in which lists in square brackets become links that lead nowhere.
    pages = [*(ROOT / "src").rglob("*.py"), *(ROOT / "studies").rglob("*.py")]
    named = [path.read_text("utf-8").splitlines() for path in pages]
    assert [line for lines in named for line in lines if line.strip() == "Example:"] == []
    assert sum(line.strip() == "Examples:" for lines in named for line in lines) > 20


def test_the_gate_lets_the_site_say_what_is_wrong() -> None:
    built = [line for line in text(".ci/run").splitlines() if "mkdocs build" in line]
    assert len(built) == 1
    # mkdocs counts the warnings that it shows: with --quiet, --strict lets all of them pass.
    assert "--strict" in built[0]
    assert "quiet" not in built[0]


def locked(name: str) -> dict[str, object]:
    return next(one for one in tomllib.loads(text("uv.lock"))["package"] if one["name"] == name)


def setup_in(folder: Path, *extras: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/setup beside a .venv whose pip and uv only write down what they are told."""
    (folder / "scripts").mkdir()
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("setup", "setup.py"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    shutil.copy(ROOT / "uv.lock", folder)
    python, uv = (folder / ".venv" / "bin" / name for name in ("python", "uv"))
    python.write_text(
        f"""#!/bin/sh
case "$*" in
  *" pip install "*) echo "pip $*" >>said
    while [ $# -gt 0 ]; do [ "$1" != --requirement ] || cat "$2" >>said; shift; done;;
  *compileall*) ;;
  *) exec {sys.executable} "$@";;
esac
"""
    )
    uv.write_text(
        '#!/bin/sh\necho "uv $*" >>said\n'
        'while [ "$1" != --output-file ]; do shift; done; echo the-locked-ones >"$2"\n'
    )
    for command in (python, uv):
        command.chmod(0o755)
    return subprocess.run(
        ["sh", "scripts/setup", *extras], cwd=folder, capture_output=True, text=True
    )


def test_setting_up_installs_what_the_lock_names_and_checks_its_hashes(tmp_path: Path) -> None:
    done = setup_in(tmp_path, "dev,docs")
    assert (done.returncode, done.stderr) == (0, "")
    first, uv, export, rest, listed, ours = (tmp_path / "said").read_text().splitlines()
    assert "--require-hashes" in first
    assert uv.startswith(f"uv=={locked('uv')['version']} --hash=sha256:")
    assert uv.count("--hash=") == len(locked("uv")["wheels"])
    assert export.startswith("uv export --locked ")
    assert "--extra dev --extra docs" in export
    assert "--require-hashes" in rest
    assert listed == "the-locked-ones"
    assert "--no-deps --no-build-isolation --editable . --editable ./studies" in ours


def test_the_newest_versions_are_tried_by_schedule_and_what_broke_is_said() -> None:
    newest = text(".github/workflows/newest.yml")
    assert "schedule:" in newest
    steps = newest.index("uv lock --upgrade"), newest.index("sh scripts/setup dev,docs")
    assert steps[0] < steps[1] < newest.index(".venv/bin/mkdocs build --strict")
    assert "GITHUB_STEP_SUMMARY" in newest
