"""The `tuilab` that waits for tests does what one that is started afresh does."""

import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.conftest import TUILAB
from tests.engine import look, newest, read_stream, start, write_scenario
from tests.warm_process import MARK_ROOM, WarmTuilab
from tuilab.engine import processes
from tuilab.record import presence

Tuilab = Callable[..., "CompletedProcess[str]"]


@pytest.mark.parametrize(
    "words", [("config",), ("verify", "nope"), ("run", "softmax", "--rows", "x")]
)
def test_its_words_and_its_code_are_those_of_a_fresh_one(
    tuilab: Tuilab, root: Path, words: tuple[str, ...]
) -> None:
    fresh = start(root, *words)
    out, err = fresh.communicate(timeout=60)

    done = tuilab(*words)

    assert (done.stdout, done.stderr, done.returncode) == (out, err, fresh.returncode)


def test_each_call_has_its_folder_and_its_environment_and_leaves_nothing_to_the_next(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    (tmp_path / "one").mkdir()

    assert 'root = "/somewhere"' in tuilab("config", env={"TUILAB_ROOT": "/somewhere"}).stdout
    assert "/somewhere" not in tuilab("config").stdout
    assert tuilab("new", "mine", "--dir", ".", cwd=tmp_path / "one").returncode == 0
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["mine.py"]
    assert tuilab("new", "mine", "--dir", ".").returncode == 0


@pytest.mark.parametrize("name", ["PYTHONPATH", "LC_ALL", "LANG", "LD_PRELOAD", "TZ"])
def test_what_python_heeds_when_it_starts_wants_a_fresh_one(name: str) -> None:
    waiting = WarmTuilab(TUILAB)

    assert waiting.takes({**os.environ, "HOME": "/elsewhere"})
    assert not waiting.takes({**os.environ, name: "other"})


def test_what_one_test_has_python_heed_is_not_what_it_starts_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting, usual = WarmTuilab(TUILAB), dict(os.environ)
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    try:
        done = waiting.run(("config",), os.environ, Path.cwd(), 60)

        assert (waiting.takes(os.environ), waiting.takes(usual), done.returncode) == (
            False,
            True,
            0,
        )
        started_with = Path(f"/proc/{waiting.process.pid}/environ").read_bytes().split(b"\0")
        assert f"PYTHONPATH={usual['PYTHONPATH']}".encode() in started_with
    finally:
        waiting.end()


def test_it_has_the_cores_of_the_test_that_calls_it(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    every = os.sched_getaffinity(0)
    path = write_scenario(tmp_path, "lab.text(str(sorted(os.sched_getaffinity(0))))")
    tuilab("--version")
    os.sched_setaffinity(0, {max(every)})
    try:
        tuilab("run", str(path), "--headless", "--quiet")
    finally:
        os.sched_setaffinity(0, every)

    assert [text.text for text in look(newest(root) or root).summary.texts] == [str([max(every)])]


def test_a_run_of_it_carries_its_mark_and_is_recorded_as_one_of_a_fresh_front(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    mark = f'os.environ["{presence.MARK}"]'
    more = "from tuilab.record.presence import marked\n"  # the sampler, as the worker does not list itself
    path = write_scenario(
        tmp_path, f'while not marked({mark}): time.sleep(0.01)\nlab.claim("it-holds", True)', more
    )
    words = ("run", str(path), "--headless", "--quiet", "--timeout", "60")

    codes = [tuilab(*words).returncode]
    with start(root, *words) as fresh:
        fresh.communicate()
    codes.append(fresh.returncode)

    runs = sorted(root.glob("2*"))
    assert (codes, len(runs)) == ([0, 0], 2)
    assert kinds_in(runs[0]) == kinds_in(runs[1])


def kinds_in(run_dir: Path) -> dict[str, set[str]]:
    """Return which records the processes have written that are forks."""
    streams = [run_dir / "journal" / f"{name}.jsonl" for name in ("supervisor", "judge")]
    return {path.name: {type(item).__name__ for item in read_stream(path)} for path in streams}


def test_there_is_room_for_the_mark_of_a_run() -> None:
    assert MARK_ROOM == {presence.MARK: processes.SPARE}
