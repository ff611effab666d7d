"""Runs of lessons for tests, from a process that waits with torch loaded and forks for each: loading takes most of a quick run.

The fork opens the run, forks once more for its worker, which does all that a worker does from its order on, and judges it: what
a supervisor is not needed for. A lesson that starts arms in processes of their own needs one, and is run as a user does; ranks
are forks again. With `--quick` races are next to nothing.
"""

import json
import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from tests.forked_ranks import ranks_in
from tests.lessons import short_races

if TYPE_CHECKING:
    from tuilab.engine import messages
    from tuilab.engine.create_run import OpenRun
    from tuilab.engine.messages import RunOrder

ARMS = r"lab\.arm\("  # what a supervisor starts


def is_without_arms(path: str, *, ranks: bool = False) -> bool:
    """Say whether a lesson starts no arms, and no `ranks` either, if these are to be real ones."""
    text = Path(path).read_text()
    return re.search(ARMS, text) is None and not (ranks and "lab.ranks(" in text)


def load() -> None:
    import torch._dynamo  # noqa: F401  (the first optimizer of a process loads it, and that takes as long as torch)


def main() -> None:
    """Do what `tuilab run NAME... --headless --json --quiet` does, and end as it does."""
    from tuilab.cli.exit_codes import exit_code_of_run
    from tuilab.engine.create_run import open_run
    from tuilab.judging.judge_run import judge
    from tuilab.record.events import StateChanged
    from tuilab.record.journal.writer import Writer
    from tuilab.record.live_run import read_run
    from tuilab.record.states import RunState
    from tuilab.reports.result import document, results_of

    order = order_of(sys.argv[2:])
    opened = open_run(order)
    farewell = work(order, opened)
    state = RunState.FAILED if farewell.error else RunState.SUCCEEDED
    opened.journal.append(StateChanged(state=state, reason=farewell.error or farewell.lacks))
    verdicts = Writer(opened.run_dir / "journal" / "judge.jsonl")
    for verdict in judge(read_run(opened.run_dir)):
        verdicts.append(verdict)
    summary = read_run(opened.run_dir)
    code = exit_code_of_run(summary, state)
    print(json.dumps(document(results_of([(summary, state, opened.run_dir)], code))), flush=True)
    os._exit(code)


def order_of(words: list[str]) -> "RunOrder":
    """Return the order that the words of a command line come to."""
    from tuilab.cli.verbs.run import command, values_of
    from tuilab.engine import launch

    context = command.make_context("run", words)
    (scenario,) = context.meta["tuilab.chosen"]
    given = values_of(context, context.params)
    root = Path(os.environ["TUILAB_ROOT"])
    return launch.order(
        scenario, given, root=root, repeats=1, is_quick=context.params["quick"], argv=words
    )


def work(order: "RunOrder", opened: "OpenRun") -> "messages.WorkerResult":
    """Let a worker do what is ordered, and return how it ended."""
    from tuilab.engine import messages
    from tuilab.engine.spawn import socket_pair
    from tuilab.lab import worker
    from tuilab.lab.lab import Lab
    from tuilab.record.events import WorkerExited, WorkerStarted

    run_dir = opened.run_dir
    ours, theirs = socket_pair()
    if not (pid := os.fork()):
        ours.close()
        for number, name in ((1, "stdout.log"), (2, "stderr.log")):
            os.dup2(os.open(run_dir / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        source_dir = str(Path(order.path).parent)
        told = messages.WorkerOrder(
            run_dir=str(run_dir),
            writer="worker-0",
            source_dir=source_dir,
            params=order.params,
            quick=order.quick,
        )
        line = messages.WorkerLine(theirs)
        as_forks = patch.object(Lab, "ranks", ranks_in(run_dir, run_dir / "journal", line))
        with as_forks, short_races() if order.quick else nullcontext():
            worker.serve(told, line)
    theirs.close()
    opened.journal.append(WorkerStarted(writer="worker-0", pid=pid, start=1, repeat=0))
    farewell = messages.receive(ours)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    opened.journal.append(WorkerExited(writer="worker-0", code=code))
    assert isinstance(farewell, messages.WorkerResult), (run_dir / "stderr.log").read_text()
    return farewell
