"""A walk over all screens by keys, clicks and sizes that come in bursts: nothing of it ends them, and no key is lost."""

import contextlib
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from tests.made_runs import PLAIN, hostile, write
from tests.tui.pictures import recorded
from tests.tui.screens import NotingApp, NotingDesk, app_on, opened, press, settle
from tests.tui.terminals import terminal
from tuilab.catalogue import catalog
from tuilab.tui.state.settings import Settings
from tuilab.tui.terminal.textual_parts import rendered

# All that the screens know but what leaves them (q, ^q) or stops them (^z), and what is typed into a field.
KEYS = (
    *"hb?/jkgGznNlLotTB0mucfpreyxadR123+-[],.vKsyn ",
    *("\x10", "\x1b", "\r", "\t", "\x1b[Z", "\x04", "\x15", "\x03", "\x0c", "softmax", "\x7f"),
    *(
        "\x1b[A",
        "\x1b[B",
        "\x1b[C",
        "\x1b[D",
        "\x1b[1;2C",
        "\x1b[5~",
        "\x1b[6~",
        "\x1b[H",
        "\x1b[F",
        "\x1bOP",
    ),
)
SIZES = [(1, 1), (5, 2), (20, 5), (30, 10), (60, 20), (80, 24), (120, 40), (200, 50)]
BURSTS = 150


def mouse(chance: random.Random) -> str:
    """Return a click, a turn of the wheel or a move somewhere."""
    place = f"{chance.randrange(1, 121)};{chance.randrange(1, 41)}"
    button = chance.choice((0, 0, 64, 65, 35))
    return f"\x1b[<{button};{place}M" + (f"\x1b[<{button};{place}m" if button == 0 else "")


def bursts(seed: int) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """Yield what is typed at once, and the size that the terminal has from then on, if it is another."""
    chance = random.Random(seed)
    for _ in range(BURSTS):
        count = chance.choice((1, 1, 2, 5, 20))
        typed = "".join(
            chance.choice(KEYS) if chance.random() < 0.8 else mouse(chance) for _ in range(count)
        )
        yield typed, chance.choice(SIZES) if chance.random() < 0.15 else None


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_no_burst_of_keys_clicks_and_sizes_ends_the_screens(tmp_path: Path, seed: int) -> None:
    runs = tmp_path / "runs"
    for name in ("tour", "not-a-number", "crash-in-the-third-repeat"):
        recorded(name, runs)
    hostile(runs)
    with terminal(tmp_path, columns=80, rows=24, env={"PAGER": "true"}) as term:
        term.wait_for("tensor-basics", "quit")
        for typed, size in bursts(seed):
            assert term.process.poll() is None, bytes(term.sent[-3000:]).decode(errors="replace")
            term.type(typed)
            if size:
                term.resize(*size)
        term.resize(100, 30)
        while (
            term.process.poll() is None
        ):  # what was typed last may swallow a key: an escape and a bracket begin a sequence
            term.process.send_signal(
                signal.SIGCONT
            )  # the palette stops them, too, and no key reaches them then
            term.type("\x11")
            with contextlib.suppress(TimeoutExpired):
                term.wait(1)

        assert term.wait() == 0, bytes(term.sent[-3000:]).decode(errors="replace")
        assert term.is_restored()


async def test_moving_in_a_palette_that_has_found_nothing_ends_nothing(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await pilot.press("ctrl+p", "pagedown", "pageup", "down", *"qqq", "pagedown")
        await settle(pilot)

        assert pilot.app.is_running and pilot.app.return_code is None


async def test_a_filter_that_is_opened_again_at_once_is_the_new_one(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await pilot.press("slash", "a", "escape", "slash", *"softmax")
        await settle(pilot)

        assert (
            pilot.app.focused is not None and getattr(pilot.app.focused, "value", "") == "softmax"
        )


@pytest.mark.parametrize("at_once", [True, False])
async def test_enter_after_the_filter_closes_runs_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    folder = write(tmp_path / "scenarios", plain=PLAIN, other=PLAIN)
    monkeypatch.setattr(catalog, "scenario_dirs", lambda extra=(): [str(folder)])
    (tmp_path / "runs").mkdir()
    app = NotingApp(NotingDesk(tmp_path / "runs", [], Settings(has_seen_hint=True)))
    keys = ("slash", *"other", "enter", "enter")
    async with opened(app, size=(80, 24)) as pilot:
        if at_once:
            await pilot.press(*keys)
            await settle(pilot)
        else:
            await press(pilot, *keys)

        assert [order.scenario for order in app.ordered] == ["other"]


@pytest.mark.parametrize(
    "keys",
    [(), ("f",), ("c",), ("h",), ("h", "enter"), ("h", "m", "j", "m", "c"), ("b",)],
    ids="".join,
)
async def test_every_page_is_drawn_in_a_window_of_a_few_characters(
    root: Path, keys: tuple[str, ...]
) -> None:
    for name in ("tour", "not-a-number"):
        recorded(name, root)
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await press(pilot, *keys)
        for size in ((1, 1), (3, 3), (4, 2), (6, 30), (10, 5)):
            await pilot.resize_terminal(*size)
            await settle(pilot)

            assert len(rendered(pilot.app.screen)) == size[1]
