"""Screens that watch while a folder goes away, a stream is spoiled, or another stops the run."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine import until, write_scenario
from tests.faults.fronts import LOOKS, NOISY, WAITS, Open, check_looks
from tests.faults.oracle import check
from tests.faults.sites import Site, reach_stage

pytestmark = pytest.mark.faults


def test_48_two_screens_and_a_command_line_may_watch_and_stop_one_run(
    site: Site, screens: Open, go: Path
) -> None:
    terms = [screens("run", str(write_scenario(site.folder, WAITS)))]
    run_dir = reach_stage(site, "on")
    terms.append(screens("attach"))
    headless = site.start("attach", "last", "--headless")
    for term in terms:
        term.wait_for("running", "half")
    for term in terms:
        term.type("ss")  # the second says yes
    for term in terms:
        term.wait_for("stopped")
        term.type("q")

    assert [term.wait() for term in terms] == [0, 0]
    assert "stopped" in headless.communicate(timeout=60)[0]
    assert all(term.is_restored() for term in terms)
    check(site, run_dir, "stopped")


def remove(run_dir: Path) -> None:
    shutil.rmtree(run_dir, ignore_errors=True)


def replace_by_link(run_dir: Path) -> None:
    run_dir.rename(run_dir.with_name("moved"))
    run_dir.symlink_to("/etc")


@pytest.mark.parametrize("take_away", [remove, replace_by_link])
@pytest.mark.parametrize("verb", ["run", "attach"])
def test_36_a_run_whose_folder_is_taken_away_is_told_in_a_sentence(
    site: Site, screens: Open, go: Path, take_away: Callable[[Path], None], verb: str
) -> None:
    term = screens("run", str(write_scenario(site.folder, NOISY)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    if verb == "attach":
        term.type("q")
        term.wait()
        term = screens("attach")
        term.wait_for("running", "loss")
    take_away(run_dir)
    term.wait_for("this run was deleted" if take_away is remove else "is lost")
    check_looks(term, LOOKS)
    term.type("\x1b[27u")
    term.wait_for("Scenarios")
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    assert b"Traceback" not in term.sent
    go.touch()
    until(lambda: not site.living())


def test_42_garbage_in_a_journal_that_is_watched_is_shown_and_passed_over(
    site: Site, screens: Open, go: Path
) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    stream = next((run_dir / "journal").glob("worker*"))
    with stream.open("ab") as file:
        file.write(
            b"\x00\xff garbage\n"
            + b"[" * 100_000
            + b"\n"
            + b"\x1b[2J\x1b]0;owned\x07\x9b31m"
            + b"\n"
        )
    term.wait_for("the recorded data is incomplete")
    go.touch()
    term.wait_for("succeeded", "the last stage", "incomplete")
    term.type("q")

    assert term.wait() == 0
    assert term.strange() == []
    check(site, run_dir, "succeeded", is_whole=False)
