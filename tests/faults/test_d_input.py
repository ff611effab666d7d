"""The screens in every size, and whatever is typed, pasted or flooded into them."""

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults import ptys
from tests.faults.fronts import (
    LOOKS,
    NOISY,
    WAITS,
    Open,
    check_looks,
    is_whole,
    wait_for_answer,
)
from tests.faults.oracle import check
from tests.faults.sites import Site, latest, reach_stage
from tests.tui.pictures import recorded
from tests.tui.terminals import PATIENCE_S, Terminal
from tuilab.tui.keys import CHANGES, KEYS
from tuilab.tui.terminal.guardian import RESTORE

pytestmark = pytest.mark.faults

SIZES = [(1, 1), (2, 3), (10, 3), (3, 60), (30, 8), (60, 20), (300, 100), (1000, 500)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_60_a_recorded_run_is_shown_in_every_size(
    site: Site, screens: Open, size: tuple[int, int]
) -> None:
    run_dir = recorded("tour", site.root)
    term = screens("attach", run_dir.name, columns=size[0], rows=size[1])
    check_looks(term, LOOKS if size[0] < 1000 else ["z"])
    if size[0] >= 60:
        term.wait_for("succeeded", "quit")
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    cut, guardian, _ = bytes(term.sent).partition(RESTORE)
    assert not guardian or not cut.endswith(
        b"\x1b[?1006l"
    )  # what follows a cut frame could be read as its rest
    assert b"Traceback" not in term.sent


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (24, 80), (500, 1000), (0, 0)])
def test_60_a_terminal_of_any_size_gets_a_result(
    site: Site, terminals: list[ptys.Terminal], size: tuple[int, int]
) -> None:
    body = 'lab.stage("one")\nfor step in range(50): lab.log(step, half=step / 2)\nlab.claim("one-is-one", True)'

    terminal = ptys.open_terminal(
        site,
        terminals,
        "run",
        str(write_scenario(site.folder, body)),
        "--headless",
        "--plot",
        size=size,
    )

    assert terminal.front.wait(timeout=60) == 0
    check(site, latest(site), "succeeded")
    until(lambda: b"SUPPORTED" in terminal.seen)
    assert b"Traceback" not in terminal.seen
    assert ptys.is_restored(terminal)


def test_60_a_storm_of_sizes_during_a_run_ends_with_the_right_picture(
    site: Site, screens: Open, go: Path
) -> None:
    term = screens("run", str(write_scenario(site.folder, NOISY)), columns=10, rows=3)
    for number in range(20):  # while it starts
        term.resize(1 + number * 3, 1 + number)
        time.sleep(0.02)  # so that they come at different moments
    run_dir = reach_stage(site, "on")
    for number in range(100):
        term.resize(1 + number * 37 % 300, 1 + number * 11 % 90)
    term.resize(100, 30)
    go.touch()
    term.wait_for("probe", "succeeded", "the last line", "quit")
    wait_for_answer(term)
    picture = term.text
    wait_for_answer(term)

    assert term.text == picture
    assert is_whole(picture)
    term.type("q")
    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    check(site, run_dir, "succeeded")


@pytest.mark.parametrize(
    "junk",
    [
        bytes(range(128, 256)) + b"\xc3\x28\xf0\x9f\x92\xff",
        b"\x1b[200~" + b"sq" * 500_000 + b"\x1b[201~",
        b"\x1b[200~s\x1bs" + b"sq" * 100 + b"\x1b[3~\x1b[201~",
        b"\x1b]11;rgb:ssss/qqqq/ssss\x07\x1bP1+r73;q\x1b\\\x1b_Gsq;s\x1b\\",
        b"\x1b[?64;1;2;4c\x1b[>1;10;0c\x1b[?1;2s\x1b[3;4;5;6q\x1b[24;80R",
        b"\x1b[115;1:1;115x\x1b[97;1:3;97u\x1b[1114112u\x1b[99999999999u",
        b"\x1b[48;0;0;0;0t\x1b[48;65000;65000;1;1t\x1b[<35;1;1M\x1b[<0;99999999999;9M\x1b[<0;5;5M",
    ],
    ids=[
        "no text",
        "1 MB",
        "a paste with escapes in it",
        "answers in strings",
        "answers",
        "keys that do not exist",
        "sizes",
    ],
)
def test_61_what_is_no_key_does_nothing(site: Site, screens: Open, go: Path, junk: bytes) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    term.type(junk)
    wait_for_answer(term)
    term.wait_for("running", "half", "s stop")
    go.touch()
    term.wait_for("succeeded", "the last stage")
    term.type("q")

    assert term.wait() == 0
    assert b"Traceback" not in term.sent
    check(site, run_dir, "succeeded")


def test_61_a_paste_whose_end_is_lost_does_not_take_the_keys_with_it(
    site: Site, screens: Open, go: Path
) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    term.type(b"\x1b[200~sqsqsq")
    deadline = time.monotonic() + 30
    while "frozen" not in term.text and time.monotonic() < deadline:
        time.sleep(1.5)  # silence is what ends such a paste
        term.type(" ")
        wait_for_answer(term)

    assert "frozen" in term.text
    assert look(run_dir).state == "running"
    term.type("q")
    assert term.wait() == 0
    go.touch()
    check(site, run_dir, "succeeded")


def test_61_an_answer_that_comes_late_is_not_left_to_the_shell(site: Site, screens: Open) -> None:
    run_dir = recorded("tour", site.root)
    script = f"{TUILAB} attach {run_dir.name}; read -t 3 line; echo the end"
    term = screens("-c", script, command=("bash",), limit=10_000, columns=60, rows=20)
    term.wait_for("succeeded", "quit")
    until(lambda: term.age_s() == 0)
    term.delay_s = 0.0
    term.type("\x0c")
    until(lambda: term.age_s() > 0)
    term.type("q")  # while a whole frame is on its way
    term.wait_for("the end")

    is_left = (
        b"0n" in term.sent.rpartition(b"\x1b[?1049l")[2]
    )  # the terminal shows what is typed for the shell
    assert (
        not is_left or term.delay_s > 1.5
    )  # longer than anybody waits, on a box with much other work


# What stops, leaves, copies, suspends, runs a command, or lends the terminal to a program; which screen a key meets, and so what
# it does, depends on how busy the box is.
ACTING = (
    b"sSqQ\r\n\x03\x10\x11\x1a"
    + "".join(
        key.key
        for keys in KEYS.values()
        for key in keys
        if len(key.key) == 1 and (key.action in CHANGES or "copy" in key.action + key.word)
    ).encode()
)


@pytest.mark.parametrize("seed", range(4))
def test_61_random_bytes_break_nothing(site: Site, screens: Open, go: Path, seed: int) -> None:
    junk = random.Random(seed).randbytes(3000).translate(None, ACTING) + b"\x1b" * 2000
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    term.type(junk)
    wait_for_answer(term)
    term.process.send_signal(signal.SIGTERM)

    assert term.wait() == 130
    assert b"Traceback" not in term.sent
    assert term.is_restored() and term.strange() == []
    assert look(run_dir).state == "running"
    go.touch()
    check(site, run_dir, "succeeded")


def test_61_a_flood_of_keys_stays_in_the_terminal(site: Site, screens: Open, go: Path) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    front = psutil.Process(term.process.pid)
    memory = front.memory_info().rss
    typed: list[int] = []
    threading.Thread(target=flood, args=(term, typed), daemon=True).start()
    until(lambda: sum(typed) > 10_000)
    grown = front.memory_info().rss - memory
    front.send_signal(signal.SIGTERM)

    assert term.process.wait(PATIENCE_S) == 130
    assert grown < 20e6
    go.touch()
    check(site, run_dir, "succeeded")


def flood(term: Terminal, typed: list[int]) -> None:
    """Type a key again and again, as fast as it is taken."""
    with contextlib.suppress(OSError):
        for _ in range(10_000):
            typed.append(os.write(term.ours, b"x" * 100))
