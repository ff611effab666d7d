"""The supervisor: one detached process for each run, from its first record to its last.

It starts workers, starts the arms that they order, keeps their output, stops them on request or
timeout, ends the processes that they leave behind, and records all of that. It does no slow work,
so that it can always stop the run.

    SIGTERM   stop: SIGTERM to every process of the run (a command gets SIGINT first), later SIGKILL
    SIGINT    stop at once: SIGKILL
"""

import contextlib
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tuilab.engine import messages, processes, worker_records
from tuilab.engine.attendants import Attendants, has_claims, has_races
from tuilab.engine.capture import Capture
from tuilab.engine.children import Children
from tuilab.engine.create_run import OpenRun, answer_front, cannot_record, let_go, open_run
from tuilab.engine.messages import ArmOrder, ArmReply, LeftProcess, Receipt, RunOrder, WorkerOrder
from tuilab.engine.queue_turn import may_begin, take_ticket, why_not
from tuilab.engine.spawn import Child, spawn_spare, spawn_worker, warm_up
from tuilab.engine.worker_records import stream_counts
from tuilab.errors import CannotRecord, TuilabError
from tuilab.record import events
from tuilab.record.secrets import secret_places
from tuilab.record.states import RunState
from tuilab.runs import queue
from tuilab.scrub import words_for_record
from tuilab.text.display import plural

GRACE_S = 3.0  # between SIGTERM and SIGKILL, and for the judge after a stop
INTERRUPT_S = 30.0  # time for a command after SIGINT, for example to save a checkpoint
_SIDE_BY_SIDE = 6  # workers that load modules at the same time, at most
# No submodules: a scenario may set a variable before it imports one.
_USUAL_IMPORTS = ["torch"]


class Supervisor:
    """Runs one order to its end.

    An arm is one variant of a comparison, which runs in a worker of its own. A spare is a worker
    that was started in advance of its order.
    """

    def __init__(self, order: RunOrder, run: OpenRun, spare: Child | None) -> None:
        self.order = order
        self.run_dir = run.run_dir
        self.journal = run.journal
        self._outputs = run.outputs
        self._children = Children(
            self._outputs, self._heed_signal, self._start_arm, self._note_death
        )
        self._attendants = Attendants(self.run_dir, self.journal, self._children)
        self._began = time.monotonic()
        self._workers_started = 0
        self._spares = [spare] if spare else []  # workers that were started in advance
        self._has_early_worker = spare is not None
        self._loading_s = 0.0  # the longest time that spares took to load
        for worker in self._spares:
            self._children.add(worker)
        self._deadline: float | None = None
        self._stop: tuple[RunState, str] | None = None  # final state and reason of a stopped run
        self._stopped_at: float | None = None
        self._must_hurry = False
        self._state = RunState.STARTING
        self._enough = ""  # of a tuning: why its last worker wants no further repeat
        self._given_up: set[int] = set()  # processes that cannot be ended, so we do not wait again

    def run(self) -> None:
        """Wait for the turn of the run, run it, and record how it ended.

        A run that was stopped in the queue only gets its final state.
        """
        stopped = self._wait_for_turn()
        if stopped:
            self._enter(*stopped)
            return
        self._enter(RunState.STARTING)
        if not self._has_early_worker:
            self._attendants.start_sampler()
        state, reason = self._run_repeats()
        if self.order.command and self.journal.is_in_place():
            self._attendants.read_rest()
        if self.journal.is_in_place() and has_claims(self.run_dir):
            is_done = state == RunState.SUCCEEDED
            if not self._judge(is_done=is_done) and is_done and self._stop:
                state, reason = self._stop
        self._attendants.dismiss_judge()
        if not self.order.command:
            self._attendants.await_sampler(lambda: self._stop is not None)
        self._attendants.end_sampler()
        leftovers = self._end(spare=self._attendants.pids)
        if self.order.command and self.order.command.tune:
            shutil.rmtree(self.run_dir / messages.TUNE_COPY, ignore_errors=True)
        for capture in self._outputs.values():
            self.journal.append(self._captured(capture))
        for counts in stream_counts(self.run_dir / "journal"):
            self.journal.append(counts)
        if leftovers:
            state, reason = _unkillable(leftovers)
        elif state == RunState.SUCCEEDED and self.journal.lost:
            lost = plural(self.journal.lost, "record")
            state = RunState.FAILED
            reason = f"{lost} could not be written: {self.journal.trouble}"
        if not self.journal.sync_all():  # before the last record: whoever reads it finds all others
            self._doubt_storage()
        self._enter(state, reason)

    def _captured(self, capture: Capture) -> events.OutputCaptured:
        """Return the record of a log, with the places of secrets, which an export removes."""
        captured = capture.finish()
        with contextlib.suppress(OSError):
            captured.secrets = secret_places(self.run_dir / f"{captured.stream}.log", os.environ)
        return captured

    def _judge(self, *, is_done: bool) -> bool:
        """Compute the verdicts, and return whether that succeeded.

        If the run is stopped meanwhile, the judge is killed after GRACE_S. If it was stopped
        before, the judge may finish. A stop at once always kills the judge.
        """
        was_stopping = self._stop is not None

        def is_called_off() -> bool:
            is_late = self._stopped_at is not None and time.monotonic() - self._stopped_at > GRACE_S
            return self._must_hurry or (is_late and not was_stopping)

        return self._attendants.judge(self._tell, is_done=is_done, is_called_off=is_called_off)

    def _wait_for_turn(self) -> tuple[RunState, str] | None:
        """Wait in the queue; return the final state and reason if the run was stopped, else None.

        While the run waits, its spares are killed, because they hold memory. The budget and the
        timeout of the run begin when this returns.
        """
        is_queued = bool(self.order.devices) and self.order.waits
        while is_queued and not self._stop and not may_begin(self.run_dir):
            if self._state != RunState.QUEUED:
                for spare in self._spares:
                    spare.kill("its run has to wait, and it holds memory")
                self._enter(RunState.QUEUED, why_not(self.run_dir))
            self._turn(0.5)
        self._began = time.monotonic()
        if self.order.timeout_s:
            self._deadline = self._began + self.order.timeout_s
        return self._stop

    # ---- workers and arms

    def _run_repeats(self) -> tuple[RunState, str]:
        """Run the repeats one after another, and return the final state of the run and its reason.

        A repeat that does not succeed is the last. Later repeats are skipped if they are not
        needed.
        """
        longest_s = 0.0
        reason = ""
        for repeat in range(self.order.repeats):
            self._get_ready(repeat)
            began = time.monotonic()
            state, reason = self._run_repeat(repeat)
            if state != RunState.SUCCEEDED:
                return state, reason
            longest_s = max(longest_s, time.monotonic() - began)
            why_enough = self._why_enough(repeat + 1, longest_s)
            if why_enough:
                return RunState.SUCCEEDED, reason or why_enough
        return RunState.SUCCEEDED, reason

    def _run_repeat(self, repeat: int) -> tuple[RunState, str]:
        """Run one repeat in a worker, end what the worker left behind, and return state and reason.

        The first repeat also starts the sampler, if that has waited for the worker, and records
        that the run is running.
        """
        if self._stop:
            return self._stop
        try:
            worker = self._start_worker(repeat)
        except OSError as problem:
            return RunState.FAILED, f"cannot start a worker process: {problem.strerror}"
        if repeat == 0:
            if self._has_early_worker:  # only now, because an idle worker is not worth samples
                self._attendants.start_sampler()
            if self.order.claims and not self.order.wants_quiet:
                self._attendants.prepare_judge()
            self._enter(RunState.RUNNING)
        while not worker.is_over:
            self._turn(0.5)
            if self._stop and self._end_others(self._attendants.pids):
                return self._stop  # a process cannot be ended: `run` records its name
            if worker.is_slow_to_go():
                unkillable = self._end_others(self._waiting())
                if unkillable:
                    return _unkillable(unkillable)
        self._end_others(self._waiting(), worker.result.left if worker.result else ())
        if worker.result:
            self._enough = worker.result.enough
        return self._stop or worker.outcome()

    def _waiting(self) -> set[int]:
        """Return the pids of the sampler and of workers for later repeats."""
        pids = {spare.pid for spare in self._spares}
        return pids | self._attendants.pids

    def _get_ready(self, repeat: int) -> None:
        """Start the workers of the next repeats, and let them load their modules at the same time.

        Loading torch may take longer than the measurement, and would disturb it later. Nothing is
        started if spares are left, if the scenario imports nothing, or for a single repeat.
        """
        usable_cores = len(os.sched_getaffinity(0))
        count = min(self._repeats_until_analysis(repeat), usable_cores, _SIDE_BY_SIDE)
        if self._spares or not self.order.imports or count < 2:
            return
        began = time.monotonic()
        for _ in range(count):
            spare = warm_up(spawn_spare(), self.order.imports)
            if spare:
                self._spares.append(spare)
                self._children.add(spare)
        while not self._stop and not self._are_spares_ready():
            self._turn(0.5)
        self._loading_s = max(self._loading_s, time.monotonic() - began)

    def _are_spares_ready(self) -> bool:
        return all(spare.is_ready or spare.line is None for spare in self._spares)

    def _repeats_until_analysis(self, repeat: int) -> int:
        """Return the number of repeats until the next interim analysis, or the end."""
        planned = [look for look in self.order.looks if look > repeat]
        return min(planned, default=self.order.repeats) - repeat

    def _why_enough(self, repeats: int, longest_s: float) -> str:
        """Return why no further repeat is needed; an empty string if one is needed.

        The reasons are that all claims are decided, that the budget is spent, or that the first
        repeat timed nothing. The last two are recorded. At a planned interim look, the judge
        decides. The worker of a tuning decides itself.
        """
        if repeats >= self.order.repeats:
            return ""
        if self.order.command and self.order.command.tune:
            return self._enough
        if repeats == 1 and self.order.has_usual_repeats and not has_races(self.run_dir):
            self.journal.append(events.NothingTimed())
            return "nothing was timed: one repeat is enough"
        if repeats in self.order.looks:
            is_decided = self._attendants.judge(
                self._tell, is_look=True, is_called_off=lambda: self._stop is not None
            )
            if is_decided:
                return f"decided after {repeats} repeats"
        spent_s = time.monotonic() - self._began
        next_s = longest_s if self._spares else self._loading_s + longest_s
        if self.order.budget_s and spent_s + next_s > self.order.budget_s:
            self.journal.append(events.BudgetSpent(repeats=repeats))
            spent = f"the budget of {self.order.budget_s:g} s is spent"
            return f"{spent} after {plural(repeats, 'repeat')}"
        return ""

    def _start_worker(
        self, repeat: int, arm: ArmOrder | None = None, asker: Child | None = None
    ) -> Child:
        """Start a worker, or take a spare one, send it its order, and record its start.

        With `arm`, the worker runs only that arm, and `asker` is the worker that waits for the
        result. Raises OSError if no process can be started, ValueError if the order is too large
        for a message.
        """
        writer = f"worker-{self._workers_started}"
        order = messages.pack_message(self._worker_order(writer, repeat, arm))
        spare = None if arm else self._take_spare()
        child = spare or spawn_worker(writer, self.run_dir.name, arm, self.order.command)
        child.writer = writer
        self._workers_started += 1
        child.repeat = repeat
        child.asker = asker
        child.deadline = None
        if arm:
            child.deadline = time.monotonic() + arm.timeout_s
        if child is not spare:
            self._children.add(child)
        was_warm = child is spare
        self.journal.append(
            worker_records.started(child, arm, self.run_dir.name, was_warm=was_warm)
        )
        assert child.line is not None
        with contextlib.suppress(OSError):  # it may have died already: its exit code will say so
            child.line.sendall(order)
        return child

    def _take_spare(self) -> Child | None:
        """Return a worker that was started in advance and is alive, or None.

        The worker is no spare from then on. Spares that have closed their sockets are killed.
        """
        self._children.turn(0)  # forget those that have died
        for spare in list(self._spares):
            if spare.line is not None:
                self._spares.remove(spare)
                return spare
            spare.kill("it had hung up before its turn")
        return None

    def _worker_order(self, writer: str, repeat: int, arm: ArmOrder | None) -> WorkerOrder:
        """Return what a worker must know to run one repeat, or with `arm` only that arm of it."""
        return WorkerOrder(
            run_dir=str(self.run_dir),
            writer=writer,
            source_dir=str(Path(self.order.path).parent),
            params=self.order.params,
            secrets=self.order.secrets,
            repeat=repeat,
            repeats=self.order.repeats,
            quick=self.order.quick,
            arm=arm,
            command=self.order.command,
            spread=self.order.spread,
        )

    def _start_arm(self, arm: ArmOrder, asker: Child) -> None:
        """Start the arm that a worker ordered; if that fails, send the error to the worker."""
        try:
            self._start_worker(asker.repeat, arm, asker)
        except (OSError, ValueError) as problem:
            command = words_for_record(arm.prefix or [sys.executable])[0]
            why = getattr(problem, "strerror", None) or str(problem)
            error = f"cannot start {command[:200]}: {why}"
            self._answer(asker, ArmReply(writer="", elapsed_s=0.0, error=error))

    def _note_death(self, child: Child) -> None:
        """Handle the death of a child: a spare, a helper, a worker, or an arm of a worker.

        The end of a worker or an arm is recorded, and the result of an arm is sent to its worker.
        """
        if child in self._spares:  # it had no order yet: another worker is started instead
            self._spares.remove(child)
            return
        if self._attendants.note_death(child, is_stopping=self._stop is not None):
            return
        self.journal.append(worker_records.exited(child, self.run_dir))
        if child.asker is not None:
            self._finish_arm(child, child.asker)

    def _finish_arm(self, arm: Child, asker: Child) -> None:
        """End the processes that an arm left behind, and send its result or error to its worker."""
        self._end_others(set(self._children.children))
        reply = ArmReply(writer=arm.writer, elapsed_s=time.monotonic() - arm.started)
        state, reason = arm.outcome()
        if state == RunState.SUCCEEDED and arm.result is not None:
            reply.value = arm.result.value
        else:
            reply.error = reason
        self._answer(asker, reply)

    def _give_up_arm(self, arm: Child) -> None:
        """Send an error to the worker that waits for an arm which cannot be ended."""
        asker = arm.asker
        arm.asker = None
        self._given_up.add(arm.pid)
        names = ", ".join(processes.names_of(lambda: [arm.pid]))
        if asker:
            elapsed_s = time.monotonic() - arm.started
            error = f"{arm.how_it_ended()} and could not be ended: {names}"
            self._answer(asker, ArmReply(writer=arm.writer, elapsed_s=elapsed_s, error=error))

    def _answer(self, asker: Child, reply: ArmReply) -> None:
        if asker.line is not None:
            with contextlib.suppress(OSError):
                messages.send(asker.line, reply)

    # ---- time and stopping

    def _turn(self, patience_s: float) -> None:
        """Handle the events of at most `patience_s`, and what no event shows.

        The run is stopped if it has timed out or its folder was replaced. A silent sampler is
        killed, and an arm that cannot be killed is given up.
        """
        self._children.turn(patience_s)
        if self._deadline and time.monotonic() > self._deadline:
            self._stop_run(RunState.FAILED, f"timed out after {self.order.timeout_s:g} s")
        if not self.journal.is_in_place():
            self._stop_run(RunState.FAILED, "the folder of the run was removed or replaced")
        self._attendants.check_sampler()
        for child in list(self._children.children.values()):
            if child.asker and child.cannot_be_killed():
                self._give_up_arm(child)

    def _heed_signal(self, number: int) -> None:
        if number == signal.SIGTERM:
            self._stop_run(RunState.STOPPED, "stop requested")
        elif number == signal.SIGINT:
            self._must_hurry = True
            self._stop_run(RunState.STOPPED, "stop at once requested")

    def _stop_run(self, state: RunState, reason: str) -> None:
        """Note and record that the run must stop; only the first state and reason count.

        This ends no process: `_run_repeat` sees the note and does that.
        """
        if self._stop is None:
            self._stop = (state, reason)
            self._stopped_at = time.monotonic()
            self.journal.append(events.StopRequested(how=reason))
            self._enter(RunState.STOPPING, reason)

    def _end_others(self, spare: set[int], printed: Sequence[LeftProcess] = ()) -> list[str]:
        """End the processes that a worker left behind, except `spare`; return names of the rest.

        The rest are processes that could not be ended. What is ended is recorded, unless the run is
        being stopped. `printed` are processes that still printed when the worker ended. They may
        have ended already, because nobody reads their output any more.
        """
        remaining = processes.living({*spare, *self._children.children, *self._given_up})
        ended = [process.name for process in printed if process.pid not in remaining]
        if (remaining or ended) and not self._stop:
            names = [processes.name_of(pid) for pid in remaining[:20]]
            names += ended[:20]
            count = len(remaining) + len(ended)
            self.journal.append(events.LeftoversEnded(processes=names, count=count))
        return self._end(spare)

    def _end(self, spare: set[int]) -> list[str]:
        """End all descendants except `spare`; return the names of those that could not be ended.

        If a single command is stopped, it first gets SIGINT and time to save. A process that cannot
        be ended is not waited for again.
        """

        def tend() -> bool:
            self._children.turn(0)
            return self._must_hurry

        def tell(names: list[str]) -> None:
            self._tell(f"waits for {', '.join(names)}")

        is_stopped = self._stop is not None and self._stop[0] == RunState.STOPPED
        command = self.order.command
        is_single_command = command is not None and not (command.arms or command.tune)
        if is_stopped and not self._must_hurry and is_single_command:
            processes.interrupt_descendants(
                INTERRUPT_S, self._children.children, spare | self._given_up, tend
            )
        processes.end_descendants(GRACE_S, spare | self._given_up, tend, tell)
        remaining = processes.living(spare)
        if not remaining:
            return []
        self._given_up |= set(remaining)
        return processes.names_of(lambda: processes.living(spare))

    def _tell(self, words: str) -> None:
        """Record what the run waits for."""
        self._enter(self._state, words)

    def _enter(self, state: RunState, reason: str = "") -> None:
        """Record a state; retry for 5 s while the disk is full, because a run must have an end.

        If the record is not safely on the disk, that is recorded as well.
        """
        self._state = state
        for _ in range(20):
            if self.journal.append(events.StateChanged(state=state, reason=reason)):
                break
            time.sleep(0.25)
        if not self.journal.sync():
            self._doubt_storage()

    def _doubt_storage(self) -> None:
        self.journal.append(events.Unavailable(what="safe storage", reason=self.journal.trouble))


def _unkillable(names: list[str]) -> tuple[RunState, str]:
    """Return the final state and reason of a run with processes that could not be ended."""
    return RunState.UNKILLABLE, "could not be ended: " + ", ".join(names)


def _begin(order: RunOrder, spare: Child | None) -> Supervisor:
    """Create the run of an order, its supervisor, and its ticket in the queue.

    If the run cannot be recorded, its folder is removed, and CannotRecord is raised. Other
    TuilabErrors mean that the run is not possible here. `spare` is killed if it is of no use.
    """
    run = open_run(order)
    if spare and not order.imports:
        spare.kill("the scenario does something before it imports torch, or instead")
        spare = None
    try:
        supervisor = Supervisor(order, run, spare)
        take_ticket(order, run.run_dir)
        return supervisor
    except (OSError, CannotRecord) as problem:
        cause = problem.__cause__ if isinstance(problem, CannotRecord) else problem
        reason = getattr(cause, "strerror", "") or str(problem)
        raise cannot_record(run.run_dir, reason) from problem


def main() -> None:
    """Serve the order that comes on stdin."""
    os.umask(0o077)
    processes.become_subreaper()
    serve()


def serve(started: Child | None = None, *, is_timed: bool = True) -> None:
    """Read an order from stdin, answer with a receipt on stdout, close both, and run the order.

    `started` is a worker that was started in advance; the order may then come much later. If there
    is no order, or the run cannot begin, this returns. Otherwise it runs to the end of the process.
    """
    spare = warm_up(started, _USUAL_IMPORTS, is_first=True, is_timed=is_timed)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return  # the client is gone, and the spare ends with this process
    order: RunOrder = messages.unpack(line, RunOrder)
    try:
        supervisor = _begin(order, spare)
        receipt = Receipt(run_dir=str(supervisor.run_dir))
    except TuilabError as problem:
        receipt = Receipt(error=str(problem), exit_code=problem.exit_code)
    has_client_read = answer_front(receipt)
    if receipt.error:
        return
    if not has_client_read:
        reason = "whoever asked for it was gone before it began"
        supervisor.journal.append(events.StateChanged(state=RunState.STOPPED, reason=reason))
        queue.leave(supervisor.run_dir.parent, supervisor.run_dir.name)
        return
    let_go(supervisor.run_dir)
    try:
        supervisor.run()
    except Exception as problem:
        traceback.print_exc()  # to supervisor.log
        with contextlib.suppress(OSError):  # then the kernel and the sampler end them
            processes.end_descendants(0)
        reason = f"tuilab's supervisor failed: {problem!r}"
        supervisor.journal.append(events.StateChanged(state=RunState.FAILED, reason=reason))
        raise SystemExit(1) from problem
    finally:
        queue.leave(supervisor.run_dir.parent, supervisor.run_dir.name)
    os._exit(0)  # without the slow exit of the interpreter, because the client waits for it


if __name__ == "__main__":
    main()
