"""Every screen: what it looks like in four sizes, that it names a command that exists, and that hostile text is inert on it."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from rich.style import Style
from textual.content import Content
from textual.geometry import Region
from textual.pilot import Pilot

from tests.made_runs import FAST, HOSTILE, PLAIN, identity, make_run, started, write
from tests.tui.pictures import compare, picture, recorded, text_of
from tests.tui.screens import UNSAFE, opened, press, text
from tuilab.catalogue import catalog
from tuilab.cli.front_page import VERBS
from tuilab.record import events, presence
from tuilab.runs import queue
from tuilab.runs.queue import Ticket
from tuilab.storage import places
from tuilab.tui.screens.page import Page
from tuilab.tui.terminal.textual_parts import Part, rendered, rendered_parts
from tuilab.tui.widgets.question import StopQuestion

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
@pytest.mark.parametrize("page", ["lab", "code", "run", "compare"])
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


@pytest.mark.parametrize("page", PAGES)
async def test_regions_that_are_composed_alone_are_those_of_the_whole_screen(
    tmp_path: Path, page: str
) -> None:
    recorded("tour", tmp_path)
    regions = {
        Region(0, 0, 120, 1),
        Region(3, 2, 50, 12),
        Region(57, 5, 5, 30),
        Region(110, 33, 10, 7),
    }
    async with opened(tmp_path, *PAGES[page], size=(120, 40)) as pilot:
        screen = pilot.app.screen
        whole = cells((0, y, line) for y, line in enumerate(rendered(screen)))

        assert cells(rendered_parts(screen, regions)) == {
            place: cell
            for place, cell in whole.items()
            if any(region.contains(*place) for region in regions)
        }


async def test_of_a_wide_character_no_half_is_composed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates: list[object] = []
    async with opened(tmp_path, *PAGES["lab"], size=(120, 40)) as pilot:
        page = pilot.app.screen
        assert isinstance(page, Page)
        monkeypatch.setattr(pilot.app, "display_update", lambda _, update: updates.append(update))
        page.heading.refresh(Region(7, 0, 1, 1))
        await pilot.pause()

        assert {Region(0, 0, 120, 1)} in updates


async def test_what_changes_behind_another_screen_paints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates: list[object] = []
    async with opened(tmp_path, size=(120, 40)) as pilot:
        lab = pilot.app.screen
        assert isinstance(lab, Page)
        await press(pilot, *PAGES["help"])
        monkeypatch.setattr(pilot.app, "display_update", lambda _, update: updates.append(update))
        lab.heading.show(Content("nobody sees this"))
        await pilot.pause()

        assert (updates, lab.is_seen) == ([], False)
        assert lab.take_changes() == set()


async def test_a_screen_behind_a_question_is_seen(tmp_path: Path) -> None:
    async with opened(tmp_path, size=(120, 40)) as pilot:
        lab = pilot.app.screen
        assert isinstance(lab, Page)
        await pilot.app.push_screen(StopQuestion("try/it", "running"))
        lab.heading.show(Content("this is seen"))
        await pilot.pause()

        assert lab.is_seen
        assert "this is seen" in text(pilot)


def cells(parts: Iterable[Part]) -> dict[tuple[int, int], tuple[str, Style | None]]:
    """Return the cells of some parts by their place, in text without wide characters."""
    found: dict[tuple[int, int], tuple[str, Style | None]] = {}
    for x, y, line in parts:
        drawn = [(sign, style) for text, style, _ in line for sign in text]
        found |= {(x + at, y): cell for at, cell in enumerate(drawn)}
    return found


def hostile_runs(root: Path) -> None:
    """Make two runs whose every text is hostile."""
    records: Callable[[], list[events.Event]] = lambda: [  # noqa: E731
        started(
            title=HOSTILE,
            params={HOSTILE: HOSTILE},
            changed=[HOSTILE],
            claims=[HOSTILE],
            scenario=HOSTILE,
            topic=HOSTILE,
        ),
        events.StateChanged(state="running", reason=HOSTILE),
        events.StageEntered(name=HOSTILE),
        events.Logged(s=0, v={HOSTILE: 1.0}, a=HOSTILE),
        events.Logged(s=1, v={HOSTILE: 2.0}, a=HOSTILE),
        events.TextShown(text=HOSTILE, title=HOSTILE),
        events.ImageShown(
            title=HOSTILE, rows=1, cols=1, cells="AA==", low=0.0, high=1.0, arm=HOSTILE
        ),
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
    queue.enter(
        root, Ticket(run=run, name=text, devices=[text], supervisor=alive, place=0, since_ns=0)
    )
    trials = {"trials": 1, "false": 0, "delays": 1, "seen": 1}
    gpu = {"name": text, "box": presence.host_name(), text: trials, "over 6 processes": trials}
    Path(places.calibration_file()).write_text(
        json.dumps({f"GPU {text}": gpu, presence.host_name(): {text: trials}})
    )


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
        links = [
            segment.style.link
            for line in rendered(pilot.app.screen)
            for segment in line
            if segment.style
        ]

        assert [line for line in text(pilot).split("\n") if UNSAFE.search(line)] == []
        assert {link for link in links if link} == set()
        await walk(pilot)


async def walk(pilot: "Pilot[int]") -> None:
    """Move about, as a user who looks at everything; nothing may fail."""
    await press(pilot, "tab", "down", "tab", "pagedown", "end", "y", "T", "B", "escape", "escape")
