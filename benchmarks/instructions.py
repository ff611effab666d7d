"""How many instructions hot paths take, beside an empty interpreter: unlike times they repeat, also on a busy box.

    python -m benchmarks.instructions [--keep]

Each path is counted by callgrind, in units of `python -c pass`, and held against what is kept in instructions.json: what takes
15 % more is a regression, and the command above exits with 1. With --keep the counts of now are kept; say in the commit why
they changed. `python -m benchmarks instructions` counts the same, and fails for none.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.pairs import Missing, Row
from tests.made_runs import make_run, started
from tuilab.record.events import Logged, StateChanged
from tuilab.record.journal.writer import Writer

FULL = {"paths": 7}
TINY = {"paths": 1}
BARE = "python -c pass"
KEPT = Path(__file__).with_suffix(".json")
MARGIN = 0.15  # what is installed beside it, and where, is a few percent of it
_FOUND = re.compile(r"Collected : (\d+)")
_TUILAB = ("-m", "tuilab")
_LOGS = """
import os
from pathlib import Path
from tuilab.record.events import Logged
from tuilab.record.journal.writer import Writer
writer = Writer(Path(f"logs-{os.getpid()}.jsonl"))
for step in range(2000):
    writer.append(Logged(s=step, v={"loss": step / 2000}))
"""
_READS = """
from pathlib import Path
from tuilab.record.live_run import read_run
read_run(next(Path("runs").glob("*-long-*")))
"""
_DRAWS = """
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from tuilab.tui.terminal.frames import Frames
frames = Frames(ColorSystem.TRUECOLOR)
styles = [Style.parse("#c8d0e8 on #11131c"), Style.parse("bold #7aa2f7 on #11131c")]
for turn in range(10):
    frames.difference([[Segment(f"{turn:60}", styles[0]), Segment(f"{row:60}", styles[1])] for row in range(40)])
"""
PATHS: dict[str, Sequence[str]] = {
    "tuilab --help": (*_TUILAB, "--help"),
    "tuilab list": (*_TUILAB, "list"),
    "tuilab runs": (*_TUILAB, "runs"),
    "completion of a scenario": _TUILAB,
    "record 2,000 points": ("-c", _LOGS),
    "read 20,000 points": ("-c", _READS),
    "ten frames of 40 lines": ("-c", _DRAWS),
}
_COMPLETION = {
    "_TUILAB_COMPLETE": "bash_complete",
    "COMP_WORDS": "tuilab run sof",
    "COMP_CWORD": "2",
}


def rows(place: Path, *, paths: int) -> Iterator[Row]:
    if why := why_not():
        raise Missing(f"{why}; apt-get install valgrind" if "valgrind" in why else why)
    before = kept()
    bare, *counted = counts(place, list(PATHS)[:paths])
    yield Row(BARE, "instructions", [bare])
    for name, found in zip(PATHS, counted, strict=False):
        goal = f"{before[name]:.2f} × kept" if name in before else ""
        yield Row(name, "instructions", [found], BARE, [bare], goal)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the counts of now")
    given = parser.parse_args()
    if given.keep:
        KEPT.unlink(missing_ok=True)
    if why := why_not():
        print(f"nothing was counted: {why}", file=sys.stderr)
        return 3
    found = count_all()
    before = kept()
    for name, units in found.items():
        print(
            f"{name:26} {units:7.2f} times an empty interpreter, kept {before.get(name, float('nan')):7.2f}"
        )
    if given.keep:
        KEPT.write_text(json.dumps({"python": _python(), "units": found}, indent=1) + "\n")
        return 0
    for sentence in (worse := regressions(found, before)):
        print(sentence)
    return 1 if worse else 0


def why_not() -> str:
    """Return why nothing can be counted, or compared with what is kept; nothing where it can."""
    if not shutil.which("valgrind"):
        return "valgrind is not installed"
    made_by = json.loads(KEPT.read_text())["python"] if KEPT.exists() else _python()
    return (
        ""
        if made_by == _python()
        else f"what is kept was counted by another build of Python: {made_by}"
    )


def kept() -> dict[str, float]:
    found: dict[str, float] = json.loads(KEPT.read_text())["units"] if KEPT.exists() else {}
    return found


def regressions(found: dict[str, float], before: dict[str, float]) -> list[str]:
    """Return a sentence for each path that takes clearly more than is kept."""
    return [
        f"{name} takes {units / before[name] - 1:.0%} more instructions than it did; mend it, or keep that with --keep"
        for name, units in found.items()
        if name in before and units > (1 + MARGIN) * before[name]
    ]


def count_all() -> dict[str, float]:
    """Return the instructions of each path, in units of an empty interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        bare, *found = counts(Path(folder), PATHS)
        return {name: round(one / bare, 3) for name, one in zip(PATHS, found, strict=True)}


def counts(place: Path, names: Iterable[str]) -> list[int]:
    """Return the instructions of an empty interpreter and of some paths."""
    run_dir = make_run(
        place / "runs", started(scenario="long"), StateChanged(state="succeeded"), name="long"
    )
    writer = Writer(run_dir / "journal" / "worker-0.jsonl")
    for step in range(20_000):
        writer.append(Logged(s=step, v={"loss": step / 20_000}))
    writer.close()
    return [count(words, place) for words in (("-c", "pass"), *(PATHS[name] for name in names))]


def count(words: Sequence[str], place: Path) -> int:
    """Return the instructions that Python takes for some words, once all that is kept from one time to the next is there."""
    more = _COMPLETION if words is PATHS["completion of a scenario"] else {}
    env = {
        "PATH": os.environ["PATH"], "HOME": str(place), "LANG": "C.UTF-8", "TERM": "xterm-256color", "PYTHONHASHSEED": "0",
        "TUILAB_ROOT": str(place / "runs"), "PYTHONPYCACHEPREFIX": str(place / "bytecode"), **more,
    }  # fmt: skip
    command = [sys.executable, *words]
    subprocess.run(command, env=env, cwd=place, capture_output=True, check=True)
    counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    done = subprocess.run(counted, env=env, cwd=place, capture_output=True, text=True, check=True)
    found = _FOUND.search(done.stderr)
    assert found, done.stderr
    return int(found[1])


def _python() -> str:
    """Return which build of Python counts: another one takes other instructions for the same."""
    return sys.version


if __name__ == "__main__":
    sys.exit(main())
