"""Make .venv with deniable in it, on any system: `python scripts/setup.py` to use it, with the
argument `dev` to test it, with `dev,docs` to work on it.

It installs the versions that uv.lock names and the gate has tested, and no file of them but those
whose hashes stand there. Wheels only; nothing is compiled (of the extra peers, multi-freq-ldpy has
no wheel, and needs none: it is plain Python).
"""

import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv" / ("Scripts" if os.name == "nt" else "bin")
PIP = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-compile",
    "--no-deps",
]
LOCKED = ["--require-hashes", "--only-binary", ":all:"]


def run(command: str, *words: str, out: int | None = None) -> None:
    """Run a command of .venv; end as it does if it fails."""
    if status := subprocess.run([BIN / command, *words], cwd=ROOT, stdout=out).returncode:
        sys.exit(status)


def main(extras: list[str]) -> None:
    """Make .venv, if need be, and install what is locked."""
    if not any(BIN.glob("python*")):
        venv.create(ROOT / ".venv", with_pip=True, symlinks=os.name != "nt")
    with tempfile.TemporaryDirectory() as folder:
        locked = Path(folder, "locked")
        # uv reads its own lock, and so comes first.
        lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
        uv = next(one for one in lock["package"] if one["name"] == "uv")
        hashes = " ".join("--hash=" + wheel["hash"] for wheel in uv["wheels"])
        locked.write_text(f"uv=={uv['version']} {hashes}\n", encoding="utf-8", newline="")
        run("python", *PIP, *LOCKED, "--requirement", str(locked))
        chosen = [word for extra in ["survey", *extras] for word in ("--extra", extra)]
        export = ["export", "--locked", "--quiet", "--all-packages", "--no-emit-workspace"]
        export += ["--group", "build", *chosen, "--output-file", str(locked)]
        run("uv", *export, out=subprocess.DEVNULL)
        plain = ["--no-binary", "multi-freq-ldpy"]
        run("python", *PIP, *LOCKED, *plain, "--requirement", str(locked))
    ours = ["--editable", ".", "--editable", "./studies"]
    run("python", *PIP, "--no-build-isolation", *ours)
    # Byte code on all cores; pip would make it on one. Tests of packages, a quarter of all files,
    # and what some package ships for another Python are left out.
    places = [".venv/Lib" if os.name == "nt" else ".venv/lib", "src", "studies/src"]
    words = [BIN / "python", "-m", "compileall", "-q", "-j", "0", "-x", r"[/\\]tests?[/\\]"]
    words += places
    subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main([extra for word in sys.argv[1:2] for extra in word.split(",") if extra])
