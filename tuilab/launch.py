"""Starts runs and asks them to stop: what every front does, made the same way."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from tuilab import orders, processes, store
from tuilab.errors import CannotRecord, ScenarioError, TuilabError, UsageError
from tuilab.events import Scalar
from tuilab.orders import Receipt, RunOrder
from tuilab.params import check_values, quick_values
from tuilab.scenario import Scenario
from tuilab.text import show
from tuilab.watch import Watch

REPEATS = 6  # processes: the fewest that give an interval
LOOKS = (8, 16, 24, 32, 40)  # repeats after which a run with a budget may be decided


def order(
    scenario: Scenario,
    given: dict[str, Scalar],
    *,
    root: Path,
    repeats: int | None = None,
    budget_s: float | None = None,
    is_quick: bool = False,
    timeout_s: float | None = None,
    argv: list[str] | None = None,
) -> RunOrder:
    """Return the order for one run of a scenario with the params that were given; the others take their defaults.

    Claims about time want repeats: without a number, a budget or `quick` there are a few, enough for an interval.
    """
    if scenario.error:
        raise UsageError(f"{show(scenario.id)} cannot be run: {show(scenario.error)}; see tuilab check {show(scenario.path)}")
    values = check_values(scenario.params, {**(quick_values(scenario.params) if is_quick else {}), **given})
    defaults = {param.name: param.default for param in scenario.params}
    return RunOrder(
        root=str(root.absolute()),
        scenario=scenario.id,
        topic=scenario.topic,
        title=scenario.title,
        path=str(Path(scenario.path).absolute()),
        params=values,
        changed=[name for name, value in values.items() if value != defaults[name]],
        claims=[text for text in scenario.claims if "{" not in text],
        repeats=repeats or (LOOKS[-1] if budget_s else REPEATS if scenario.is_timed and not is_quick else 1),
        looks=list(LOOKS) if budget_s and not repeats else [],
        budget_s=budget_s,
        quick=is_quick,
        timeout_s=timeout_s,
        argv=argv or [],
    )


def start(run_order: RunOrder) -> tuple[Path, "subprocess.Popen[bytes]"]:
    """Start a supervisor and return the folder of its run; it lives on when this process does not."""
    try:
        supervisor = subprocess.Popen(
            [sys.executable, "-P", "-m", "tuilab.supervisor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as problem:
        raise CannotRecord(f"cannot start a supervisor process: {problem.strerror}") from problem
    assert supervisor.stdin and supervisor.stdout and supervisor.stderr
    with supervisor.stdin, supervisor.stdout, supervisor.stderr:
        with contextlib.suppress(BrokenPipeError):  # it died; what it said tells why
            supervisor.stdin.write(orders.pack(run_order))
            supervisor.stdin.close()
        said = supervisor.stdout.read()  # to its end: the supervisor lets go of it and lives on
        try:
            receipt: Receipt = orders.unpack(said, Receipt)
        except ValueError as problem:
            last = (supervisor.stderr.read().decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            raise ScenarioError(f"the supervisor did not start: {show(last)}") from problem
    if receipt.error:
        failure = TuilabError(receipt.error)
        failure.exit_code = type(failure.exit_code)(receipt.exit_code)
        raise failure
    return Path(receipt.run_dir), supervisor


def stop(run_dir: Path, *, at_once: bool = False) -> str:
    """Ask the supervisor of a run to stop it, or end what a dead one left behind; return what was done, in words."""
    watch = Watch(run_dir)
    while watch.refresh():
        pass
    state = watch.state()
    watch.close()
    name = store.short_id(run_dir.name)
    if watch.summary.is_over:
        return f"{name} is over already: {state}"
    if watch.summary.run is None or state == "lost":
        return _end_orphans(run_dir.name)
    supervisor = watch.summary.run.supervisor
    if watch.supervisor_presence == "elsewhere":
        raise UsageError(f"{name} runs on {show(supervisor.host)}; stop it there")
    number = signal.SIGINT if at_once else signal.SIGTERM
    if not processes.send(supervisor.pid, supervisor.start, number):
        raise UsageError(f"{name} could not be asked to stop: its supervisor is gone or belongs to another user")
    processes.send(supervisor.pid, supervisor.start, signal.SIGCONT)  # a suspended one could not hear it
    return f"asked {name} to stop{' at once' if at_once else ''}"


def _end_orphans(run: str) -> str:
    found = [processes.name_of(pid) for pid, _ in processes.marked(run)]
    if not found:
        return f"{store.short_id(run)} is lost; none of its processes is left"
    stubborn = processes.end_marked(run)
    if stubborn:
        raise ScenarioError(f"could not end {', '.join(map(show, stubborn))}")
    return f"{store.short_id(run)} is lost; ended what was left of it: {', '.join(map(show, found))}"
