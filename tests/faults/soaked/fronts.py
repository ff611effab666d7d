"""Faults of clients: they are killed, cannot write, lose their terminal, or work during a run."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.conftest import CHECKOUT, TUILAB
from tests.engine import look, until
from tests.faults.oracle import is_well, view
from tests.faults.ptys import Terminal, open_terminal
from tests.faults.soaked.place import HOLDS, ExpectedRun, Place
from tests.tui.terminals import Terminal as Screens
from tuilab.runs import store

DEAF = [
    '"$@" | head -1',
    '"$@" >/dev/full',
    '"$@" >&-',
    '"$@" 2>&-',
    '"$@" <&- >&- 2>&-',
    '"$@" 2>/dev/full',
]


def new_run(place: Place, before: list[Path]) -> Path:
    """Wait for a run that was not there before, and return its folder."""

    def find_new() -> Path | None:
        for run in store.list_runs(place.site.root):
            if run not in before:
                return run
        return None

    return until(find_new)


def signal_front(place: Place) -> list[ExpectedRun]:
    """End a client by a signal: only Ctrl-C stops the run."""
    before = store.list_runs(place.site.root)
    front = place.site.start("run", str(place.scenario()), "--headless")
    run_dir = new_run(place, before)
    place.wait_for_moment(run_dir)
    number = place.chance.choice(
        [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGQUIT]
    )
    front.send_signal(number)
    out, err = front.communicate(timeout=60)
    if number != signal.SIGKILL and front.returncode >= 0:
        assert is_well(done(front, out, err)), (front.returncode, out, err)
    assert "Traceback" not in err, err
    return [ExpectedRun(run_dir, ("stopped", "succeeded"))]


def signal_front_twice(place: Place) -> list[ExpectedRun]:
    """Press Ctrl-C twice while the scenario ignores SIGTERM."""
    before = store.list_runs(place.site.root)
    path = place.scenario(f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{HOLDS}")
    front = place.site.start("run", str(path), "--headless")
    run_dir = new_run(place, before)
    place.wait_at_gate(run_dir)
    front.send_signal(signal.SIGINT)
    until(lambda: look(run_dir).state != "running")
    front.send_signal(signal.SIGINT)
    out, err = front.communicate(timeout=60)
    assert front.returncode == 130 and is_well(done(front, out, err)), (front.returncode, out, err)
    return [ExpectedRun(run_dir, ("stopped",))]


def hear_nothing(place: Place) -> list[ExpectedRun]:
    """Give a client standard streams that are full, closed, or end early."""
    before = store.list_runs(place.site.root)
    path = place.scenario("print('x' * 10_000)")
    option = place.chance.choice(["--headless", "--jsonl", "--json"])
    command = ["bash", "-c", place.chance.choice(DEAF), "-", TUILAB]
    front = place.site.run("run", str(path), option, command=command)
    assert "Traceback" not in front.stderr, front.stderr
    return [ExpectedRun(new_run(place, before), ("succeeded",))]


def close_terminal(place: Place) -> list[ExpectedRun]:
    """Close the terminal of a client: the run continues."""
    before = store.list_runs(place.site.root)
    opened: list[Terminal] = []
    words = ("run", str(place.scenario(HOLDS)), "--headless")
    terminal = open_terminal(place.site, opened, *words, is_read=False)
    run_dir = new_run(place, before)
    place.wait_at_gate(run_dir)
    os.close(terminal.ours)
    terminal.front.wait(timeout=60)
    place.open_gate()
    return [ExpectedRun(run_dir, ("succeeded",))]


def end_screens(place: Place) -> list[ExpectedRun]:
    """Kill or leave the screens that started a run, or close their terminal: the run continues."""
    before = store.list_runs(place.site.root)
    screens = Screens(TUILAB, "run", str(place.scenario(HOLDS)), env=place.site.environment)
    run_dir = new_run(place, before)
    place.wait_at_gate(run_dir)
    screens.wait_for("running")
    match place.chance.randrange(3):
        case 0:
            deadly = [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGUSR1]
            screens.process.send_signal(place.chance.choice(deadly))
        case 1:
            screens.hang_up()
        case _:
            screens.type("q")
    screens.wait()
    screens.close()
    place.open_gate()
    return [ExpectedRun(run_dir, ("succeeded",))]


def move_clock(place: Place) -> list[ExpectedRun]:
    """Set the wall clock to a wrong time, and to another one during the run."""
    folder = place.folder("clock")
    library = folder / "wall.so"
    clock = folder / "wall"
    if not library.exists():
        source = CHECKOUT / "tests" / "fakes" / "wall_clock.c"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    clock.write_text(place.chance.choice(["0", "-86400", "3600"]))
    environment = {"LD_PRELOAD": str(library), "TUILAB_WALL": str(clock)}
    run_dir = place.site.detach(place.scenario(HOLDS), env=environment)
    place.wait_at_gate(run_dir)
    clock.write_text(place.chance.choice(["-3600", "86400", "not a number"]))
    place.open_gate()
    return [ExpectedRun(run_dir, ("succeeded",))]


def attach_again(place: Place) -> list[ExpectedRun]:
    """Kill a client that follows a run, and follow the run again."""
    run_dir = place.begin(place.scenario(HOLDS))
    place.wait_at_gate(run_dir)
    first = place.site.start("attach", run_dir.name, "--jsonl")
    assert first.stdout is not None
    first.stdout.readline()  # from here on, it follows the run
    deadly = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    first.send_signal(place.chance.choice(deadly))
    _, err = first.communicate(timeout=60)
    assert "Traceback" not in err, err
    place.open_gate()
    again = place.site.run("attach", run_dir.name, "--json", "--quiet")
    assert json.loads(again.stdout)["runs"][0]["state"] == "succeeded"
    assert again.returncode == 0
    return [ExpectedRun(run_dir, ("succeeded",))]


def start_at_once(place: Place) -> list[ExpectedRun]:
    """Start two clients on one folder, one of which may be killed."""
    before = store.list_runs(place.site.root)
    fronts = []
    for name in ("at_once_1", "at_once_2"):
        path = place.scenario(name=name)
        fronts.append(place.site.start("run", str(path), "--headless"))
    until(lambda: len(store.list_runs(place.site.root)) == len(before) + 2)
    runs = [run for run in store.list_runs(place.site.root) if run not in before]
    if place.chance.random() < 0.5:
        fronts[0].kill()
    for front in fronts:
        front.communicate(timeout=60)
    return [ExpectedRun(run, ("succeeded", "stopped")) for run in runs]


def export_meanwhile(place: Place) -> list[ExpectedRun]:
    """Export an unfinished run: it cannot be imported, as two runs would have the same processes."""
    run_dir = place.begin(place.scenario(HOLDS))
    place.wait_at_gate(run_dir)
    folder = place.folder("packed")
    exported, text = view("export", run_dir.name, "-o", str(folder / "half.tgz"))
    imported, refusal = view("import", str(folder / "half.tgz"), "--root", str(folder / "runs"))
    place.open_gate()
    assert exported == 0, text
    assert imported == 2 and "an unfinished run" in refusal, refusal
    assert not store.list_runs(folder / "runs")
    shutil.rmtree(folder)
    return [ExpectedRun(run_dir, ("succeeded",))]


def report_meanwhile(place: Place) -> list[ExpectedRun]:
    """Report, follow and verify a run that has not ended."""
    run_dir = place.begin(place.scenario())
    place.wait_for_moment(run_dir)
    view("report", run_dir.name, "-o", "-", "--as", "html")
    view("attach", "--headless", run_dir.name)
    view("verify", run_dir.name)
    return [ExpectedRun(run_dir, ("succeeded",))]


def done(front: "subprocess.Popen[str]", out: str, err: str) -> "subprocess.CompletedProcess[str]":
    """Return what `is_well` needs of a client that has ended."""
    return subprocess.CompletedProcess(front.args, front.returncode, out, err)


FAULTS: tuple[Callable[[Place], list[ExpectedRun]], ...] = (
    signal_front, signal_front_twice, hear_nothing, close_terminal, end_screens, attach_again, start_at_once,
    export_meanwhile, report_meanwhile,
)  # fmt: skip
if shutil.which("gcc"):  # it compiles a library
    FAULTS += (move_clock,)
