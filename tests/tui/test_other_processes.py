"""The line of the Run screen that names who else uses its GPU or its cores."""

from pathlib import Path

import pytest

from tests.made_runs import HOSTILE, identity, make_run, started
from tests.tui.screens import UNSAFE, app_on, open_run, opened, settle, text
from tuilab.probes.processes import BusyProcesses, Process
from tuilab.record import events
from tuilab.record.finding_words import company_words
from tuilab.record.live_run import read_run
from tuilab.tui.screens.run import RunPage
from tuilab.tui.state.other_processes import OtherProcesses, describe_busy

SAMPLE = events.Sampled(
    processes=1, threads=1, cpu_percent=1.0, rss_bytes=1, gpus={"GPU-a": {"memory_tree_bytes": 5.0}}
)


def shared(root: Path, *tenants: events.Tenant, is_over: bool = True) -> Path:
    """Make a run on a GPU that it shares."""
    end = [events.StateChanged(state="succeeded")] if is_over else []
    return make_run(
        root,
        started(is_alive=True),
        events.GpuFound(uuid="GPU-a", index=0, name="H100", bytes_total=1),
        SAMPLE,
        events.GpuShared(uuid="GPU-a", others=list(tenants), count=len(tenants)),
        *end,
    )


async def test_who_was_on_the_gpu_of_a_run_stands_above_its_panes_by_user(root: Path) -> None:
    bob = [events.Tenant(pid, "bob", bytes_used=used << 30) for pid, used in ((7, 4), (8, 7))]
    run_dir = shared(root, *bob, events.Tenant(9, "ana"))
    async with opened(app_on(root), size=(100, 30)) as pilot:
        page = await open_run(pilot, run_dir)
        page._look_for_company()  # noqa: SLF001
        await settle(pilot)

        assert text(pilot).splitlines()[1].strip() == (
            "also running: bob 2 processes 11 GiB on GPU 0, ana 1 process memory n/a on GPU 0"
        )


async def test_where_nobody_is_there_is_no_line(root: Path) -> None:
    run_dir = shared(root)
    async with opened(app_on(root)) as pilot:
        page = await open_run(pilot, run_dir)
        page._look_for_company()  # noqa: SLF001
        await settle(pilot)

        assert "also running:" not in text(pilot)


def test_names_of_users_do_not_steer_the_terminal(root: Path) -> None:
    words = company_words(read_run(shared(root, events.Tenant(7, HOSTILE.replace("\ud800", "")))))

    assert UNSAFE.findall(words) == []


def test_whose_processes_keep_cores_busy_is_added_up_by_user() -> None:
    busy = [
        Process(n, user, 1.0, "job", "", cores)
        for n, (user, cores) in enumerate([("bob", 1.5), ("bob", 1.6), ("", 0.3)])
    ]

    assert describe_busy(busy) == "bob 2 processes 3.1 cores, user n/a 1 process 0.3 cores"
    assert describe_busy([Process(1, "bob", 1.0, "job", "", 0.1)]) == describe_busy(None) == ""


@pytest.mark.parametrize(("is_alive", "words"), [(True, "bob 1 process 2.0 cores"), (False, "")])
def test_cores_are_looked_at_for_a_run_of_this_box_that_goes_on(
    monkeypatch: pytest.MonkeyPatch, is_alive: bool, words: str
) -> None:
    monkeypatch.setattr(
        BusyProcesses, "read", lambda self, ours: [Process(1, "bob", 1.0, "job", "", 2.0)]
    )

    assert OtherProcesses().describe(identity(is_alive=is_alive)) == words


def test_a_look_that_takes_long_is_not_taken_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    spent = iter([0.0, 1000.0, 2000.0])
    monkeypatch.setattr("tuilab.tui.state.other_processes.time.thread_time", lambda: next(spent))
    monkeypatch.setattr(BusyProcesses, "read", lambda self, ours: looks.append(1))
    others = OtherProcesses()
    for _ in range(5):
        others.describe(identity(is_alive=True))

    assert len(looks) == 1


async def test_company_on_the_cores_is_told_while_a_run_goes_on(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        OtherProcesses, "describe", lambda self, supervisor: "bob 2 processes 3.1 cores"
    )
    run_dir = make_run(root, started(is_alive=True), events.StateChanged(state="running"))
    async with opened(app_on(root), size=(100, 30)) as pilot:
        page = await open_run(pilot, run_dir)
        assert isinstance(page, RunPage)
        page._look_for_company()  # noqa: SLF001
        await pilot.app.workers.wait_for_complete()
        await settle(pilot)

        assert "also running: bob 2 processes 3.1 cores" in text(pilot)
