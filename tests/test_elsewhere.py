"""Runs without an end whose processes cannot be seen from here: never deleted without a word, and never stuck."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import msgspec
import pytest

from tests.made_runs import identity, started
from tests.made_runs import make_run as records_of
from tests.test_archive import make_run
from tuilab.record import events, presence
from tuilab.record.live_run import Watch
from tuilab.runs import store

Tuilab = Callable[..., "CompletedProcess[str]"]
DAY_S = 86400
HOUR_NS = 3600 * 10**9


@pytest.fixture
def copied(root: Path) -> Path:
    """A run of another box without an end, copied here or on a disk that both boxes share; it was written to just now."""
    return make_run(root, is_over=False, host="old-box")


def let_pass(run_dir: Path, age_s: float) -> None:
    """Have nothing been written to a run for so long."""
    then = time.time() - age_s
    for stream in (run_dir / "journal").iterdir():
        os.utime(stream, (then, then))


@pytest.mark.parametrize("words", [("rm", "abc123"), ("rm", "abc123", "--yes"), ("stop", "abc123")])
def test_a_run_of_another_box_that_is_written_to_is_stopped_there(
    tuilab: Tuilab, copied: Path, words: tuple[str, ...]
) -> None:
    done = tuilab(*words)

    assert (done.returncode, done.stderr) == (2, "tuilab: abc123 runs on old-box; stop it there\n")
    assert copied.exists()


@pytest.mark.parametrize("words", [("rm", "abc123"), ("stop", "abc123")])
def test_a_silent_run_of_another_box_is_not_deleted_without_a_word_and_the_word_is_told(
    tuilab: Tuilab, copied: Path, words: tuple[str, ...]
) -> None:
    let_pass(copied, DAY_S)
    since = time.strftime(
        "%Y-%m-%d %H:%M", time.localtime(next((copied / "journal").iterdir()).stat().st_mtime)
    )

    done = tuilab(*words)

    assert (done.returncode, done.stderr) == (
        2,
        f"tuilab: abc123 ran on old-box and has no recorded end; it has written nothing since {since}; "
        "stop it there, or if you know that it has ended, delete it: tuilab rm abc123 --yes\n",
    )
    assert copied.exists()


@pytest.mark.parametrize(
    "age_s", [DAY_S, -DAY_S], ids=["a day ago", "by a clock that is a day ahead"]
)
def test_a_silent_run_of_another_box_is_deleted_by_who_says_so(
    tuilab: Tuilab, copied: Path, age_s: float
) -> None:
    let_pass(copied, age_s)

    done = tuilab("rm", "abc123", "--yes")

    assert (done.returncode, done.stdout) == (0, f"deleted {copied.name}\n")
    assert not copied.exists()


def test_to_delete_all_runs_is_no_word_about_one_of_another_box(
    tuilab: Tuilab, copied: Path
) -> None:
    let_pass(copied, DAY_S)

    done = tuilab("rm", "--keep", "0", "--yes")

    assert done.returncode == 0 and done.stdout.startswith("deleted 0 runs")
    assert "kept: abc123 ran on old-box and has no recorded end" in done.stdout
    assert copied.exists()


def test_a_run_of_a_container_that_is_gone_can_be_deleted(tuilab: Tuilab, root: Path) -> None:
    """As after a restart of a container whose runs are on a volume: the box is this one, its pids mean nothing."""
    me = presence.identify(os.getpid())
    assert me is not None
    first = started(supervisor=msgspec.structs.replace(me, pid_namespace=1))
    run_dir = records_of(root, first, events.StateChanged(state="running"))
    let_pass(run_dir, DAY_S)
    name = store.short_id(run_dir.name)

    refused, done = tuilab("stop", name), tuilab("rm", name, "--yes")

    assert (
        f"{name} ran in another container or pid namespace of this machine and has no recorded end; "
        in refused.stderr
    )
    assert done.returncode == 0 and not run_dir.exists()


def test_yes_does_not_delete_a_run_that_goes_on_here(tuilab: Tuilab, root: Path) -> None:
    me = presence.identify(os.getpid())
    run_dir = records_of(root, started(supervisor=me), events.StateChanged(state="running"))
    let_pass(run_dir, DAY_S)

    done = tuilab("rm", store.short_id(run_dir.name), "--yes")

    assert done.returncode == 2 and "is running; stop it first" in done.stderr
    assert run_dir.exists()


def test_a_run_in_a_state_of_a_newer_tuilab_is_deleted_no_sooner_than_one_that_runs(
    tuilab: Tuilab, root: Path
) -> None:
    run_dir = records_of(
        root,
        started(is_alive=True),
        *(events.StateChanged(state=state) for state in ("running", "paused")),
    )

    done = tuilab("rm", "last", "--yes")

    assert done.returncode == 2 and "is paused; stop it first" in done.stderr
    assert run_dir.is_dir()


@pytest.mark.parametrize(
    "fields",
    [{"boot": "another"}, {"time_namespace": 1}, {}],
    ids=["box", "time namespace", "this clock"],
)
def test_how_long_a_run_goes_on_is_told_whatever_its_clock_began_with(
    root: Path, fields: dict[str, Any]
) -> None:
    supervisor = msgspec.structs.replace(identity(is_alive=True), **fields)
    first = started(supervisor=supervisor, wall_ns=time.time_ns() - HOUR_NS)
    watch = Watch(records_of(root, first, events.StateChanged(state="running")))
    watch.refresh()
    watch.summary.first_t += (
        9 * HOUR_NS
    )  # it waited before it began, which the present does not change by

    assert watch.summary.run
    went_on_ns = watch.now_ns - watch.summary.run.t
    assert round(went_on_ns / HOUR_NS, 1) == (1.0 if fields else 0.0)
    assert watch.now_ns >= watch.summary.last_t


def test_a_run_that_has_just_been_made_is_not_said_to_be_lost(tuilab: Tuilab, root: Path) -> None:
    """Its supervisor writes the first record in a moment."""
    name = store.short_id(store.create("tour", root).name)

    done = tuilab("stop", name)

    assert (done.returncode, done.stderr) == (
        2,
        f"tuilab: {name} is just being started; try again in a few seconds\n",
    )
