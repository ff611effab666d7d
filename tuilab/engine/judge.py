"""The judge: a short-lived process that computes the verdicts of a run from its journal.

    python -P -m tuilab.engine.judge RUN_DIR

It may be started in advance, and waits for a line on stdin:

    judge    write the verdicts into a stream of their own
    done     the same, and record that the lesson was done
    look     write nothing; exit with 10 if more repeats could decide a claim
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tuilab.engine.messages import UNDECIDED
from tuilab.judging.interim_analyses import can_end_run
from tuilab.judging.judge_run import judge
from tuilab.record.events import Event, Unavailable
from tuilab.record.folding.fold_claims import verdict_reached
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import read_run
from tuilab.runs import lesson_score


def main() -> None:
    """Judge the run in the folder that is the first argument, unless stdin is closed or empty.

    Raises SystemExit with 1 if a verdict could not be written. For a `look`, the code is 0 if all
    claims are decided, else UNDECIDED.
    """
    run_dir = Path(sys.argv[1])
    request = sys.stdin.readline().strip()
    if not request:
        return
    summary = read_run(run_dir)
    verdicts = judge(summary)
    if request == "look":
        is_decided = all(
            can_end_run(summary.claims[verdict.claim_id].declared, verdict) for verdict in verdicts
        )
        raise SystemExit(0 if is_decided else UNDECIDED)
    records: list[Event] = [*verdicts]
    if request == "done":
        for verdict in verdicts:
            verdict_reached(summary, "judge", verdict)
        reason = lesson_score.note(summary, run_dir)
        if reason:
            records.append(Unavailable(what="the score of lessons", reason=reason))
    if records:
        _write(run_dir, records)


def _write(run_dir: Path, records: Sequence[Event]) -> None:
    """Write the records into the stream of the judge; exit with 1 if one of them was lost."""
    journal = Writer(run_dir / "journal" / "judge.jsonl")
    for record in records:
        journal.append(record)
    journal.sync()
    if journal.lost:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
