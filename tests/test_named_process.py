"""A record in a shared folder may name any process of ours: only the one that it is about is signalled."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from tests.engine import look, until, wait_for_stage, write_scenario
from tuilab.engine import launch
from tuilab.errors import UsageError
from tuilab.record import events, presence
from tuilab.record.encoding import spell_out
from tuilab.record.origin import named_process
from tuilab.runs import sweeps

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

RUN = "20261128T000000000Z-planted-abcdef"
NOBODY = 65534
SLEEPS = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]


@pytest.fixture
def start_process() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start a process of ours that waits, and end it after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout
        process.stdout.readline()  # now it has opened what it opens
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def plant(root: Path, pid: int, name: str = RUN, **fields: Any) -> Path:
    """Make the folder of a run whose record names a process as its supervisor."""
    run_dir = root / name
    (run_dir / "journal").mkdir(mode=0o700, parents=True)
    supervisor = presence.identify(pid)
    assert supervisor
    usual: dict[str, Any] = {
        "format": events.FORMAT,
        "run": name,
        "scenario": "planted",
        "topic": "up",
        "title": "Planted.",
        "source_sha256": "",
        "params": {},
        "supervisor": supervisor,
        "tuilab": "0",
        "wall_ns": 1,
    }
    records = [events.RunStarted(**{**usual, **fields}), events.StateChanged(state="running")]
    for number, record in enumerate(records):
        append(run_dir, record, number)
    named_process.record_of(run_dir).chmod(0o600)
    return run_dir


def append(run_dir: Path, record: events.Event, number: int) -> None:
    record.n, record.t = number, number + 1
    body = msgspec.json.encode(spell_out(msgspec.to_builtins(record)))
    with named_process.record_of(run_dir).open("ab") as file:
        file.write(b"%08x %b\n" % (crc32(body), body))


def give_away(run_dir: Path) -> None:
    """Make a run belong to another user."""
    if os.getuid():
        pytest.skip("a file of another user takes root")
    for path in [run_dir, *run_dir.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize("owner", ["ours", "another user's"])
@pytest.mark.parametrize("now", [[], ["--now"]], ids=["in order", "at once"])
def test_stop_refuses_a_process_that_does_not_write_the_record(
    tuilab: Tuilab, root: Path, start_process: Callable[..., Any], owner: str, now: list[str]
) -> None:
    victim = start_process(*SLEEPS)
    run_dir = plant(root, victim.pid)
    if owner != "ours":
        give_away(run_dir)

    done = tuilab("stop", "last", *now)

    assert (
        done.returncode == 2
        and f"names process {victim.pid}, which does not write that record" in done.stderr
    )
    assert done.stderr.count("\n") == 1
    assert victim.poll() is None


@pytest.mark.parametrize(
    ("last_state", "answer"),
    [("stopped", "has already ended: stopped"), ("running", "is lost; none of its processes")],
)
def test_stop_says_how_a_run_ended_that_ends_while_its_record_is_read(
    root: Path,
    start_process: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    last_state: str,
    answer: str,
) -> None:
    supervisor = start_process(*SLEEPS)
    run_dir = plant(root, supervisor.pid)
    has_ended = named_process.has_ended

    def end_first(pid: int, start: int) -> bool:
        if supervisor.poll() is None:
            append(run_dir, events.StateChanged(state=last_state), 2)
            supervisor.kill()
            supervisor.wait()
        return has_ended(pid, start)

    monkeypatch.setattr(named_process, "has_ended", end_first)

    assert answer in launch.stop(run_dir)


@pytest.mark.parametrize(("mode", "is_supervisor"), [("rb", False), ("ab", True)])
def test_process_that_only_reads_a_record_is_no_supervisor(
    root: Path, mode: str, is_supervisor: bool
) -> None:
    """Whoever follows a planted run has its record open."""
    run_dir = plant(root, os.getpid())

    with named_process.record_of(run_dir).open(mode):
        answer = named_process.is_supervisor_of(run_dir, os.getpid())

    assert answer is is_supervisor


def test_stop_refuses_a_record_that_is_linked_to_from_elsewhere(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """A hard link shows the record of a run of ours under the name of another run."""
    tuilab("run", str(write_scenario(tmp_path, 'lab.stage("on")\ntime.sleep(600)')), "--detach")
    run_dir = wait_for_stage(root, "on")
    planted = root / "20991128T000000000Z-planted-fedcba"
    (planted / "journal").mkdir(parents=True)
    linked = named_process.record_of(planted)
    os.link(named_process.record_of(run_dir), linked)

    refused = tuilab("stop", "fedcba")
    linked.unlink()
    stopped = tuilab("stop", run_dir.name)

    assert refused.returncode == 2 and "does not write that record" in refused.stderr
    assert stopped.returncode == 0, stopped.stderr
    assert until(lambda: look(run_dir).state == "stopped" or None)


def test_stop_spares_a_run_of_ours_whose_name_another_user_took(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """What a lost run left behind is known by the name of the run alone."""
    tuilab("run", str(write_scenario(tmp_path, 'lab.stage("on")\ntime.sleep(600)')), "--detach")
    run_dir = wait_for_stage(root, "on")
    shared = tmp_path / "shared"
    me = presence.identify(os.getpid())
    assert me
    gone = msgspec.structs.replace(me, start=me.start - 1)
    give_away(plant(shared, os.getpid(), run_dir.name, supervisor=gone))

    refused = tuilab("stop", "last", "--root", str(shared))
    state = look(run_dir).state
    tuilab("stop", run_dir.name)

    assert (
        refused.returncode == 2
        and "is lost, and its folder belongs to another user" in refused.stderr
    )
    assert state == "running"
    assert until(lambda: look(run_dir).state == "stopped" or None)


SWEEP: dict[str, Any] = {
    "id": "sweep-abcdef",
    "values": {"n": [1, 2]},
    "point": {"n": 1},
    "argv": ["tuilab", "sweep"],
}


@pytest.mark.parametrize("change", ["nothing", "mode", "owner", "command"])
def test_sweep_stop_interrupts_only_a_front_that_we_recorded(
    root: Path, start_process: Callable[..., Any], change: str
) -> None:
    words = [] if change == "command" else ["tuilab", "sweep"]
    front = start_process(*SLEEPS, *words)
    run_dir = plant(
        root, front.pid, sweep=events.Sweep(**SWEEP, front=presence.identify(front.pid))
    )
    if change == "mode":
        named_process.record_of(run_dir).chmod(0o666)
    if change == "owner":
        give_away(run_dir)
    found = sweeps.find("sweep-abcdef", root)
    assert found.client

    is_interrupted = launch.interrupt(found.client, found.source)

    assert is_interrupted == (change == "nothing")
    if is_interrupted:
        assert front.wait(timeout=60) == -signal.SIGINT
    else:
        assert front.poll() is None


def test_sweep_resume_runs_no_command_that_another_user_wrote(root: Path) -> None:
    run_dir = plant(root, os.getpid(), sweep=events.Sweep(**SWEEP))
    give_away(run_dir)
    found = sweeps.find("sweep-abcdef", root)

    with (
        pytest.raises(UsageError, match="another user may have written"),
        sweeps.in_start_folder(found),
    ):
        pytest.fail("its command would be run")


def test_child_of_ours_is_trusted_if_the_box_hides_open_files(
    root: Path, start_process: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at the front stops its own run also in a sandbox."""
    child = start_process(*SLEEPS)
    run_dir = plant(root, child.pid)
    listed = os.listdir

    def hide(path: Any) -> list[str]:
        if str(path).endswith("/fd"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "listdir", hide)

    assert named_process.is_supervisor_of(run_dir, child.pid)
    with pytest.raises(PermissionError):
        named_process.is_supervisor_of(run_dir, os.getpid())
