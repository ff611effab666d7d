"""No mark is lost however a script ends, and what cannot be kept is counted."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands.watched_script import Watch, WatchedScript, read_marks, run_afresh
from tuilab.commands.marks import MarksFolder
from tuilab.commands.watcher._tuilab_watch import layout

STEPS = "o = sgd()\nfor _ in range(7): loss().backward(); o.step()\n"


@pytest.mark.real_torch
@pytest.mark.parametrize(
    ("ending", "code"),
    [("os._exit(3)", 3), ("import signal; os.kill(os.getpid(), 9)", -signal.SIGKILL)],
)
def test_a_script_that_ends_at_once_has_left_every_mark(
    watch: Watch, ending: str, code: int
) -> None:
    seen = watch(STEPS + ending, fails=True)

    assert seen.done.returncode == code
    assert seen.kinds == " ".join(["back step"] * 7)


@pytest.mark.real_torch
@pytest.mark.slow
def test_a_script_that_executes_itself_goes_on_in_files_of_the_same_process(tmp_path: Path) -> None:
    again = "if len(sys.argv) < 3: os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])"

    seen = run_afresh(tmp_path, STEPS + again, words=("first",))
    assert (seen.done.returncode, seen.done.stderr, len(seen.processes)) == (0, "", 1)
    assert seen.kinds == " ".join(["back step"] * 14)


@pytest.mark.real_torch
def test_torch_lets_the_watcher_in_by_its_own_door(tmp_path: Path) -> None:
    seen = run_afresh(
        tmp_path, STEPS + "print(sys.argv, os.path.basename(sys.argv[0]))", words=("a", "b")
    )

    assert (seen.done.stderr, seen.done.stdout) == (
        "",
        f"['{tmp_path}/script.py', 'a', 'b'] script.py\n",
    )
    assert seen.kinds == " ".join(["back step"] * 7)
    assert ended_at(seen) == ["step"] * 7 + ["end"]


@pytest.mark.real_torch
@pytest.mark.slow
def test_modules_of_the_users_that_are_named_like_ours_are_theirs(tmp_path: Path) -> None:
    for name in ("tuilab", "tuilab_watch"):
        (tmp_path / f"{name}.py").write_text(f"print('their own {name}')\n")

    seen = run_afresh(tmp_path, "import tuilab, tuilab_watch\n" + STEPS)
    assert (seen.done.stderr, seen.done.stdout) == (
        "",
        "their own tuilab\ntheir own tuilab_watch\n",
    )
    assert seen.kinds == " ".join(["back step"] * 7)


@pytest.mark.real_torch
@pytest.mark.parametrize("how", ["all", "steps"])
def test_where_the_folder_for_marks_is_gone_the_script_runs_as_ever(
    watch: Watch, tmp_path: Path, how: str
) -> None:
    """Before torch is loaded, and while it steps."""
    gone = f"import shutil, _tuilab_watch; shutil.rmtree({str(tmp_path / 'marks')!r}); print('trains')\n"
    again = "_tuilab_watch._watcher = None; _tuilab_watch.begin(); _tuilab_watch.log(1, {'loss': 0.5}); "

    seen = watch(gone + again + STEPS, how)
    assert (seen.done.returncode, seen.done.stderr, seen.done.stdout, seen.marks) == (
        0,
        "",
        "trains\n",
        [],
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a disk of so many bytes."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(size: int) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tuilab", str(folder)],
            capture_output=True,
        )
        if done.returncode:
            pytest.skip("mounting a small disk needs root")
        return folder

    yield mount
    subprocess.run(["umount", str(folder)], capture_output=True)


RING = """
import sys
sys.path.insert(0, sys.argv[2])
from _tuilab_watch.ring import Ring
ring = Ring(sys.argv[1])
for at in range(20_000): ring.mark(3, at, at + 1)
"""


def test_marks_that_have_no_room_on_the_disk_are_counted(
    small_disk: Callable[[int], Path], tmp_path: Path
) -> None:
    from tests.commands.warm_script import WATCHER

    folder = small_disk(layout.SIZE + 4096)
    done = subprocess.run(
        ["python3", "-c", RING, str(folder), WATCHER], capture_output=True, text=True
    )

    found = read_marks(folder, done)
    assert (done.returncode, done.stderr) == (0, "")
    assert [mark.began for mark in found.marks] == list(
        range(layout.SIZE // layout.SLOT - layout.FIRST)
    )


@pytest.mark.real_torch
def test_a_handler_of_a_signal_may_log_wherever_it_interrupts_the_watcher(watch: Watch) -> None:
    seen = watch("""
        import signal, _tuilab_watch
        signal.signal(signal.SIGUSR1, lambda *_: _tuilab_watch.log(7, {"preempted": 1.0}))
        _tuilab_watch.log(1, {"x": 1.0})
        with _tuilab_watch._watcher._ring._lock: signal.raise_signal(signal.SIGUSR1)
    """)

    assert [(told.step, told.name) for told in seen.told] == [(1, "x"), (7, "preempted")]


@pytest.mark.real_torch
def test_what_a_script_puts_among_the_marks_holds_nobody_up(watch: Watch, tmp_path: Path) -> None:
    seen = watch(
        """
        folder = os.environ["TUILAB_WATCH"]
        for name in ("1.trouble", "1.lane", "1.0"): os.mkfifo(f"{folder}/{name}")
        o = sgd(); loss().backward(); o.step()
    """,
        fails=True,
    )

    assert seen.kinds == "back step" and MarksFolder(tmp_path / "marks").read_text("1.lane") is None


def ended_at(seen: WatchedScript) -> list[str]:
    """Return the marks of steps, of what is logged, and of the end of the script, in order."""
    words = {layout.STEPPED: "step", layout.LOGGED: "log", layout.SCRIPT_ENDED: "end"}
    return [words[mark.kind] for mark in seen.marks if mark.kind in words]


TRAIN = "o = sgd()\nfor _ in range(3): loss().backward(); o.step()\n"


@pytest.mark.real_torch
@pytest.mark.parametrize("last", ["", "sys.exit(3)", "raise ValueError"])
def test_end_of_the_script_is_marked_behind_its_steps(watch: Watch, last: str) -> None:
    seen = watch(TRAIN + last, fails=True)

    assert ended_at(seen) == ["step"] * 3 + ["end"]


@pytest.mark.real_torch
def test_end_of_the_script_is_marked_before_python_waits_for_threads(tmp_path: Path) -> None:
    """The module of the pool is imported after torch; the step of its thread is followed by a second mark of the end."""
    seen = run_afresh(
        tmp_path,
        TRAIN
        + """
import threading, time, _tuilab_watch
from concurrent.futures import ThreadPoolExecutor
for _ in range(7): loss().backward(); o.step()
def save():
    while not getattr(_tuilab_watch._watcher, "_ended_after", 0) > 0: time.sleep(0.001)
    _tuilab_watch.log(1, {"saved": 1.0})
    loss().backward(); o.step()
ThreadPoolExecutor().submit(save)
""",
    )

    assert ended_at(seen)[-4:] == ["end", "log", "step", "end"]


@pytest.mark.real_torch
def test_process_that_made_no_step_marks_no_end(watch: Watch) -> None:
    seen = watch(
        TRAIN
        + """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=print)
child.start(); child.join()
""",
    )

    assert len(seen.processes) == 1
    assert ended_at(seen) == ["step"] * 3 + ["end"]
