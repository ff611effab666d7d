"""Every screen: what it looks like in four sizes, that it names a command that exists, and that hostile text is inert on it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.made_up import FAST, HOSTILE, PLAIN, identity, make_run, started, write
from tests.tui.pictures import compare, picture, recorded, text_of
from tests.tui.screens import UNSAFE, opened, press, text
from tuilab import places
from tuilab.catalogue import catalog
from tuilab.cli.front_page import VERBS
from tuilab.record import events, presence
from tuilab.runs import queue
from tuilab.runs.queue import Ticket
from tuilab.tui.screens.page import Page
from tuilab.tui.terminal.textual_parts import rendered, rendered_rows

SIZES = [(60, 20), (80, 24), (120, 40), (200, 50)]
PAGES: dict[str, tuple[str, ...]] = {  # the keys that lead from the Lab screen to each
    "lab": (),
    "form": ("f",),
    "code": ("c",),
    "history": ("h",),
    "box": ("b",),
    "queue": ("Q",),
    "advise": ("b", "a"),
    "calibrate": ("b", "c"),
    "help": ("question_mark",),
    "run": ("h", "enter"),
    "compare": ("h", "space", "down", "space", "m"),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("page", ["lab", "form", "code", "help"])
@pytest.mark.first(5)
async def test_a_screen_looks_as_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, size: tuple[int, int]
) -> None:
    """Those that do not depend on the machine; the heading's right half does, and is left out."""
    folder = write(tmp_path / "scenarios", fast=FAST, plain=PLAIN)
    monkeypatch.setattr(catalog, "scenario_dirs", lambda extra=(): [str(folder)])
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    async with opened(tmp_path / "runs", *PAGES[page], size=size) as pilot:
        first, *rest = text_of(picture(pilot.app)).splitlines()

        compare(f"{page}-{size[0]}x{size[1]}", "\n".join([first[:20].rstrip(), *rest]) + "\n")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.first(3)
async def test_the_command_of_a_screen_exists(tmp_path: Path, page: str) -> None:
    for name in ("tour", "two-repeats"):
        recorded(name, tmp_path)
    async with opened(tmp_path, *PAGES[page]) as pilot:
        assert isinstance(pilot.app.screen, Page)
        words = pilot.app.screen.command().split()

        assert words[0] == "tuilab"
        assert len(words) == 1 or words[1] in VERBS


@pytest.mark.parametrize("no_color", ["1", ""], ids=["plain", "coloured"])
@pytest.mark.parametrize("page", ["box", "lab", "code", "run", "compare"])
@pytest.mark.first(2)
async def test_what_has_the_focus_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, no_color: str
) -> None:
    """On pages with several parts that can have it, all in sight; the line of keys, which differs by the part, is left out."""
    monkeypatch.setenv("NO_COLOR", no_color)
    for name in ("tour", "two-repeats"):
        recorded(name, tmp_path)
    async with opened(tmp_path, *PAGES[page], size=(120, 90)) as pilot:
        screen = pilot.app.screen
        pictures = []
        for widget in screen.focus_chain:
            screen.set_focus(widget, scroll_visible=False)
            await pilot.pause()
            pictures.append(rendered(screen)[1:-1])

        assert len(pictures) > 1
        assert [pictures.count(picture) for picture in pictures] == [1] * len(pictures)


async def test_rows_that_are_composed_alone_are_those_of_the_whole_screen(tmp_path: Path) -> None:
    recorded("tour", tmp_path)
    async with opened(tmp_path, *PAGES["run"], size=(120, 40)) as pilot:
        screen = pilot.app.screen
        whole = rendered(screen)

        assert rendered_rows(screen, {0, 7, 39}) == [line if y in (0, 7, 39) else None for y, line in enumerate(whole)]


def hostile_runs(root: Path) -> None:
    """Make two runs whose every text is hostile."""
    records: Callable[[], list[events.Event]] = lambda: [  # noqa: E731
        started(title=HOSTILE, params={HOSTILE: HOSTILE}, changed=[HOSTILE], claims=[HOSTILE], scenario=HOSTILE, topic=HOSTILE),
        events.StateChanged(state="running", reason=HOSTILE),
        events.StageEntered(name=HOSTILE),
        events.Logged(s=0, v={HOSTILE: 1.0}, a=HOSTILE),
        events.Logged(s=1, v={HOSTILE: 2.0}, a=HOSTILE),
        events.TextShown(text=HOSTILE, title=HOSTILE),
        events.ImageShown(title=HOSTILE, rows=1, cols=1, cells="AA==", low=0.0, high=1.0, arm=HOSTILE),
        events.ClaimNotTestable(text=HOSTILE + "2", needs=HOSTILE),
        events.GpuFound(uuid=HOSTILE, index=0, name=HOSTILE, slice=HOSTILE),
        events.XidReported(uuid=HOSTILE, xid=31),
        events.Unavailable(what=HOSTILE, reason=HOSTILE),
        events.ScenarioFailed(type=HOSTILE, message=HOSTILE, traceback=HOSTILE, hint=HOSTILE),
        events.StateChanged(state="failed", reason=HOSTILE),
    ]
    for number, end in enumerate(("abcdef", "fedcba")):
        run_dir = make_run(root, *records(), at_s=1.8e9 + number, end=end)
        (run_dir / "stdout.log").write_bytes(HOSTILE.encode(errors="replace") + b"\n\xff\xfe\x80")


def hostile_files(root: Path) -> None:
    """Put a run into the queue, and a calibration beside the folder of runs, whose every text is hostile."""
    text = HOSTILE.replace("\ud800", "")
    run, alive = "20270115T090000000Z-softmax-aaaaaa", identity(is_alive=True)
    queue.enter(root, Ticket(run=run, name=text, devices=[text], supervisor=alive, place=0, since_ns=0))
    trials = {"trials": 1, "false": 0, "delays": 1, "seen": 1}
    gpu = {"name": text, "box": presence.host_name(), text: trials, "over 6 processes": trials}
    Path(places.calibration_file()).write_text(json.dumps({f"GPU {text}": gpu, presence.host_name(): {text: trials}}))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 20), (120, 40)], ids=str)
@pytest.mark.parametrize("page", PAGES)
async def test_hostile_text_is_inert_on_every_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, size: tuple[int, int]
) -> None:
    root = tmp_path / "runs"
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    hostile_runs(root)
    hostile_files(root)
    async with opened(root, *PAGES[page], size=size) as pilot:
        links = [segment.style.link for line in rendered(pilot.app.screen) for segment in line if segment.style]

        assert [line for line in text(pilot).split("\n") if UNSAFE.search(line)] == []
        assert {link for link in links if link} == set()
        await walk(pilot)


async def walk(pilot: "Pilot[int]") -> None:
    """Move about, as a user who looks at everything; nothing may fail."""
    await press(pilot, "tab", "down", "tab", "pagedown", "end", "y", "T", "B", "escape", "escape")
