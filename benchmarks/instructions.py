"""Count the instructions of hot paths, next to an empty interpreter.

    python -m benchmarks.instructions [--keep]

Counts repeat, unlike times, also on a busy machine. Each path is counted by callgrind, in units of
`python -c pass`, and compared with instructions.json. A path that takes 15 % more is a regression,
and the command above exits with 1. With --keep it writes the new counts; the commit says why they
changed. `python -m benchmarks instructions` counts the same, and never fails for a regression.
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
MARGIN = 0.15  # other installed packages and other folders already change a few percent
_COLLECTED = re.compile(r"Collected : (\d+)")
_TUILAB = ("-m", "tuilab")
_STAND_IN = str(Path(__file__).with_name("stand_in_torch.py"))
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
    frame = []
    for row in range(40):
        frame.append([Segment(f"{turn:60}", styles[0]), Segment(f"{row:60}", styles[1])])
    frames.difference(frame)
"""
PATHS: dict[str, Sequence[str]] = {  # arguments of Python
    "tuilab --help": (*_TUILAB, "--help"),
    "tuilab list": (*_TUILAB, "list"),
    "tuilab runs": (*_TUILAB, "runs"),
    "completion of a scenario": _TUILAB,
    "record 2,000 points": ("-c", _LOGS),
    "read 20,000 points": ("-c", _READS),
    "ten frames of 40 lines": ("-c", _DRAWS),
    "watch 20,000 short steps": (_STAND_IN, "all", "short", "20000"),
}
_COMPLETION = {
    "_TUILAB_COMPLETE": "bash_complete",
    "COMP_WORDS": "tuilab run sof",
    "COMP_CWORD": "2",
}


def rows(place: Path, *, paths: int) -> Iterator[Row]:
    """Yield the counts of the first paths."""
    reason = why_not()
    if "valgrind" in reason:
        raise Missing(f"{reason}; apt-get install valgrind")
    if reason:
        raise Missing(reason)
    kept_units = kept()
    bare, *path_counts = counts(place, list(PATHS)[:paths])
    yield Row(BARE, "instructions", [bare])
    for name, count in zip(PATHS, path_counts, strict=False):
        goal = ""
        if name in kept_units:
            goal = f"{kept_units[name]:.2f} × kept"
        yield Row(name, "instructions", [count], BARE, [bare], goal)


def main() -> int:
    """Count all paths; return 1 if there is a regression, and 3 if nothing can be counted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="write the new counts to the file")
    arguments = parser.parse_args()
    if arguments.keep:
        KEPT.unlink(missing_ok=True)
    reason = why_not()
    if reason:
        print(f"nothing was counted: {reason}", file=sys.stderr)
        return 3
    units = count_all()
    kept_units = kept()
    for name, count in units.items():
        kept_count = kept_units.get(name, float("nan"))
        print(f"{name:26} {count:7.2f} times an empty interpreter, kept {kept_count:7.2f}")
    if arguments.keep:
        document = {"python": _python_build(), "units": units}
        KEPT.write_text(json.dumps(document, indent=1) + "\n")
        return 0
    sentences = regressions(units, kept_units)
    for sentence in sentences:
        print(sentence)
    return 1 if sentences else 0


def why_not() -> str:
    """Return why nothing can be counted or compared with the file; empty if that is possible."""
    if not shutil.which("valgrind"):
        return "valgrind is not installed"
    if not KEPT.exists():
        return ""
    kept_build = json.loads(KEPT.read_text())["python"]
    if kept_build == _python_build():
        return ""
    return f"what is kept was counted by another build of Python: {kept_build}"


def kept() -> dict[str, float]:
    """Return the counts of the file, in units of an empty interpreter."""
    if not KEPT.exists():
        return {}
    units: dict[str, float] = json.loads(KEPT.read_text())["units"]
    return units


def regressions(units: dict[str, float], kept_units: dict[str, float]) -> list[str]:
    """Return a sentence for each path that takes clearly more instructions than the file says."""
    sentences = []
    for name, count in units.items():
        if name in kept_units and count > (1 + MARGIN) * kept_units[name]:
            growth = count / kept_units[name] - 1
            sentences.append(
                f"{name} takes {growth:.0%} more instructions than it did; "
                f"mend it, or keep that with --keep"
            )
    return sentences


def count_all() -> dict[str, float]:
    """Return the instructions of each path, in units of an empty interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        bare, *path_counts = counts(Path(folder), PATHS)
    return {name: round(count / bare, 3) for name, count in zip(PATHS, path_counts, strict=True)}


def counts(place: Path, names: Iterable[str]) -> list[int]:
    """Return the instructions of an empty interpreter, and then those of some paths."""
    started_run = started(scenario="long")
    run_dir = make_run(place / "runs", started_run, StateChanged(state="succeeded"), name="long")
    writer = Writer(run_dir / "journal" / "worker-0.jsonl")
    for step in range(20_000):
        writer.append(Logged(s=step, v={"loss": step / 20_000}))
    writer.close()
    bare = count_instructions(("-c", "pass"), place)
    return [bare, *(count_instructions(PATHS[name], place) for name in names)]


def count_instructions(arguments: Sequence[str], place: Path) -> int:
    """Return the instructions of Python with some arguments, with warm caches."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "PYTHONHASHSEED": "0",
        "TUILAB_ROOT": str(place / "runs"),
        "PYTHONPYCACHEPREFIX": str(place / "bytecode"),
    }
    if arguments is PATHS["completion of a scenario"]:
        env.update(_COMPLETION)
    command = [sys.executable, *arguments]
    subprocess.run(command, env=env, cwd=place, capture_output=True, check=True)  # fills the caches
    callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    done = subprocess.run(callgrind, env=env, cwd=place, capture_output=True, text=True, check=True)
    collected = _COLLECTED.search(done.stderr)
    assert collected, done.stderr
    return int(collected[1])


def _python_build() -> str:
    """Return the build of Python: another build takes other instructions for the same work."""
    return sys.version


if __name__ == "__main__":
    sys.exit(main())
