"""Starts runs and asks them to stop: what every front does, made the same way."""

import contextlib
import os
import select
import shlex
import signal
import subprocess
from pathlib import Path
from typing import IO

from tuilab import first_process
from tuilab.catalogue.params import check_values, default_overrides
from tuilab.catalogue.scenario import Param, Scenario
from tuilab.defaults import REPEATS
from tuilab.engine import messages, processes
from tuilab.engine.messages import Receipt, RunOrder
from tuilab.engine.queue_turn import devices_of
from tuilab.engine.spare import Spare, spawn_supervisor
from tuilab.errors import ScenarioError, TuilabError, UsageError
from tuilab.interrupts import OneByOne
from tuilab.judging.interim_analyses import PLANNED_ANALYSES
from tuilab.record.events import CLAIM_LIMIT, Identity, Scalar
from tuilab.record.live_run import Watch
from tuilab.record.origin import carried, named_process
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.runs import remote_runs, store
from tuilab.runs.command_line import hint
from tuilab.runs.entry import is_newborn
from tuilab.scrub import is_secret_value
from tuilab.text.display import show

_CHUNK = 4096  # bytes of a receipt
_PATIENCE_S = 5.0  # for the last words of a supervisor that has ended
_VALUES_LIMIT = 100_000  # bytes of all parameters: half a message to a worker


def order(
    scenario: Scenario,
    given: dict[str, Scalar],
    *,
    root: Path,
    repeats: int | None = None,
    budget_s: float | None = None,
    is_quick: bool = False,
    timeout_s: float | None = None,
    prediction: float | None = None,
    waits: bool = False,
    argv: list[str] | None = None,
) -> RunOrder:
    """Return the order for one run of a scenario with the params that were given; the others take their defaults.

    Claims about time want repeats: without a number, a budget or `quick` there are a few, enough for an interval.
    """
    if scenario.error:
        raise UsageError(
            f"{show(scenario.id)} cannot be run: {show(scenario.error)}; see: tuilab check {show(scenario.path)}"
        )
    values = check_values(
        scenario.params, {**default_overrides(scenario.params, is_quick=is_quick), **given}
    )
    _check_size(scenario, values)
    defaults = {param.name: param.default for param in scenario.params}
    claims = [claim for claim in scenario.claims if claim.key or "{" not in claim.text]
    return RunOrder(
        root=str(root.absolute()),
        scenario=scenario.id,
        topic=scenario.topic,
        title=scenario.title,
        path=str(Path(scenario.path).absolute()),
        params=values,
        changed=[name for name, value in values.items() if value != defaults[name]],
        secrets=[param.name for param in scenario.params if _is_secret(param, values[param.name])],
        claims=[claim.text for claim in claims],
        claim_keys=[claim.key for claim in claims],
        repeats=repeats
        or (
            PLANNED_ANALYSES[-1]
            if budget_s
            else REPEATS
            if scenario.is_timed and not is_quick
            else 1
        ),
        has_usual_repeats=not repeats,
        looks=list(PLANNED_ANALYSES) if budget_s and not repeats else [],
        budget_s=budget_s,
        imports=list(scenario.imports),
        quick=is_quick,
        timeout_s=timeout_s,
        devices=devices_of(scenario, values),
        wants_quiet=scenario.wants_quiet,
        waits=waits,
        prediction=prediction,
        argv=argv or [],
    )


def _is_secret(param: Param, value: Scalar) -> bool:
    """Say whether a value is not to be recorded; a default stands in the source anyway."""
    return (
        param.type == "str"
        and value not in ("", param.default)
        and is_secret_value(param.name, str(value))
    )


def _check_size(scenario: Scenario, values: dict[str, Scalar]) -> None:
    """Refuse what no record and no message to a worker can hold, before there is a run."""
    name = show(scenario.id)
    if long := next((claim.text for claim in scenario.claims if len(claim.text) > CLAIM_LIMIT), ""):
        raise UsageError(
            f"{name}: a claim takes up to {CLAIM_LIMIT} characters; {show(long, 60)} has {len(long)}"
        )
    sizes = {name: len(messages.pack({name: value})) for name, value in values.items()}
    if (total := sum(sizes.values())) > _VALUES_LIMIT:
        longest = show(max(sizes, key=lambda one: sizes[one]), 60)
        raise UsageError(
            f"{name}: parameters may have {_VALUES_LIMIT} bytes together, not {total}; the longest is {longest}"
        )


def start(
    run_order: RunOrder, spare: Spare | None = None
) -> tuple[Path, "subprocess.Popen[bytes]"]:
    """Start a supervisor and return the folder of its run; it lives on when this process does not.

    A spare from `prepare` is used up: it takes the order, or when it cannot, it is dismissed and the run starts without.
    """
    descriptors = run_order.command.descriptors if run_order.command else []
    if spare and (descriptors or not spare.is_fit()):
        spare.dismiss()
        spare = None
    supervisor = spare.supervisor if spare else spawn_supervisor(descriptors=descriptors)
    try:
        receipt = _hand_over(supervisor, run_order)
    except ScenarioError:
        if not spare:
            _let_end(supervisor)
            raise
        spare.dismiss()
        return start(run_order)
    if receipt.error:
        _let_end(supervisor)
        failure = TuilabError(receipt.error)
        failure.exit_code = type(failure.exit_code)(receipt.exit_code)
        raise failure
    for one in descriptors:
        os.close(
            one
        )  # whoever writes or reads at the other end sees when the command has closed it
    return Path(receipt.run_dir), supervisor


def check_outlived() -> None:
    """Refuse to leave a run to itself where it would end at once."""
    if first_process.is_container_main():
        raise UsageError(
            "a detached run would end at once: tuilab is the first process of this container, which ends with it; "
            "run without --detach, or from a shell in the container"
        )


def _let_end(supervisor: "subprocess.Popen[bytes]") -> None:
    """Wait for one that has said its last word."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        supervisor.wait(5)


def _hand_over(supervisor: "subprocess.Popen[bytes]", run_order: RunOrder) -> Receipt:
    """Give a supervisor its order and return what it says to it; ScenarioError when it says nothing."""
    assert supervisor.stdin and supervisor.stdout and supervisor.stderr
    with supervisor.stdin, supervisor.stdout, supervisor.stderr:
        ear = _AnswerReader(supervisor.stdout, supervisor.stderr)
        with contextlib.suppress(BrokenPipeError):  # it died; what it said tells why
            supervisor.stdin.write(messages.pack(run_order) + b"\n")
        ear.listen(until_word=True)
        OneByOne.wait()  # it may begin: from here on the run has to be stopped, by whoever follows it
        with contextlib.suppress(BrokenPipeError):
            supervisor.stdin.write(messages.GO)
        ear.listen()  # to its end: the supervisor lets go of it and lives on
        try:
            receipt: Receipt = messages.unpack(
                bytes(ear.said.partition(messages.RECEIPT)[2]), Receipt
            )
        except ValueError as problem:
            raise ScenarioError(
                f"the supervisor did not start: {show(ear.last_complaint())}"
            ) from problem
    return receipt


class _AnswerReader:
    """Hears what a supervisor says, and takes what it complains of meanwhile: much, as of LD_DEBUG, would else hold it up."""

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.said = bytearray()
        self._complaints = bytearray()
        self._kept = {stdout.fileno(): self.said, stderr.fileno(): self._complaints}
        self._stdout = stdout.fileno()
        self._poll = select.poll()
        for pipe in self._kept:
            self._poll.register(pipe, select.POLLIN)

    def listen(self, *, until_word: bool = False) -> None:
        """Hear to the end of what is said, or to the first word that it is to say."""
        while self._stdout in self._kept and not (until_word and messages.RECEIPT in self.said):
            self._hear(None)

    def last_complaint(self) -> str:
        """Return the last line of what one that has ended complained of."""
        while self._kept and self._hear(_PATIENCE_S * 1000):
            pass
        return (
            self._complaints.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        )[-1]

    def _hear(self, patience_ms: float | None) -> bool:
        heard = self._poll.poll(patience_ms)
        for pipe, _ in heard:
            if data := os.read(pipe, _CHUNK):
                self._kept[pipe] += data
            else:
                self._poll.unregister(pipe)
                del self._kept[pipe]
        del self._complaints[:-_CHUNK]
        return bool(heard)


def stop(run_dir: Path, *, at_once: bool = False) -> str:
    """Ask the supervisor of a run to stop it, or end what a dead one left behind; return what was done, in words."""
    watch = Watch(run_dir)
    watch.catch_up()
    state = watch.state()
    watch.close()
    name = store.short_id(run_dir.name)
    if watch.summary.is_over:
        return f"{name} has already ended: {state}"
    if is_imported(run_dir):
        step = hint(run_dir.parent, "rm", name)
        return f"{name} comes from an archive, so nothing of it is running here; delete it: {step}"
    if not (watch.summary.records or watch.unreadable) and is_newborn(run_dir.name):
        raise UsageError(f"{name} is just being started; try again in a few seconds")
    if watch.summary.run is None or state == RunState.LOST:
        return _end_orphans(run_dir)
    if carried.read(run_dir):
        carried.ask_to_stop(run_dir, at_once=at_once)
        return f"asked {name} to stop{' at once' if at_once else ''}"
    supervisor = watch.summary.run.supervisor
    if watch.supervisor_presence == "elsewhere":
        raise UsageError(remote_runs.describe_elsewhere(run_dir, supervisor))
    _signal(run_dir, supervisor, signal.SIGINT if at_once else signal.SIGTERM)
    return f"asked {name} to stop{' at once' if at_once else ''}"


def _signal(run_dir: Path, supervisor: Identity, number: int) -> None:
    """Signal the supervisor of a run; UsageError if it is another process, or cannot be signalled."""
    name = store.short_id(run_dir.name)
    try:
        is_alive = not named_process.has_ended(supervisor.pid, supervisor.start)
        if is_alive and not named_process.is_supervisor_of(run_dir, supervisor.pid):
            raise UsageError(
                f"{name} was not asked to stop: its record names process {supervisor.pid}, which does not write that record; "
                f"another user may have put it there: see ls -ld {shlex.quote(show(str(run_dir)))}"
            )
        is_heard = is_alive and _send(supervisor, number)
    except PermissionError as problem:
        raise UsageError(
            f"{name} could not be asked to stop: it belongs to another user; ask that user to stop it"
        ) from problem
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise UsageError(
            f"{name} could not be asked to stop: its supervisor cannot be inspected ({why})"
        ) from problem
    if not is_heard:
        step = hint(run_dir.parent, "runs")
        raise UsageError(
            f"{name} could not be asked to stop: its supervisor has just ended; see how: {step}"
        )


def interrupt(front: Identity, run_dir: Path) -> bool:
    """Have the process that begins the points of a sweep end as by Ctrl-C; return whether it will.

    The run is the point that names the process. One that another user may have written is not believed.
    """
    try:
        if processes.ignores(front.pid, signal.SIGINT) or not named_process.is_front_of_sweep(
            run_dir, front.pid
        ):
            return False
        return _send(front, signal.SIGINT)
    except OSError:
        return False


def _send(process: Identity, number: int) -> bool:
    is_heard = processes.send(process.pid, process.start, number)
    processes.send(process.pid, process.start, signal.SIGCONT)  # a suspended one could not hear it
    return is_heard


def _end_orphans(run_dir: Path) -> str:
    """End what a dead supervisor left behind; return in words what that was.

    Processes of a run are known by its name. Who plants a folder with the name of a run of ours is not to end that run.
    """
    run = run_dir.name
    name = store.short_id(run)
    left = processes.names_left(run)
    if not left:
        return f"{name} is lost; none of its processes is left"
    if os.lstat(run_dir).st_uid != os.geteuid():
        raise UsageError(
            f"{name} is lost, and its folder belongs to another user, who can end its remaining processes"
        )
    stubborn = processes.end_marked(run)
    if stubborn:
        raise ScenarioError(f"could not end {', '.join(map(show, stubborn))}")
    return f"{name} is lost; ended its remaining processes: {', '.join(map(show, left))}"
