"""The History screen, in the app as a user opens it."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import cast

import pytest
from textual.widgets import Input

from tests.made_runs import finished, hostile, make_run, started
from tests.slow_cases import slow_cases
from tests.tui.screens import UNSAFE, eventually, opened, press, said, settle, shown, text
from tuilab.engine import launch
from tuilab.record import events, presence
from tuilab.runs import notes, read_entry, store
from tuilab.runs.filters import HINT
from tuilab.runs.index import FILE, Index
from tuilab.tui.screens.compare import ComparePage
from tuilab.tui.screens.history import HistoryPage
from tuilab.tui.screens.run import RunPage
from tuilab.tui.state.history_reader import HistoryReader
from tuilab.tui.widgets.history import ordering, run_count, runline
from tuilab.tui.widgets.history.runlist import RunList
from tuilab.tui.widgets.question import ConfirmDialog

Tuilab = Callable[..., "CompletedProcess[str]"]
HOUR = 3600.0


@pytest.fixture
def now() -> float:
    return time.time()


@pytest.fixture
def three(root: Path, now: float) -> Path:
    """A folder of three runs; the newest failed, the oldest has a refuted claim."""
    refuted = {"a": "SUPPORTED", "b": "REFUTED"}
    finished(
        root, refuted, at_s=now - 2 * HOUR, end="aaaaaa", params={"tied": 1000}, changed=["tied"]
    )
    finished(root, {"a": "SUPPORTED"}, name="row-reduce", at_s=now - HOUR, end="bbbbbb")
    finished(root, {"a": "SUPPORTED"}, state="failed", at_s=now - 60, end="cccccc")
    return root


def runs_in(root: Path) -> list[str]:
    return sorted(path.name[-6:] for path in root.glob("2*"))


async def test_runs_are_listed_newest_first_with_what_happened_in_them(three: Path) -> None:
    async with opened(three, "h", size=(120, 30)) as pilot:
        head, *rows = text(pilot).splitlines()[1:5]

    assert head.split() == ["when", "exactly", "name", "changed", "state", "verdicts", "took", "id"]
    assert [row.split()[-1] for row in rows] == ["cccccc", "bbbbbb", "aaaaaa"]
    assert "! failed" in rows[0]
    assert "1 h ago" in rows[1] and "row-reduce" in rows[1] and "✓ succeeded" in rows[1]
    assert "tied=1000" in rows[2] and "1 ✓ 1 ✗" in rows[2]


def test_how_many_runs_are_still_to_be_read_is_told_until_none_is(three: Path) -> None:
    runs = [path.name for path in store.list_runs(three)]
    reader = HistoryReader(cast(HistoryPage, None), lambda: Index(three), time.time)
    reader.take_list(HistoryReader.Listed(runs, {}, {}))
    told = [run_count.heading_of(reader, 3, 0, 0, ordering.ORDERS[0]).plain]
    for run in runs:
        reader.take([read_entry.read_entry(three / run)])
        told.append(run_count.heading_of(reader, 3, 0, 0, ordering.ORDERS[0]).plain)

    assert [words.partition("3 runs  ")[2] for words in told[:3]] == [
        f"{left} not read yet" for left in (3, 2, 1)
    ]
    assert told[3].endswith(" on disk")


async def test_a_filter_narrows_as_one_types_and_escape_shows_everything_again(three: Path) -> None:
    seen = []
    async with opened(three, "h") as pilot:
        for keys in (["slash", *"refuted"], ["space", *"tied"], ["space", *"zzz"], ["escape"]):
            await press(pilot, *keys)
            seen.append([run[-6:] for run in pilot.app.screen.query_one(RunList).in_view])

        assert isinstance(pilot.app.screen, HistoryPage)
    assert seen == [["aaaaaa"], ["aaaaaa"], [], ["cccccc", "bbbbbb", "aaaaaa"]]


async def test_marked_runs_are_compared_in_the_order_of_their_marks(three: Path) -> None:
    async with opened(three, "h", "end", "space", "home", "space", "m") as pilot:
        page = pilot.app.screen

        assert isinstance(page, ComparePage)
        assert page.command().startswith("tuilab compare aaaaaa cccccc")


async def test_without_marks_a_run_is_compared_with_its_reference(three: Path) -> None:
    async with opened(three, "h", "end", "m") as pilot:
        without_reference = said(pilot)
        await press(pilot, "home", "m")
        page = pilot.app.screen

        assert without_reference == [
            "no run to compare with: no baseline and no earlier successful run"
        ]
        assert isinstance(page, ComparePage)
        assert page.command().startswith("tuilab compare aaaaaa cccccc")


async def test_a_run_is_deleted_only_after_a_yes(three: Path) -> None:
    async with opened(three, "h", "d") as pilot:
        assert isinstance(pilot.app.screen, ConfirmDialog)
        assert "cccccc" in text(pilot)
        await press(pilot, "n")
        after_no = runs_in(three)
        await press(pilot, "d", "y")

    assert after_no == ["aaaaaa", "bbbbbb", "cccccc"]
    assert runs_in(three) == ["aaaaaa", "bbbbbb"]


async def test_marked_runs_are_deleted_together(three: Path) -> None:
    async with opened(three, "h", "space", "space", "d") as pilot:
        assert "Delete 2 runs?" in text(pilot)
        await press(pilot, "y")

    assert runs_in(three) == ["aaaaaa"]


async def test_a_marked_run_that_goes_by_itself_keeps_no_other_from_being_deleted(
    three: Path,
) -> None:
    async with opened(three, "h", "space", "space", "d") as pilot:
        shutil.rmtree(next(three.glob("*cccccc")))
        await press(pilot, "y")

        assert said(pilot) == ["deleted 1 run; 1 already gone"]
    assert runs_in(three) == ["aaaaaa"]


async def test_a_run_that_goes_on_is_not_deleted(root: Path, now: float) -> None:
    make_run(root, started(is_alive=True), events.StateChanged(state="running"), at_s=now)

    async with opened(root, "h", "d") as pilot:
        shown = text(pilot)
        assert isinstance(pilot.app.screen, HistoryPage)

        assert "● running" in shown
        assert said(pilot) == [
            f"abcdef is running; stop it first: tuilab stop abcdef --root {root}"
        ]
    assert runs_in(root) == ["abcdef"]


async def refusals(tuilab: Tuilab, root: Path) -> tuple[str, str]:
    """Return what the command line and the screen say when the one run there is to be deleted."""
    done = tuilab("rm", "last")
    async with opened(root, "h", "d") as pilot:
        assert isinstance(pilot.app.screen, HistoryPage)
        (told,) = said(pilot)
    assert done.returncode == 2 and runs_in(root) == ["abcdef"]
    return done.stderr.removeprefix("tuilab: ").rstrip(), told


async def test_a_run_that_a_newer_tuilab_records_is_deleted_neither_here_nor_there(
    tuilab: Tuilab, root: Path, now: float
) -> None:
    make_run(
        root, started(is_alive=True, format=99), events.StateChanged(state="running"), at_s=now
    )

    here, there = await refusals(tuilab, root)
    assert here == there
    assert here.startswith(
        "abcdef was not deleted, because tuilab cannot tell whether it is still running: was recorded by a newer tuilab"
    )


async def test_a_lost_run_with_processes_left_is_deleted_neither_here_nor_there(
    tuilab: Tuilab, root: Path, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    run_dir = make_run(root, started(), events.StateChanged(state="running"), at_s=now - HOUR)
    with subprocess.Popen(
        ["sleep", "600"], env={**os.environ, presence.MARK: run_dir.name}
    ) as left:
        try:
            here, there = await refusals(tuilab, root)
        finally:
            left.kill()

    assert (
        here
        == there
        == "abcdef is lost, and some of its processes are still running; end them first: tuilab stop abcdef"
    )
    assert tuilab("rm", "last").returncode == 0


async def test_a_run_that_comes_alive_while_one_is_asked_is_not_deleted(
    root: Path, now: float
) -> None:
    run_dir = make_run(root, started(), events.StateChanged(state="succeeded"), at_s=now)
    going = make_run(
        root / "elsewhere", started(is_alive=True), events.StateChanged(state="running"), at_s=now
    )

    async with opened(root, "h", "d") as pilot:
        (going / "journal" / "supervisor.jsonl").replace(run_dir / "journal" / "supervisor.jsonl")
        await press(pilot, "y")

        assert said(pilot) == [
            f"deleted 0 of 1 run: abcdef is running; stop it first: tuilab stop abcdef --root {root}"
        ]
    assert runs_in(root) == ["abcdef"]


async def test_deletion_names_no_size_that_was_not_counted(
    three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = sorted(path.name for path in three.glob("2*"))
    index = Index(three)
    index.read_missing(names, 60)
    monkeypatch.setattr(
        index, "_entries", {names[0]: index.entry(names[0])._replace(bytes_total=None)}
    )
    index.save()

    seen = []
    async with opened(three, "h", "end", "d") as pilot:
        seen.append(text(pilot))
        await press(pilot, "n", "home", "space", "down", "down", "space", "d")
        seen.append(text(pilot))
    assert "n/a on disk. This" in seen[0]
    assert "more than" in seen[1]


async def test_a_run_whose_supervisor_is_gone_is_said_to_be_lost(root: Path, now: float) -> None:
    make_run(root, started(), events.StateChanged(state="running"), at_s=now - HOUR)

    async with opened(root, "h") as pilot:
        shown = text(pilot)

    assert "! lost" in shown
    assert "its supervisor is gone" in shown


async def test_a_claim_that_was_never_judged_has_the_mark_that_it_has_everywhere(
    root: Path, now: float
) -> None:
    make_run(
        root,
        started(claims=["a", "b"], claim_keys=["a", "b"]),
        events.StateChanged(state="stopped"),
        at_s=now - HOUR,
    )

    async with opened(root, "h", size=(120, 40)) as pilot:
        shown = text(pilot).splitlines()

    assert "2 …" in next(line for line in shown if "stopped" in line)
    assert [line.strip() for line in shown if line.strip()[:1] == "…"] == ["… a", "… b"]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_a_run_whose_claims_were_measured_on_a_gpu_is_listed_with_it(
    root: Path, now: float, size: tuple[int, int]
) -> None:
    reached = events.VerdictReached(
        text="a", verdict="SUPPORTED", rule="r", gpu="1a2b3c4d-0000", gpu_name="NVIDIA H100"
    )
    make_run(root, started(), reached, events.StateChanged(state="succeeded"), at_s=now - HOUR)
    make_run(root, started(), events.StateChanged(state="stopped"), at_s=now - 2 * HOUR)

    async with opened(root, "h", size=size) as pilot:
        lines = text(pilot).splitlines()

    (on_gpu,), (other,) = (
        [line for line in lines if f"{word}  " in line] for word in ("succeeded", "■ stopped")
    )
    assert "on H100 (1a2b" in on_gpu and " on " not in other
    assert any("on NVIDIA H100 (1a2b3c4d)" in line for line in lines)


async def test_a_run_that_ends_while_one_looks_is_told(root: Path, now: float) -> None:
    run_dir = make_run(root, started(is_alive=True), events.StateChanged(state="running"), at_s=now)
    ended = make_run(
        root / "elsewhere", started(), events.StateChanged(state="succeeded"), at_s=now
    )

    async with opened(root, "h") as pilot:
        before = text(pilot)
        (ended / "journal" / "supervisor.jsonl").replace(run_dir / "journal" / "supervisor.jsonl")
        after = await shown(pilot, "✓ succeeded")

    assert "● running" in before
    assert "● running" not in after


async def test_enter_opens_the_run(three: Path) -> None:
    async with opened(three, "h", "down", "enter") as pilot:
        page = pilot.app.screen

        assert isinstance(page, RunPage)
        assert page.run_dir.name.endswith("bbbbbb")


async def test_what_was_read_is_remembered_and_a_damaged_memory_is_done_without(
    three: Path,
) -> None:
    async with opened(three, "h") as pilot:
        first = text(pilot)
    remembered = Index(three).finished()
    (three / FILE).write_text('[{"run": 3}]')
    async with opened(three, "h") as pilot:
        again = text(pilot)

    assert sorted(entry.state for entry in remembered.values()) == [
        "failed",
        "succeeded",
        "succeeded",
    ]
    assert again == first


async def test_an_empty_folder_says_what_to_do(root: Path) -> None:
    async with opened(root, "h") as pilot:
        assert "No runs yet." in text(pilot)


async def test_a_folder_whose_runs_are_of_another_user_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "20270115T080000000Z-tour-aaaaaa").mkdir(parents=True)
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.X_OK)

    async with opened(root, "h") as pilot:
        assert "1 run in " in text(pilot) and "cannot be read by you" in " ".join(
            text(pilot).split()
        )


@pytest.mark.parametrize("size", [(80, 24), *slow_cases((60, 20), (200, 50))])
async def test_nothing_that_a_run_wrote_steers_the_terminal(
    root: Path, size: tuple[int, int]
) -> None:
    hostile(root)
    finished(root, {"a": "SUPPORTED"}, end="aaaaaa", at_s=1.7e9)

    seen = []
    async with opened(root, "h", size=size) as pilot:
        seen.append(text(pilot))
        for keys in (["d"], ["escape", "slash", *"[b]"]):
            await press(pilot, *keys)
            seen.append(text(pilot))

    assert [UNSAFE.findall(shown.replace("\n", "")) for shown in seen] == [[], [], []]
    assert "[/b][red]" in seen[0]  # shown as it is, not obeyed


@pytest.mark.parametrize(
    "theme", ["tuilab-light", *slow_cases("tuilab-colour-blind", "ansi-dark", "ansi-light")]
)
async def test_every_theme_can_show_it(three: Path, theme: str) -> None:
    async with opened(three, "h", theme=theme) as pilot:
        assert "row-reduce" in text(pilot)


async def test_a_run_that_comes_while_one_looks_is_listed_by_itself(
    three: Path, now: float
) -> None:
    async with opened(three, "h") as pilot:
        finished(three, {"a": "SUPPORTED"}, at_s=now, end="dddddd")
        page = pilot.app.screen
        assert isinstance(page, HistoryPage)
        await shown(pilot, "4 runs")

        assert [run[-6:] for run in page.runs.in_view] == ["dddddd", "cccccc", "bbbbbb", "aaaaaa"]


async def test_nothing_is_listed_again_while_nothing_comes(
    three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    listed: list[HistoryReader.Listed] = []
    changed_at, take_list = store.changed_at, HistoryReader.take_list

    def note_and_look(root: Path) -> float | None:
        looked.append(root)
        return changed_at(root)

    def note_and_take(reader: HistoryReader, message: HistoryReader.Listed) -> None:
        listed.append(message)
        take_list(reader, message)

    monkeypatch.setattr(store, "changed_at", note_and_look)
    monkeypatch.setattr(HistoryReader, "take_list", note_and_take)
    async with opened(three, "h") as pilot:
        looked.clear()
        listed.clear()
        await eventually(pilot, lambda: bool(looked or listed), "another look at the folder")
        await settle(pilot)

        assert listed == []


async def test_notes_and_tags_are_shown_and_found(three: Path) -> None:
    run_dir = next(three.glob("*-bbbbbb"))
    notes.add(run_dir, "looks [/b] good", tags=["baseline"])

    async with opened(three, "h", "slash", *"#base", "enter", size=(160, 40)) as pilot:
        shown = text(pilot)

    assert "1 of 3 runs" in shown
    assert "#baseline  “looks [/b] good”" in shown


async def test_a_key_writes_a_page_about_the_marked_runs(
    three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(three, "h", "e", "space", "space", "e") as pilot:
        sentences = said(pilot)

    written = sorted(path.name for path in tmp_path.glob("*.html"))
    assert written == ["tuilab-2-runs-cccccc.html", "tuilab-softmax-cccccc.html"]
    assert sentences[-1].endswith("tuilab-2-runs-cccccc.html (2 runs)")


async def test_a_page_that_cannot_be_written_is_a_sentence(
    three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    async with opened(three, "h", "e") as pilot:
        sentences = said(pilot)

    assert sentences == [
        f"the folder that tuilab was started in no longer exists; use tuilab report RUN -o FILE --root {three}"
    ]


async def test_a_run_is_played_again_from_the_list(three: Path) -> None:
    async with opened(three, "h", "R") as pilot:
        page = pilot.app.screen

        assert isinstance(page, RunPage)
        assert not page.is_live


async def test_escape_shows_all_runs_before_it_leaves(three: Path) -> None:
    async with opened(three, "h", "slash", *"refuted", "enter", "escape") as pilot:
        assert isinstance(pilot.app.screen, HistoryPage)
        assert len(pilot.app.screen.runs.in_view) == 3
        await press(pilot, "escape")

        assert not isinstance(pilot.app.screen, HistoryPage)


async def test_the_filter_knows_states_verdicts_ages_and_tags_and_says_what_may_be_typed(
    three: Path,
) -> None:
    notes.add(next(three.glob("*bbbbbb")), tags=["good"])
    seen = []
    async with opened(three, "h", "slash", size=(100, 30)) as pilot:
        hint = text(pilot)
        for words in ("verdict:refuted", "!state:failed", "tag:g", "since:90m", "zzz", "state:zzz"):
            pilot.app.screen.query_one(Input).value = words
            await settle(pilot)
            seen.append(
                [run[-6:] for run in pilot.app.screen.query_one(RunList).in_view]
                or text(pilot).splitlines()[4].strip()
            )

    assert "verdict:refuted  state:stopped  since:1d  tag:mine" in hint
    assert seen[:4] == [["aaaaaa"], ["bbbbbb", "aaaaaa"], ["bbbbbb"], ["cccccc", "bbbbbb"]]
    assert str(seen[4]).startswith("No matching runs; esc shows all.")
    assert str(seen[5]).startswith("no state begins with zzz; use one of queued, starting, ")


async def test_the_filter_knows_which_sweep_is_the_last(three: Path) -> None:
    for end, at in (("dddddd", 1), ("eeeeee", 2)):
        sweep = events.Sweep(id=f"sweep-{at}{at}{at}", values={"rows": [5]}, point={"rows": 5})
        finished(three, {}, end=end, at_s=1.6e9 + at, sweep=sweep)
    seen = []
    async with opened(three, "h", "slash", size=(100, 30)) as pilot:
        for words in ("sweep-last", "sweep-last~1", "!sweep-last !sweep-last~1 !stopped"):
            pilot.app.screen.query_one(Input).value = words
            await settle(pilot)
            seen.append([run[-6:] for run in pilot.app.screen.query_one(RunList).in_view])

    assert seen == [["eeeeee"], ["dddddd"], ["cccccc", "bbbbbb", "aaaaaa"]]


async def test_how_a_word_goes_on_is_offered_and_taken(three: Path) -> None:
    async with opened(three, "h", "slash", *"verdict:r", "right") as pilot:
        assert pilot.app.screen.query_one(Input).value == "verdict:refuted"


async def test_a_note_and_tags_are_written_where_the_command_line_writes_them(three: Path) -> None:
    async with opened(three, "h", size=(120, 30)) as pilot:
        await press(pilot, "n", *"look here", "enter", "t", *"good #old", "enter")
        await press(
            pilot, "t", *"!old", "enter", "down", "n", "escape", "down", "t", *"ba$d", "enter"
        )
        refused = text(pilot)
        await press(pilot, *["backspace"] * 4, *"fine", "enter")
        told, shown = said(pilot), text(pilot)

    written = [notes.read(next(three.glob(f"*{end}"))) for end in ("cccccc", "bbbbbb", "aaaaaa")]
    assert [(one.tags, [words for _, words in one.texts]) for one in written] == [
        (["good"], ["look here"]),
        ([], []),
        (["fine"], []),
    ]
    assert told[:3] == [
        "added the note to cccccc",
        "tagged cccccc: good, old",
        "tagged cccccc: !old",
    ]
    assert "✗ ba$d cannot be a tag" in refused and "│ ba$d" in " ".join(refused.split())
    assert told[3] == "tagged aaaaaa: fine"
    assert "#good  “look here”" in shown


async def test_runs_that_the_filter_hides_are_named_before_something_is_done_to_them(
    three: Path,
) -> None:
    async with opened(
        three, "h", "space", "space", "slash", *"aaaaaa", "enter", "t", size=(120, 30)
    ) as pilot:
        shown = text(pilot)

    assert "2 marked, 2 hidden" in shown and "Tags of 2 runs" in shown
    assert all(f"{end}  2" in shown for end in ("bbbbbb", "cccccc"))


async def test_a_long_note_is_shown_whole_below_the_list(three: Path) -> None:
    words = " ".join(f"word{number}" for number in range(30))
    notes.add(next(three.glob("*cccccc")), words)
    async with opened(three, "h", size=(80, 24)) as pilot:
        assert "“" + words + "”" in " ".join(text(pilot).split())


async def test_why_nothing_is_found_is_told_whole_on_a_small_screen(three: Path) -> None:
    async with opened(three, "h", "slash", *"nothing like it", size=(80, 24)) as pilot:
        assert " ".join(why_hint().split()) in " ".join(text(pilot).split())


def why_hint() -> str:
    return f"No matching runs; esc shows all. Filters: {HINT}"


async def test_a_question_leaves_its_page_to_be_seen(three: Path) -> None:
    async with opened(three, "h", "d", size=(80, 24)) as pilot:
        assert "Delete 1 run?" in text(pilot) and "verdicts" in text(pilot)


async def test_another_order_begins_with_what_it_puts_first(three: Path) -> None:
    async with opened(three, "h", "end", "o", size=(120, 30)) as pilot:
        page = pilot.app.screen
        assert isinstance(page, HistoryPage) and page.runs.chosen is not None
        assert page.runs.chosen.run == page.runs.in_view[0]


async def test_another_order_is_a_key_away_and_is_told(three: Path) -> None:
    async with opened(three, "h", "o", size=(120, 30)) as pilot:
        worst = [run[-6:] for run in pilot.app.screen.query_one(RunList).in_view]
        heading = text(pilot).splitlines()[0]

    assert worst == ["aaaaaa", "cccccc", "bbbbbb"]
    assert "worst first" in heading


@pytest.mark.parametrize(
    ("answer", "is_asked"), [("s", True), ("y", True), ("n", False), ("escape", False)]
)
async def test_a_run_is_stopped_after_a_question_which_the_same_key_answers(
    root: Path, now: float, monkeypatch: pytest.MonkeyPatch, answer: str, is_asked: bool
) -> None:
    make_run(root, started(is_alive=True), events.StateChanged(state="running"), at_s=now - HOUR)
    stopped: list[tuple[str, bool]] = []

    def noting(run_dir: Path, *, at_once: bool) -> str:
        stopped.append((run_dir.name[-6:], at_once))
        return "asked"

    monkeypatch.setattr(launch, "stop", noting)
    async with opened(root, "h", "s", size=(80, 24)) as pilot:
        question = text(pilot)
        assert stopped == []
        await press(pilot, answer)

    assert "Stop this run?" in question and "stability/softmax abcdef" in question
    assert stopped == [("abcdef", False)] * is_asked


async def test_who_stops_a_point_of_a_sweep_is_told_how_all_of_it_ends(
    root: Path, now: float
) -> None:
    sweep = events.Sweep(id="sweep-0a1b2c", values={"rows": [1, 2]}, point={"rows": 1})
    make_run(
        root,
        started(is_alive=True, sweep=sweep),
        events.StateChanged(state="running"),
        at_s=now - HOUR,
    )

    async with opened(root, "h", "s", size=(80, 24)) as pilot:
        assert "to stop the whole sweep: tuilab stop sweep-0a1b2c" in " ".join(
            text(pilot).replace("│", " ").split()
        )


async def test_a_run_that_is_stopping_is_stopped_at_once_and_one_that_is_over_is_not_asked_about(
    root: Path, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(root, started(is_alive=True), events.StateChanged(state="stopping"), at_s=now - HOUR)
    finished(root, {}, at_s=now - 2 * HOUR, end="bbbbbb")
    stopped: list[bool] = []

    def noting(run_dir: Path, *, at_once: bool) -> str:
        stopped.append(at_once)
        return "asked"

    monkeypatch.setattr(launch, "stop", noting)
    async with opened(root, "h", "s") as pilot:
        assert "Kill it now?" in text(pilot)
        await press(pilot, "s", "down", "s")

        assert stopped == [True] and said(pilot)[-1] == "this run is not running: succeeded"


async def test_one_mark_and_the_run_of_the_cursor_are_compared(three: Path) -> None:
    async with opened(three, "h", "space", "m") as pilot:
        page = pilot.app.screen

        assert isinstance(page, ComparePage)
        assert page.command().startswith("tuilab compare cccccc bbbbbb")


async def test_a_quick_run_is_told_to_be_one(root: Path, now: float) -> None:
    finished(root, {}, at_s=now - HOUR, quick=True, params={"items": 32}, changed=["items"])
    async with opened(root, "h", size=(120, 30)) as pilot:
        assert "quick  items=32" in text(pilot)


async def test_a_key_makes_a_run_the_baseline_and_again_no_more(root: Path, now: float) -> None:
    older, newer = (
        finished(root, {"a": "SUPPORTED"}, at_s=now - age, end=end)
        for age, end in ((60, "aaaaaa"), (30, "bbbbbb"))
    )
    async with opened(root, "h", "b", size=(120, 30)) as pilot:
        first = text(pilot).splitlines()[2:4]
        await press(pilot, "down", "b")
        second = text(pilot).splitlines()[2:4]
        tags = [notes.read(run).tags for run in (older, newer)]
        await press(pilot, "b")
        third = text(pilot).splitlines()[2:4]

    assert [line[0] for line in first] == ["b", " "] and "#baseline" in first[0]
    assert [line[0] for line in second] == [" ", "b"] and tags == [["baseline"], []]
    assert [line[0] for line in third] == [" ", " "]
    assert said(pilot) == [
        "bbbbbb is the baseline of softmax",
        "aaaaaa is the baseline of softmax, instead of bbbbbb",
        "aaaaaa is no longer the baseline of softmax",
    ]


async def test_a_run_is_compared_with_its_baseline_rather_than_the_newest(
    root: Path, now: float
) -> None:
    for age, end in ((90, "aaaaaa"), (60, "bbbbbb"), (30, "cccccc")):
        finished(root, {"a": "SUPPORTED"}, at_s=now - age, end=end)
    notes.add(next(root.glob("*aaaaaa")), tags=["baseline"])
    async with opened(root, "h", "m") as pilot:
        page = pilot.app.screen

        assert (
            isinstance(page, ComparePage)
            and page.command() == f"tuilab compare aaaaaa cccccc --root {root}"
        )
        assert "baseline" in next(
            line for line in text(pilot).splitlines() if "aaaaaa" in line and "run 1" in line
        )


@pytest.mark.parametrize("width", [60, 80, 140])
def test_what_the_runs_are_in_the_order_of_is_a_column_whatever_room_there_is(width: int) -> None:
    for order, name in (("longest first", "took"), ("largest first", "size")):
        head = runline.head(width, ordering.column_of(order)).plain

        assert name in head.split()
        assert len(head) <= width
