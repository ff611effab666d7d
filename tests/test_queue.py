"""The queue: who waits for whom, whatever becomes of the fronts and of those that wait."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.engine import look, start, until, write_scenario
from tests.report_aids import checked_document
from tuilab.catalogue import catalog
from tuilab.engine import launch, messages
from tuilab.engine.queue_turn import devices_of
from tuilab.engine.requeue import queue_again
from tuilab.errors import UsageError
from tuilab.record import presence
from tuilab.record.events import Identity
from tuilab.runs import queue, store
from tuilab.runs.queue import Ticket

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

TIMED = """
lab.stage("on")
while not os.path.exists("{gate}"): time.sleep(0.01)
if False: lab.claim_ratio("r", "a/b", at_least=1)
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file; when it is there, the scenarios of `timed` come to their end."""
    return tmp_path / "gate"


@pytest.fixture
def timed(tmp_path: Path, gate: Path) -> Path:
    """A folder with three scenarios that time something, and one that does not."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("first", "second", "third"):
        write_scenario(folder, TIMED.format(gate=gate), name=name)
    write_scenario(folder, 'lab.stage("done")', name="untimed")
    return folder


def queued(tuilab: Tuilab, folder: Path, *names: str) -> list[str]:
    """Queue scenarios, wait until the first of them has begun and the others wait, and return their ids."""
    root = folder.parent / "runs"
    done = tuilab("run", *(f"{folder}/{name}.py" for name in names), "--detach", "--quick")
    ids = done.stdout.split()
    until(lambda: look(store.find(ids[0], root)).summary.stages)
    until(lambda: all(look(store.find(id, root)).state == "queued" for id in ids[1:]))
    return ids


def waiting(root: Path) -> list[str]:
    return [one.name.rpartition("/")[2] for one in queue.waiting(root)]


def states(root: Path, ids: list[str]) -> list[str]:
    return [look(store.find(id, root)).state for id in ids]


def ends(root: Path, ids: list[str]) -> list[str]:
    return until(
        lambda: (
            found if set(found := states(root, ids)) <= {"succeeded", "stopped", "lost"} else None
        )
    )


def test_of_several_each_waits_until_those_before_it_are_over(
    tuilab: Tuilab, root: Path, timed: Path, gate: Path
) -> None:
    ids = queued(tuilab, timed, "first", "second", "third")

    assert waiting(root) == ["second", "third"]
    assert look(store.find(ids[1], root)).summary.reason == f"behind mine/first {ids[0]}"
    gate.touch()
    assert ends(root, ids) == ["succeeded"] * 3
    began = [look(store.find(id, root)).summary for id in ids]
    assert [a.last_t < b.first_t for a, b in pairwise(began)] == [True, True]
    until(lambda: queue.tickets(root) == [])


def test_what_times_nothing_waits_for_nobody_and_neither_does_what_runs_beside(
    tuilab: Tuilab, root: Path, timed: Path, gate: Path
) -> None:
    queued(tuilab, timed, "first", "second")

    untimed = tuilab(
        "run", f"{timed}/untimed.py", f"{timed}/third.py", "--detach", "--quick"
    ).stdout.split()
    assert until(lambda: look(store.find(untimed[0], root)).summary.is_over)
    beside = tuilab(
        "run", f"{timed}/second.py", f"{timed}/third.py", "--detach", "--quick", "--beside"
    ).stdout.split()
    until(lambda: all(look(store.find(id, root)).summary.stages for id in beside))
    assert waiting(root) == ["second", "third"]
    gate.touch()


def test_single_detached_run_waits_in_the_queue(tuilab: Tuilab, root: Path, timed: Path) -> None:
    tuilab("queue", "pause")

    done = tuilab("run", f"{timed}/first.py", "--detach", "--quick")

    assert done.returncode == 0
    assert "the queue is paused" in done.stderr
    tuilab("queue", "cancel", done.stdout.strip())


def test_a_queue_that_is_paused_is_told_when_runs_are_put_into_it(
    tuilab: Tuilab, root: Path, timed: Path
) -> None:
    queue.pause(root)

    done = tuilab("run", f"{timed}/first.py", f"{timed}/second.py", "--detach", "--quick")

    assert (
        "the queue is paused: runs that time something do not start; resume it: tuilab queue resume"
        in done.stderr
    )
    for run in done.stdout.split():
        tuilab("queue", "cancel", run)


def test_a_single_run_starts_at_once_and_says_who_else_runs(
    tuilab: Tuilab, root: Path, timed: Path, gate: Path
) -> None:
    (id,) = queued(tuilab, timed, "first")
    front = start(root, "run", f"{timed}/second.py", "--headless", "--quick")
    until(lambda: len(queue.running(root)) == 2)
    gate.touch()

    _, err = front.communicate(timeout=60)

    assert f"also running on this device: mine/first {id}; all will be slower" in err


FRONT = """
import sys, time
from pathlib import Path
from tuilab.catalogue import catalog
from tuilab.engine import launch
root, *paths = sys.argv[1:]
for path in paths:
    (scenario,) = catalog.find(catalog.load([]), path)
    run_dir, _ = launch.start(launch.order(scenario, {}, root=Path(root), is_quick=True, waits=True))
    print(run_dir.name, flush=True)
time.sleep(1000)
"""


def test_a_queue_outlives_its_front(root: Path, timed: Path, gate: Path) -> None:
    paths = [f"{timed}/{name}.py" for name in ("first", "second", "third")]
    front = subprocess.Popen(
        [sys.executable, "-c", FRONT, str(root), *paths], stdout=subprocess.PIPE, text=True
    )
    assert front.stdout
    ids = [front.stdout.readline().strip() for _ in paths]
    front.kill()
    front.communicate()
    until(lambda: waiting(root) == ["second", "third"])

    gate.touch()

    assert ends(root, ids) == ["succeeded"] * 3


def test_a_front_that_is_gone_before_it_heard_of_its_run_leaves_none_that_runs(
    root: Path, timed: Path
) -> None:
    """Whoever presses Ctrl-C before the run is known could not stop it later."""
    (scenario,) = catalog.find(catalog.load([]), f"{timed}/first.py")
    order = messages.pack(launch.order(scenario, {}, root=root))
    command = [sys.executable, "-m", "tuilab.engine.supervisor"]

    for said in (order, order + b"\n"):  # half an order, and one whose answer nobody took
        subprocess.run(command, input=said, capture_output=True, timeout=60, check=True)

    (run_dir,) = store.list_runs(root)
    ended = look(run_dir)
    assert (ended.state, ended.summary.reason) == (
        "stopped",
        "whoever asked for it was gone before it began",
    )
    assert queue.tickets(root) == []


def test_a_waiter_that_is_killed_leaves_the_queue_and_is_queued_again(
    tuilab: Tuilab, root: Path, timed: Path, gate: Path
) -> None:
    ids = queued(tuilab, timed, "first", "second", "third")
    killed = queue.waiting(root)[0]
    os.kill(killed.supervisor.pid, signal.SIGKILL)
    until(lambda: presence.presence(killed.supervisor) == "dead")

    assert waiting(root) == ["third"]
    assert "tuilab queue again" in tuilab("queue").stdout
    again = tuilab("queue", "again").stdout
    assert again.startswith(f"{ids[1]} is queued again as ")
    assert waiting(root) == ["third", "second"]
    assert tuilab("queue", "again", ids[1]).stderr.startswith(
        f"tuilab: {ids[1]} was not lost while it was queued; "
    )
    gate.touch()
    assert ends(root, [ids[0], ids[1], ids[2], again.split()[-1]]) == [
        "succeeded",
        "lost",
        "succeeded",
        "succeeded",
    ]


@pytest.mark.parametrize("change", ["mode", "owner"])
def test_what_another_user_may_have_put_into_the_queue_is_not_run(
    tmp_path: Path, change: str
) -> None:
    """An order names a file of code: who may write in the folder of runs could have put any there."""
    planted = ticket("planted", "cores")
    planted.supervisor = msgspec.structs.replace(planted.supervisor, start=1)
    planted.order = {"path": "/tmp/anything.py"}
    queue.enter(tmp_path, planted)
    path = tmp_path / queue.FOLDER / "planted.json"
    if change == "mode":
        path.chmod(0o666)
    elif os.getuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        pytest.skip("a file of another user takes root")

    with pytest.raises(UsageError, match="another user may have written it"):
        next(queue_again(tmp_path))


def test_runs_are_moved_and_taken_out(tuilab: Tuilab, root: Path, timed: Path, gate: Path) -> None:
    ids = queued(tuilab, timed, "first", "second", "third")

    assert tuilab("queue", "move", ids[2], "1").returncode == 0
    assert waiting(root) == ["third", "second"]
    assert (
        tuilab("queue", "move", ids[1], "3").stderr
        == "tuilab: no place 3 in the queue; use 1 to 2\n"
    )
    assert tuilab("queue", "move", ids[0], "1").stderr.endswith(
        f"has started and is no longer in the queue; stop it: tuilab stop {ids[0]}\n"
    )
    assert tuilab("queue", "cancel", "nope").returncode == 2
    tuilab("queue", "cancel", ids[2])
    gate.touch()

    assert ends(root, ids) == ["succeeded", "succeeded", "stopped"]
    assert look(store.find(ids[2], root)).summary.workers == {}


def test_a_paused_queue_lets_none_begin(
    tuilab: Tuilab, root: Path, timed: Path, gate: Path
) -> None:
    ids = queued(tuilab, timed, "first", "second")
    tuilab("queue", "pause")
    gate.touch()

    until(lambda: look(store.find(ids[0], root)).summary.is_over)
    told = checked_document(json.loads(tuilab("queue", "--json").stdout))
    assert (told["is_paused"], [run["state"] for run in told["runs"] if run["place"]]) == (
        True,
        ["queued"],
    )
    tuilab("queue", "resume")

    assert ends(root, ids) == ["succeeded"] * 2


def test_a_deleted_run_has_no_place_to_be_queued_again_to(
    tuilab: Tuilab, root: Path, timed: Path, gate: Path
) -> None:
    ids = queued(tuilab, timed, "first", "second")
    (ticket,) = queue.waiting(root)
    os.kill(ticket.supervisor.pid, signal.SIGKILL)
    until(lambda: look(store.find(ids[1], root)).state == "lost")

    assert tuilab("rm", ids[1]).returncode == 0
    assert queue.lost(root) == []
    gate.touch()


# ---- tickets


def ticket(
    run: str,
    *devices: str,
    place: float = 1.0,
    begun: bool = False,
    supervisor: Identity | None = None,
) -> Ticket:
    me = supervisor or presence.identify(os.getpid())
    assert me is not None
    return Ticket(
        run=run,
        name=run,
        devices=[*devices],
        supervisor=me,
        place=place,
        since_ns=0,
        has_begun=begun,
    )


@pytest.mark.parametrize(
    ("some", "others", "expected"),
    [
        (["cores"], ["cores"], True),
        (["cores"], ["cuda:0"], False),
        (["cuda:0"], ["cuda:1"], False),
        (["cuda:1"], ["cuda"], True),  # any GPU may be that one
        (["cuda"], ["cuda"], True),
        (["cuda"], ["cores"], False),
    ],
)
def test_devices_are_shared(some: list[str], others: list[str], expected: bool) -> None:
    assert queue.may_share_device(some, others) == queue.may_share_device(others, some) == expected


def test_one_waits_for_those_before_it_on_its_device_that_live() -> None:
    dead = presence.identify(os.getpid())
    assert dead is not None
    dead = msgspec.structs.replace(dead, start=1)
    own = ticket("own", "cores", place=5)
    every = [
        own,
        ticket("running", "cores", place=9, begun=True),
        ticket("before", "cores", place=4),
        ticket("behind", "cores", place=6),
        ticket("on a GPU", "cuda", place=1),
        ticket("dead", "cores", place=1, supervisor=dead),
        ticket(
            "on another box",
            "cores",
            place=1,
            supervisor=msgspec.structs.replace(dead, boot="x", host="y"),
        ),
    ]

    assert [one.run for one in queue.tickets_ahead(own, every)] == ["running", "before"]


def test_what_stands_in_the_place_of_a_ticket_counts_for_nothing(tmp_path: Path) -> None:
    queue.enter(tmp_path, ticket("own", "cores"))
    folder = tmp_path / queue.FOLDER
    (folder / "garbage.json").write_bytes(b"\xff{")
    (folder / "folder.json").mkdir()
    (folder / "other.json").write_bytes(msgspec.json.encode(ticket("not other", "cores", place=0)))
    os.mkfifo(folder / "fifo.json")

    assert [one.run for one in queue.tickets(tmp_path)] == ["own"]
    assert queue.begin(tmp_path, "own")


@pytest.mark.slow
def test_while_another_has_the_lock_none_begins_and_the_order_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "_PATIENCE_S", 0.0)
    queue.enter(tmp_path, ticket("own", "cores"))

    with queue._lock(tmp_path, 0.0) as is_ours:  # noqa: SLF001
        assert is_ours
        assert not queue.begin(tmp_path, "own")
        with pytest.raises(UsageError, match="try again"):
            queue.move(tmp_path, "own", 1)


def test_only_what_claims_times_needs_a_device_for_itself() -> None:
    lessons = {found.id: found for found in catalog.load()}

    def needed(name: str, **params: str) -> list[str]:
        found = lessons[name]
        return devices_of(found, {param.name: param.default for param in found.params} | params)

    assert needed("softmax") == []
    assert needed("row-reduce", device="cpu") == ["cores"]
    assert needed("row-reduce", device="cuda:3") == ["cuda:3"]
    assert needed("row-reduce", device="cuda") == ["cuda"]
