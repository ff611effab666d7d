"""The supervisor: one detached process per run that owns its life, from the first record to the last.

It starts the workers, passes arms between them, keeps what they print, stops them when asked or when time is up, ends
whatever they leave behind, and writes down what it saw. It does no slow work, so that it is always there to stop a run.

    SIGTERM   stop in order: SIGTERM to every process of the run, a grace, SIGKILL
    SIGINT    stop at once: SIGKILL
"""

import contextlib
import hashlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from tuilab import __version__, events, orders, processes, store
from tuilab.capture import Capture
from tuilab.crew import Crew
from tuilab.errors import CannotRecord, TuilabError, UsageError
from tuilab.files import open_regular
from tuilab.journal import Writer
from tuilab.orders import ArmOrder, ArmReply, Receipt, RunOrder, WorkerOrder
from tuilab.spawn import Child, spawn_judge, spawn_sampler, spawn_worker
from tuilab.text import show

GRACE_S = 3.0
SAMPLER_SILENCE_S = 10.0
SAMPLER_STARTS = 4  # the first and three more
JUDGE_PATIENCE_S = 60.0
FAULT_LIMIT = 4096  # bytes
REASON_LIMIT = 1000  # characters
_DISMISSED = "dismissed"


class Supervisor:
    """Runs one order to its end."""

    def __init__(self, order: RunOrder, run_dir: Path) -> None:
        self.order = order
        self.run_dir = run_dir
        self.journal = Writer(run_dir / "journal" / "supervisor.jsonl")
        self._outputs = {1: Capture(run_dir / "stdout.log"), 2: Capture(run_dir / "stderr.log")}
        self._crew = Crew(self._outputs, self._heed_signal, self._start_arm, self._note_death)
        self._began = time.monotonic()
        self._workers_started = 0
        self._sampler: Child | None = None
        self._samplers_started = 0
        self._deadline = time.monotonic() + order.timeout_s if order.timeout_s else None
        self._stop: tuple[str, str] | None = None  # the state and reason that the run will end in
        self._is_hurried = False

    def run(self) -> None:
        """Run the order and write down how it ended."""
        self._enter("starting")
        self._start_sampler()
        state, reason = self._run_repeats()
        if self.journal.is_in_place():
            self._judge()
        self._end_sampler()
        leftovers = self._end(spare=set())
        for capture in self._outputs.values():
            self.journal.append(capture.report())
        if leftovers:
            state, reason = "unkillable", "could not be ended: " + ", ".join(leftovers)
        self._enter(state, reason)

    # ---- workers and arms

    def _run_repeats(self) -> tuple[str, str]:
        longest_s = 0.0
        for repeat in range(self.order.repeats):
            began = time.monotonic()
            state, reason = self._run_repeat(repeat)
            if state != "succeeded":
                return state, reason
            longest_s = max(longest_s, time.monotonic() - began)
            if reason := self._is_enough(repeat + 1, longest_s):
                return "succeeded", reason
        return "succeeded", ""

    def _run_repeat(self, repeat: int) -> tuple[str, str]:
        try:
            worker = self._start_worker(repeat)
        except OSError as problem:
            return "failed", f"cannot start a worker process: {problem.strerror}"
        if repeat == 0:
            self._enter("running")
        while not worker.is_over:
            self._turn(0.5)
            if self._stop and self._end_others(self._sampler_pid()):
                return self._stop  # something cannot be ended; `run` names it
        self._end_others(self._sampler_pid())
        return self._stop or _outcome(worker)

    def _is_enough(self, repeats: int, longest_s: float) -> str:
        """Return why no further repeat is run, or nothing: the claims are decided at a planned look, or the budget is spent."""
        if repeats >= self.order.repeats:
            return ""
        if repeats in self.order.looks and self._judge("--look") == 0:
            return f"decided after {repeats} repeats"
        spent_s = time.monotonic() - self._began
        if self.order.budget_s and spent_s + longest_s > self.order.budget_s:
            return f"the budget of {self.order.budget_s:g} s is spent after {repeats} repeats"
        return ""

    def _start_worker(self, repeat: int, arm: ArmOrder | None = None, asker: Child | None = None) -> Child:
        child = spawn_worker(f"worker-{self._workers_started}", self.run_dir.name, arm)
        self._workers_started += 1
        child.repeat, child.asker = repeat, asker
        child.deadline = time.monotonic() + arm.timeout_s if arm else None
        self._crew.add(child)
        self._note_start(child, arm)
        assert child.line is not None
        with contextlib.suppress(OSError):  # it may have died already; its exit tells
            orders.send(child.line, self._worker_order(child, arm))
        return child

    def _note_start(self, child: Child, arm: ArmOrder | None) -> None:
        started = events.WorkerStarted(
            writer=child.writer, pid=child.pid, start=processes.start_time(child.pid) or 0, repeat=child.repeat
        )
        if arm:
            started.arm, started.env, started.prefix = arm.arm, arm.env, arm.prefix
        self.journal.append(started)

    def _worker_order(self, child: Child, arm: ArmOrder | None) -> WorkerOrder:
        return WorkerOrder(
            run_dir=str(self.run_dir),
            writer=child.writer,
            source_dir=str(Path(self.order.path).parent),
            params=self.order.params,
            repeat=child.repeat,
            repeats=self.order.repeats,
            quick=self.order.quick,
            arm=arm,
        )

    def _start_arm(self, arm: ArmOrder, asker: Child) -> None:
        try:
            self._start_worker(asker.repeat, arm, asker)
        except (OSError, ValueError) as problem:
            command = arm.prefix[0] if arm.prefix else sys.executable
            why = getattr(problem, "strerror", None) or str(problem)
            self._answer(asker, ArmReply(writer="", elapsed_s=0.0, error=f"cannot start {command[:200]}: {why}"))

    def _note_death(self, child: Child) -> None:
        if child is self._sampler:
            self._note_sampler_death(child)
        elif child.writer != "judge":
            exited = events.WorkerExited(writer=child.writer, code=child.code, signal=child.signal, reason=child.how_it_ended())
            exited.fault = self._fault_of(child)
            exited.lost = max(child.farewell.lost, 0) if child.farewell else 0
            self.journal.append(exited)
            if child.asker is not None:
                self._finish_arm(child, child.asker)

    def _fault_of(self, worker: Child) -> str:
        """Return what the fault handler wrote when the worker crashed; remove the file when it wrote nothing."""
        log = self.run_dir / f"fault-{worker.writer}.log"
        with contextlib.suppress(OSError), open(open_regular(log), "rb") as file:
            if text := file.read(FAULT_LIMIT).decode(errors="replace"):
                return text
            log.unlink()
        return ""

    def _finish_arm(self, arm: Child, asker: Child) -> None:
        """Clear away what an arm left behind, so that it does not disturb the next, and tell the worker that waits."""
        self._end_others(set(self._crew.children))
        reply = ArmReply(writer=arm.writer, elapsed_s=time.monotonic() - arm.started)
        state, reason = _outcome(arm)
        if state == "succeeded" and arm.farewell is not None:
            reply.value = arm.farewell.value
        else:
            reply.error = reason
        self._answer(asker, reply)

    def _answer(self, asker: Child, reply: ArmReply) -> None:
        if asker.line is not None:
            with contextlib.suppress(OSError):
                orders.send(asker.line, reply)

    # ---- the sampler and the judge

    def _start_sampler(self) -> None:
        stream = f"sampler-{self._samplers_started}" if self._samplers_started else "sampler"
        self._samplers_started += 1
        try:
            self._sampler = spawn_sampler(self.run_dir, stream)
        except OSError as problem:
            self.journal.append(events.SamplerEnded(reason=f"not started: {problem.strerror}", restarts=SAMPLER_STARTS))
        else:
            self._crew.add(self._sampler)

    def _note_sampler_death(self, child: Child) -> None:
        self._sampler = None
        if child.reason == _DISMISSED:
            return
        self.journal.append(events.SamplerEnded(reason=child.how_it_ended(), restarts=self._samplers_started - 1))
        if self._samplers_started < SAMPLER_STARTS and not self._stop:
            self._start_sampler()

    def _sampler_pid(self) -> set[int]:
        return {self._sampler.pid} if self._sampler else set()

    def _end_sampler(self) -> None:
        if self._sampler:
            self._sampler.kill(_DISMISSED)
            while self._sampler:
                self._crew.turn(0.1)

    def _judge(self, *flags: str) -> int | None:
        """Have the verdicts reached by a process of its own: statistics are slow to load. Returns its exit code."""
        try:
            child = spawn_judge(self.run_dir, *flags)
        except OSError as problem:
            self.journal.append(events.Unavailable(what="verdicts", reason=f"cannot start the judge: {problem.strerror}"))
            return None
        child.deadline = child.started + JUDGE_PATIENCE_S
        self._crew.add(child)
        while not child.is_over:
            self._crew.turn(0.1)
        if child.code not in (0, orders.UNDECIDED):
            self.journal.append(events.Unavailable(what="verdicts", reason=f"the judge: {child.how_it_ended()}"))
        return child.code

    # ---- time and stopping

    def _turn(self, patience_s: float) -> None:
        self._crew.turn(patience_s)
        now = time.monotonic()
        if self._deadline and now > self._deadline:
            self._stop_run("failed", f"timed out after {self.order.timeout_s:g} s")
        if not self.journal.is_in_place():
            self._stop_run("failed", "the folder of the run was removed or replaced")
        if self._sampler and now - self._sampler.last_heard > SAMPLER_SILENCE_S and not self._sampler.reason:
            self._sampler.kill("stopped answering")

    def _heed_signal(self, number: int) -> None:
        if number == signal.SIGTERM:
            self._stop_run("stopped", "stop requested")
        elif number == signal.SIGINT:
            self._is_hurried = True
            self._stop_run("stopped", "stop at once requested")

    def _stop_run(self, state: str, reason: str) -> None:
        if self._stop is None:
            self._stop = state, reason
            self.journal.append(events.StopRequested(how=reason))
            self._enter("stopping", reason)

    def _end_others(self, spare: set[int]) -> list[str]:
        """Write down what a worker left behind and end it, but not `spare`; return the names of those that would not go."""
        others = processes.descendants(os.getpid(), {*spare, *self._crew.children})
        left = [pid for pid in others if processes.start_time(pid) is not None]
        if left and not self._stop:
            names = [processes.name_of(pid) for pid in left[:20]]
            self.journal.append(events.LeftoversEnded(processes=names, count=len(left)))
        return self._end(spare)

    def _end(self, spare: set[int]) -> list[str]:
        def tend() -> bool:
            self._crew.turn(0)
            return self._is_hurried

        return processes.end_descendants(GRACE_S, spare, tend)

    def _enter(self, state: str, reason: str = "") -> None:
        """Write a state; keep trying while the disk is full, because a run without an end is a lie."""
        for _ in range(20):
            if self.journal.append(events.StateChanged(state=state, reason=reason)):
                break
            time.sleep(0.25)
        if not self.journal.sync():
            self.journal.append(events.Unavailable(what="safe storage", reason=self.journal.trouble))


def _outcome(worker: Child) -> tuple[str, str]:
    """Return the state and reason that a worker's end amounts to; success needs an observed exit code 0."""
    if worker.signal:
        return "failed" if worker.reason else "killed", worker.how_it_ended()
    if worker.farewell is None:
        return "failed", f"the worker ended with exit code {worker.code} before run() returned"
    if worker.farewell.error:
        return "failed", worker.farewell.error[:REASON_LIMIT]
    if worker.code:
        return "failed", f"the worker ended with exit code {worker.code} after run() returned"
    return "succeeded", ""


def open_run(order: RunOrder) -> Supervisor:
    """Make the folder of a run, keep the source as it will run, and write the first record."""
    try:
        source = Path(order.path).read_bytes()
    except OSError as problem:
        raise UsageError(f"cannot read {show(order.path)}: {problem.strerror}") from problem
    run_dir = store.create(order.scenario, Path(order.root))
    try:
        (run_dir / "scenario.py").write_bytes(source)
        supervisor = Supervisor(order, run_dir)
    except OSError as problem:
        raise _cannot_record(run_dir, problem.strerror or str(problem)) from problem
    if not supervisor.journal.append(_run_started(order, run_dir.name, source)):
        raise _cannot_record(run_dir, supervisor.journal.trouble)
    return supervisor


def _cannot_record(run_dir: Path, why: str) -> CannotRecord:
    store.remove(run_dir)
    return CannotRecord(f"cannot write in {show(run_dir.parent)}: {why}; name another folder with --root DIR or TUILAB_ROOT")


def _run_started(order: RunOrder, run: str, source: bytes) -> events.RunStarted:
    me = processes.identify(os.getpid())
    assert me is not None  # we are here
    return events.RunStarted(
        format=events.FORMAT,
        run=run,
        scenario=order.scenario,
        topic=order.topic,
        title=order.title,
        source_sha256=hashlib.sha256(source).hexdigest(),
        params=order.params,
        supervisor=me,
        tuilab=__version__,
        wall_ns=time.time_ns(),
        changed=order.changed,
        claims=order.claims,
        repeats=order.repeats,
        looks=order.looks,
        budget_s=order.budget_s,
        quick=order.quick,
        timeout_s=order.timeout_s,
        argv=order.argv,
    )


def main() -> None:
    """Read an order from stdin, answer with a receipt on stdout, let go of both, and run."""
    os.umask(0o077)
    processes.become_subreaper()
    order: RunOrder = orders.unpack(sys.stdin.buffer.read(), RunOrder)
    try:
        supervisor = open_run(order)
        receipt = Receipt(run_dir=str(supervisor.run_dir))
    except TuilabError as problem:
        receipt = Receipt(error=str(problem), exit_code=problem.exit_code)
    is_heard = _answer_front(receipt)
    if receipt.error:
        return
    if not is_heard:
        supervisor.journal.append(events.StateChanged(state="stopped", reason="whoever asked for it was gone before it began"))
        return
    _let_go(supervisor.run_dir)
    try:
        supervisor.run()
    except Exception as problem:
        traceback.print_exc()  # to supervisor.log
        processes.end_descendants(0)
        supervisor.journal.append(events.StateChanged(state="failed", reason=f"tuilab's supervisor failed: {problem!r}"))
        raise SystemExit(1) from problem


def _answer_front(receipt: Receipt) -> bool:
    """Tell the front what came of its order; return whether it is still there."""
    try:
        os.write(1, orders.pack(receipt))
    except OSError:
        return False
    return True


def _let_go(run_dir: Path) -> None:
    """Take the standard streams away from the front, so that an ssh session can end while the run goes on."""
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(run_dir / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    for fd, target in ((null, 0), (null, 1), (log, 2)):
        os.dup2(fd, target)


if __name__ == "__main__":
    main()
