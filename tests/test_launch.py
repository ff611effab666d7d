"""Workers that are started ahead: a run that gets one starts at once, and nothing else about it is different."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine import (
    claims_section,
    do_first,
    look,
    newest,
    until,
    wait_for_stage,
    write_scenario,
)
from tests.engine import start as start_front
from tests.file_damage import damage
from tuilab.catalogue import catalog
from tuilab.catalogue.source import read
from tuilab.engine import launch, processes
from tuilab.engine import spare as spares
from tuilab.engine.create_run import open_run
from tuilab.engine.spare import Spare
from tuilab.errors import ScenarioError, UsageError
from tuilab.record import presence
from tuilab.record.summary import RunSummary
from tuilab.runs.run_name import RunName

# What a scenario could find out about the process it runs in.
SURROUNDINGS = """
import random, resource, torch, warnings
print("printed")
torch.manual_seed(1)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(50):
    loss = (model(torch.rand(8, 3)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    lab.log(step, loss=loss)
environment = dict(os.environ)
environment["TUILAB_RUN"] = str(environment["TUILAB_RUN"] == lab.artifact("a", "a").parent.parent.name)
lab.text(repr(sorted(environment.items())))
lab.text(repr((os.getcwd(), os.umask(0o077), os.getsid(0) == os.getpid(), os.nice(0), sys.flags, sys.argv[0], sys.path[:-1])))
lab.text(repr([signal.getsignal(number) for number in sorted(signal.valid_signals())]))
lab.text(repr((signal.pthread_sigmask(signal.SIG_BLOCK, []), resource.getrlimit(resource.RLIMIT_NOFILE))))
lab.text(repr(len(os.listdir("/proc/self/fd"))))
lab.text(repr((torch.get_num_threads(), torch.get_num_interop_threads(), len(os.listdir("/proc/self/task")))))
lab.text(repr((torch.get_default_dtype(), torch.is_grad_enabled(), torch.cuda.is_initialized(), warnings.filters)))
lab.claim("the-loss-is-what-it-is", loss, equals=0)
"""

EARLY = """
import sys
if "tuilab.lab.worker" in sys.orig_argv:
    print("before the order")
"""

# A daemon that is forked from a thread and leaves its session: neither the kernel nor the sampler ends it.
DAEMON = """
import threading
def breed():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
thread = threading.Thread(target=breed)
thread.start()
thread.join()
lab.stage("asleep")
time.sleep(600)
"""

TORCH = "import torch\n"  # only what begins so may get a process that has loaded it

NOTES_SPARES = """
import os, sys
if "tuilab.engine.early_start" in sys.orig_argv:
    with open({notes!r}, "a") as notes: notes.write(f"{{os.getpid()}} ")
"""

FRONT = "import time; from tuilab.engine import spare; print(spare.prepare().supervisor.pid, flush=True); time.sleep(600)"


@pytest.fixture
def prepare() -> Iterator[Callable[[], Spare]]:
    """Start a spare in the middle of a test: pytest changes the environment when a test begins."""
    made: list[Spare] = []

    def make() -> Spare:
        spare = spares.prepare()
        assert spare is not None
        made.append(spare)
        return spare

    yield make
    for spare in made:
        spare.dismiss()


def run(path: Path, root: Path, spare: Spare | None = None) -> RunSummary:
    """Run a scenario to its end."""
    run_dir, supervisor = start(path, root, spare)
    supervisor.wait()
    return look(run_dir).summary


def start(path: Path, root: Path, spare: Spare | None) -> tuple[Path, "subprocess.Popen[bytes]"]:
    (scenario,) = catalog.find(catalog.load([]), str(path))
    return launch.start(launch.order(scenario, {}, root=root), spare)


def warmth(summary: RunSummary) -> list[bool]:
    return [worker.started.was_warm for worker in summary.workers.values() if worker.started]


def worker_of(spare: Spare) -> tuple[int, int]:
    """Wait for the worker of a spare and return its pid and start time."""
    pid = until(lambda: presence.descendants(spare.supervisor.pid))[0]
    return pid, presence.start_time(pid) or 0


@pytest.mark.library
@pytest.mark.real_torch
def test_a_warm_run_records_what_a_cold_one_does(
    root: Path, tmp_path: Path, prepare: Callable[[], Spare], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random numbers, threads, environment, signals, files, output: a scenario cannot tell how it was started."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(EARLY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    path = write_scenario(tmp_path, SURROUNDINGS, TORCH)

    warm = run(path, root, prepare())
    cold = run(path, root)

    assert (warmth(warm), warmth(cold)) == ([True], [False])
    assert (warm.state, cold.state) == ("succeeded", "succeeded"), warm.reason
    assert [text.text for text in warm.texts] == [text.text for text in cold.texts]
    (ours,), (theirs,) = warm.series.values(), cold.series.values()
    assert (ours.steps, ours.lows, ours.highs) == (theirs.steps, theirs.lows, theirs.highs)
    assert [claim.measured[0].got for claim in warm.claims.values()] == [
        claim.measured[0].got for claim in cold.claims.values()
    ]
    assert warm.environment["torch"] == cold.environment["torch"]
    outputs = [(run_dir / "stdout.log").read_text() for run_dir in root.iterdir()]
    assert outputs == ["before the order\nprinted\n"] * 2


@pytest.mark.slow
def test_only_the_first_worker_of_a_run_is_warm(
    root: Path, tmp_path: Path, prepare: Callable[[], Spare]
) -> None:
    spare = prepare()
    path = write_scenario(
        tmp_path, 'lab.arm("one", body)()\nlab.log(0, x=1.0)', TORCH + "def body(lab): return 1\n"
    )

    summary = run(path, root, spare)

    assert summary.state == "succeeded", summary.reason
    assert warmth(summary) == [True, False]


def test_a_spare_leaves_to_the_scenario_what_it_imports_later(
    root: Path, tmp_path: Path, prepare: Callable[[], Spare]
) -> None:
    """Before that it may set what such a module reads when it is loaded: `TORCH_COMPILE_DISABLE` is one of dozens."""
    path = write_scenario(
        tmp_path, 'lab.text(repr([name for name in sys.modules if name == "torch._dynamo"]))', TORCH
    )

    summary = run(path, root, prepare())

    assert (warmth(summary), summary.texts[0].text) == ([True], "[]")


def test_what_was_edited_since_it_was_listed_is_taken_as_it_is(
    root: Path, tmp_path: Path, prepare: Callable[[], Spare]
) -> None:
    path = write_scenario(tmp_path, "lab.log(0, x=1.0)", TORCH)
    (scenario,) = catalog.find([], str(path))
    order = launch.order(scenario, {}, root=root)
    write_scenario(tmp_path, "lab.log(0, x=1.0)", f'os.environ["OMP_NUM_THREADS"] = "1"\n{TORCH}')

    run_dir, supervisor = launch.start(order, prepare())
    supervisor.wait()

    assert warmth(look(run_dir).summary) == [False]


def test_a_spare_whose_worker_was_killed_runs_cold(
    root: Path, tmp_path: Path, prepare: Callable[[], Spare]
) -> None:
    spare = prepare()
    pid, began = worker_of(spare)
    processes.send(pid, began, signal.SIGKILL)
    until(lambda: presence.start_time(pid) is None)

    summary = run(write_scenario(tmp_path, "lab.log(0, x=1.0)", TORCH), root, spare)

    assert (summary.state, warmth(summary)) == ("succeeded", [False])


def test_a_spare_that_was_killed_is_replaced_by_a_cold_start(
    root: Path, tmp_path: Path, prepare: Callable[[], Spare]
) -> None:
    spare = prepare()
    pid, began = worker_of(spare)
    spare.supervisor.kill()

    summary = run(write_scenario(tmp_path, "lab.log(0, x=1.0)", TORCH), root, spare)

    assert (summary.state, warmth(summary)) == ("succeeded", [False])
    until(lambda: presence.start_time(pid) != began)


def test_a_spare_from_another_environment_is_dismissed(
    root: Path, tmp_path: Path, prepare: Callable[[], Spare], monkeypatch: pytest.MonkeyPatch
) -> None:
    spare = prepare()
    pid, began = worker_of(spare)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    summary = run(
        write_scenario(tmp_path, 'lab.text(os.environ["OMP_NUM_THREADS"])', TORCH), root, spare
    )

    assert (summary.texts[0].text, warmth(summary)) == ("1", [False])
    until(lambda: presence.start_time(pid) != began)


def test_a_front_that_is_killed_leaves_no_spare() -> None:
    front = subprocess.Popen([sys.executable, "-c", FRONT], stdout=subprocess.PIPE, text=True)
    assert front.stdout is not None
    supervisor = int(front.stdout.readline())
    pids = [supervisor, *until(lambda: presence.descendants(supervisor))]
    front.kill()
    front.wait()
    front.stdout.close()

    until(lambda: [pid for pid in pids if presence.start_time(pid) is not None] == [])


def test_a_dismissed_spare_is_gone_with_its_worker(prepare: Callable[[], Spare]) -> None:
    spare = prepare()
    pid, began = worker_of(spare)

    spare.dismiss()
    spare.dismiss()

    assert spare.supervisor.returncode == -signal.SIGKILL
    until(lambda: presence.start_time(pid) != began)


def test_orphans_of_a_warm_run_are_found_by_its_name(
    root: Path, tmp_path: Path, prepare: Callable[[], Spare]
) -> None:
    """They were forked from a process that was started before the run had a name."""
    spare = prepare()
    start(write_scenario(tmp_path, DAEMON, TORCH), root, spare)
    run_dir = wait_for_stage(root, "asleep")
    supervisor = until(lambda: look(run_dir).summary.run).supervisor
    worker = look(run_dir).summary.workers["worker-0"].started
    processes.send(supervisor.pid, supervisor.start, signal.SIGSTOP)
    for pid in presence.descendants(supervisor.pid):
        if "tuilab.engine.sampler" in processes.name_of(pid):
            os.kill(pid, signal.SIGKILL)
    spare.supervisor.kill()
    spare.supervisor.wait()
    assert worker is not None and worker.was_warm
    until(lambda: presence.start_time(worker.pid) != worker.start)

    until(
        lambda: len(presence.marked(run_dir.name)) == 1
    )  # what the sampler asked git ends by itself
    said = launch.stop(run_dir)

    assert "is lost; ended its remaining processes: " in said
    assert presence.marked(run_dir.name) == []


def test_a_supervisor_that_says_much_while_it_starts_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As LD_DEBUG has each process of a run do; of one that then says nothing else, the last words are told."""
    path = write_scenario(tmp_path, "lab.log(0, x=1.0)")
    (scenario,) = catalog.find(catalog.load([]), str(path))
    talkative = tmp_path / "python"
    talkative.write_text(
        "#!/bin/sh\nhead -c 500000 /dev/zero | tr '\\0' '\\n' >&2\necho the last words >&2\n"
    )
    talkative.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(talkative))

    with pytest.raises(ScenarioError, match="the supervisor did not start: the last words"):
        launch.start(launch.order(scenario, {}, root=tmp_path / "runs"))


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_a_source_that_has_become_something_else_since_it_was_read_begins_no_run(
    tmp_path: Path, kind: str
) -> None:
    path = write_scenario(tmp_path, "pass")
    order = launch.order(read(path), {}, root=tmp_path / "runs")
    damage(path, kind)

    with pytest.raises(UsageError, match="is not a regular file"):
        open_run(order)
    assert not (tmp_path / "runs").exists()


LOUD = '''"""A lesson that looks at no clock.{claims}"""
import os, signal
import torch
from tuilab import Lab


def run(lab: Lab) -> None:
    {body}
'''


def write_lessons(folder: Path, **bodies: str) -> str:
    """Write lessons that begin with torch, and return the folder that --scenarios takes."""
    (folder / "mine" / "try").mkdir(parents=True)
    for name, body in bodies.items():
        (folder / "mine" / "try" / f"{name}.py").write_text(
            LOUD.format(body=body, claims=claims_section(body, {}))
        )
    return str(folder / "mine")


def test_headless_runs_have_torch_loaded_ahead_but_never_while_something_is_timed(
    root: Path, tmp_path: Path, tuilab: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    log = "lab.log(0, x=1.0)"
    race = 'if os.environ.get("NEVER"): lab.claim_ratio("as-fast", "a/b", at_least=1); lab.race(a=print, b=print)'
    mine = write_lessons(
        tmp_path,
        first=log,
        timed=race,
        third=log,
        fourth=log,
        fifth=f"import time; {log}",
        sixth=log,
    )
    light = write_scenario(tmp_path, log, "", "light")

    done = tuilab(
        "run",
        "first",
        "timed",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "--scenarios",
        mine,
        "--headless",
        "--quick",
    )
    other = tuilab("run", str(light), "--headless")
    repeated = tuilab("run", "third", "--scenarios", mine, "--headless", "--repeat", "2", "--quick")

    assert (done.returncode, other.returncode, repeated.returncode) == (0, 0, 0), (
        done.stderr + other.stderr
    )
    by_run = {run_dir: look(run_dir).summary for run_dir in sorted(root.glob("2*"))}
    last = [*by_run][-1]
    warm = {
        RunName(run_dir.name).scenario: warmth(summary)[0]
        for run_dir, summary in by_run.items()
        if run_dir != last
    }
    assert warm == {
        "first": True, "timed": True, "third": False, "fourth": True, "fifth": True, "sixth": False, "light": False
    }  # fmt: skip
    assert not [
        run_dir
        for run_dir, summary in by_run.items()
        if "waiting_bytes" in summary.resources and run_dir != last
    ]


def test_a_run_that_was_loaded_ahead_tells_its_memory_and_the_box_however_short_it_is(
    root: Path, tmp_path: Path, tuilab: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    path = write_scenario(tmp_path, "os.kill(os.getpid(), 9)", TORCH)

    done = tuilab("run", str(path), "--headless")

    summary = look(newest(root) or root).summary
    (worker,) = summary.workers.values()
    assert (done.returncode, summary.state, warmth(summary)) == (4, "killed", [True])
    assert worker.exited is not None and (worker.exited.rss_peak_bytes or 0) > 2**20
    assert " (RSS" in done.stdout
    assert "cpu" in summary.environment["box"]


def test_a_spare_that_is_not_needed_is_gone_with_the_command(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    do_first(tmp_path, monkeypatch, NOTES_SPARES.format(notes=str(notes)))
    path = write_scenario(tmp_path, "lab.log(0, x=1.0)", TORCH)

    front = start_front(
        root, "run", str(path), "--headless", "--predict", "3"
    )  # it asks no question
    front.communicate()

    assert front.returncode == 2
    (pid,) = until(lambda: noted(notes))
    until(lambda: presence.start_time(pid) is None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_spares_of_runs_behind_are_gone_with_a_front_that_is_ended(
    root: Path, tmp_path: Path, number: int
) -> None:
    mine = write_lessons(
        tmp_path, first='lab.stage("asleep"); signal.pause()', second="lab.log(0, x=1.0)"
    )
    front = start_front(root, "run", "first", "second", "--scenarios", mine, "--headless")
    run_dir = wait_for_stage(root, "asleep")
    run = look(run_dir).summary.run
    assert run is not None
    (spare,) = until(lambda: [pid for pid in children_of(front.pid) if pid != run.supervisor.pid])
    pids = [spare, *until(lambda: children_of(spare))]

    front.send_signal(number)
    front.communicate()
    if number != signal.SIGINT:  # which ends the run, too
        launch.stop(run_dir)

    until(lambda: not [pid for pid in pids if presence.start_time(pid) is not None])
    until(lambda: look(run_dir).state == "stopped")
    assert [one.name for one in root.glob("2*")] == [run_dir.name]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def noted(notes: Path) -> list[int]:
    return [int(pid) for pid in notes.read_text().split()] if notes.exists() else []


CLAIMED = '''"""A claim about a number.

## Look for
- [one] one is one
"""
import os, select
from tuilab import Lab

def run(lab: Lab) -> None:
    lab.stage("asleep")
    while not os.path.exists({go!r}): select.select([], [], [], 0.02)
    lab.claim("one", 1, equals=1)
'''


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_judge_is_loaded_beside_what_times_nothing_and_where_it_died_another_comes(
    root: Path, tmp_path: Path, is_killed: bool
) -> None:
    path, go = tmp_path / "claimed.py", tmp_path / "go"
    path.write_text(CLAIMED.format(go=str(go)))
    run_dir, supervisor = start(path, root, None)
    wait_for_stage(root, "asleep")
    (judge,) = until(
        lambda: [
            pid for pid in children_of(supervisor.pid) if "engine.judge" in processes.name_of(pid)
        ]
    )

    if is_killed:
        os.kill(judge, signal.SIGKILL)
        until(lambda: judge not in children_of(supervisor.pid))
    go.touch()
    supervisor.wait()

    summary = look(run_dir).summary
    assert summary.state == "succeeded", summary.reason
    assert [claim.outcome for claim in summary.claims.values()] == ["SUPPORTED"]
    assert (summary.resources["processes"].high or 0) <= 1  # it is none of the run


def test_a_judge_that_is_not_wanted_is_gone_with_its_run(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "claimed.py"
    path.write_text(
        CLAIMED.replace('lab.claim("one", 1, equals=1)', "pass").format(go=str(tmp_path))
    )  # there already

    run_dir, supervisor = start(path, root, None)
    supervisor.wait()

    assert look(run_dir).summary.state == "succeeded"
    assert presence.marked(run_dir.name) == []
    assert not (run_dir / "journal" / "judge.jsonl").exists()
