"""Faults: signals to the processes of a run, at any moment of it."""

import signal
from collections.abc import Callable

from tests.engine import look, until
from tests.faults.oracle import view
from tests.faults.soaked.place import HOLDS, ExpectedRun, Place
from tests.faults.victims import is_suspended, supervisor_of

# Children that outlive a worker unless they are ended: one has a session of its own, one a queue.
CHILDREN = """
import multiprocessing
fork = multiprocessing.get_context("fork")
queue = fork.Queue()
fork.Process(target=queue.get, daemon=True).start()
subprocess.Popen(["sleep", "600"], start_new_session=True)
"""


def kill_supervisor(place: Place) -> list[ExpectedRun]:
    run_dir = place.begin(place.scenario(CHILDREN))
    place.wait_for_moment(run_dir)
    place.signal_supervisor(run_dir, place.chance.choice([signal.SIGKILL, signal.SIGSEGV]))
    return [ExpectedRun(run_dir, ("lost", "succeeded"))]


def end_supervisor(place: Place) -> list[ExpectedRun]:
    run_dir = place.begin(place.scenario(CHILDREN))
    place.wait_for_moment(run_dir)
    place.signal_supervisor(run_dir, place.chance.choice([signal.SIGTERM, signal.SIGINT]))
    return [ExpectedRun(run_dir, ("stopped", "succeeded"))]


def bother_supervisor(place: Place) -> list[ExpectedRun]:
    """Send a signal that does not ask the supervisor to stop: the run continues."""
    run_dir = place.begin(place.scenario())
    place.wait_for_moment(run_dir)
    harmless = [signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGPIPE]
    place.signal_supervisor(run_dir, place.chance.choice(harmless))
    return [ExpectedRun(run_dir, ("succeeded",))]


def suspend_supervisor(place: Place) -> list[ExpectedRun]:
    """Suspend the supervisor. Then stop the run, or let the supervisor continue."""
    run_dir = place.begin(place.scenario(CHILDREN))
    place.wait_for_moment(run_dir)
    place.signal_supervisor(run_dir, signal.SIGSTOP)
    if place.chance.random() < 0.5:
        view("stop", run_dir.name)
        return [ExpectedRun(run_dir, ("stopped", "succeeded"))]
    place.signal_supervisor(run_dir, signal.SIGCONT)
    return [ExpectedRun(run_dir, ("succeeded",))]


def kill_supervisor_and_sampler(place: Place) -> list[ExpectedRun]:
    """Kill both: no process is left to end the children of the scenario, so `stop` ends them."""
    run_dir = place.begin(place.scenario(f"{CHILDREN}{HOLDS}"))
    place.wait_at_gate(run_dir)
    pid, start = supervisor_of(run_dir)
    place.signal_supervisor(run_dir, signal.SIGSTOP)  # it would start another sampler
    until(lambda: is_suspended(pid))
    place.signal_children(run_dir, "tuilab.engine.sampler")
    place.signal_supervisor(run_dir, signal.SIGKILL)
    until(lambda: start not in place.site.living().values())
    code, text = view("stop", run_dir.name)
    assert code == 0 and "is lost" in text, text
    return [ExpectedRun(run_dir, ("lost",))]


def kill_sampler(place: Place) -> list[ExpectedRun]:
    run_dir = place.begin(place.scenario())
    place.wait_for_moment(run_dir)
    place.signal_children(run_dir, "tuilab.engine.sampler")
    return [ExpectedRun(run_dir, ("succeeded",))]


def kill_judge(place: Place) -> list[ExpectedRun]:
    run_dir = place.begin(place.scenario())
    pid, _ = supervisor_of(run_dir)
    until(lambda: place.logged(run_dir) or look(run_dir).summary.is_over)
    while pid in place.site.living():
        place.signal_children(run_dir, "tuilab.engine.judge")
    return [ExpectedRun(run_dir, ("succeeded", "failed"))]


def kill_worker(place: Place) -> list[ExpectedRun]:
    run_dir = place.begin(place.scenario(CHILDREN))
    place.wait_for_moment(run_dir)
    fatal = [
        signal.SIGKILL,
        signal.SIGSEGV,
        signal.SIGABRT,
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGXCPU,
    ]
    place.signal_children(run_dir, "tuilab.lab.worker", place.chance.choice(fatal))
    return [ExpectedRun(run_dir, ("killed", "failed", "succeeded"))]


def suspend_worker(place: Place) -> list[ExpectedRun]:
    run_dir = place.begin(place.scenario(HOLDS))
    place.wait_at_gate(run_dir)
    place.signal_children(run_dir, "tuilab.lab.worker", signal.SIGSTOP)
    place.open_gate()
    if place.chance.random() < 0.5:
        view("stop", run_dir.name, *place.chance.choice([(), ("--now",)]))
        return [ExpectedRun(run_dir, ("stopped",))]
    place.signal_children(run_dir, "tuilab.lab.worker", signal.SIGCONT)
    return [ExpectedRun(run_dir, ("succeeded",))]


def stop(place: Place) -> list[ExpectedRun]:
    """Stop a run by `tuilab stop`, once or twice, at any moment."""
    run_dir = place.begin(place.scenario(CHILDREN))
    place.wait_for_moment(run_dir)
    for _ in range(place.chance.randint(1, 2)):
        view("stop", run_dir.name, *place.chance.choice([(), ("--now",)]))
    return [ExpectedRun(run_dir, ("stopped", "succeeded"))]


FAULTS: tuple[Callable[[Place], list[ExpectedRun]], ...] = (
    kill_supervisor, end_supervisor, bother_supervisor, suspend_supervisor, kill_supervisor_and_sampler, kill_sampler,
    kill_judge, kill_worker, suspend_worker, stop,
)  # fmt: skip
