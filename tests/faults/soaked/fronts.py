"""Faults: fronts that are killed, that nobody hears, whose terminal goes away, and that do something while a run goes on."""

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
    """Wait for a run that was not there before and return its folder."""
    return until(
        lambda: next((run for run in store.list_runs(place.site.root) if run not in before), None)
    )


def signal_front(place: Place) -> list[ExpectedRun]:
    """Ctrl-C stops the run; whatever else ends its front does not touch it."""
    before = store.list_runs(place.site.root)
    front = place.site.start("run", str(place.scenario()), "--headless")
    run_dir = new_run(place, before)
    place.wait_for_moment(run_dir)
    number = place.chance.choice(
        [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGQUIT]
    )
    front.send_signal(number)
    out, err = front.communicate(timeout=60)
    assert number == signal.SIGKILL or is_well(done(front, out, err)) or front.returncode < 0, (
        front.returncode,
        out,
        err,
    )
    assert "Traceback" not in err, err
    return [
        ExpectedRun(
            run_dir,
            ("stopped", "succeeded") if number == signal.SIGINT else ("succeeded", "stopped"),
        )
    ]


def signal_front_twice(place: Place) -> list[ExpectedRun]:
    """Whose scenario does not hear Ctrl-C."""
    before = store.list_runs(place.site.root)
    front = place.site.start(
        "run",
        str(place.scenario(f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{HOLDS}")),
        "--headless",
    )
    run_dir = new_run(place, before)
    place.wait_at_gate(run_dir)
    front.send_signal(signal.SIGINT)
    until(lambda: look(run_dir).state != "running")
    front.send_signal(signal.SIGINT)
    out, err = front.communicate(timeout=60)
    assert front.returncode == 130 and is_well(done(front, out, err)), (front.returncode, out, err)
    return [ExpectedRun(run_dir, ("stopped",))]


def hear_nothing(place: Place) -> list[ExpectedRun]:
    """Standard streams that are full, closed, or end early."""
    before = store.list_runs(place.site.root)
    words = [
        "run",
        str(place.scenario("print('x' * 10_000)")),
        *place.chance.choice([("--headless",), ("--jsonl",), ("--json",)]),
    ]
    command = ["bash", "-c", place.chance.choice(DEAF), "-", TUILAB]
    front = place.site.run(*words, command=command)
    assert "Traceback" not in front.stderr, front.stderr
    return [ExpectedRun(new_run(place, before), ("succeeded",))]


def close_terminal(place: Place) -> list[ExpectedRun]:
    """The terminal of a front goes away; the run goes on."""
    before = store.list_runs(place.site.root)
    opened: list[Terminal] = []
    terminal = open_terminal(
        place.site, opened, "run", str(place.scenario(HOLDS)), "--headless", is_read=False
    )
    run_dir = new_run(place, before)
    place.wait_at_gate(run_dir)
    os.close(terminal.ours)
    terminal.front.wait(timeout=60)
    place.open_gate()
    return [ExpectedRun(run_dir, ("succeeded",))]


def end_screens(place: Place) -> list[ExpectedRun]:
    """The screens that started a run are killed, hung up on, or left; the run goes on."""
    before = store.list_runs(place.site.root)
    screens = Screens(TUILAB, "run", str(place.scenario(HOLDS)), env=place.site.environment)
    run_dir = new_run(place, before)
    place.wait_at_gate(run_dir)
    screens.wait_for("running")
    match place.chance.randrange(3):
        case 0:
            screens.process.send_signal(
                place.chance.choice(
                    [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGUSR1]
                )
            )
        case 1:
            screens.hang_up()
        case _:
            screens.type("q")
    screens.wait()
    screens.close()
    place.open_gate()
    return [ExpectedRun(run_dir, ("succeeded",))]


def move_clock(place: Place) -> list[ExpectedRun]:
    """The clock on the wall jumps while a run goes on, or is wrong from the start."""
    folder = place.folder("clock")
    library, wall = folder / "wall.so", folder / "wall"
    if not library.exists():
        subprocess.run(
            [
                "gcc",
                "-shared",
                "-fPIC",
                "-o",
                library,
                CHECKOUT / "tests" / "fakes" / "wall_clock.c",
            ],
            check=True,
        )
    wall.write_text(place.chance.choice(["0", "-86400", "3600"]))
    run_dir = place.site.detach(
        place.scenario(HOLDS), env={"LD_PRELOAD": str(library), "TUILAB_WALL": str(wall)}
    )
    place.wait_at_gate(run_dir)
    wall.write_text(place.chance.choice(["-3600", "86400", "not a number"]))
    place.open_gate()
    return [ExpectedRun(run_dir, ("succeeded",))]


def attach_again(place: Place) -> list[ExpectedRun]:
    """Whoever follows a run is killed, and comes back."""
    run_dir = place.begin(place.scenario(HOLDS))
    place.wait_at_gate(run_dir)
    first = place.site.start("attach", run_dir.name, "--jsonl")
    assert first.stdout is not None
    first.stdout.readline()  # it follows by now
    first.send_signal(
        place.chance.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    )
    _, err = first.communicate(timeout=60)
    assert "Traceback" not in err, err
    place.open_gate()
    again = place.site.run("attach", run_dir.name, "--json", "--quiet")
    assert json.loads(again.stdout)["runs"][0]["state"] == "succeeded" and again.returncode == 0
    return [ExpectedRun(run_dir, ("succeeded",))]


def start_at_once(place: Place) -> list[ExpectedRun]:
    """Two fronts on one folder, of which one may be killed."""
    before = store.list_runs(place.site.root)
    fronts = [
        place.site.start("run", str(place.scenario(name=f"at_once_{number}")), "--headless")
        for number in (1, 2)
    ]
    until(lambda: len(store.list_runs(place.site.root)) == len(before) + 2)
    runs = [run for run in store.list_runs(place.site.root) if run not in before]
    if place.chance.random() < 0.5:
        fronts[0].kill()
    for front in fronts:
        front.communicate(timeout=60)
    return [ExpectedRun(run, ("succeeded", "stopped")) for run in runs]


def export_meanwhile(place: Place) -> list[ExpectedRun]:
    """What is packed of a run that goes on is not unpacked beside it: there would be two with the same processes."""
    run_dir = place.begin(place.scenario(HOLDS))
    place.wait_at_gate(run_dir)
    folder = place.folder("packed")
    exported, text = view("export", run_dir.name, "-o", str(folder / "half.tgz"))
    imported, why = view("import", str(folder / "half.tgz"), "--root", str(folder / "runs"))
    place.open_gate()
    assert exported == 0, text
    assert imported == 2 and "an unfinished run" in why and not store.list_runs(folder / "runs"), (
        why
    )
    shutil.rmtree(folder)
    return [ExpectedRun(run_dir, ("succeeded",))]


def report_meanwhile(place: Place) -> list[ExpectedRun]:
    run_dir = place.begin(place.scenario())
    place.wait_for_moment(run_dir)
    for words in (
        ("report", run_dir.name, "-o", "-", "--as", "html"),
        ("attach", "--headless", run_dir.name),
        ("verify", run_dir.name),
    ):
        view(*words)
    return [ExpectedRun(run_dir, ("succeeded",))]


def done(front: "subprocess.Popen[str]", out: str, err: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.CompletedProcess(front.args, front.returncode, out, err)


FAULTS: tuple[Callable[[Place], list[ExpectedRun]], ...] = (
    signal_front, signal_front_twice, hear_nothing, close_terminal, end_screens, attach_again, start_at_once,
    export_meanwhile, report_meanwhile, *([move_clock] if shutil.which("gcc") else []),
)  # fmt: skip
