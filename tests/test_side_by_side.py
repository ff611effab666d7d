"""Workers of later repeats load torch side by side, before anything is timed, and then wait for their turn."""

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from tests import made_runs
from tests.engine import (
    do_first,
    look,
    newest,
    processes_of,
    start,
    until,
    wait_for_stage,
    write_scenario,
)
from tuilab.catalogue import catalog
from tuilab.catalogue.imports import first_imports
from tuilab.catalogue.needs_quiet import wants_quiet
from tuilab.drawings.glyphs import Style
from tuilab.engine import launch, processes
from tuilab.engine import spare as spares
from tuilab.probes.tree import WAITING
from tuilab.record import events, presence
from tuilab.record.folding.fold import fold
from tuilab.record.summary import RunSummary
from tuilab.reports import result_text

if TYPE_CHECKING:
    from tests.fakes.clock import Clock

pytest_plugins = ["tests.fakes.clock"]
Tuilab = Callable[..., "CompletedProcess[str]"]

TORCH = "import torch\n"
STAGE = 'lab.stage(f"repeat {lab.repeat}")'
STEP = "def step(lab, seconds):\n    return seconds\n"
RACE = 'lab.race(one=lab.arm("one", step, 0.5), two=lab.arm("two", step, 1.0))'


@pytest.fixture
def two_cores() -> Iterator[None]:
    """Give what a test starts two cores, as many as get ready at a time."""
    every = os.sched_getaffinity(0)
    if len(every) < 2:
        pytest.skip("needs two cores")
    os.sched_setaffinity(0, sorted(every)[:2])
    yield
    os.sched_setaffinity(0, every)


def hold(until_there: Path) -> str:
    return f'{STAGE}\nwhile not os.path.exists("{until_there}"): time.sleep(0.02)'


def warmth(summary: RunSummary) -> list[bool]:
    return [worker.started.was_warm for worker in summary.workers.values() if worker.started]


def do_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Have every worker that is started ahead do something before all else."""
    condition = f'os.environ.get("{presence.MARK}") == {processes.SPARE!r}'
    do_first(folder, monkeypatch, f"import os, time\nif {condition}: {what}\n")


def waiting(run_dir: Path) -> list[int]:
    """Return the processes of a run that wait for their turn."""
    run = look(run_dir).summary.run
    assert run is not None
    return [pid for pid in presence.descendants(run.supervisor.pid) if name_of(pid) == WAITING]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@pytest.mark.slow
def test_as_many_get_ready_at_a_time_as_there_are_cores(
    two_cores: None, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, STAGE, TORCH)

    tuilab("run", str(path), "--headless", "--quiet", "--repeat", "5")

    summary = look(newest(root) or root).summary
    assert (summary.state, summary.reason) == ("succeeded", "")
    assert warmth(summary) == [True, True, True, True, False]  # the last one is alone
    assert [stage.name for stage in summary.stages] == [f"repeat {number}" for number in range(5)]


@pytest.mark.slow
def test_what_does_something_before_it_imports_torch_starts_afresh_each_time(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """It may set what torch reads when it is loaded: nothing of it is loaded until the file imports it, or the lab."""
    path = write_scenario(tmp_path, "lab.text(str(was_loaded))", TORCH)
    path.write_text(
        path.read_text().replace("from tuilab", 'was_loaded = "torch" in sys.modules\nfrom tuilab')
    )

    tuilab("run", str(path), "--headless", "--quiet", "--repeat", "2")

    summary = look(newest(root) or root).summary
    assert warmth(summary) == [False, False]
    assert {text.text for text in summary.texts} == {"False"}


@pytest.mark.slow
def test_one_that_is_killed_while_it_waits_costs_no_repeat(
    two_cores: None, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, hold(tmp_path / "go"), TORCH)
    front = start(root, "run", str(path), "--headless", "--quiet", "--repeat", "2")
    run_dir = wait_for_stage(root, "repeat 0")
    (pid,) = waiting(run_dir)

    os.kill(pid, signal.SIGKILL)
    until(lambda: not waiting(run_dir))
    (tmp_path / "go").touch()
    front.communicate()

    summary = look(run_dir).summary
    assert (summary.state, warmth(summary)) == ("succeeded", [True, False])


@pytest.mark.slow
def test_nobody_waits_for_one_that_has_hung_up(
    two_cores: None, tuilab: Tuilab, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    do_ahead(tmp_path, monkeypatch, "os.closerange(3, 4096); time.sleep(600)")

    tuilab(
        "run", str(write_scenario(tmp_path, STAGE, TORCH)), "--headless", "--quiet", "--repeat", "2"
    )

    run_dir = newest(root) or root
    assert (look(run_dir).summary.state, warmth(look(run_dir).summary)) == (
        "succeeded",
        [False, False],
    )
    assert processes_of(run_dir) == []


def test_a_spare_that_has_hung_up_costs_no_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was killed has, for a moment before it is dead."""
    do_ahead(
        tmp_path,
        monkeypatch,
        f"os.closerange(3, 4096); open({str(tmp_path / 'closed')!r}, 'w'); time.sleep(600)",
    )
    spare = spares.prepare()
    until((tmp_path / "closed").exists)
    (scenario,) = catalog.find([], str(write_scenario(tmp_path, STAGE, TORCH)))

    run_dir, supervisor = launch.start(launch.order(scenario, {}, root=root), spare)
    supervisor.wait()

    assert (look(run_dir).summary.state, warmth(look(run_dir).summary)) == ("succeeded", [False])


@pytest.mark.slow
def test_a_budget_counts_on_what_is_loaded_already(
    two_cores: None,
    tuilab: Tuilab,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: "Clock",
) -> None:
    """Two load at once, for more than half of the budget: the second one is there, and a third would take too long."""
    do_ahead(tmp_path, monkeypatch, clock.putting_forward(600))

    tuilab(
        "run",
        str(write_scenario(tmp_path, RACE, TORCH + STEP)),
        "--headless",
        "--quiet",
        "--budget",
        "1000s",
    )

    assert (
        look(newest(root) or root).summary.reason == "the budget of 1000 s is spent after 2 repeats"
    )


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.first(1)
def test_nobody_waits_on_when_the_run_has_ended(
    how: str, two_cores: None, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, hold(tmp_path / "never"), TORCH)
    front = start(root, "run", str(path), "--headless", "--quiet", "--repeat", "2")
    run_dir = wait_for_stage(root, "repeat 0")
    (pid,) = waiting(run_dir)
    run = look(run_dir).summary.run
    assert run is not None

    if how == "stop":
        tuilab("stop", "last")
    else:
        os.kill(run.supervisor.pid, signal.SIGKILL)
    front.communicate()

    until(lambda: presence.start_time(pid) is None)
    until(lambda: not processes_of(run_dir))
    assert look(run_dir).summary.state == ("stopped" if how == "stop" else "running")


def test_who_waits_when_nothing_was_timed_is_sent_home(
    two_cores: None, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """The claim about times makes it six repeats, the first of which timed nothing."""
    path = write_scenario(
        tmp_path, 'if lab.repeats == 0: lab.claim_ratio("slower", "a/b", at_least=2)', TORCH
    )

    tuilab("run", str(path), "--headless", "--quiet")

    summary = look(newest(root) or root).summary
    assert (summary.state, summary.reason) == (
        "succeeded",
        "nothing was timed: one repeat is enough",
    )
    assert warmth(summary) == [True]
    assert summary.leftovers == []
    assert processes_of(newest(root) or root) == []


@pytest.mark.slow
def test_a_module_that_cannot_be_loaded_fails_where_the_scenario_imports_it(
    two_cores: None, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    done = tuilab(
        "run",
        str(write_scenario(tmp_path, STAGE, "import torch.nowhere\n")),
        "--headless",
        "--repeat",
        "2",
    )

    run_dir = newest(root) or root
    assert done.returncode == 4
    assert "No module named 'torch.nowhere'" in look(run_dir).summary.reason
    assert warmth(look(run_dir).summary) == [False]
    assert (run_dir / "stderr.log").read_text() == ""


@pytest.mark.slow
def test_a_file_that_imports_more_than_a_message_holds_starts_afresh(
    two_cores: None, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    many = "".join(f"import torch.{'a' * 60}{number}\n" for number in range(4000))

    done = tuilab("run", str(write_scenario(tmp_path, STAGE, many)), "--headless", "--repeat", "2")

    assert done.returncode == 4
    assert f"No module named 'torch.{'a' * 60}0'" in look(newest(root) or root).summary.reason


def test_the_memory_of_one_that_waits_is_told_apart() -> None:
    code = f"from pathlib import Path; Path('/proc/self/comm').write_text('{WAITING}'); print(flush=True); input()"
    code += f"; Path('/proc/self/comm').write_text('x({WAITING}'); print(flush=True); input()"
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    top = subprocess.Popen(
        [sys.executable, "-c", below], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert top.stdin is not None and top.stdout is not None
    read = f"import json; from tuilab.probes.tree import Tree; print(json.dumps(Tree({top.pid}).read()))"

    def usage() -> tuple[int, bool, bool]:
        pids, _, _, rss, _, waiting = json.loads(
            subprocess.run(
                [sys.executable, "-c", read], capture_output=True, text=True, check=True
            ).stdout
        )
        return len(pids), rss > 0, waiting > 0

    top.stdout.readline()
    before = usage()
    top.stdin.write(b"\n")
    top.stdin.flush()
    top.stdout.readline()
    after = usage()
    top.communicate(b"\n")

    assert (before, after) == ((0, False, True), (1, True, False))
    assert len(WAITING) <= 15  # longer names are cut short


def test_memory_is_no_series_while_nothing_is_at_work_and_what_waited_is_told_beside_it() -> None:
    sample = events.Sampled(
        processes=0, threads=0, cpu_percent=200.0, rss_bytes=0, uss_bytes=0, waiting_bytes=2**29
    )
    loaded = events.Sampled(
        processes=1,
        threads=1,
        cpu_percent=100.0,
        rss_bytes=2**28,
        uss_bytes=2**27,
        waiting_bytes=2**28,
    )
    summary = fold([("sampler", sample), ("sampler", loaded)])

    assert {name: series.count for name, series in summary.resources.items()} == {
        "processes": 2, "threads": 2, "cpu_percent": 2, "rss_bytes": 1, "uss_bytes": 1, "waiting_bytes": 2,
    }  # fmt: skip
    said = result_text.render(
        summary,
        "succeeded",
        Path("run"),
        Style(has_colour=False, is_utf8=True),
        100,
        has_chart=False,
    )
    assert "256 MiB (RSS); processes that wait for their repeat: 512 MiB" in said


def test_the_largest_process_is_told_as_the_kernel_knows_it_where_samples_saw_less() -> None:
    sample = events.Sampled(processes=1, threads=1, cpu_percent=100.0, rss_bytes=2**28)
    ended = events.WorkerExited(writer="worker-0", signal=9, rss_peak_bytes=2**30)

    summaries = (
        fold([("supervisor", ended)]),
        fold([("sampler", sample), ("supervisor", ended)]),
        fold([("sampler", sample)]),
    )
    style = Style(has_colour=False, is_utf8=True)
    told = [
        result_text.render(one, "killed", Path("run"), style, 100, has_chart=False)
        for one in summaries
    ]

    assert ["1 GiB (RSS)\n" in one for one in told] == [True, True, False]
    assert "256 MiB (RSS)\n" in told[2]


@pytest.mark.parametrize(
    ("command", "count", "is_told"),
    [([], 1, False), ([], 2, True), (["x"], 2, False), (["x"], 3, True)],
)
def test_what_several_processes_share_is_counted_in_each_and_the_result_says_so(
    command: list[str], count: int, is_told: bool
) -> None:
    """Workers of a DataLoader are forks: what they have of their parent is resident in all of them, and there once."""
    sample = events.Sampled(processes=count, threads=1, cpu_percent=100.0, rss_bytes=2**28)
    summary = fold([("supervisor", made_runs.started(command=command)), ("sampler", sample)])

    said = result_text.render(
        summary,
        "succeeded",
        Path("run"),
        Style(has_colour=False, is_utf8=True),
        100,
        has_chart=False,
    )
    told = "256 MiB (RSS; shared pages are counted in each process)"
    assert (told in " ".join(said.split())) == is_told


@pytest.mark.parametrize("is_timed", [True, False])
@pytest.mark.parametrize("setting", ["gc.disable()", "gc.set_threshold(500, 5, 5)"])
def test_the_collector_is_left_as_the_user_has_it(setting: str, is_timed: bool) -> None:
    code = f"import gc; {setting}; before = gc.isenabled(), gc.get_threshold(); from tuilab.lab.worker import warm_up"
    code += f"; warm_up(['tuilab.reports.result_text'], is_timed={is_timed})"
    code += "; assert (gc.isenabled(), gc.get_threshold()) == before; assert gc.get_freeze_count() == 0 and gc.get_count()[0] < 500"
    code += "; assert sum(map(gc.get_count().__getitem__, (1, 2))) == 0, gc.get_count()"  # nothing is left to be looked through

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


def test_the_name_of_a_process_may_be_any_bytes() -> None:
    """It is cut short in the middle of a letter."""
    code = "from pathlib import Path; from tuilab.lab.worker import waiting; comm = Path('/proc/self/comm')"
    code += "; comm.write_bytes('fourteen bytesé'.encode()); before = comm.read_bytes()"
    code += "\nwith waiting(): assert comm.read_text() == 'tuilab-waits\\n'\nassert comm.read_bytes() == before"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            '"""A lesson."""\nimport os\nimport torch\nfrom torch.utils.data import DataLoader\n',
            ("torch", "torch.utils.data"),
        ),
        (
            "from __future__ import annotations\nfrom tuilab import Lab\nfrom torch import nn\n",
            ("torch",),
        ),
        ("import torch, os\nimport torch\n", ("torch",)),
        ('import os\nos.environ["A"] = "1"\nimport torch\n', ()),
        ("import numpy\nimport torch\n", ()),
        ("import torch\nimport numpy\nimport torch.fx\n", ("torch",)),
        ("from . import torch\n", ()),
        ("if True:\n    import torch\n", ()),
        ("import torchvision\nimport torch\n", ()),
    ],
)
def test_what_a_file_imports_first(source: str, found: tuple[str, ...]) -> None:
    assert first_imports(ast.parse(source)) == found


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("import torch, math, os", False),
        ("import time", True),
        ("from torch.utils import benchmark", True),
        ("import torch.profiler", True),
        ("from . import neighbour", True),
        ("import neighbour", True),
        ("def run(lab): lab.race(a=print, b=print)", True),
        ("def run(lab): torch.cuda.Event(enable_timing=True)", True),
        ('ROLLUP = "/proc/self/smaps_rollup"', True),
        ('"""What it costs.\n\nTime is told by /proc/uptime."""', False),
    ],
)
def test_what_may_look_at_clocks_or_at_what_processes_use_wants_nothing_loaded_beside_it(
    line: str, wanted: bool
) -> None:
    assert wants_quiet(ast.parse(line)) is wanted
