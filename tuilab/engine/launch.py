"""Start runs and stop them, for every client."""

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
_PATIENCE_S = 5.0  # for the last output of a supervisor that has ended
_VALUES_LIMIT = 100_000  # bytes of all parameters: half of a message to a worker


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
    """Return the order for one run of a scenario; parameters not in `given` have their defaults.

    Without `repeats`, a budget or `is_quick`, a scenario with claims about time gets REPEATS
    processes, which are enough for a confidence interval. Raises UsageError if the scenario has an
    error, or if a value is invalid or too large.
    """
    if scenario.error:
        raise UsageError(
            f"{show(scenario.id)} cannot be run: {show(scenario.error)}; see: tuilab check"
            f" {show(scenario.path)}"
        )
    overrides = default_overrides(scenario.params, is_quick=is_quick) | given
    values = check_values(scenario.params, overrides)
    _check_size(scenario, values)
    changed = []
    secrets = []
    for param in scenario.params:
        if values[param.name] != param.default:
            changed.append(param.name)
        if _is_secret(param, values[param.name]):
            secrets.append(param.name)
    claims = [claim for claim in scenario.claims if claim.key or "{" not in claim.text]
    looks: list[int] = []
    if budget_s and not repeats:
        looks = list(PLANNED_ANALYSES)
    return RunOrder(
        root=str(root.absolute()),
        scenario=scenario.id,
        topic=scenario.topic,
        title=scenario.title,
        path=str(Path(scenario.path).absolute()),
        params=values,
        changed=changed,
        secrets=secrets,
        claims=[claim.text for claim in claims],
        claim_keys=[claim.key for claim in claims],
        repeats=repeats or _usual_repeats(scenario, budget_s, is_quick=is_quick),
        has_usual_repeats=not repeats,
        looks=looks,
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


def _usual_repeats(scenario: Scenario, budget_s: float | None, *, is_quick: bool) -> int:
    """Return how many repeats a run has if the user asked for no number."""
    if budget_s:
        return PLANNED_ANALYSES[-1]
    if scenario.is_timed and not is_quick:
        return REPEATS
    return 1


def _is_secret(param: Param, value: Scalar) -> bool:
    """Say whether a value must not be recorded; a default is in the source anyway."""
    if param.type != "str" or value in ("", param.default):
        return False
    return is_secret_value(param.name, str(value))


def _check_size(scenario: Scenario, values: dict[str, Scalar]) -> None:
    """Raise UsageError for claims and parameters that are too long for a record or a message."""
    name = show(scenario.id)
    for claim in scenario.claims:
        if len(claim.text) > CLAIM_LIMIT:
            raise UsageError(
                f"{name}: a claim takes up to {CLAIM_LIMIT} characters; "
                f"{show(claim.text, 60)} has {len(claim.text)}"
            )
    sizes = {name: len(messages.pack({name: value})) for name, value in values.items()}
    total = sum(sizes.values())
    if total > _VALUES_LIMIT:
        longest = show(max(sizes, key=lambda param: sizes[param]), 60)
        raise UsageError(
            f"{name}: parameters may have {_VALUES_LIMIT} bytes together, not {total}; the longest"
            f" is {longest}"
        )


def start(
    run_order: RunOrder, spare: Spare | None = None
) -> tuple[Path, "subprocess.Popen[bytes]"]:
    """Start a supervisor, which outlives this process; return the run folder and its process.

    `spare` is a supervisor from `prepare`. It gets the order, or is dismissed if it cannot take it.
    Descriptors that the command inherits are closed here. Raises ScenarioError if the supervisor
    does not answer, and a TuilabError with the reason and exit code of the supervisor if it
    refuses.
    """
    descriptors = run_order.command.descriptors if run_order.command else []
    if spare and (descriptors or not spare.is_fit()):
        spare.dismiss()
        spare = None
    if spare:
        supervisor = spare.supervisor
    else:
        supervisor = spawn_supervisor(descriptors=descriptors)
    try:
        receipt = _hand_over(supervisor, run_order)
    except ScenarioError:
        if not spare:
            _await_exit(supervisor)
            raise
        spare.dismiss()
        return start(run_order)
    if receipt.error:
        _await_exit(supervisor)
        failure = TuilabError(receipt.error)
        failure.exit_code = type(failure.exit_code)(receipt.exit_code)
        raise failure
    for descriptor in descriptors:
        os.close(descriptor)  # so that only the command has it open, and its end is noticed
    return Path(receipt.run_dir), supervisor


def check_outlived() -> None:
    """Raise UsageError where a detached run would end at once."""
    if first_process.is_container_main():
        raise UsageError(
            "a detached run would end at once: tuilab is the first process of this container, which"
            " ends with it; run without --detach, or from a shell in the container"
        )


def _await_exit(supervisor: "subprocess.Popen[bytes]") -> None:
    """Wait a moment for a supervisor that is about to exit."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        supervisor.wait(5)


def _hand_over(supervisor: "subprocess.Popen[bytes]", run_order: RunOrder) -> Receipt:
    """Send an order to a supervisor, tell it to begin, and return the receipt.

    Its streams are closed afterwards. Raises ScenarioError if there is no receipt, with the last
    line that the supervisor printed.
    """
    assert supervisor.stdin and supervisor.stdout and supervisor.stderr
    with supervisor.stdin, supervisor.stdout, supervisor.stderr:
        reader = _AnswerReader(supervisor.stdout, supervisor.stderr)
        with contextlib.suppress(BrokenPipeError):  # it died; its output says why
            supervisor.stdin.write(messages.pack(run_order) + b"\n")
        reader.read(until_receipt=True)
        OneByOne.wait()  # from here on the run can begin, so Ctrl-C has to stop it
        with contextlib.suppress(BrokenPipeError):
            supervisor.stdin.write(messages.GO)
        reader.read()  # to its end: the supervisor closes its stdout and lives on
        _, _, answer = reader.output.partition(messages.RECEIPT)
        try:
            receipt: Receipt = messages.unpack(bytes(answer), Receipt)
        except ValueError as problem:
            raise ScenarioError(
                f"the supervisor did not start: {show(reader.last_complaint())}"
            ) from problem
    return receipt


class _AnswerReader:
    """Reads stdout and stderr of a supervisor at the same time.

    A full stderr, for example with LD_DEBUG, would block it.
    """

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.output = bytearray()
        self._complaints = bytearray()
        self._buffers = {stdout.fileno(): self.output, stderr.fileno(): self._complaints}
        self._stdout = stdout.fileno()
        self._poll = select.poll()
        for pipe in self._buffers:
            self._poll.register(pipe, select.POLLIN)

    def read(self, *, until_receipt: bool = False) -> None:
        """Read stdout to its end, or until a receipt begins."""
        while self._stdout in self._buffers:
            if until_receipt and messages.RECEIPT in self.output:
                return
            self._read_once(None)

    def last_complaint(self) -> str:
        """Wait for the end of stderr, and return its last line.

        The supervisor has ended, or is about to end.
        """
        while self._buffers and self._read_once(_PATIENCE_S * 1000):
            pass
        lines = self._complaints.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _read_once(self, patience_ms: float | None) -> bool:
        """Wait for output, read it, and return whether there was any event."""
        ready = self._poll.poll(patience_ms)
        for pipe, _ in ready:
            data = os.read(pipe, _CHUNK)
            if data:
                self._buffers[pipe] += data
            else:
                self._poll.unregister(pipe)
                del self._buffers[pipe]
        del self._complaints[:-_CHUNK]
        return bool(ready)


def stop(run_dir: Path, *, at_once: bool = False) -> str:
    """Ask the supervisor of a run to stop it, or end what a dead one left; return what was done.

    A run that has already ended is no error. Raises UsageError if the run cannot be stopped from
    here, ScenarioError if a process that was left cannot be ended.
    """
    done = _ask_or_clean_up(run_dir, at_once=at_once)
    if not done:  # the run ended while its record was read, so the record now says how
        done = _ask_or_clean_up(run_dir, at_once=at_once)
    if not done:
        name = store.short_id(run_dir.name)
        step = hint(run_dir.parent, "runs")
        raise UsageError(
            f"{name} could not be asked to stop: its supervisor has just ended; see how: {step}"
        )
    return done


def _ask_or_clean_up(run_dir: Path, *, at_once: bool) -> str:
    """Do what `stop` does. Return an empty string if the supervisor ended before it was asked.

    Raises UsageError and ScenarioError as `stop` does.
    """
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
    number = signal.SIGINT if at_once else signal.SIGTERM
    if not _signal(run_dir, supervisor, number):
        return ""
    return f"asked {name} to stop{' at once' if at_once else ''}"


def _signal(run_dir: Path, supervisor: Identity, number: int) -> bool:
    """Signal the supervisor of a run, and return whether it was still alive.

    Raise UsageError with the reason if it must not or cannot be signalled.
    """
    name = store.short_id(run_dir.name)
    try:
        is_alive = not named_process.has_ended(supervisor.pid, supervisor.start)
        if is_alive and not named_process.is_supervisor_of(run_dir, supervisor.pid):
            raise UsageError(
                f"{name} was not asked to stop: its record names process {supervisor.pid}, which"
                " does not write that record; another user may have put it there: see ls -ld"
                f" {shlex.quote(show(str(run_dir)))}"
            )
        return is_alive and _send(supervisor, number)
    except PermissionError as problem:
        raise UsageError(
            f"{name} could not be asked to stop: it belongs to another user; ask that user to"
            " stop it"
        ) from problem
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise UsageError(
            f"{name} could not be asked to stop: its supervisor cannot be inspected ({why})"
        ) from problem


def interrupt(front: Identity, run_dir: Path) -> bool:
    """Interrupt the client of a sweep as Ctrl-C does, and return whether it will end.

    `front` is that client, as the record of the point in `run_dir` names it. The process is
    checked, because another user may have written the record. False also if it ignores SIGINT, is
    gone, or cannot be inspected.
    """
    try:
        if processes.ignores(front.pid, signal.SIGINT):
            return False
        if not named_process.is_front_of_sweep(run_dir, front.pid):
            return False
        return _send(front, signal.SIGINT)
    except OSError:
        return False


def _send(process: Identity, number: int) -> bool:
    """Signal a process and let it continue if it is suspended; return False if it is gone."""
    is_sent = processes.send(process.pid, process.start, number)
    # A suspended process would not react.
    processes.send(process.pid, process.start, signal.SIGCONT)
    return is_sent


def _end_orphans(run_dir: Path) -> str:
    """End the processes that a dead supervisor left behind, and return a sentence about them.

    They are found by the name of the run. The owner of the folder is checked, so that nobody can
    end our run with a folder of the same name: UsageError if it belongs to another user.
    ScenarioError if a process cannot be ended.
    """
    run = run_dir.name
    name = store.short_id(run)
    remaining = processes.names_left(run)
    if not remaining:
        return f"{name} is lost; none of its processes is left"
    if os.lstat(run_dir).st_uid != os.geteuid():
        raise UsageError(
            f"{name} is lost, and its folder belongs to another user, who can end its remaining"
            " processes"
        )
    stubborn = processes.end_marked(run)
    if stubborn:
        names = ", ".join(show(process) for process in stubborn)
        raise ScenarioError(f"could not end {names}")
    names = ", ".join(show(process) for process in remaining)
    return f"{name} is lost; ended its remaining processes: {names}"
