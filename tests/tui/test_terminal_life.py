"""The screens in a real terminal: whatever happens to them, the terminal is given back, and they never eat the machine."""

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import psutil
import pytest

from tests.conftest import TUILAB
from tests.engine import until
from tests.made_runs import make_run, started
from tests.slow_cases import slow_cases
from tests.tui.terminals import PATIENCE_S, terminal
from tuilab.catalogue import catalog
from tuilab.record.events import StateChanged


def cpu_s_of_a_second(process: psutil.Process) -> float:
    """Return the processor time that a process uses in a second."""
    before = process.cpu_times()
    time.sleep(1)  # the span that is measured
    after = process.cpu_times()
    return float(after.user + after.system - before.user - before.system)


def test_q_leaves_and_gives_the_terminal_back(tmp_path: Path) -> None:
    with terminal(
        tmp_path, env={"TEXTUAL_COLOR_SYSTEM": "odd", "TEXTUAL_LOG": "/not/there"}
    ) as term:  # of which none ends it
        term.wait_for("tensor-basics", "quit", " cores")
        term.type("q")

        assert term.wait() == 0
        assert term.is_restored()
        assert term.strange() == []


@pytest.mark.parametrize(
    "number, code",
    [
        (signal.SIGTERM, 130),
        (signal.SIGHUP, 0),
        (signal.SIGINT, 130),
        (signal.SIGQUIT, 130),
    ],
)
@pytest.mark.first(1)
def test_a_signal_leaves_in_order(tmp_path: Path, number: int, code: int) -> None:
    with terminal(tmp_path) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        term.process.send_signal(number)

        assert term.wait() == code
        assert term.is_restored()
        assert b"Traceback" not in term.sent


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, *slow_cases(signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1)]
)
def test_a_sudden_death_gives_the_terminal_back_too(tmp_path: Path, number: int) -> None:
    with terminal(
        tmp_path, env={"PYTHONFAULTHANDLER": ""}
    ) as term:  # whose words would end the sequence that is cut
        term.wait_for("tensor-basics", "quit", " cores")
        term.process.send_signal(number)

        assert term.process.wait(PATIENCE_S) == -number
        until(term.is_restored)


@pytest.mark.slow
def test_a_terminal_that_is_gone_ends_the_screens(tmp_path: Path) -> None:
    with terminal(tmp_path) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        term.hang_up()

        term.process.wait(PATIENCE_S)


@pytest.mark.tools
def test_keys_that_come_at_once_act_one_after_another(tmp_path: Path) -> None:
    """As on a slow link: the letters after `/` are for the filter that it opens, not for the list."""
    count = len(catalog.load())
    with terminal(tmp_path) as term:
        term.wait_for("tensor-basics", "quit")
        term.type("/softmax")
        term.wait_for(f" of {count} ")
        term.type("\x1b")
        term.wait_for(f"Scenarios {count} ")
        term.type("h")
        term.wait_for("history")

        assert list((tmp_path / "runs").glob("*Z-*")) == []


@pytest.mark.slow
def test_bytes_that_are_no_text_are_ignored(tmp_path: Path) -> None:
    with terminal(tmp_path) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        term.type(
            b"\x80\xff\xfe\xc3\x28"
            + b"\x1b" * 50
            + b"\x1b[200~"
            + bytes(range(128, 256))
            + b"\x1b[201~"
        )
        term.type("?")
        term.wait_for("esc")
        term.type("\x1b")
        term.wait_for("tensor-basics", "quit", " cores")
        term.type("q")

        assert term.wait() == 0


def test_a_folder_of_scenarios_that_is_not_there_is_one_sentence_and_no_screen_opens(
    tmp_path: Path,
) -> None:
    with terminal(tmp_path, "--scenarios", "/not/there") as term:
        term.wait_for("tuilab: /not/there is not a folder")

        assert term.wait() == 2
        assert b"\x1b[?1049h" not in term.sent and b"Traceback" not in term.sent


@pytest.mark.slow
def test_a_terminal_that_takes_nothing_costs_nothing_and_lets_us_go(tmp_path: Path) -> None:
    with terminal(tmp_path) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        front = psutil.Process(term.process.pid)
        term.stop_reading()
        for _ in range(30):
            term.type("T")  # each a whole frame
        until(lambda: cpu_s_of_a_second(front) < 0.1)  # once the keys have been heeded
        front.send_signal(signal.SIGTERM)

        assert term.process.wait(PATIENCE_S) == 130


@pytest.mark.parametrize(
    "size", [(1, 1), *slow_cases((5, 2), (20, 5), (60, 20), (80, 24), (300, 100))]
)
def test_every_size_opens_and_leaves(tmp_path: Path, size: tuple[int, int]) -> None:
    with terminal(tmp_path, columns=size[0], rows=size[1]) as term:
        until(lambda: b"\x1b[?1049h" in term.sent and term.sent.count(b"H") > 1)
        term.type("q")

        assert term.wait() == 0
        assert term.is_restored()


@pytest.mark.slow
def test_a_storm_of_sizes_ends_with_the_right_picture(tmp_path: Path) -> None:
    with terminal(tmp_path) as term, terminal(tmp_path, columns=100, rows=30) as calm:
        term.wait_for("tensor-basics", "quit", " cores")
        calm.wait_for("tensor-basics", "quit", " cores")
        for number in range(60):
            term.resize(20 + number * 2, 8 + number % 30)
        term.resize(100, 30)

        until(lambda: term.text == calm.text)


def test_no_terminal_is_refused_with_the_command_that_works(
    tmp_path: Path, tuilab: Callable[..., "CompletedProcess[str]"]
) -> None:
    done = tuilab()

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "tuilab: cannot open the screens: there is no terminal; print results instead, "
        "for example tuilab run stability --headless, or see `tuilab --help`\n"
    )


def test_a_dumb_terminal_is_refused_without_an_escape(tmp_path: Path) -> None:
    with terminal(tmp_path, command="env", env={}) as term:
        term.wait()
    with terminal(tmp_path, "TERM=dumb", TUILAB, command="env") as term:
        assert term.wait() == 2
        assert b"\x1b" not in term.sent
        assert b"--headless" in term.sent


@pytest.mark.tools
def test_suspended_and_resumed_it_shows_the_same(tmp_path: Path) -> None:
    with terminal(
        tmp_path, "-c", f"set -m; {TUILAB}; echo suspended; fg; echo rc=$?", command="bash"
    ) as term:
        term.wait_for("tensor-basics", "quit", "cores")
        term.wipe()
        term.type("\x1a")
        until(lambda: b"suspended" in term.sent)
        term.wait_for("tensor-basics", "quit", " cores")
        term.type("q")

        term.wait_for("rc=0")


SLOW = """
import asyncio, sys
from tuilab.__main__ import main
from tuilab.tui.terminal.driver import Terminal
from tuilab.tui.terminal.frame_app import PacedApp

settle, process = PacedApp.settle, Terminal.process_message

def note(word):
    with open(sys.argv[0] + ".log", "a") as log:
        print(word, file=log)

async def settle_slowly(app):
    await asyncio.sleep(0.6)  # as on a box that has other things to do
    await settle(app)
    note("acted")

def process_and_note(terminal, event):
    note(getattr(event, "key", "other"))
    process(terminal, event)

PacedApp.settle, Terminal.process_message = settle_slowly, process_and_note
main()
"""


def test_a_key_of_a_burst_is_heard_when_the_one_before_has_acted_however_slow_the_box_is(
    tmp_path: Path,
) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    with terminal(tmp_path, str(script), command=sys.executable) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        term.type("/bx")
        term.wait_for("no match")
        term.type(b"\x11")
        term.wait()

    heard = [word for word in (tmp_path / "slow.py.log").read_text().split() if word != "other"]
    assert heard[:5] == ["slash", "acted", "b", "acted", "x"]


@pytest.mark.parametrize(("state", "is_told"), [("running", True), ("succeeded", False)])
def test_who_attached_and_leaves_while_the_run_goes_on_is_told_how_to_come_back(
    tmp_path: Path, state: str, is_told: bool
) -> None:
    make_run(tmp_path / "runs", started(is_alive=True), StateChanged(state=state))
    with terminal(tmp_path, "attach", "abcdef") as term:
        term.wait_for("softmax", "quit")
        term.type("q")
        code = term.wait()

        assert code == 0
        assert (b"1 run continues: tuilab attach abcdef" in term.sent) == is_told


def test_who_leaves_the_screens_of_a_command_that_is_over_gets_its_exit_code(
    tmp_path: Path,
) -> None:
    """So that `&&` goes on behind `tuilab exec` only where it goes on behind the command."""
    with terminal(tmp_path, "exec", "--", "sh", "-c", "exit 7") as term:
        term.wait_for("failed", "exit code 7")
        term.type("q")
        assert term.wait() == 7
