"""Terminals of any kind, and moments at which the screens are ended."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import until, write_scenario
from tests.faults.fronts import (
    LOOKS,
    WAITS,
    Open,
    check_looks,
    is_gone,
)
from tests.faults.oracle import check
from tests.faults.sites import Site, reach_stage
from tests.tui.pictures import recorded

pytestmark = pytest.mark.faults


def test_59_standard_error_in_a_file_stays_empty(site: Site, screens: Open) -> None:
    with (site.folder / "log").open("w") as log:
        term = screens("attach", recorded("tour", site.root).name, stderr=log.fileno())
    term.wait_for("succeeded", "quit")
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    assert (site.folder / "log").read_text() == ""


@pytest.mark.parametrize(
    "kind, words",
    [
        ({"TERM": "dumb"}, "TERM=dumb"),
        ({"TERM": ""}, "cannot place text"),
        ({}, "cannot place text"),
    ],
    ids=["dumb", "empty", "none"],
)
def test_59_a_terminal_that_cannot_place_text_gets_a_sentence(
    site: Site, screens: Open, kind: dict[str, str], words: str
) -> None:
    run_dir = recorded("tour", site.root)
    site.environment.pop("TERM", None)
    refused = screens("replay", run_dir.name, kind=kind)

    assert refused.wait() == 2
    assert words in refused.text and b"\x1b" not in refused.sent
    assert is_gone(site)


def test_59_without_a_keyboard_the_result_is_printed(site: Site, screens: Open) -> None:
    run_dir = recorded("tour", site.root)
    term = screens(
        command=(
            "sh",
            "-c",
            f"{TUILAB} attach {run_dir.name} </dev/null; {TUILAB} </dev/null; echo rc=$?",
        )
    )
    term.wait()

    assert "cannot open the screens" in term.text and "rc=2" in term.text
    assert b"\x1b[?1049h" not in term.sent
    assert is_gone(site)


@pytest.mark.parametrize(
    "kind",
    [{"NO_COLOR": "1", "LC_ALL": "C.UTF-8"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "NO_COLOR": "1"}],
)
def test_59_a_terminal_gets_what_it_can_show(
    site: Site, screens: Open, go: Path, kind: dict[str, str]
) -> None:
    (site.folder / "λ").mkdir()
    term = screens(
        "run",
        str(write_scenario(site.folder / "λ", WAITS)),
        kind={"TERM": "xterm-256color", **kind},
    )
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    check_looks(term, LOOKS)
    colours = {
        colour
        for row in term.screen.buffer.values()
        for cell in row.values()
        for colour in (cell.fg, cell.bg)
    }
    term.type("q")

    assert term.wait() == 0
    until(lambda: b"1 run continues: " in term.sent)
    assert term.is_restored() and term.strange() == []
    assert bytes(term.sent).isascii() is (kind["LC_ALL"] != "C.UTF-8")
    assert all(map(is_grey, colours)) is ("NO_COLOR" in kind)
    go.touch()
    check(site, run_dir, "succeeded")


def is_grey(colour: str) -> bool:
    return colour == "default" or colour[:2] == colour[2:4] == colour[4:]


@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None,
    reason="taking a terminal away takes root and setpriv",
)
@pytest.mark.parametrize(
    "ending, code", [("q", 0), (signal.SIGKILL, -9)], ids=["in order", "sudden"]
)
def test_59_a_terminal_whose_name_belongs_to_another_user_is_used_and_given_back(
    site: Site, screens: Open, ending: "str | int", code: int
) -> None:
    """As after `su`."""
    run_dir = recorded("tour", site.root)
    lose = "chown 65534 $(tty) && chmod 600 $(tty) && exec setpriv --bounding-set=-dac_override,-dac_read_search "
    term = screens(command=("sh", "-c", f"{lose} {TUILAB} attach {run_dir.name}"))
    term.wait_for("succeeded", "quit")
    if isinstance(ending, str):
        term.type(ending)
    else:
        term.process.send_signal(ending)

    assert term.wait() == code
    until(term.is_restored)
    until(lambda: is_gone(site))
