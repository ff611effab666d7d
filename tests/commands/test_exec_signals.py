"""Signals that reach `tuilab exec` without screens reach the command, as if that had been started in its place."""

import os
import signal
from pathlib import Path

import pytest

from tests.engine import look, newest, processes_of, start, until

SAVES = """
trap 'echo saved; exit 3' TERM
trap 'echo heard' USR1
echo up
while :; do sleep 0.1; done
"""


def test_sigterm_ends_the_command_as_it_would_alone(root: Path) -> None:
    process = start(root, "exec", "--headless", "--", "sh", "-c", "echo up; exec sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"

    process.terminate()

    assert process.wait(60) == 128 + signal.SIGTERM
    process.communicate()
    run_dir = newest(root)
    assert run_dir is not None
    assert look(run_dir).state == "killed"
    assert processes_of(run_dir) == []


@pytest.mark.parametrize("option", ["--headless", "--quiet"])
def test_a_command_that_saves_on_sigterm_has_its_own_exit_code(root: Path, option: str) -> None:
    process = start(root, "exec", option, "--", "bash", "-c", SAVES)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"

    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == "heard\n"
    process.terminate()

    assert process.wait(60) == 3
    assert process.communicate()[0] == "saved\n"


def test_sigterm_that_comes_before_the_command_is_kept_for_it(root: Path) -> None:
    process = start(root, "exec", "--quiet", "--", "sleep", "1000")
    until(lambda: newest(root))

    process.terminate()

    assert process.wait(60) == 128 + signal.SIGTERM
    process.communicate()


def test_sighup_ends_the_front_and_leaves_the_command(root: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    process = start(
        root, "exec", "--headless", "--", "sh", "-c", f"echo up; read line <{go}; exit 0"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"

    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == -signal.SIGHUP
    go.write_text("go\n")
    process.communicate()  # the command holds the pipes until it has ended
    run_dir = newest(root)
    assert run_dir is not None
    until(lambda: look(run_dir).summary.is_over)
    assert look(run_dir).state == "succeeded"
