"""Command lines and what they print: each file in tests/goldens is a session of its own beside the runs of format 1.

    python -m tests.transcripts [NAME...]     plays sessions again and keeps what they print now: read the diff

A line that begins with `$ ` is typed into a shell; what follows is what it printed, errors marked with `! `, and the exit code
where it is not 0. What differs from box to box and from day to day is replaced by a word or a #.
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
_VARYING = {  # by verb: what another box or another day prints otherwise
    "run": (
        (re.compile(r"(succeeded|failed) in [0-9.]+ s"), r"\1 in # s"),
        (re.compile(r"[0-9.]+ [kKMG]i?B \(RSS"), "# (RSS"),
        (re.compile(r"not measured  gpu: .*"), "not measured  gpu: #"),
        (re.compile(r"^digest [0-9a-f]{16}$", re.MULTILINE), "digest #"),
    ),
    "exec": (
        (re.compile(r"(succeeded|failed) in [0-9.]+ s"), r"\1 in # s"),
        (re.compile(r"[0-9.]+ [kKMG]i?B \(RSS"), "# (RSS"),
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
    """Type the command lines of a session into a shell of its own and return the session as it came out."""
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
    return "".join(
        _settle(command, _type(command, home, environment), folder) for command in commands_of(name)
    )


def _type(command: str, home: Path, environment: dict[str, str]) -> str:
    shell = ["bash", "-c", command]
    done = subprocess.run(
        shell, cwd=home, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    lines = [
        f"$ {command}",
        *done.stdout.splitlines(),
        *(f"! {line}" for line in done.stderr.splitlines()),
    ]
    return "\n".join([*lines, *[f"[exit {done.returncode}]"] * bool(done.returncode)]) + "\n"


def commands_of(name: str) -> list[str]:
    """Return the command lines of a session."""
    return [line[2:] for line in golden(name).splitlines() if line.startswith("$ ")]


def golden(name: str) -> str:
    """Return a session as it was kept."""
    return (GOLDENS / f"{name}.txt").read_text()


def names() -> list[str]:
    """Return the names of all sessions."""
    return sorted(path.stem for path in GOLDENS.glob("*.txt"))


def _settle(command: str, text: str, folder: Path) -> str:
    """Replace what another box or another day would print otherwise."""
    recorded = {path.name for path in FORMAT_1.iterdir()}
    for found in set(_RUN.finditer(text)):
        if found[0] not in recorded:
            text = text.replace(found[0], f"TIME-{found[1]}-RANDOM").replace(found[2], "RANDOM")
    for place, word in (
        (folder / "runs", "RUNS"),
        (folder / "home", "HOME"),
        (Path(__file__).parents[1], "CHECKOUT"),
    ):
        text = text.replace(str(place), word)
    for pattern, word in _VARYING.get("".join(command.split()[1:2]), ()):
        text = pattern.sub(word, text)
    return text


if __name__ == "__main__":
    for chosen in sys.argv[1:] or names():
        with tempfile.TemporaryDirectory() as place:
            played = play(chosen, Path(place))
        (GOLDENS / f"{chosen}.txt").write_text(played)
