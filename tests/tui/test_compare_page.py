"""The Compare screen: what differs first, claims side by side, curves overlaid."""

import re
import shutil
from pathlib import Path

import pytest
from textual.content import Content

from tests.drawing_aids import drawn_text
from tests.made_runs import finished, hostile, make_run, started
from tests.record_journals import JOURNALS
from tests.slow_cases import slow_cases
from tests.tui.screens import UNSAFE, opened, press, said, shown, text
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.tui.looks.lesson_layout import together, wrap_lines
from tuilab.tui.screens.compare import ComparePage
from tuilab.tui.screens.history import HistoryPage
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.sheet import SheetPane


@pytest.fixture
def two(root: Path) -> Path:
    """Two runs of one scenario: another parameter, another source, and another verdict on one of two claims."""
    for end, verdict, tied, line in (
        ("aaaaaa", "SUPPORTED", 1, "x = 1"),
        ("bbbbbb", "REFUTED", 1000, "x = 2"),
    ):
        run_dir = finished(
            root,
            {"same": "SUPPORTED", "other": verdict},
            end=end,
            params={"tied": tied},
            source_sha256=end,
        )
        (run_dir / "scenario.py").write_text(f"import torch\n{line}\n")
    return root


@pytest.fixture
def curves(root: Path) -> Path:
    """Two recorded runs, both of which logged series."""
    for end, name in (("aaaaaa", "tour"), ("bbbbbb", "tour")):
        shutil.copytree(JOURNALS / name, root / f"20260102T030405000Z-tour-{end}")
    return root


COMPARE = ("h", "space", "space", "m")


async def test_what_differs_is_told_first(two: Path) -> None:
    async with opened(two, *COMPARE, size=(100, 60)) as pilot:
        shown = text(pilot)

    told = [
        shown.index(words)
        for words in (
            "Parameters",
            "tied",
            "Source",
            "-x = 2",
            "+x = 1",
            "Different: 1 claim",
            "The same",
        )
    ]
    assert told == sorted(told)
    assert "different verdicts" in shown


async def test_a_pane_fills_the_screen_and_escape_steps_out_one_layer(two: Path) -> None:
    async with opened(two, *COMPARE, "tab", "z") as pilot:
        page = pilot.app.screen
        zoomed = text(pilot)
        await press(pilot, "escape")
        whole = text(pilot)
        assert pilot.app.screen is page
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, HistoryPage)

    assert "What differs" not in zoomed and "Different" in zoomed
    assert "What differs" in whole


async def test_curves_of_a_name_are_overlaid_and_a_key_shows_the_next_name(curves: Path) -> None:
    async with opened(curves, *COMPARE, size=(200, 50)) as pilot:
        charts = [chart for chart in pilot.app.screen.query(Chart) if chart.has_class("is-shown")]
        first = drawn_text(charts[0])
        await press(pilot, "n")
        second = drawn_text(charts[0])

    assert "1 " in first and "2 " in first  # both runs are in the legend
    assert first.splitlines()[0] != second.splitlines()[0]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_curves_are_in_view_and_keys_change_them_there(
    curves: Path, size: tuple[int, int]
) -> None:
    seen = []
    async with opened(curves, *COMPARE, size=size) as pilot:
        for key in ("n", "n", "p", "p"):
            seen.append(text(pilot))
            await press(pilot, key)
        last = text(pilot)

    names = []
    for picture in seen:
        frame = picture.split("What differs")[1].rpartition("╭")[2]
        names += re.findall(r"│(\w+)", frame)[:1]
    assert len(set(names)) == 3 and names[1] == names[3]
    assert last == seen[0]
    assert all("1  " in shown and "2  " in shown for shown in seen)


async def test_repeats_are_stepped_through(root: Path) -> None:
    for end in ("aaaaaa", "bbbbbb"):
        shutil.copytree(
            JOURNALS / "crash-in-the-third-repeat", root / f"20260102T030405000Z-crash-{end}"
        )
    async with opened(root, *COMPARE, size=(120, 40)) as pilot:
        first = text(pilot)
        await press(pilot, "r")
        second = text(pilot)
        await press(pilot, "r", "r")
        last = text(pilot)

    assert "repeat 1 of 3" in first and "repeat 2 of 3" in second
    assert last == first


async def test_curves_that_grow_and_claims_that_are_open_are_shown_as_they_are(root: Path) -> None:
    claim = events.ClaimDeclared(text="it holds", over="a", under="b", op="at_least", bound=2.0)
    going = make_run(
        root, started(is_alive=True), claim, events.StateChanged(state="running"), end="aaaaaa"
    )
    finished(root, {"it holds": "SUPPORTED"}, end="bbbbbb")
    async with opened(root, *COMPARE, size=(120, 40)) as pilot:
        before = await shown(pilot, "Not decided yet: 1 claim")
        journal = Writer(going / "journal" / "worker-0.jsonl")
        for step in range(3):
            journal.append(events.Logged(s=step, v={"loss": 1.0 + step}))
        journal.close()
        await shown(pilot, "loss  run 2: 3")  # of the second run, its last value
        journal = Writer(going / "journal" / "judge.jsonl")
        journal.append(events.VerdictReached(text="it holds", verdict="SUPPORTED", rule="r"))
        journal.close()
        await shown(pilot, "The same: 1 claim")

    assert "not decided yet" in before and "different verdicts" not in before


async def test_a_zoom_stays_when_a_run_that_goes_on_has_news(root: Path) -> None:
    going = make_run(
        root, started(is_alive=True), events.StateChanged(state="running"), end="aaaaaa"
    )
    make_run(
        root,
        started(),
        events.Logged(s=1, v={"loss": 1.0}),
        events.StateChanged(state="succeeded"),
        end="bbbbbb",
    )
    async with opened(root, *COMPARE, "tab", "z") as pilot:
        journal = Writer(going / "journal" / "judge.jsonl")
        journal.append(events.VerdictReached(text="new", verdict="SUPPORTED", rule="r"))
        journal.close()
        seen = await shown(pilot, "1 claim")

        assert "loss" not in seen and "What differs" not in seen
        await press(pilot, "z")
        assert "loss" in text(pilot)


async def test_each_chart_has_a_view_of_its_own(curves: Path) -> None:
    async with opened(curves, *COMPARE, size=(200, 50)) as pilot:
        first, second = [
            chart for chart in pilot.app.screen.query(Chart) if chart.has_class("is-shown")
        ][:2]
        before = first.is_log, second.is_log
        await pilot.click(first, offset=(40, 5))
        await press(pilot, "l")

        assert first.cursor is not None and second.cursor is None
        assert (first.is_log, second.is_log) == (not before[0], not before[1])


def test_no_line_ends_between_a_mark_and_its_word() -> None:
    facts = Content("  ").join(map(together, [Content("✓ succeeded"), Content("in 3 s")]))

    assert [line.plain.rstrip() for line in wrap_lines(facts, 16)] == ["✓ succeeded", "in 3 s"]


def one_goes_on(root: Path) -> Path:
    """Make two runs, and return the one that goes on."""
    going = make_run(
        root, started(is_alive=True), events.StateChanged(state="running"), end="aaaaaa"
    )
    finished(root, {"same": "SUPPORTED"}, end="bbbbbb")
    return going


async def test_a_run_that_goes_on_is_followed(root: Path) -> None:
    going = one_goes_on(root)
    async with opened(root, *COMPARE) as pilot:
        page = pilot.app.screen
        assert isinstance(page, ComparePage)
        before = text(pilot)
        journal = Writer(going / "journal" / "judge.jsonl")
        journal.append(events.VerdictReached(text="new", verdict="SUPPORTED", rule="r"))
        journal.close()
        after = await shown(pilot, "2 claims")

    assert re.search("● running  0? ?.*for [0-9]", before)  # it is not over
    assert "2 claims" not in before and "Not claimed in every run: 2 claims" in after


async def test_a_run_that_is_deleted_while_it_is_compared_is_told_once_and_goes_on_no_more(
    root: Path,
) -> None:
    going = one_goes_on(root)
    async with opened(root, *COMPARE) as pilot:
        page = pilot.app.screen
        assert isinstance(page, ComparePage)
        shutil.rmtree(going)
        page.follow()
        page.follow()
        seen = await shown(pilot, "! deleted")

        assert len(said(pilot)) == 1
        assert re.fullmatch(
            "run [12] was deleted; the screen shows what was read before", said(pilot)[0]
        )
        assert "running" not in seen and "✓ succeeded" in seen


@pytest.mark.parametrize(
    ("gone", "why"),
    [("journal", "No such file or directory"), ("", "its folder was deleted or moved")],
)
async def test_a_run_that_cannot_be_read_is_named(two: Path, gone: str, why: str) -> None:
    run_dirs = sorted(two.glob("2*"))
    shutil.rmtree(next(two.glob("*aaaaaa")) / gone)
    async with opened(two) as pilot:
        pilot.app.open_compare(run_dirs)  # type: ignore[attr-defined]
        await press(pilot, "tab")

        assert any(
            re.fullmatch(f"cannot read the run .*-aaaaaa: {why}", sentence)
            for sentence in said(pilot)
        )
        assert isinstance(pilot.app.screen, ComparePage)


async def test_each_run_is_read_once_for_the_comparison_and_its_report(
    curves: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(curves, *COMPARE) as pilot:
        for run_dir in curves.glob("2*"):
            (run_dir / "journal").rename(run_dir / "gone")
        await press(pilot, "e")
        sentences = said(pilot)

    assert sentences[-1].endswith("(2 runs)")


async def test_the_command_is_offered(two: Path) -> None:
    async with opened(two, *COMPARE) as pilot:
        page = pilot.app.screen
        assert isinstance(page, ComparePage)

        assert page.command() == f"tuilab compare bbbbbb aaaaaa --root {two}"


@pytest.mark.parametrize("size", [(80, 24), *slow_cases((60, 20), (200, 50))])
async def test_nothing_that_a_run_wrote_steers_the_terminal(
    root: Path, size: tuple[int, int]
) -> None:
    hostile(root)
    finished(root, {"a": "SUPPORTED"}, end="aaaaaa")
    seen = []
    async with opened(root, *COMPARE, size=size) as pilot:
        for keys in ([], ["tab", "z"], ["pagedown"], ["escape", "tab", "tab", "z"], ["l"]):
            await press(pilot, *keys)
            seen.append(text(pilot))
        sheets = [pane.sheet for pane in pilot.app.screen.query(SheetPane)]
        seen += [str(sheet.render()) for sheet in sheets]

    assert [found for shown in seen if (found := UNSAFE.findall(shown.replace("\n", "")))] == []


@pytest.mark.parametrize("theme", ["tuilab-light", *slow_cases("ansi-dark", "ansi-light")])
async def test_every_theme_can_show_it(curves: Path, theme: str) -> None:
    async with opened(curves, *COMPARE, theme=theme) as pilot:
        assert "What differs" in text(pilot)
