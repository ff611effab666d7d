"""A pager or an editor in the terminal of the screens, and the signals that end both."""

import signal
import sys
from pathlib import Path

import psutil
import pytest

from tests.made_runs import PLAIN, finished, write
from tests.tui.terminals import PATIENCE_S, Terminal, terminal

PAGER = """#!/bin/sh
echo "pager $$ is open"
sleep 600
"""
DEAF_PAGER = """#!/bin/sh
trap '' TERM HUP INT QUIT
stty raw -echo </dev/tty
printf '\\033[?1049h\\033[?25l'
echo "pager $$ is open"
sleep 600
"""
# The editor is a child of a script, which does not wait for the copy.
EDITOR = """#!/bin/sh
sh -c 'trap "cp $1 $1.copy; exit" HUP; echo "editor is open"; sleep 600 & wait' - "$1"
exit
"""
# The line is read by a child of the pager.
READING_PAGER = """#!/bin/sh
sh -c 'echo pager is open; read line; echo "it read $line"; read line' </dev/tty
exit
"""


def write_program(folder: Path, text: str) -> str:
    """Write a script that can be run, and return its path."""
    path = folder / "program"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def read_pid(term: Terminal) -> int:
    """Return the process id that the pager shows when it is open."""
    lines = term.wait_for("pager", "is open").splitlines()
    for line in lines:
        if line.strip().startswith("pager "):
            return int(line.split()[1])
    raise AssertionError(lines)


@pytest.mark.parametrize("pager", [PAGER, DEAF_PAGER], ids=["default", "deaf"])
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 130),
        (signal.SIGHUP, 0),
        (signal.SIGINT, 130),
        (signal.SIGQUIT, 130),
    ],
)
def test_signal_ends_the_screens_and_their_open_pager(
    root: Path, tmp_path: Path, pager: str, number: int, code: int
) -> None:
    finished(root, {})
    env = {"PAGER": write_program(tmp_path, pager)}
    with terminal(tmp_path, "attach", "last", env=env) as term:
        term.wait_for("Output", "quit")
        term.type("v")
        pid = read_pid(term)
        term.process.send_signal(number)

        assert term.wait() == code
        assert term.is_restored()
        assert not psutil.pid_exists(pid)


def test_editor_can_save_unsaved_text_when_a_signal_ends_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "scenarios", zz_plain=PLAIN)
    env = {"VISUAL": write_program(tmp_path, EDITOR)}
    with terminal(tmp_path, "--scenarios", str(folder), env=env) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        term.type("/zz_plain\r")
        term.wait_for("A plain one", "/ filter")
        term.type("E")
        term.wait_for("editor is open")
        term.process.send_signal(signal.SIGTERM)

        assert term.wait() == 130
        assert (folder / "mine" / "zz_plain.py.copy").read_text() == PLAIN


def test_stopped_pager_continues_with_its_children(root: Path, tmp_path: Path) -> None:
    finished(root, {})
    env = {"PAGER": write_program(tmp_path, READING_PAGER)}
    with terminal(tmp_path, "attach", "last", env=env) as term:
        term.wait_for("Output", "quit")
        term.type("v")
        term.wait_for("pager is open")
        term.type("\x1a")
        term.type("words\n")

        term.wait_for("it read words")


def test_signal_before_a_program_starts_ends_it_at_once(tmp_path: Path) -> None:
    script = """
from tuilab.tui.terminal.foreground import Foreground

foreground = Foreground()
foreground.heed_signal(15, None)
print("code", foreground.run(["sleep", "600"]))
"""
    with terminal(tmp_path, "-c", script, command=sys.executable) as term:
        assert term.wait() == 0
        assert b"code 0" in term.sent


def test_sigterm_gives_130_even_if_the_terminal_closes_then(tmp_path: Path) -> None:
    with terminal(tmp_path) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        term.process.send_signal(signal.SIGTERM)
        term.hang_up()

        assert term.process.wait(PATIENCE_S) == 130
