"""What a run says of itself never steers the terminal that shows it; what happens to its folder is told."""

import math
from pathlib import Path

import pytest

from tests.engine import write_scenario
from tests.faults.fabricated_runs import fabricate_run, run_started
from tests.faults.fronts import LOOKS, Open, check_looks
from tests.faults.oracle import check
from tests.faults.sites import Site, reach_stage
from tests.tui.terminals import Terminal
from tuilab.record import events

pytestmark = pytest.mark.faults

POINTERS = ("", "default", "pointer", "text")  # pyte takes the shape of the pointer for a title


EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x85\x08\r\x7f\x0e\x1bP\u202e\u2028\u2066\ufeff [/bold] [red] [@click=app.bell]x[/] $x {y}"


HOSTILE = f"""
POINTERS = ("", "default", "pointer", "text")  # pyte takes the shape of the pointer for a title
EVIL = {EVIL!r}
print(EVIL)
print(EVIL, file=sys.stderr, flush=True)
lab.stage(EVIL)
lab.progress(1, 2, unit=EVIL)
lab.text(EVIL, title=EVIL)
for step in range(30): lab.log(step, arm=EVIL, **{{EVIL: step}})
lab._journal.append(events.ImageShown(title=EVIL, rows=2, cols=2, cells="AAECAw==", low=0.0, high=3.0, arm=EVIL))
lab.claim("evil", EVIL, equals="x")
lab.claim("lacking", lacks=EVIL)
lab.artifact("a.txt", EVIL)
lab.stage("on")
while not os.path.exists(os.environ["GO"]): time.sleep(0.01)
raise ValueError(EVIL)
"""


def hostile_scenario(folder: Path) -> Path:
    """Write a scenario whose lesson, parameter and all that it records try to steer a terminal."""
    path = write_scenario(
        folder, HOSTILE, "from tuilab.record import events", claims={"evil": EVIL}
    )
    text = path.read_text()
    path.write_text(
        text.replace(
            "A scenario for a test.", "A [red]lesson\x1b[2J [/foo].\n\n## Try next\n\x1b[2J [/foo]"
        ).replace("lab: Lab", "lab: Lab, word: str = '[/x] \x1b[2J'")
    )
    return path


def check_steady(term: Terminal, *words: str) -> None:
    """Look at a run in every way, leave, and check that nothing but frames was ever sent."""
    term.wait_for(*words)
    check_looks(term, LOOKS)
    term.type("?")
    term.wait_for("esc")
    term.type("\x1b[27u")
    check_looks(term, [])
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    assert term.screen.title.removeprefix(";") in POINTERS and (
        term.screen.icon_name,
        term.screen.charset,
    ) == ("", 0)
    assert b"owned\x07" not in term.sent


def test_52_53_nothing_that_a_run_says_steers_the_terminal(
    site: Site, screens: Open, go: Path
) -> None:
    path = hostile_scenario(site.folder)
    live = screens("run", str(path), "--word", EVIL)
    run_dir = reach_stage(site, "on")
    check_steady(live, "running", "[/bold] [red]")
    attached = screens("attach")
    attached.wait_for("running", "[/bold] [red]")
    go.touch()
    check_steady(attached, "failed", "ValueError", "[/bold] [red]")
    again = screens("replay")
    check_steady(again, "[/bold] [red]", " s of ")
    check(site, run_dir, "failed")


def test_52_53_nothing_in_a_made_up_record_steers_the_terminal(site: Site, screens: Open) -> None:
    """What no scenario of ours could record, as it may come from another box."""
    run_dir = fabricate_run(
        site,
        run_started(scenario=EVIL, topic=EVIL, title=EVIL, params={EVIL: EVIL}, changed=[EVIL], claims=[EVIL], argv=[EVIL]),
        events.StateChanged(state="running", reason=EVIL),
        events.WorkerStarted(writer=EVIL, pid=1, start=1, arm=EVIL, env={EVIL: EVIL}, prefix=[EVIL]),
        events.EnvironmentRecorded(part="box", facts={EVIL: EVIL}),
        events.GpuFound(uuid=EVIL, index=0, name=EVIL, slice=EVIL),
        events.XidReported(uuid=EVIL, xid=31),
        events.Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=10, gpus={EVIL: {"memory_used_bytes": 5.0, EVIL: 1.0}}),
        events.Unavailable(what="gpu", reason=EVIL),
        events.Unavailable(what="sampler", reason=EVIL),
        events.StageEntered(name=EVIL),
        events.Logged(s=1, v={EVIL: 1.0}, a=EVIL),
        events.Logged(s=2, v={EVIL: math.nan, "big": 1e308}, a=EVIL),
        events.Logged(s=-(2**63), v={EVIL: -math.inf, "big": -1e308}, a=EVIL),
        events.Progressed(done=2**62, total=1, unit=EVIL),
        events.ClaimDeclared(text=EVIL, over=EVIL, under=EVIL, op="at_least", bound=math.inf),
        events.ClaimMeasured(text=EVIL + "2", got=events.Measured(words=EVIL), op="equals", want=events.Measured(words=EVIL), unit=EVIL),
        events.ClaimNotTestable(text=EVIL + "3", needs=EVIL),
        events.RaceStarted(arms=[EVIL], threads=1, device=EVIL, loops={EVIL: 1}),
        events.BlockTimed(arm=EVIL, round=0, slot=0, loops=1, wall_ns=2**62, cpu_ns=0),
        events.RaceFinished(arms=[EVIL], is_same=False, difference=EVIL),
        events.MemoryMeasured(name=EVIL, values={EVIL: math.nan}, arm=EVIL),
        events.ArmFinished(arm=EVIL, writer=EVIL, elapsed_s=math.inf, error=EVIL),
        events.TextShown(text=EVIL * 1000, title=EVIL),
        events.ImageShown(title=EVIL, rows=2**62, cols=2**62, cells=EVIL, low=math.nan, high=-math.inf, arm=EVIL),
        events.ImageShown(title="", rows=1, cols=2, cells="AP8=", low=1e308, high=-1e308),
        events.VerdictReached(text=EVIL, verdict="SUPPORTED", rule="x", why=EVIL, estimate=math.nan, low=-math.inf, high=math.inf),
        events.BoxLacked(needs=EVIL),
        events.ScenarioFailed(type=EVIL, message=EVIL, traceback=EVIL * 100, hint=EVIL),
        events.SamplerEnded(reason=EVIL, restarts=3),
        events.WorkerExited(writer=EVIL, code=1, reason=EVIL, fault=EVIL),
        events.StateChanged(state="failed", reason=EVIL),
    )  # fmt: skip
    (run_dir / "stdout.log").write_text(EVIL * 100)
    (run_dir / "stderr.log").write_bytes(b"\xff\x9b" + EVIL.encode() * 100)
    for verb in ("attach", "replay"):
        check_steady(screens(verb, columns=200, rows=60), "[/bold]", "quit")
