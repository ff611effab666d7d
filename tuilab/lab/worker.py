"""The worker: a new interpreter that runs one scenario, or one arm of it, and ends.

It waits on a socket for its order (it may be told to load modules first), records everything in a
stream of its own, sends its result and exits. When its supervisor dies, the kernel kills it.
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

_PROFILERS = ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH")  # set by profilers of CUDA
_ORDERLY_EXIT_S = 50  # seconds
_LONGEST_CODE = 64  # bits: Python refuses to print very long numbers
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # set by the user or an arm
_SEED = 0  # of torch, random and numpy, in each worker
_NAME = Path("/proc/self/comm")
_MESSAGE_LIMIT = 2_000  # characters, each of up to six bytes in a record


def main() -> None:
    """Receive the order and run it; return without an order if the supervisor has no work."""
    line = socket.socket(fileno=int(sys.argv[1]))
    _unbuffer_lines()
    order = _receive_order(line)
    if not isinstance(order, WorkerOrder):
        return  # the supervisor died or has no work
    serve(order, WorkerLine(line))


def serve(order: WorkerOrder, line: WorkerLine) -> None:
    """Run the order, send the result, and end this process.

    If nothing can be recorded, the scenario is not started, and the result says so.
    """
    run_dir = Path(order.run_dir)
    place = order.place or Place("")
    hide = Hiding(cleaner(order.params, order.secrets))
    stream = run_dir / "journal" / f"{order.writer}.jsonl"
    try:
        faulthandler.enable(_open_fault_log(run_dir / f"fault-{order.writer}.log"))
        journal = Writer(stream, hide, ahead_ns=place.ahead_ns)
    except OSError as problem:
        reason = cannot_write(run_dir.parent, problem.strerror or str(problem))
        error = f"the scenario was not started: {reason}"
        _leave(line, WorkerResult(error=error, rank=order.rank), 1)
    os.register_at_fork(after_in_child=follow_to_death(os.getpid(), threading.get_ident()))
    if order.place:
        journal.append(
            events.RankPlaced(rank=order.rank, node=place.node, clock_error_ns=place.error_ns)
        )
    result, code = _run(order, run_dir, journal, line)
    journal.sync()
    journal.append(events.ScenarioFinished(lost=journal.lost, trouble=journal.trouble))
    journal.sync()
    held_back_records.forget(run_dir, order.writer)
    if journal.lost:
        result, code = _result_with_loss(result, code, journal)
    if order.rank:  # the value of an arm is that of rank 0
        error = f"rank {order.rank}: {result.error}" if result.error else ""
        result = WorkerResult(error=error, rank=order.rank)
    if order.place and result.error:
        result.failed_ns = journal.now_ns()
    _leave(line, result, code)


def _open_fault_log(path: Path) -> int:
    """Open the log of the fault handler, with a descriptor that the scenario does not use."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return move_to_high_fd(os.open(path, flags, 0o600))


def _receive_order(line: socket.socket) -> messages.Message | None:
    """Wait for the order; a worker that was started in advance loads its modules first.

    Returns None if the supervisor closed the socket. A worker whose modules cannot be loaded ends.
    """
    message = messages.receive(line)
    if isinstance(message, WarmUp):
        with contextlib.ExitStack() as named:
            if not message.is_first:
                named.enter_context(waiting())
            try:
                take_mark = processes.open_mark()
                warm_up(message.modules, is_timed=message.is_timed)
                messages.send(line, Ready())
            except BaseException:  # torch is half loaded: a new worker will report the real error
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
    """Run the scenario or the arm of an order; return the result and the exit code.

    An arm is one variant of a comparison. A failure is recorded, then values that are still on a
    GPU. A machine that lacks something is no failure of a scenario, but one of an arm.
    """
    from tuilab.errors import BoxLacks

    lab = None
    try:
        with ForksEnd(run_dir / "scenario.py"):
            # First, because it may set variables that torch reads when it is loaded.
            module = load_scenario(run_dir / "scenario.py", order.source_dir)
            from tuilab.lab.lab import Lab

            prefix = order.arm.prefix if order.arm else []
            begin(is_placed=bool(prefix) and not has_ranks(prefix))
            lab = Lab(journal, run_dir, line, order, _take_device(module, order))
            value = _call(module, lab, order)
        lab.close()
        line.check()
    except BoxLacks as lack:
        needs = text_of(lack)[:_MESSAGE_LIMIT]
        journal.append(events.BoxLacked(needs=needs))
        if order.arm is None:
            return WorkerResult(lacks=needs), 0
        # Exit code 1 of a rank ends the other ranks, which would wait for it.
        return WorkerResult(error=needs), int(has_ranks(order.arm.prefix))
    except SystemExit as leaving:
        failed = describe(leaving, run_dir / "scenario.py", order.source_dir)
        result, code = result_of_exit(leaving, failed, journal)
        if lab:
            lab.tell_holdings_after_failure()
        return result, code
    except BaseException as problem:
        journal.append(describe(problem, run_dir / "scenario.py", order.source_dir))
        if lab:
            lab.tell_holdings_after_failure()
        if lab and is_of_full_gpu(problem):
            _keep_memory_summary(lab, order.writer)
        return WorkerResult(error=reason_of(problem)), 1
    finally:
        if lab:
            lab.bring_over()  # after the failure is recorded
    return WorkerResult(value=value), 0


def _take_device(module: ModuleType, order: WorkerOrder) -> str:
    """Remove and return the device among the parameters; auto if `run` takes it as a parameter."""
    if "device" in inspect.signature(module.run).parameters:
        return "auto"
    return str(order.params.pop("device", "auto"))


def _call(module: ModuleType, lab: Any, order: WorkerOrder) -> Any:
    """Call `run`, or the function of an arm; return the value of the arm, None for `run`."""
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
    """Load a scenario file as the module `scenario`; it can import files of its original folder.

    The file is executed, so that any error of it is raised here.
    """
    sys.path += [source_dir, str(path.parent)]
    spec = importlib.util.spec_from_file_location("scenario", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scenario"] = module
    sys.dont_write_bytecode = True  # only records belong into the folder of a run
    spec.loader.exec_module(module)
    return module


def _keep_memory_summary(lab: Any, writer: str) -> None:
    """Keep the memory summary of torch as an artifact, if there is one."""
    from tuilab.lab.device.devices import memory_summary

    summary = memory_summary()
    if summary:
        with contextlib.suppress(OSError, ValueError):  # the disk is full, or the name is taken
            lab.artifact(f"cuda-memory-{writer}.txt", summary)


def result_of_exit(
    leaving: SystemExit, failed: events.ScenarioFailed, journal: Writer
) -> tuple[WorkerResult, int]:
    """Return result and exit code for SystemExit.

    Exit code 0 is a success. Other codes are recorded as a failure; for a subclass of the scenario,
    `failed` is the record.
    """
    code = exit_code_of(leaving)
    if code == 0:
        return WorkerResult(), 0
    if type(leaving) is not SystemExit:
        journal.append(failed)
        return WorkerResult(error=reason_of(leaving)), code or 1
    called: object = code
    if code is None or code.bit_length() > _LONGEST_CODE:
        called = text_of(leaving)
    message = f"the scenario called sys.exit({called!r})"[:_MESSAGE_LIMIT]
    journal.append(events.ScenarioFailed(type="SystemExit", message=message, traceback=""))
    return WorkerResult(error=message[:300]), code or 1


def _result_with_loss(result: WorkerResult, code: int, journal: Writer) -> tuple[WorkerResult, int]:
    """Return a result that also says that records are missing; an earlier error stays."""
    error = result.error
    if not error:
        lost = plural(journal.lost, "record")
        error = f"{lost} could not be written: {journal.trouble}"
    return WorkerResult(error=error, lost=journal.lost), code or 5


def _unbuffer_lines() -> None:
    """Flush stdout and stderr after each line, although they are pipes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")


def _leave(line: WorkerLine, result: WorkerResult, code: int) -> NoReturn:
    """Send the result and end at once: a normal exit of torch takes a quarter of a second.

    If the result cannot be sent, the exit code is 1. A profiler writes its data in a normal exit,
    so with one there is a normal exit, which SIGALRM ends if it takes too long.
    """
    end_servers()
    try:
        line.send(result)
    except OSError:
        code = 1  # the journal says that the socket is closed
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
    """Set torch to one thread, and set all seeds.

    The threads of a busy machine would wait for each other. A process whose prefix (numactl,
    taskset) places it on cores keeps the threads that torch chooses.
    """
    # Imported here, because a worker that is started in advance loads them on request.
    import random

    import torch

    if not is_placed and not any(os.environ.get(name) for name in _THREADS):
        torch.set_num_threads(1)
    torch.manual_seed(_SEED)
    random.seed(_SEED)
    numpy = sys.modules.get("numpy")
    if numpy:
        numpy.random.seed(_SEED)


def warm_up(modules: Iterable[str], *, is_timed: bool = True) -> None:
    """Load the lab and the first imports of the scenario, with the same effect as if it did so."""
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # the collector would search everything that is loaded, and find nothing
    for module in ["tuilab.lab.lab", *modules]:
        importlib.import_module(module)
    if is_timed:
        gc.collect()  # now, so that it does not happen during a measurement
    else:  # a collection would take a tenth of the time, so all objects are declared old instead
        gc.freeze()
        gc.unfreeze()
    gc.set_threshold(*thresholds)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Rename this process in a `with` block, so that the sampler sees that it only waits."""
    name = _rename_process(WAITING.encode())
    try:
        yield
    finally:
        _rename_process(name)


def _rename_process(name: bytes) -> bytes:
    """Change the name of this process if the system permits it, and return the previous one.

    If the previous name cannot be read, the name stays, and the new one is returned.
    """
    try:
        previous = _NAME.read_bytes().removesuffix(b"\n")
    except OSError:
        return name
    with contextlib.suppress(OSError):
        _NAME.write_bytes(name)
    return previous


if __name__ == "__main__":
    main()
