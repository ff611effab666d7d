"""Fixtures of many tests: the real command line, in a folder of runs of its own."""

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

from tests.idle import skip_wait, until_idle
from tests.stylesheets import parse_once
from tests.warm_process import WarmTuilab

# Screens are many small objects: the garbage collector took a tenth of the time of their tests.
gc.set_threshold(200_000, 50, 100)

# Neither profile has a deadline, because a busy machine is not a fault. `tuilab` tries the same
# examples every time.
settings.register_profile("search", deadline=None)
settings.register_profile("tuilab", deadline=None, derandomize=True)
settings.load_profile("tuilab")

# Processes of tests start as they do on the machine of a user.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.pop("PYTHONUNBUFFERED", None)

# Behind `&` and under nohup these signals are ignored. The clients that tests interrupt would
# inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Tests in parallel would fill a GPU. Tests that are for a GPU show it again.
_SHOWN_GPUS = os.environ.get("CUDA_VISIBLE_DEVICES")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

TUILAB = str(Path(sys.executable).with_name("tuilab"))
CHECKOUT = Path(__file__).resolve().parent.parent
TESTS = CHECKOUT / "tests"
LIGHT = str(Path(__file__).parent / "light")  # a torch that loads at once


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many workers run the tests."""
    cores = len(os.sched_getaffinity(0))
    suite = config.option.markexpr
    if is_for_gpu(config) or suite == "fleet":  # these tests share a GPU or a cluster
        return 0
    if suite.startswith("faults"):  # these tests wait most of the time
        return 2 * cores
    return cores + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if is_deselected(collection_path, config) else None


def is_deselected(folder: Path, config: pytest.Config) -> bool:
    """Whether no test of a folder can be selected: then its files are not even loaded."""
    if folder.name == "faults":
        return "not faults" in config.option.markexpr
    return folder.name == "gpu" and not is_for_gpu(config)


def is_for_gpu(config: pytest.Config) -> bool:
    return re.search(r"(?<!not )\bgpu\b", config.option.markexpr) is not None


def shown_gpus() -> dict[str, str]:
    """Return the environment of a process that may see the GPUs."""
    environment = dict(os.environ)
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    if _SHOWN_GPUS is not None:
        environment["CUDA_VISIBLE_DEVICES"] = _SHOWN_GPUS
    return environment


def pytest_collection(session: pytest.Session) -> None:
    """Make each worker load another part of the files of a whole suite first.

    Otherwise all workers would compile the same files at the same time.
    """
    config = session.config
    worker = getattr(config, "workerinput", None)
    if not worker or [Path(arg).resolve() for arg in config.args] != [TESTS]:
        return
    files = []
    for path in sorted(TESTS.rglob("test_*.py")):
        if not is_deselected(path.parent, config):
            files.append(path)
    first = int(worker["workerid"].removeprefix("gw"))
    for path in files[first :: worker["workercount"]]:
        module = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
        with suppress(Exception):  # pytest reports the error when it collects the file
            import_module(module)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all but the first n cases of a test with the mark `first(n)` as slow."""
    counts: Counter[tuple[Path, str]] = Counter()
    for item in items:
        mark = item.get_closest_marker("first")
        if mark is None:
            continue
        test = item.path, item.name.partition("[")[0]
        counts[test] += 1
        if counts[test] > mark.args[0]:
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through everything that is loaded by now."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the processes of tests a cache that is not the user's, and the stand-in for torch.

    Make the tests of screens wait exactly as long as a screen has something to do.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PYTHONPATH", LIGHT, prepend=os.pathsep)
        patch.setattr("textual.pilot.wait_for_idle", until_idle)
        patch.setattr("textual.app.wait_for_idle", until_idle)
        patch.setattr("textual.pilot.Pilot._wait_for_screen", skip_wait)
        patch.setattr("textual.css.stylesheet.parse", parse_once)
        yield


@pytest.fixture(autouse=True)
def surroundings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Put a test and its settings into a folder of its own. Show it GPUs or the real torch if marked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if request.node.get_closest_marker("gpu"):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        if _SHOWN_GPUS is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", _SHOWN_GPUS)
    if request.node.get_closest_marker("real_torch"):
        without_light = os.environ["PYTHONPATH"].removeprefix(LIGHT).removeprefix(os.pathsep)
        monkeypatch.setenv("PYTHONPATH", without_light)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Fail if the tests leave a file in the checkout, or many open descriptors."""
    before = files_of_the_checkout()
    yield
    assert files_of_the_checkout() - before == set()
    assert len(os.listdir("/proc/self/fd")) < 200


def files_of_the_checkout() -> set[str]:
    """Return the files outside hidden folders, which are those of caches and environments."""
    files: set[str] = set()
    for folder, subfolders, names in os.walk(CHECKOUT):
        subfolders[:] = [name for name in subfolders if not name.startswith((".", "__pycache__"))]
        files.update(os.path.join(folder, name) for name in names)
    return files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the folder of runs of a test."""
    return tmp_path / "runs"


@pytest.fixture(scope="session")
def warm(environment: None) -> Iterator[WarmTuilab]:
    waiting = WarmTuilab(TUILAB)
    yield waiting
    waiting.end()


@pytest.fixture
def tuilab(root: Path, warm: WarmTuilab) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs `tuilab ...` as a user does, in the folder of runs of the test."""

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
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            stdin=subprocess.DEVNULL,
            cwd=cwd,
        )

    return run


@pytest.fixture
def result(
    tuilab: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., dict[str, Any]]:
    """Return a function that runs one scenario with `--quick --json`, and returns `run_of` it."""

    def run(name: str, *words: str) -> dict[str, Any]:
        words = ("--headless", "--quick", "--json", "--quiet", *words)
        done = tuilab("run", name, *words, timeout=400)  # also on a busy machine
        return run_of(done)

    return run


def run_of(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    """Return the only run of a printed document, with its exit code and its verdicts by key."""
    assert done.stdout, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    run["exit_code"] = done.returncode
    run["verdicts"] = {claim["key"] or claim["text"]: claim["verdict"] for claim in run["claims"]}
    return dict(run)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which of the numbered cases of faults could not be tried here, and why."""
    from tests.faults.cases import describe_skipped

    stats = terminalreporter.stats
    ran = [report.nodeid for report in [*stats.get("passed", []), *stats.get("failed", [])]]
    skipped = []
    for report in stats.get("skipped", []):
        if isinstance(report.longrepr, tuple):
            reason = str(report.longrepr[2])
            skipped.append((report.nodeid, reason))
    line = describe_skipped(ran, skipped)
    if line:
        terminalreporter.write_line(line.replace("Skipped: ", ""))
