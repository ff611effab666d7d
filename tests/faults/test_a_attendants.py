"""Sampler and judge: whatever becomes of them, the run is not hurt."""

import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.engine import look, until, write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest, reach_stage
from tests.faults.victims import child_of, is_suspended, kill, supervisor_of
from tuilab.record import presence

if TYPE_CHECKING:
    from tests.fakes.clock import Clock

pytest_plugins = ["tests.fakes.clock"]
pytestmark = pytest.mark.faults


def test_a_sampler_that_stops_or_dies_is_started_again_three_times_and_the_run_is_not_hurt(
    clock: "Clock", site: Site
) -> None:
    go = site.folder / "go"
    body = f'lab.stage("on")\nfor step in range(10**6):\n    lab.log(step, half=step / 2)\n    time.sleep(0.01)\n    if os.path.exists({str(go)!r}): break'
    run_dir = site.detach(write_scenario(site.folder, body))
    reach_stage(site, "on")
    supervisor, _ = supervisor_of(run_dir)

    def sampler() -> tuple[int, int] | None:
        return next(child_of(supervisor, "tuilab.engine.sampler"), None)

    def is_gone(pid: int) -> bool:
        return presence.start_time(pid) is None

    for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGSEGV, signal.SIGKILL):
        victim = until(sampler)
        kill(victim, number=number)
        if number == signal.SIGSTOP:
            until(partial(is_suspended, victim[0]))
            clock.put_forward(10)  # of silence
        until(partial(is_gone, victim[0]))
    until(
        lambda: (
            look(run_dir).summary.unavailable.get("sampler")
            == "ended by SIGKILL; nobody asked for that: out of memory? (restarted 3 times)"
        )
    )
    nobody_again = sampler()
    go.touch()

    streams = sorted(stream.stem for stream in (run_dir / "journal").glob("sampler*"))
    check(site, run_dir, "succeeded", is_whole=True)
    assert nobody_again is None
    assert set(streams) <= {"sampler", "sampler-1", "sampler-2", "sampler-3"}


def test_a_judge_that_dies_costs_the_verdicts_and_nothing_else(site: Site) -> None:
    (site.folder / "deadly" / "scipy").mkdir(parents=True)
    (site.folder / "deadly" / "scipy" / "__init__.py").write_text(
        "import os; os.kill(os.getpid(), 9)"
    )
    body = """
lab.record(events.ClaimDeclared(text="a is slower", over="a", under="b", op="at_least", bound=1.0))
lab.record(events.RaceStarted(arms=["a", "b"], threads=1, device="cpu", loops={"a": 1, "b": 1}))
for number in range(20): lab.record(events.BlockTimed(arm="ab"[number % 2], round=number // 2, slot=0, loops=1, wall_ns=1000, cpu_ns=1000))
lab.record(events.RaceFinished(arms=["a", "b"]))
"""
    path = write_scenario(site.folder, body, "from tuilab.record import events")
    deadly = f"{site.folder / 'deadly'}:{site.environment['PYTHONPATH']}"

    done = site.run("run", str(path), "--headless", "--quiet", env={"PYTHONPATH": deadly})

    summary = check(site, latest(site), "succeeded").summary
    assert is_well(done)
    assert (
        summary.unavailable["verdicts"]
        == "the judge: ended by SIGKILL; nobody asked for that: out of memory?"
    )


def test_what_the_sampler_started_is_not_taken_for_a_leftover(site: Site) -> None:
    """It asks git for the commit; a short run may be over before the answer is there."""
    (site.folder / "bin").mkdir()
    slow = site.folder / "bin" / "git"
    slow.write_text("#!/bin/sh\nsleep 600\n")
    slow.chmod(0o755)
    body = 'lab.arm("quick", quick)()\nuntil = time.monotonic() + 20\nwhile time.monotonic() < until and "sleep" not in " ".join(map(name, below())): time.sleep(0.01)'
    more = """
from tuilab.record.presence import descendants
from tuilab.engine.processes import name_of as name
def below(): return descendants(os.getppid())
def quick(lab): pass
"""
    path = write_scenario(site.folder, body, more)

    done = site.run(
        "run",
        str(path),
        "--headless",
        "--quiet",
        env={"PATH": f"{slow.parent}:{os.environ['PATH']}"},
    )

    assert "left behind" not in done.stdout
    assert check(site, latest(site), "succeeded").summary.leftover_count == 0
