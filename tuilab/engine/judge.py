"""The judge: a short-lived process that reads a run's journal and reaches the verdicts.

    python -P -m tuilab.engine.judge RUN_DIR

It is loaded before it is wanted, and waits for a line on its stdin:

    judge    write them in a stream of its own
    done     the same, and note that its lesson was done
    look     write nothing; exit 10 while more repeats could say more of a claim
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
    """Judge the run whose folder is the first argument, if that is still wanted."""
    run_dir = Path(sys.argv[1])
    if not (wanted := sys.stdin.readline().strip()):
        return
    summary = read_run(run_dir)
    verdicts = judge(summary)
    if wanted == "look":
        is_over = all(
            can_end_run(summary.claims[verdict.claim_id].declared, verdict) for verdict in verdicts
        )
        raise SystemExit(0 if is_over else UNDECIDED)
    told: list[Event] = [*verdicts]
    if wanted == "done":
        for verdict in verdicts:
            verdict_reached(summary, "judge", verdict)
        if why_not := lesson_score.note(summary, run_dir):
            told.append(Unavailable(what="the score of lessons", reason=why_not))
    if told:
        _write(run_dir, told)


def _write(run_dir: Path, records: Sequence[Event]) -> None:
    journal = Writer(run_dir / "journal" / "judge.jsonl")
    for record in records:
        journal.append(record)
    journal.sync()
    if journal.lost:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
