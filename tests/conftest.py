"""What many tests use: the real command line in a folder of runs of its own."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.idle import leave_it_to_idle, until_idle
from tests.stylesheets import parse_once
from tests.warm_process import WarmTuilab

gc.set_threshold(
    200_000, 50, 100
)  # screens are many small objects, and a tenth of their tests was the collector's

settings.register_profile("search", deadline=None)  # a busy box is no finding
settings.register_profile("tuilab", deadline=None, derandomize=True)  # the same examples every time
settings.load_profile("tuilab")

for name in (
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
):  # our processes start as they do on a user's machine
    os.environ.pop(name, None)

for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if (
        signal.getsignal(number) is signal.SIG_IGN
    ):  # behind `&` and under nohup, and so would the fronts that tests interrupt
        signal.signal(number, usual)

_SHOWN_GPUS = os.environ.get("CUDA_VISIBLE_DEVICES")
os.environ["CUDA_VISIBLE_DEVICES"] = (
    ""  # tests side by side would fill a GPU; those that are for one show it again
)

TUILAB = str(Path(sys.executable).with_name("tuilab"))
CHECKOUT = Path(__file__).resolve().parent.parent
TESTS = CHECKOUT / "tests"
LIGHT = str(Path(__file__).parent / "light")  # a torch that loads at once


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker more than cores; of faults, which are waited for most of the time, two a core; on a GPU one at a time."""
    cores = len(os.sched_getaffinity(0))
    if is_for_gpu(config) or config.option.markexpr == "fleet":  # these share a cluster
        return 0
    return 2 * cores if config.option.markexpr.startswith("faults") else cores + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if is_idle(collection_path, config) else None


def is_idle(folder: Path, config: pytest.Config) -> bool:
    """What injects faults, or needs a GPU, is not even loaded where it would not run."""
    return (folder.name == "faults" and "not faults" in config.option.markexpr) or (
        folder.name == "gpu" and not is_for_gpu(config)
    )


def is_for_gpu(config: pytest.Config) -> bool:
    return re.search(r"(?<!not )\bgpu\b", config.option.markexpr) is not None


def shown_gpus() -> dict[str, str]:
    """Return the environment of a process that may see the GPUs."""
    others = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return others if _SHOWN_GPUS is None else {**others, "CUDA_VISIBLE_DEVICES": _SHOWN_GPUS}


def pytest_collection(session: pytest.Session) -> None:
    """Of the files of a whole suite each worker loads a part of its own first: else each compiles all, all at the same time."""
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker and [Path(arg).resolve() for arg in config.args] == [TESTS]:
        files = [
            path for path in sorted(TESTS.rglob("test_*.py")) if not is_idle(path.parent, config)
        ]
        for path in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
            with suppress(Exception):  # collecting it says what is wrong
                import_module(".".join(path.relative_to(CHECKOUT).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is marked `first(n)` the first n cases run by default; the others are the same again, and slow."""
    seen: Counter[tuple[Path, str]] = Counter()
    for item in items:
        if mark := item.get_closest_marker("first"):
            name = item.path, item.name.partition("[")[0]
            seen[name] += 1
            if seen[name] > mark.args[0]:
                item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Nothing that was loaded by then is looked through again when somebody collects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests start shares a cache, which is not the user's, and loads no real torch, which takes a second of a core.

    Screens are waited for as long as they have something to do, and no longer.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PYTHONPATH", LIGHT, prepend=os.pathsep)
        for waiting in ("textual.pilot.wait_for_idle", "textual.app.wait_for_idle"):
            patch.setattr(waiting, until_idle)
        patch.setattr("textual.pilot.Pilot._wait_for_screen", leave_it_to_idle)
        patch.setattr("textual.css.stylesheet.parse", parse_once)
        yield


@pytest.fixture(autouse=True)
def surroundings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A test stands in a folder of its own, and so do settings; what it starts sees the GPUs or a real torch if marked so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if request.node.get_closest_marker("gpu"):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        if _SHOWN_GPUS is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", _SHOWN_GPUS)
    if request.node.get_closest_marker("real_torch"):
        monkeypatch.setenv(
            "PYTHONPATH", os.environ["PYTHONPATH"].removeprefix(LIGHT).removeprefix(os.pathsep)
        )


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """A session of tests leaves no file in the checkout and no descriptors open."""
    before = files_of_the_checkout()
    yield
    assert files_of_the_checkout() - before == set()
    assert len(os.listdir("/proc/self/fd")) < 200


def files_of_the_checkout() -> set[str]:
    """Return the files that are not hidden, as the folders of caches and environments are."""
    found = set()
    for folder, below, names in os.walk(CHECKOUT):
        below[:] = [name for name in below if not name.startswith((".", "__pycache__"))]
        found |= {os.path.join(folder, name) for name in names}
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of runs for one test."""
    return tmp_path / "runs"


@pytest.fixture(scope="session")
def warm(environment: None) -> Iterator[WarmTuilab]:
    waiting = WarmTuilab(TUILAB)
    yield waiting
    waiting.end()


@pytest.fixture
def tuilab(root: Path, warm: WarmTuilab) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `tuilab ...` as a user does, with a folder of runs of its own; returns what it printed and its exit code."""

    def run(
        *words: str,
        timeout: float = 100,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TUILAB_ROOT": str(root), **(env or {})}
        if warm.takes(environment):
            return warm.run(words, environment, cwd or Path.cwd(), timeout)
        return subprocess.run(
            [TUILAB, *words],
            capture_output=True, text=True, timeout=timeout, env=environment, stdin=subprocess.DEVNULL, cwd=cwd,
        )  # fmt: skip

    return run


@pytest.fixture
def result(
    tuilab: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., dict[str, Any]]:
    """Run one scenario with `--quick --json` and return its run from the document; `verdicts` has those of claims by key."""

    def run(name: str, *words: str) -> dict[str, Any]:
        return run_of(tuilab("run", name, "--headless", "--quick", "--json", "--quiet", *words))

    return run


def run_of(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    """Return the only run of a document that was printed, with its exit code and its verdicts by key."""
    assert done.stdout, done.stderr
    (only,) = json.loads(done.stdout)["runs"]
    only["exit_code"] = done.returncode
    only["verdicts"] = {claim["key"] or claim["text"]: claim["verdict"] for claim in only["claims"]}
    return dict(only)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Of the numbered cases of faults it is told in one line which could not be tried here, and why."""
    from tests.faults.cases import describe_skipped

    reports = {
        outcome: terminalreporter.stats.get(outcome, [])
        for outcome in ("passed", "failed", "skipped")
    }
    skipped = [
        (report.nodeid, str(report.longrepr[2]))
        for report in reports["skipped"]
        if isinstance(report.longrepr, tuple)
    ]
    if line := describe_skipped(
        [report.nodeid for name in ("passed", "failed") for report in reports[name]], skipped
    ):
        terminalreporter.write_line(line.replace("Skipped: ", ""))
