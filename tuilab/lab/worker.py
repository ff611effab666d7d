"""The worker: a fresh interpreter that runs one scenario, or one arm of it, and ends.

It waits on its line for an order (it may be told to get ready meanwhile), records everything in a stream of its own, says
farewell and leaves. When its supervisor dies, the kernel ends it.
"""

import contextlib
import faulthandler
import gc
import importlib
import importlib.util
import inspect
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from tuilab.engine import messages, processes
from tuilab.engine.messages import Place, Ready, WarmUp, WorkerLine, WorkerOrder, WorkerResult
from tuilab.lab.command_prefix import has_ranks
from tuilab.lab.failures.failure import describe, exit_code_of, is_of_full_gpu, reason_of, text_of
from tuilab.lab.forked_processes import ForksEnd, end_servers, flush_prints, follow_to_death
from tuilab.probes import preload
from tuilab.probes.tree import WAITING
from tuilab.record import events, held_back_records
from tuilab.record.journal.writer import Writer
from tuilab.record.secrets import Hiding, cleaner
from tuilab.runs.store import cannot_write
from tuilab.storage.files import move_to_high_fd
from tuilab.text.display import plural

_PROFILERS = (
    "NSYS_PROFILING_SESSION_ID",
    "CUDA_INJECTION64_PATH",
)  # variables: one of CUDA's is in the process
_ORDERLY_EXIT_S = 50  # seconds
_LONGEST_CODE = 64  # bits: Python does not tell a number of any length
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # in which the user, or an arm, says how many
_SEED = 0
_NAME = Path("/proc/self/comm")
_MESSAGE_LIMIT = 2_000  # characters; one may take six bytes in a record, and a record has a limit


def main() -> None:
    """Take the order, run it, say farewell."""
    line = socket.socket(fileno=int(sys.argv[1]))
    _unbuffer_lines()
    order = _receive_order(line)
    if not isinstance(order, WorkerOrder):
        return  # the supervisor died or has no work: leave without a trace
    serve(order, WorkerLine(line))


def serve(order: WorkerOrder, line: WorkerLine) -> None:
    """Run what is ordered, say farewell on the line and end this process."""
    run_dir = Path(order.run_dir)
    place = order.place or Place("")
    hide = Hiding(cleaner(order.params, order.secrets))
    stream = run_dir / "journal" / f"{order.writer}.jsonl"
    try:
        faulthandler.enable(_open_fault_log(run_dir / f"fault-{order.writer}.log"))
        journal = Writer(stream, hide, ahead_ns=place.ahead_ns)
    except OSError as problem:
        error = f"the scenario was not started: {cannot_write(run_dir.parent, problem.strerror or str(problem))}"
        _leave(line, WorkerResult(error=error, rank=order.rank), 1)
    os.register_at_fork(after_in_child=follow_to_death(os.getpid(), threading.get_ident()))
    if order.place:
        journal.append(
            events.RankPlaced(rank=order.rank, node=place.node, clock_error_ns=place.error_ns)
        )
    farewell, code = _run(order, run_dir, journal, line)
    journal.sync()
    journal.append(events.ScenarioFinished(lost=journal.lost, trouble=journal.trouble))
    journal.sync()
    held_back_records.forget(run_dir, order.writer)
    if journal.lost:
        farewell, code = _farewell_of_loss(farewell, code, journal)
    if order.rank:  # what an arm returns is what rank 0 returns
        farewell = WorkerResult(
            error=farewell.error and f"rank {order.rank}: {farewell.error}", rank=order.rank
        )
    farewell.failed_ns = journal.now_ns() if order.place and farewell.error else 0
    _leave(line, farewell, code)


def _open_fault_log(path: Path) -> int:
    """Open what a crash is told to: its handler writes to a bare number, whatever file of the scenario has got it."""
    return move_to_high_fd(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    )


def _receive_order(line: socket.socket) -> messages.Message | None:
    """Wait for the order; a worker that was started ahead of it gets ready first."""
    message = messages.receive(line)
    if isinstance(message, WarmUp):
        with contextlib.ExitStack() as named:
            if not message.is_first:
                named.enter_context(waiting())
            try:
                take_mark = processes.open_mark()
                warm_up(message.modules, is_timed=message.is_timed)
                messages.send(line, Ready())
            except BaseException:  # half a torch fails otherwise than none: a worker that starts afresh is to say what is wrong
                os._exit(1)
            if message.is_first:
                named.enter_context(waiting())
            message = messages.receive(line)
        if isinstance(message, WorkerOrder):
            take_mark(Path(message.run_dir).name)
    return message


def _run(
    order: WorkerOrder, run_dir: Path, journal: Writer, line: WorkerLine
) -> tuple[WorkerResult, int]:
    from tuilab.errors import BoxLacks

    lab = None
    try:
        with ForksEnd(run_dir / "scenario.py"):
            module = load_scenario(
                run_dir / "scenario.py", order.source_dir
            )  # first: it may set what torch reads on loading
            from tuilab.lab.lab import Lab

            begin(
                is_placed=order.arm is not None
                and bool(order.arm.prefix)
                and not has_ranks(order.arm.prefix)
            )
            lab = Lab(journal, run_dir, line, order, _take_device(module, order))
            value = _call(module, lab, order)
        lab.close()
        line.check()
    except BoxLacks as lack:
        needs = text_of(lack)[:_MESSAGE_LIMIT]
        journal.append(events.BoxLacked(needs=needs))
        is_rank = order.arm is not None and has_ranks(
            order.arm.prefix
        )  # whose failure ends those that would wait for it
        return WorkerResult(error=needs) if order.arm else WorkerResult(lacks=needs), int(is_rank)
    except SystemExit as leaving:
        failed = describe(leaving, run_dir / "scenario.py", order.source_dir)
        farewell, code = farewell_of_exit(leaving, failed, journal)
        if lab:
            lab.tell_holdings_after_failure()
        return farewell, code
    except BaseException as problem:
        journal.append(describe(problem, run_dir / "scenario.py", order.source_dir))
        if lab:
            lab.tell_holdings_after_failure()
        if lab and is_of_full_gpu(problem):
            _keep_account_of_memory(lab, order.writer)
        return WorkerResult(error=reason_of(problem)), 1
    finally:
        if lab:
            lab.bring_over()  # after what failed is on record
    return WorkerResult(value=value), 0


def _take_device(module: ModuleType, order: WorkerOrder) -> str:
    """Return the device of the form for a scenario whose `run` does not take it: it asks `lab.device()` instead."""
    if "device" in inspect.signature(module.run).parameters:
        return "auto"
    return str(order.params.pop("device", "auto"))


def _call(module: ModuleType, lab: Any, order: WorkerOrder) -> Any:
    if order.arm is None:
        module.run(lab, **order.params)
        return None
    preload.check(order.arm.env.get("LD_PRELOAD", ""))
    body: Callable[..., Any] = getattr(module, order.arm.function)
    if order.arm.has_group:
        from tuilab.lab.group import call_in_group

        return call_in_group(body, lab, order.arm.args, order.arm.timeout_s)
    return body(lab, *order.arm.args)


def load_scenario(path: Path, source_dir: str) -> ModuleType:
    """Load a scenario file as the module `scenario`; its old neighbours can be imported, but shadow nothing."""
    sys.path += [source_dir, str(path.parent)]
    spec = importlib.util.spec_from_file_location("scenario", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scenario"] = module
    sys.dont_write_bytecode = True  # nothing but records belongs into a run folder
    spec.loader.exec_module(module)
    return module


def _keep_account_of_memory(lab: Any, writer: str) -> None:
    """Keep what torch knows of a GPU whose memory did not suffice, if that can be had."""
    from tuilab.lab.device.devices import memory_summary

    if text := memory_summary():
        with contextlib.suppress(
            OSError, ValueError
        ):  # no room on the disk either, or the scenario took the name
            lab.artifact(f"cuda-memory-{writer}.txt", text)


def farewell_of_exit(
    leaving: SystemExit, failed: events.ScenarioFailed, journal: Writer
) -> tuple[WorkerResult, int]:
    """Return what an exit amounts to; `failed` is recorded where its class is one of the scenario's own, which is a failure."""
    code = exit_code_of(leaving)
    if code == 0:
        return WorkerResult(), 0
    if type(leaving) is not SystemExit:
        journal.append(failed)
        return WorkerResult(error=reason_of(leaving)), code or 1
    called = text_of(leaving) if code is None or code.bit_length() > _LONGEST_CODE else code
    what = f"the scenario called sys.exit({called!r})"[:_MESSAGE_LIMIT]
    journal.append(events.ScenarioFailed(type="SystemExit", message=what, traceback=""))
    return WorkerResult(error=what[:300]), code or 1


def _farewell_of_loss(
    farewell: WorkerResult, code: int, journal: Writer
) -> tuple[WorkerResult, int]:
    """Tell that records are missing, beside what failed before."""
    error = (
        farewell.error
        or f"{plural(journal.lost, 'record')} could not be written: {journal.trouble}"
    )
    return WorkerResult(error=error, lost=journal.lost), code or 5


def _unbuffer_lines() -> None:
    """Have prints appear line by line although stdout is a pipe."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")


def _leave(line: WorkerLine, farewell: WorkerResult, code: int) -> NoReturn:
    """Say farewell and end at once: an orderly exit of torch takes a quarter of a second.

    A profiler in the process writes what it has in an orderly exit, so then there is one, and SIGALRM if it takes too long.
    """
    end_servers()
    try:
        line.send(farewell)
    except OSError:
        code = 1  # the journal tells that the line is closed
    except ValueError as problem:
        line.send(WorkerResult(error=f"the arm's return value cannot be passed on: {problem}"))
        code = 1
    flush_prints()
    if any(os.environ.get(name) for name in _PROFILERS):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        signal.alarm(_ORDERLY_EXIT_S)
        sys.exit(code & 0xFF)
    os._exit(code & 0xFF)


def begin(*, is_placed: bool) -> None:
    """Let torch use one thread, as with more a busy machine waits for itself, and seed every generator that is loaded.

    A process that its prefix (numactl, taskset) placed on cores keeps the threads that torch finds for it.
    """
    import random  # imported here, as torch: a worker that is started ahead loads them when it is told to get ready

    import torch

    if not is_placed and not any(os.environ.get(name) for name in _THREADS):
        torch.set_num_threads(1)
    torch.manual_seed(_SEED)
    random.seed(_SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(_SEED)


def warm_up(modules: Iterable[str], *, is_timed: bool = True) -> None:
    """Load the lab and what the scenario will import; it cannot tell, because its own imports would do the same."""
    thresholds = gc.get_threshold()
    gc.set_threshold(
        0
    )  # the collector would look through all that is being loaded, again and again, and find nothing
    for module in ["tuilab.lab.lab", *modules]:
        importlib.import_module(module)
    if is_timed:
        gc.collect()  # else it does so once more in the middle of what is then measured
    else:  # that takes a tenth of the whole: all is taken for old without a look
        gc.freeze()
        gc.unfreeze()
    gc.set_threshold(*thresholds)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Bear a name meanwhile that tells other users of the box, and our sampler, that this process only waits."""
    name = _call_yourself(WAITING.encode())
    yield
    _call_yourself(name)


def _call_yourself(name: bytes) -> bytes:
    """Change the name of this process, where the system lets it, and return the one before."""
    with contextlib.suppress(OSError):
        before = _NAME.read_bytes().removesuffix(b"\n")
        _NAME.write_bytes(name)
        return before
    return name


if __name__ == "__main__":
    main()
