"""The judge: a short-lived process that reads a run's journal, reaches the verdicts, and writes them in a stream of its own."""

import sys
from pathlib import Path

from tuilab.journal import Writer
from tuilab.verdict import judge
from tuilab.watch import read_run


def main() -> None:
    """Judge the run whose folder is the one argument."""
    run_dir = Path(sys.argv[1])
    verdicts = judge(read_run(run_dir))
    if not verdicts:
        return
    journal = Writer(run_dir / "journal" / "judge.jsonl")
    for verdict in verdicts:
        journal.append(verdict)
    journal.sync()
    if journal.lost:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
