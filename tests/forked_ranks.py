"""What `lab.ranks` does, in forks of the process of the test: two that load torch afresh take seconds, two forks none.

The process that forks keeps the store where the ranks find each other; to it they tell what `lab.ranks` returns.
"""

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from itertools import count as counted
from pathlib import Path
from typing import Any

from tuilab.lab.arms import ArmFailed

Ranks = Callable[..., list[Any]]
_NUMBERS = counted(1)
_MOST_S = 60  # a rank that waits for one that has failed ends then


def ranks_in(run_dir: Path, journals: Path, line: Any) -> Ranks:
    """Return what stands in for `Lab.ranks` in a run: its ranks write their streams to the folder `journals`."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    def ranks(
        lab: Any, count: int, body: Callable[..., Any], *args: Any, timeout: float = 60.0
    ) -> list[Any]:
        store = TCPStore(
            "127.0.0.1", 0, is_master=True, wait_for_workers=False
        )  # at a port that is free
        number = next(_NUMBERS)

        def be_rank(rank: int) -> list[Any] | None:
            from tuilab.engine import messages
            from tuilab.lab.group import call_in_group
            from tuilab.lab.lab import Lab
            from tuilab.lab.worker import begin
            from tuilab.record.journal.writer import Writer

            place = {
                "RANK": rank,
                "LOCAL_RANK": rank,
                "WORLD_SIZE": count,
                "LOCAL_WORLD_SIZE": count,
                "MASTER_PORT": store.port,
            }
            os.environ.update({name: str(value) for name, value in place.items()})
            os.environ.update(
                MASTER_ADDR="127.0.0.1",
                TORCHELASTIC_USE_AGENT_STORE="True",
                GLOO_SOCKET_IFNAME="lo",
            )
            begin(is_placed=False)
            writer = f"worker-forked-{number}" + (f"-rank-{rank}" if rank else "")
            order = messages.WorkerOrder(
                run_dir=str(run_dir), writer=writer, source_dir=str(run_dir), quick=lab.is_quick
            )
            own = Lab(Writer(journals / f"{writer}.jsonl"), run_dir, line, order, "cpu")
            return call_in_group(body, own, args, timeout)

        ends = [_fork(be_rank, rank) for rank in range(count)]
        told = [_told_by(pid, end) for pid, end in ends]
        failed = [
            (answer["at"], rank, answer["error"])
            for rank, answer in enumerate(told)
            if "error" in answer
        ]
        if failed:
            _, rank, error = min(failed)  # it can be why others failed, which waited for it
            raise ArmFailed(f"rank {rank}: {error}")
        found: list[Any] = told[0]["value"]
        return found

    return ranks


def _fork(be_rank: Callable[[int], Any], rank: int) -> tuple[int, int]:
    end, other = os.pipe()
    if pid := os.fork():
        os.close(other)
        return pid, end
    signal.alarm(_MOST_S)
    answer: dict[str, Any]
    try:
        answer = {"value": be_rank(rank)}
    except BaseException as problem:
        traceback.print_exc(file=sys.stderr)
        answer = {"error": f"{type(problem).__name__}: {problem}", "at": time.monotonic()}
    with open(other, "w") as line:
        line.write(json.dumps(answer) + "\n")
    os._exit(0)


def _told_by(pid: int, end: int) -> dict[str, Any]:
    """Return what a rank answered; when it is gone without an answer, how: whoever else may hold its pipe is not waited for."""
    text, gone = b"", os.pidfd_open(pid)
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([end, gone], [], [])
        if end in ready and (part := os.read(end, 65536)):
            text += part
        else:
            break
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(end)
    os.close(gone)
    answer: dict[str, Any] = (
        json.loads(text) if text else {"error": f"exit code {code}", "at": time.monotonic()}
    )
    return answer
