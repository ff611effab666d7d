"""The processes of all users, as a made-up /proc tells of them."""

import os
import pwd
from pathlib import Path

import pytest

from tuilab.probes import processes
from tuilab.probes.processes import BusyProcesses, inspect_process, why_hidden

HOSTILE = "\x1b[31mevil\x07"


def put(
    root: Path, pid: int, command: list[str], *, cpu_ticks: int = 0, name: str = "python"
) -> None:
    """Write what the kernel says of a process."""
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = ["S", *["0"] * 10, str(cpu_ticks), *["0"] * 7, "100", "0", "25", "0"]
    (folder / "stat").write_text(f"{pid} ({name}) {' '.join(numbers)}")
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in command))


def test_a_process_has_a_user_an_age_and_a_command(tmp_path: Path) -> None:
    put(tmp_path, 7, ["python", "train.py"])
    found = inspect_process(7, tmp_path)

    assert (found.user, found.command, found.why) == (
        pwd.getpwuid(os.getuid()).pw_name,
        "python train.py",
        "",
    )
    assert found.age_s is not None and found.age_s > 0


def test_the_age_of_a_process_is_since_it_started() -> None:
    found = inspect_process(os.getpid())

    assert found.age_s is not None and 0 <= found.age_s < 86400
    assert "python" in found.command


def test_a_command_has_no_secrets_and_steers_no_terminal(tmp_path: Path) -> None:
    put(tmp_path, 7, ["serve", "--api-key", "s3cretS3cretS3cret", HOSTILE])
    command = inspect_process(7, tmp_path).command

    assert "s3cret" not in command
    assert "\x1b" not in command and "\x07" not in command


def test_a_process_without_a_command_is_called_by_its_name_whatever_that_holds(
    tmp_path: Path,
) -> None:
    put(tmp_path, 7, [], name=f"a) (b{HOSTILE}")

    assert (
        inspect_process(7, tmp_path).command.startswith("[a) (b")
        and "\x1b" not in inspect_process(7, tmp_path).command
    )


def test_of_a_process_that_is_gone_there_is_a_reason(tmp_path: Path) -> None:
    found = inspect_process(7, tmp_path)

    assert (found.user, found.age_s, found.command) == ("", None, "")
    assert found.why == "its process is not visible from here"


def test_of_a_process_that_may_not_be_read_there_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 7, ["python"])
    container(tmp_path, is_one=False)
    (tmp_path / "proc/self/mounts").write_text("proc /proc proc rw,hidepid=1 0 0\n")

    def deny(path: str) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(processes, "_read", deny)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert inspect_process(7, tmp_path).why == "processes of other users are hidden (hidepid=1)"


def container(root: Path, *, is_one: bool) -> None:
    link = root / "proc/self/ns/pid"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("pid:[7]" if is_one else "pid:[4026531836]")


@pytest.mark.parametrize(
    ("options", "user", "why"),
    [
        ("rw,hidepid=invisible", 1000, "processes of other users are hidden (hidepid=invisible)"),
        ("rw,hidepid=2", 0, ""),
        ("rw,hidepid=off", 1000, ""),
        ("rw", 1000, ""),
    ],
)
def test_a_box_that_hides_processes_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, user: int, why: str
) -> None:
    container(tmp_path, is_one=False)
    (tmp_path / "proc/self/mounts").write_text(f"proc /proc proc {options} 0 0\n")
    monkeypatch.setattr(os, "geteuid", lambda: user)

    assert why_hidden(tmp_path) == why


def test_a_container_says_that_it_shows_its_own(tmp_path: Path) -> None:
    container(tmp_path, is_one=True)

    assert why_hidden(tmp_path) == "a container shows only its own processes"


def test_the_busiest_come_first_and_our_own_are_left_out(tmp_path: Path) -> None:
    now = iter([10.0, 12.0])
    ticks = os.sysconf("SC_CLK_TCK")
    for pid in (1, 2, 3, 4):
        put(tmp_path, pid, [f"job{pid}"], cpu_ticks=50)
    busy = BusyProcesses(tmp_path, lambda: next(now))
    first = busy.read()
    for pid, seconds in ((2, 1), (3, 4), (4, 2)):
        put(tmp_path, pid, [f"job{pid}"], cpu_ticks=50 + seconds * ticks)
    found = busy.read(ours={4})

    assert first is None
    assert [(one.command, one.cores) for one in found or ()] == [("job3", 2.0), ("job2", 0.5)]
    assert found and found[0].rss_bytes == 25 * os.sysconf("SC_PAGE_SIZE")
