"""Do what `lab.ranks` does, in forks of the test: a process that loads torch afresh takes seconds.

The process that forks keeps the store where the ranks find each other. It gets the answers that
`lab.ranks` returns.
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
    """Return a substitute for `Lab.ranks`: its ranks write their streams to the folder `journals`."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    def ranks(
        lab: Any, count: int, body: Callable[..., Any], *args: Any, timeout: float = 60.0
    ) -> list[Any]:
        # Port 0: a free port.
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        number = next(_NUMBERS)

        def be_rank(rank: int) -> list[Any] | None:
            from tuilab.engine import messages
            from tuilab.lab.group import call_in_group
            from tuilab.lab.lab import Lab
            from tuilab.lab.worker import begin
            from tuilab.record.journal.writer import Writer

            os.environ.update(
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                WORLD_SIZE=str(count),
                LOCAL_WORLD_SIZE=str(count),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(store.port),
                TORCHELASTIC_USE_AGENT_STORE="True",
                GLOO_SOCKET_IFNAME="lo",
            )
            begin(is_placed=False)
            writer = f"worker-forked-{number}"
            if rank:
                writer += f"-rank-{rank}"
            order = messages.WorkerOrder(
                run_dir=str(run_dir), writer=writer, source_dir=str(run_dir), quick=lab.is_quick
            )
            own = Lab(Writer(journals / f"{writer}.jsonl"), run_dir, line, order, "cpu")
            return call_in_group(body, own, args, timeout)

        forks = [_fork(be_rank, rank) for rank in range(count)]
        answers = [_read_answer(pid, pipe) for pid, pipe in forks]
        _raise_first_error(answers)
        values: list[Any] = answers[0]["value"]
        return values

    return ranks


def _raise_first_error(answers: list[dict[str, Any]]) -> None:
    """Raise the earliest error of a rank: other ranks may have failed because they waited for it."""
    failed = []
    for rank, answer in enumerate(answers):
        if "error" in answer:
            failed.append((answer["at"], rank, answer["error"]))
    if failed:
        _, rank, error = min(failed)
        raise ArmFailed(f"rank {rank}: {error}")


def _fork(be_rank: Callable[[int], Any], rank: int) -> tuple[int, int]:
    """Start a rank. Return its pid, and the end of the pipe that its answer comes through."""
    reading_end, writing_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing_end)
        return pid, reading_end
    signal.alarm(_MOST_S)
    answer: dict[str, Any]
    try:
        answer = {"value": be_rank(rank)}
    except BaseException as problem:
        traceback.print_exc(file=sys.stderr)
        answer = {"error": f"{type(problem).__name__}: {problem}", "at": time.monotonic()}
    with open(writing_end, "w") as pipe:
        pipe.write(json.dumps(answer) + "\n")
    os._exit(0)


def _read_answer(pid: int, pipe: int) -> dict[str, Any]:
    """Return the answer of a rank; its exit code as an error if it ended without one.

    A process that the rank has started may still have the pipe open, and is not waited for.
    """
    text = b""
    process = os.pidfd_open(pid)
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([pipe, process], [], [])
        if pipe not in ready:
            break
        part = os.read(pipe, 65536)
        if not part:
            break
        text += part
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(pipe)
    os.close(process)
    if not text:
        return {"error": f"exit code {code}", "at": time.monotonic()}
    answer: dict[str, Any] = json.loads(text)
    return answer
