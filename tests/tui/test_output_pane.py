"""A pane that is followed stays at its end while lines come, until the user scrolls away."""

import asyncio

from textual.app import App, ComposeResult
from textual.content import Content
from textual.pilot import Pilot

from tests.engine import T
from tuilab.tui.terminal.textual_parts import rendered
from tuilab.tui.widgets.run.output import OutputPane


class Shown(App[None]):
    """One pane that is lower than what it shows."""

    CSS = "OutputPane { height: 8 }"

    def compose(self) -> ComposeResult:
        yield OutputPane()


def lines(count: int) -> list[Content]:
    return [Content(f"line {number}") for number in range(count)]


async def settle(pilot: Pilot[T]) -> None:
    """Let what was begun be laid out and scrolled."""
    for _ in range(5):
        await pilot.pause()


async def test_lines_that_come_faster_than_they_are_laid_out_are_followed() -> None:
    app = Shown()
    async with app.run_test() as pilot:
        pane = app.query_one(OutputPane)
        for count in range(1, 60):
            pane.put(lines(count))
            await asyncio.sleep(0)
        await settle(pilot)

        assert pane.max_scroll_y > 0
        assert pane.scroll_y == pane.max_scroll_y


async def test_another_height_shows_the_end_again() -> None:
    app = Shown()
    async with app.run_test() as pilot:
        pane = app.query_one(OutputPane)
        pane.put(lines(60))
        await settle(pilot)
        pane.styles.height = 4
        await settle(pilot)

        assert pane.scroll_y == pane.max_scroll_y == 58


async def test_no_line_ends_between_a_number_and_its_unit_at_any_width() -> None:
    """The blanks that a line of code begins with, and words that are too long, stay as they were printed."""
    app = Shown()
    told = ["Tried to allocate 20.00 MiB of 79.10 GiB, 1.5 GiB free", "    x", "y" * 70]
    async with app.run_test() as pilot:
        pane = app.query_one(OutputPane)
        pane.put([Content(line) for line in told])
        for width in (40, 32, 29, 23):
            pane.styles.width, pane.styles.height = width, 20
            await settle(pilot)
            rows = [
                "".join(segment.text for segment in line)[2 : width - 2].rstrip()
                for line in rendered(app.screen)[1:19]
            ]
            assert " ".join(filter(None, rows[: rows.index("    x")])) == told[0]
            assert [row for row in rows if row[-1:].isdigit()] == []
            assert pane.lines_at(width - 4) == len([row for row in rows if row])


async def test_who_has_scrolled_away_is_left_alone_until_the_end_is_shown_again() -> None:
    app = Shown()
    async with app.run_test() as pilot:
        pane = app.query_one(OutputPane)
        pane.put(lines(30))
        await settle(pilot)
        pane.scroll_to(y=3, animate=False)
        await settle(pilot)
        pane.put(lines(60))
        await settle(pilot)
        left_at = pane.scroll_y
        pane.scroll_to(y=1000, animate=False)
        await settle(pilot)
        pane.put(lines(90))
        await settle(pilot)

        assert left_at == 3
        assert pane.scroll_y == pane.max_scroll_y
