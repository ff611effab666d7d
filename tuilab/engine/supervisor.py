"""The supervisor: one detached process per run that owns its life, from the first record to the last.

It starts the workers, passes arms between them, keeps what they print, stops them when asked or when time is up, ends
whatever they leave behind, and writes down what it saw. It does no slow work, so that it is always there to stop a run.

    SIGTERM   stop in order: SIGTERM to every process of the run, a grace, SIGKILL; to a command that is watched SIGINT first
    SIGINT    stop at once: SIGKILL
"""

import contextlib
import os
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

GRACE_S = 3.0
INTERRUPT_S = 30.0  # that a command has after SIGINT, as to save what it has learned
_SIDE_BY_SIDE = 6  # workers that get ready at a time, at most
_USUAL_IMPORTS = [
    "torch"
]  # and nothing more: what a part of it reads when it is loaded, a scenario may set before that


class Supervisor:
    """Runs one order to its end."""

    def __init__(self, order: RunOrder, run: OpenRun, spare: Child | None) -> None:
        self.order = order
        self.run_dir = run.run_dir
        self.journal = run.journal
        self._outputs = run.outputs
        self._crew = Children(self._outputs, self._heed_signal, self._start_arm, self._note_death)
        self._attendants = Attendants(self.run_dir, self.journal, self._crew)
        self._began = time.monotonic()
        self._workers_started = 0
        self._spares = [spare] if spare else []  # workers that were started ahead of their turn
        self._began_ahead = spare is not None
        self._loading_s = 0.0  # what it took to get them ready, at most
        for one in self._spares:
            self._crew.add(one)
        self._deadline: float | None = None
        self._stop: tuple[RunState, str] | None = (
            None  # the state and reason that the run will end in
        )
        self._stopped_at: float | None = None
        self._is_hurried = False
        self._state = RunState.STARTING
        self._given_up: set[int] = (
            set()
        )  # processes that could not be ended: they are not waited for again

    def run(self) -> None:
        """Run the order, when it is its turn, and write down how it ended."""
        if stopped := self._wait_for_turn():
            self._enter(*stopped)
            return
        self._enter(RunState.STARTING)
        if not self._began_ahead:
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
        for capture in self._outputs.values():
            self.journal.append(self._captured(capture))
        for counts in stream_counts(self.run_dir / "journal"):
            self.journal.append(counts)
        if leftovers:
            state, reason = _unkillable(leftovers)
        elif (
            state == RunState.SUCCEEDED and self.journal.lost
        ):  # as a worker tells it of its own records
            state = RunState.FAILED
            reason = f"{plural(self.journal.lost, 'record')} could not be written: {self.journal.trouble}"
        if not self.journal.sync_all():  # so that a record with an end has lost nothing
            self._doubt_storage()
        self._enter(state, reason)

    def _captured(self, capture: Capture) -> events.OutputCaptured:
        """Return the record of what was printed, and where secrets stand in it: an export from another shell removes them."""
        captured = capture.report()
        with contextlib.suppress(OSError):
            captured.secrets = secret_places(self.run_dir / f"{captured.stream}.log", os.environ)
        return captured

    def _judge(self, *, is_done: bool) -> bool:
        """Have the run judged and say whether it was; when it is stopped meanwhile, nothing but a grace is waited for that."""
        was_stopping = self._stop is not None

        def is_called_off() -> bool:
            is_late = self._stopped_at is not None and time.monotonic() - self._stopped_at > GRACE_S
            return self._is_hurried or (is_late and not was_stopping)

        return self._attendants.judge(self._tell, is_done=is_done, is_called_off=is_called_off)

    def _wait_for_turn(self) -> tuple[RunState, str] | None:
        """Wait in the queue, if it is to; return the state and reason that it ends in if it was stopped there."""
        while (
            self.order.devices
            and self.order.waits
            and not self._stop
            and not may_begin(self.run_dir)
        ):
            if self._state != RunState.QUEUED:
                for spare in self._spares:
                    spare.kill("its run has to wait, and it holds memory")
                self._enter(RunState.QUEUED, why_not(self.run_dir))
            self._turn(0.5)
        self._began = time.monotonic()
        self._deadline = self._began + self.order.timeout_s if self.order.timeout_s else None
        return self._stop

    # ---- workers and arms

    def _run_repeats(self) -> tuple[RunState, str]:
        longest_s, reason = 0.0, ""
        for repeat in range(self.order.repeats):
            self._get_ready(repeat)
            began = time.monotonic()
            state, reason = self._run_repeat(repeat)
            if state != RunState.SUCCEEDED:
                return state, reason
            longest_s = max(longest_s, time.monotonic() - began)
            if enough := self._is_enough(repeat + 1, longest_s):
                return RunState.SUCCEEDED, reason or enough
        return RunState.SUCCEEDED, reason

    def _run_repeat(self, repeat: int) -> tuple[RunState, str]:
        if self._stop:
            return self._stop
        try:
            worker = self._start_worker(repeat)
        except OSError as problem:
            return RunState.FAILED, f"cannot start a worker process: {problem.strerror}"
        if repeat == 0:
            if self._began_ahead:  # from here on its worker waits no more, and is not seen to
                self._attendants.start_sampler()
            if self.order.claims and not self.order.wants_quiet:
                self._attendants.prepare_judge()
            self._enter(RunState.RUNNING)
        while not worker.is_over:
            self._turn(0.5)
            if self._stop and self._end_others(self._attendants.pids):
                return self._stop  # something cannot be ended; `run` names it
            if worker.is_slow_to_go() and (left := self._end_others(self._waiting())):
                return _unkillable(left)
        self._end_others(self._waiting(), worker.farewell.left if worker.farewell else ())
        return self._stop or worker.outcome()

    def _waiting(self) -> set[int]:
        """Return the sampler and the workers whose turn is still to come."""
        return {*self._attendants.pids, *(spare.pid for spare in self._spares)}

    def _get_ready(self, repeat: int) -> None:
        """Have the workers of the next repeats load their modules side by side, a core for each, before one of them is timed.

        Loading torch may take longer than what is then measured.
        """
        count = min(self._repeats_until_look(repeat), len(os.sched_getaffinity(0)), _SIDE_BY_SIDE)
        if self._spares or not self.order.imports or count < 2:
            return
        began = time.monotonic()
        started = [warm_up(spawn_spare(), self.order.imports) for _ in range(count)]
        self._spares = [spare for spare in started if spare]
        for spare in self._spares:
            self._crew.add(spare)
        while not (
            self._stop or all(spare.is_ready or spare.line is None for spare in self._spares)
        ):
            self._turn(0.5)
        self._loading_s = max(self._loading_s, time.monotonic() - began)

    def _repeats_until_look(self, repeat: int) -> int:
        """Return how many repeats are left until the run is looked at, and may end."""
        return (
            min([look for look in self.order.looks if look > repeat] or [self.order.repeats])
            - repeat
        )

    def _is_enough(self, repeats: int, longest_s: float) -> str:
        """Return why no further repeat is run, or nothing.

        The claims are decided at a planned look, the budget is spent, or the first repeat timed nothing.
        """
        if repeats >= self.order.repeats:
            return ""
        if repeats == 1 and self.order.has_usual_repeats and not has_races(self.run_dir):
            self.journal.append(events.NothingTimed())
            return "nothing was timed: one repeat is enough"
        if repeats in self.order.looks and self._attendants.judge(
            self._tell, is_look=True, is_called_off=lambda: self._stop is not None
        ):
            return f"decided after {repeats} repeats"
        spent_s = time.monotonic() - self._began
        next_s = longest_s if self._spares else self._loading_s + longest_s
        if self.order.budget_s and spent_s + next_s > self.order.budget_s:
            self.journal.append(events.BudgetSpent(repeats=repeats))
            return f"the budget of {self.order.budget_s:g} s is spent after {plural(repeats, 'repeat')}"
        return ""

    def _start_worker(
        self, repeat: int, arm: ArmOrder | None = None, asker: Child | None = None
    ) -> Child:
        writer = f"worker-{self._workers_started}"
        order = messages.pack_message(self._worker_order(writer, repeat, arm))
        spare = None if arm else self._take_spare()
        child = spare or spawn_worker(writer, self.run_dir.name, arm, self.order.command)
        child.writer = writer
        self._workers_started += 1
        child.repeat, child.asker = repeat, asker
        child.deadline = time.monotonic() + arm.timeout_s if arm else None
        if child is not spare:
            self._crew.add(child)
        self.journal.append(
            worker_records.started(child, arm, self.run_dir.name, was_warm=child is spare)
        )
        assert child.line is not None
        with contextlib.suppress(OSError):  # it may have died already; its exit tells
            child.line.sendall(order)
        return child

    def _take_spare(self) -> Child | None:
        """Return a worker that was started ahead and still listens; one that does not is about to die, or has to."""
        self._crew.turn(0)  # one that died is buried
        for spare in list(self._spares):
            if spare.line is not None:
                self._spares.remove(spare)
                return spare
            spare.kill("it had hung up before its turn")
        return None

    def _worker_order(self, writer: str, repeat: int, arm: ArmOrder | None) -> WorkerOrder:
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
        try:
            self._start_worker(asker.repeat, arm, asker)
        except (OSError, ValueError) as problem:
            command = words_for_record(arm.prefix or [sys.executable])[0]
            why = getattr(problem, "strerror", None) or str(problem)
            self._answer(
                asker,
                ArmReply(writer="", elapsed_s=0.0, error=f"cannot start {command[:200]}: {why}"),
            )

    def _note_death(self, child: Child) -> None:
        if (
            child in self._spares
        ):  # it had no order yet: whoever would have followed it starts afresh
            self._spares.remove(child)
            return
        if self._attendants.note_death(child, is_stopping=self._stop is not None):
            return
        self.journal.append(worker_records.exited(child, self.run_dir))
        if child.asker is not None:
            self._finish_arm(child, child.asker)

    def _finish_arm(self, arm: Child, asker: Child) -> None:
        """Clear away what an arm left behind, so that it does not disturb the next, and tell the worker that waits."""
        self._end_others(set(self._crew.children))
        reply = ArmReply(writer=arm.writer, elapsed_s=time.monotonic() - arm.started)
        state, reason = arm.outcome()
        if state == RunState.SUCCEEDED and arm.farewell is not None:
            reply.value = arm.farewell.value
        else:
            reply.error = reason
        self._answer(asker, reply)

    def _answer_for(self, arm: Child) -> None:
        """Tell the worker that waits for an arm which cannot be ended that it need not wait."""
        asker, arm.asker = arm.asker, None
        self._given_up.add(arm.pid)
        names = ", ".join(processes.names_of(lambda: [arm.pid]))
        if asker:
            error = f"{arm.how_it_ended()} and could not be ended: {names}"
            self._answer(
                asker,
                ArmReply(writer=arm.writer, elapsed_s=time.monotonic() - arm.started, error=error),
            )

    def _answer(self, asker: Child, reply: ArmReply) -> None:
        if asker.line is not None:
            with contextlib.suppress(OSError):
                messages.send(asker.line, reply)

    # ---- time and stopping

    def _turn(self, patience_s: float) -> None:
        self._crew.turn(patience_s)
        if self._deadline and time.monotonic() > self._deadline:
            self._stop_run(RunState.FAILED, f"timed out after {self.order.timeout_s:g} s")
        if not self.journal.is_in_place():
            self._stop_run(RunState.FAILED, "the folder of the run was removed or replaced")
        self._attendants.check_sampler()
        for arm in [
            child
            for child in self._crew.children.values()
            if child.asker and child.cannot_be_killed()
        ]:
            self._answer_for(arm)

    def _heed_signal(self, number: int) -> None:
        if number == signal.SIGTERM:
            self._stop_run(RunState.STOPPED, "stop requested")
        elif number == signal.SIGINT:
            self._is_hurried = True
            self._stop_run(RunState.STOPPED, "stop at once requested")

    def _stop_run(self, state: RunState, reason: str) -> None:
        if self._stop is None:
            self._stop, self._stopped_at = (state, reason), time.monotonic()
            self.journal.append(events.StopRequested(how=reason))
            self._enter(RunState.STOPPING, reason)

    def _end_others(self, spare: set[int], printed: Sequence[LeftProcess] = ()) -> list[str]:
        """Record what a worker left behind and end it, but not `spare`; return the names of those that would not end.

        Of `printed`, some may have ended already, as nobody reads what they print.
        """
        left = processes.living({*spare, *self._crew.children, *self._given_up})
        ended = [process.name for process in printed if process.pid not in left]
        if (left or ended) and not self._stop:
            names = [*(processes.name_of(pid) for pid in left[:20]), *ended[:20]]
            self.journal.append(
                events.LeftoversEnded(processes=names, count=len(left) + len(ended))
            )
        return self._end(spare)

    def _end(self, spare: set[int]) -> list[str]:
        def tend() -> bool:
            self._crew.turn(0)
            return self._is_hurried

        def tell(names: list[str]) -> None:
            self._tell(f"waits for {', '.join(names)}")

        is_asked = (
            self._stop is not None and self._stop[0] == RunState.STOPPED and not self._is_hurried
        )
        if is_asked and self.order.command and not self.order.command.arms:
            processes.interrupt_descendants(
                INTERRUPT_S, self._crew.children, {*spare, *self._given_up}, tend
            )
        processes.end_descendants(GRACE_S, {*spare, *self._given_up}, tend, tell)
        if not (left := processes.living(spare)):
            return []
        self._given_up |= set(left)
        return processes.names_of(lambda: processes.living(spare))

    def _tell(self, words: str) -> None:
        """Say what the run waits for."""
        self._enter(self._state, words)

    def _enter(self, state: RunState, reason: str = "") -> None:
        """Write a state; keep trying while the disk is full, because a run without an end is a lie."""
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
    return RunState.UNKILLABLE, "could not be ended: " + ", ".join(names)


def _begin(order: RunOrder, spare: Child | None) -> Supervisor:
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
        raise cannot_record(
            run.run_dir, getattr(cause, "strerror", "") or str(problem)
        ) from problem


def main() -> None:
    """Take an order that is there."""
    os.umask(0o077)
    processes.become_subreaper()
    serve()


def serve(started: Child | None = None, *, is_timed: bool = True) -> None:
    """Read an order from stdin, answer with a receipt on stdout, let go of both when the front has heard, and run.

    It may be long in coming to one whose worker was started ahead.
    """
    spare = warm_up(started, _USUAL_IMPORTS, is_first=True, is_timed=is_timed)
    said = sys.stdin.buffer.readline()
    if not said.endswith(b"\n"):
        return  # nobody wants a run any more; the spare ends with this process
    order: RunOrder = messages.unpack(said, RunOrder)
    try:
        supervisor = _begin(order, spare)
        receipt = Receipt(run_dir=str(supervisor.run_dir))
    except TuilabError as problem:
        receipt = Receipt(error=str(problem), exit_code=problem.exit_code)
    is_heard = answer_front(receipt)
    if receipt.error:
        return
    if not is_heard:
        reason = "whoever asked for it was gone before it began"
        supervisor.journal.append(events.StateChanged(state=RunState.STOPPED, reason=reason))
        queue.leave(supervisor.run_dir.parent, supervisor.run_dir.name)
        return
    let_go(supervisor.run_dir)
    try:
        supervisor.run()
    except Exception as problem:
        traceback.print_exc()  # to supervisor.log
        with contextlib.suppress(
            OSError
        ):  # then they end with this process: the kernel and the sampler see to that
            processes.end_descendants(0)
        supervisor.journal.append(
            events.StateChanged(
                state=RunState.FAILED, reason=f"tuilab's supervisor failed: {problem!r}"
            )
        )
        raise SystemExit(1) from problem
    finally:
        queue.leave(supervisor.run_dir.parent, supervisor.run_dir.name)
    os._exit(
        0
    )  # at once: a front that has read the end waits for this, and would wait for the interpreter to be taken down


if __name__ == "__main__":
    main()
