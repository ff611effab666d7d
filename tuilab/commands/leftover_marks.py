"""Record the marks of a command that a killed worker did not read, and remove their folders.

    python -P -m tuilab.commands.leftover_marks RUN_DIR

A mark is an event, such as a step, that the watcher in a process writes to a file. The supervisor
starts this program. If the supervisor was killed as well, the sampler starts it. No other process
writes into these streams any more.
"""

import shutil
import sys
from contextlib import closing, suppress
from pathlib import Path

from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.step_sentences import ROOT
from tuilab.commands.watched import Recorded, Watched
from tuilab.engine.messages import CommandOrder
from tuilab.record import events
from tuilab.record.journal.reader import Reader
from tuilab.record.journal.writer import Writer
from tuilab.record.secrets import Hiding
from tuilab.text.display import plural


def main() -> None:
    """Record the leftover marks of each worker of a run, and remove their folders."""
    run_dir = Path(sys.argv[1])
    for marks in sorted(run_dir.glob("marks-*")):
        stream = run_dir / "journal" / f"{marks.name.removeprefix('marks-')}.jsonl"
        # A failed arm of a race has no stream, and its marks count for nothing.
        with suppress(OSError):
            record_rest(marks, stream)
        shutil.rmtree(marks, ignore_errors=True)


def record_rest(marks: Path, stream: Path) -> None:
    """Append to a stream the marks that the killed worker had not read.

    `marks` is the folder of the marks of the command. If they add steps, a record says how many.
    OSError if there is no stream.
    """
    recorded = read_recorded(stream)
    journal = Writer(stream, Hiding(), goes_on=True)
    no_command = CommandOrder(words=[])  # it has ended, and nothing more is read of its output
    watched = Watched(no_command, marks, NumberScanner([]), journal, recorded=recorded)
    watched.take_rest()
    count = 0
    # A lane has the steps of one process. It begins at the steps that the stream already has.
    for lane in watched.lanes.values():
        count += lane.count
        if lane.arm in recorded:
            count -= recorded[lane.arm].steps
    if count:
        steps = f"{plural(count, 'step')} were recorded after the end"
        sentence = f"{steps}, because the watching process was killed"
        journal.append(events.TextShown(text=sentence, title="after the end"))
    journal.sync()


def read_recorded(stream: Path) -> dict[str, Recorded]:
    """Return the number of recorded steps of each arm, and the time of its latest record.

    An arm is here the label of the curves of one process.
    """
    recorded: dict[str, Recorded] = {}
    with closing(Reader(stream)) as reader:
        while True:
            items = reader.read()
            if not items:
                return recorded
            for item in items:
                if isinstance(item, events.Logged | events.BlockLogged):
                    earlier = recorded.get(item.a, Recorded())
                    recorded[item.a] = _add(earlier, item)


def _add(recorded: Recorded, record: events.Logged | events.BlockLogged) -> Recorded:
    steps = recorded.steps
    if isinstance(record, events.BlockLogged):
        steps = max(steps, record.s + record.steps)
    elif any(_is_of_step(name) for name in record.v):
        steps = max(steps, record.s + 1)
    return Recorded(steps, max(recorded.until_ns, record.at))


def _is_of_step(curve: str) -> bool:
    """Say whether a curve has a point for each step."""
    return curve.endswith("_ms") or curve.startswith(ROOT)


if __name__ == "__main__":
    main()
