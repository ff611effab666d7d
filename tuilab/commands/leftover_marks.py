"""Brings into the record what a worker that was killed had not read of its command's marks, and removes their folders.

    python -P -m tuilab.commands.leftover_marks RUN_DIR

Started by the supervisor, or by the sampler when that was killed, too; nobody else writes these streams any more.
"""

import shutil
import sys
from contextlib import closing, suppress
from pathlib import Path

from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.watched import Recorded, Watched
from tuilab.engine.messages import CommandOrder
from tuilab.record import events
from tuilab.record.journal.reader import Reader
from tuilab.record.journal.writer import Writer
from tuilab.record.secrets import Hiding
from tuilab.text.display import plural


def main() -> None:
    """Do so for each worker of a run that has left marks."""
    run_dir = Path(sys.argv[1])
    for marks in sorted(run_dir.glob("marks-*")):
        stream = run_dir / "journal" / f"{marks.name.removeprefix('marks-')}.jsonl"
        with suppress(
            OSError
        ):  # of an arm of a race there is no stream of its own: it has failed, and counts for nothing
            bring(marks, stream)
        shutil.rmtree(marks, ignore_errors=True)


def bring(marks: Path, stream: Path) -> int:
    """Record the rest of the marks in a stream, and return how many steps that were."""
    recorded = recorded_in(stream)
    journal = Writer(stream, Hiding(), goes_on=True)
    watched = Watched(CommandOrder(words=[]), marks, NumberScanner([]), journal, recorded=recorded)
    watched.take_rest()
    count = sum(lane.count for lane in watched.lanes.values()) - sum(
        recorded[lane.arm].steps for lane in watched.lanes.values() if lane.arm in recorded
    )
    sentence = (
        f"{plural(count, 'step')} were recorded after the end, because the watching process was"
        " killed"
    )
    if count:
        journal.append(events.TextShown(text=sentence, title="after the end"))
    journal.sync()
    return count


def recorded_in(stream: Path) -> dict[str, Recorded]:
    """Return by arm how many steps a stream has, and until when."""
    recorded: dict[str, Recorded] = {}
    with closing(Reader(stream)) as reader:
        for items in iter(reader.read, []):
            for item in items:
                if isinstance(item, events.Logged):
                    previous = recorded.get(item.a, Recorded())
                    is_step = any(
                        name.endswith("_ms") or name.startswith("backward root") for name in item.v
                    )
                    count = max(previous.steps, item.s + 1) if is_step else previous.steps
                    recorded[item.a] = Recorded(count, max(previous.until_ns, item.at))
    return recorded


if __name__ == "__main__":
    main()
