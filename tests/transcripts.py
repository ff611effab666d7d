"""Play sessions of command lines. Each file in tests/goldens is one, with the runs of format 1.

    python -m tests.transcripts [NAME...]     plays sessions again and writes their files: read the diff

A line that begins with `$ ` is typed into a shell. The output follows, with `! ` in front of each
line of stderr, and the exit code if it is not 0. Output that differs between machines or days is
replaced by a word or a #.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import TUILAB
from tests.record_journals import JOURNALS

GOLDENS = Path(__file__).with_name("goldens")
FORMAT_1 = JOURNALS / "format-1"
_RUN = re.compile(r"[0-9]{8}T[0-9]{9}Z-([\w.+-]{1,60})-([0-9a-f]{6})")
# For each subcommand, what another machine or another day prints otherwise. Whether shared pages
# are mentioned depends on whether the sampler saw a short child of the command.
_VARYING = {
    "run": (
        (re.compile(r"(succeeded|failed) in [0-9.]+ s"), r"\1 in # s"),
        (re.compile(r"[0-9.]+ [kKMG]i?B \(RSS(; shared[^)]*)?"), "# (RSS"),
        (re.compile(r"not measured  gpu: .*"), "not measured  gpu: #"),
        (re.compile(r"^digest [0-9a-f]{16}$", re.MULTILINE), "digest #"),
    ),
    "exec": (
        (re.compile(r"(succeeded|failed) in [0-9.]+ s"), r"\1 in # s"),
        (re.compile(r"[0-9.]+ [kKMG]i?B \(RSS(; shared[^)]*)?"), "# (RSS"),
        (re.compile(r"! not measured +gpu: .*\n"), ""),
        (re.compile(r"^(! )?digest [0-9a-f]{16}$", re.MULTILINE), r"\1digest #"),
    ),
    "sweep": (
        (re.compile(r"sweep-[0-9a-f]{6}  [0-9-]{10} [0-9:]{5}Z"), "sweep-ID  NOW"),
        (re.compile(r"sweep-[0-9a-f]{6}"), "sweep-ID"),
        (re.compile(r"  [0-9.]+ s  [0-9a-f]{6}$", re.MULTILINE), "  # s  ID"),
        (re.compile(r"\([0-9a-f]{6}\)"), "(ID)"),
        (re.compile(r"^ +(peak memory.*?) +run$", re.MULTILINE), r"\1  run"),
        (
            re.compile(r"(?:[0-9.]+ MiB \(RSS[^)]*\)|n/a) +[0-9a-f]{6}$", re.MULTILINE),
            "# (RSS)  ID",
        ),
    ),
    **dict.fromkeys(("stop", "attach"), ((re.compile(r"sweep-[0-9a-f]{6}"), "sweep-ID"),)),
    "note": ((re.compile(r"[0-9-]{10} [0-9:]{5}Z"), "NOW"),),
    "export": ((re.compile(r"files, [0-9.]+ [kKM]i?B"), "files, # bytes"),),
    "config": ((re.compile(r" {2,}#"), "  #"),),  # in columns as wide as a path
    "advise": ((re.compile(r"box.env of [0-9-]{10}"), "box.env of TODAY"),),
}


def play(name: str, folder: Path) -> str:
    """Type the command lines of a session into a shell of its own, and return the session."""
    root, home = folder / "runs", folder / "home"
    shutil.copytree(FORMAT_1, root)
    home.mkdir()
    environment = {
        "PATH": f"{Path(TUILAB).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "TUILAB_ROOT": str(root),
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    parts = []
    for command in commands_of(name):
        output = _type(command, home, environment)
        parts.append(_settle(command, output, folder))
    return "".join(parts)


def _type(command: str, home: Path, environment: dict[str, str]) -> str:
    """Run one command line, and return it with its output."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    lines = [f"$ {command}", *done.stdout.splitlines()]
    lines += [f"! {line}" for line in done.stderr.splitlines()]
    if done.returncode:
        lines.append(f"[exit {done.returncode}]")
    return "\n".join(lines) + "\n"


def commands_of(name: str) -> list[str]:
    """Return the command lines of a session."""
    return [line[2:] for line in golden(name).splitlines() if line.startswith("$ ")]


def golden(name: str) -> str:
    """Return the recorded session."""
    return (GOLDENS / f"{name}.txt").read_text()


def names() -> list[str]:
    """Return the names of all sessions."""
    return sorted(path.stem for path in GOLDENS.glob("*.txt"))


def _settle(command: str, text: str, folder: Path) -> str:
    """Replace what another machine or another day would print otherwise."""
    recorded = {path.name for path in FORMAT_1.iterdir()}
    for match in set(_RUN.finditer(text)):
        if match[0] not in recorded:
            text = text.replace(match[0], f"TIME-{match[1]}-RANDOM")
            text = text.replace(match[2], "RANDOM")
    text = text.replace(str(folder / "runs"), "RUNS")
    text = text.replace(str(folder / "home"), "HOME")
    text = text.replace(str(Path(__file__).parents[1]), "CHECKOUT")
    subcommand = "".join(command.split()[1:2])
    for pattern, replacement in _VARYING.get(subcommand, ()):
        text = pattern.sub(replacement, text)
    return text


if __name__ == "__main__":
    for chosen in sys.argv[1:] or names():
        with tempfile.TemporaryDirectory() as place:
            played = play(chosen, Path(place))
        (GOLDENS / f"{chosen}.txt").write_text(played)
