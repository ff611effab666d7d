"""The first line of the Run screen: which run, its state, what came out, and how far it is, in whatever room there is."""

from pathlib import Path
from typing import Any

import pytest

from tests.idle import AHEAD_S
from tests.made_runs import finished, started
from tests.tui.pictures import recorded
from tests.tui.screens import ShownApp, app_on, eventually, opened, said, shown
from tuilab.cli.headless import live_line
from tuilab.record import events
from tuilab.record.finding_words import progress_words, rate_words, seconds_left
from tuilab.record.folding.fold import fold
from tuilab.record.live_run import Watch
from tuilab.record.planned_end import planned_end
from tuilab.record.summary import RunSummary
from tuilab.text.words import size
from tuilab.tui.screens import following as page
from tuilab.tui.state import run_source
from tuilab.tui.state.run_source import LiveRun
from tuilab.tui.terminal.delayed_call import later
from tuilab.tui.widgets.run.headline import heading_of, note_of

RUN = Path("20260101T000000000Z-accumulate-lowp-b1fd5e")
SECOND = 10**9


def running() -> RunSummary:
    """Return a run in its third repeat of six, in the middle of a race; each of the first two took five seconds."""
    records: list[Any] = [
        started(scenario="accumulate-lowp", topic="stability", repeats=6, claims=["a", "b"]),
        events.StateChanged(state="running"),
    ]
    for repeat in range(3):
        records.append(
            events.WorkerStarted(
                writer=f"worker-{repeat}", pid=1, start=1, repeat=repeat, t=5 * repeat * SECOND
            )
        )
        if repeat < 2:
            records.append(
                events.WorkerExited(writer=f"worker-{repeat}", code=0, t=(5 * repeat + 6) * SECOND)
            )
    for record in records:
        record.t = record.t or SECOND
    race = events.Progressed(done=242, total=1000, unit="ms of racing", t=12 * SECOND)
    verdict = events.VerdictReached(text="a", verdict="SUPPORTED", rule="r", t=12 * SECOND)
    return fold([*(("supervisor", one) for one in records), ("worker-2", race), ("judge", verdict)])


class FoldedRun(LiveRun):
    """A run as it was folded, at a moment of its own."""

    def __init__(self, summary: RunSummary, elapsed_s: float) -> None:
        self.summary, self.state, self.is_caught_up, self._elapsed_s = (
            summary,
            summary.state,
            True,
            elapsed_s,
        )

    @property
    def elapsed_s(self) -> float:
        return self._elapsed_s


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (
            120,
            [
                "stability/accumulate-lowp · b1fd5e  ● running  1 ✓",
                "timing 24 %  repeat 3 of 6  14 s  16 s left",
            ],
        ),
        (80, ["stability/accumulate-lowp · b1fd5e  ● running  1 ✓", "repeat 3 of 6  14 s"]),
        (60, ["accumulate-lowp  ● running  1 ✓", "repeat 3 of 6  14 s"]),
    ],
)
def test_the_state_the_repeat_and_the_time_are_never_cut(width: int, words: list[str]) -> None:
    left, right = heading_of(RUN, FoldedRun(running(), 14.0), width)

    assert [left.plain, right.plain] == words
    assert left.cell_length + right.cell_length + 2 <= width


def test_a_run_that_is_queued_waits_and_its_data_is_not_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {}
    monkeypatch.setattr(FoldedRun, "is_over", False)
    monkeypatch.setattr(FoldedRun, "age_s", 40.0)
    for state in ("queued", "running"):
        run = FoldedRun(
            fold([("supervisor", started()), ("supervisor", events.StateChanged(state=state))]),
            40.0,
        )
        note = note_of(run, is_frozen=False, is_link_slow=False)
        told[state] = heading_of(RUN, run, 80)[1].plain, note.plain.strip()

    assert told == {"queued": ("waiting 40 s", ""), "running": ("40 s", "data 40 s old")}


def test_a_race_is_told_without_its_milliseconds_and_the_end_of_a_block_is_not_taken_for_that_of_the_run() -> (
    None
):
    summary = running()

    assert progress_words(summary) == "timing 24 %"
    assert rate_words(summary) == ""
    assert seconds_left(summary, 14.0) == pytest.approx(16.0, abs=1.0)
    assert seconds_left(fold([("supervisor", started(repeats=6))]), 1.0) is None


def test_the_steps_of_the_only_repeat_tell_when_the_run_is_over() -> None:
    first, now = (
        events.Progressed(done=done, total=100, unit="steps", t=t * SECOND)
        for done, t in ((10, 1), (20, 2))
    )
    summary = fold([("supervisor", started()), ("worker-0", first), ("worker-0", now)])

    assert progress_words(summary) == "20/100 steps  10/s  eta 8 s"


def test_rate_does_not_mix_two_units_of_the_same_total() -> None:
    epoch = events.Progressed(done=1, total=100, unit="epochs", t=1 * SECOND)
    first_step = events.Progressed(done=10, total=100, unit="steps", t=2 * SECOND)
    last_step = events.Progressed(done=20, total=100, unit="steps", t=3 * SECOND)

    records = [("worker-0", record) for record in (epoch, first_step, last_step)]
    summary = fold([("supervisor", started()), *records])

    assert progress_words(summary) == "20/100 steps  10/s  eta 8 s"


@pytest.mark.parametrize(
    ("done", "state", "told"),
    [
        (120, "failed", "120/400 steps  2 s"),
        (390, "succeeded", "2 s"),
        (399, "stopped", "2 s"),
        (400, "failed", "2 s"),
    ],
)
def test_a_command_that_ended_before_its_last_step_says_how_far_it_came(
    done: int, state: str, told: str
) -> None:
    progress = events.Progressed(done=done, total=400, unit="steps")
    end = events.StateChanged(state=state)
    summary = fold(
        [
            ("supervisor", started(command=["python", "train.py"])),
            ("worker-0", progress),
            ("supervisor", end),
        ]
    )

    assert heading_of(RUN, FoldedRun(summary, 2.0), 120)[1].plain == told


@pytest.mark.parametrize(
    ("total", "unit", "told"),
    [
        (0, "steps", "20 steps  10/s"),
        (100, "steps, epoch 1/4", "20/100 steps, epoch 1/4  10/s"),
        (100, "steps, round 3", "20/100 steps, round 3  10/s"),
    ],
)
def test_steps_of_an_unknown_number_and_those_of_a_round_tell_no_end(
    total: int, unit: str, told: str
) -> None:
    first, now = (
        events.Progressed(done=done, total=total, unit=unit, t=t * SECOND)
        for done, t in ((10, 1), (20, 2))
    )
    points = [
        events.Logged(s=step, v={"loss": 1.0}, t=SECOND + step * SECOND // 20) for step in range(21)
    ]
    summary = fold(
        [
            ("supervisor", started()),
            ("worker-0", first),
            *(("worker-0", one) for one in points),
            ("worker-0", now),
        ]
    )

    assert progress_words(summary) == told
    assert planned_end(summary, [*summary.series.values()]) is None


async def test_a_finished_run_that_is_still_read_says_how_far_and_how_it_ended_and_offers_no_stop(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_source, "_PORTION_S", -1.0)  # nothing is read yet
    monkeypatch.setattr(
        page, "later", lambda who, delay_s, act: later(who, 2 * AHEAD_S, act)
    )  # and the screen is idle in between
    run_dir = finished(root, {"a": "SUPPORTED"})
    whole = size((run_dir / "journal" / "supervisor.jsonl").stat().st_size)
    async with opened(app_on(root), size=(100, 30)) as pilot:
        assert isinstance(pilot.app, ShownApp)
        pilot.app.open_run(run_dir)
        seen = await shown(pilot, "succeeded")
        await pilot.press("s")  # without settling: this run is read as long as the test wants
        await eventually(pilot, lambda: bool(said(pilot)), "an answer to the key")

        assert "starting" not in seen
        assert "stop" not in seen.splitlines()[-1] and "freeze" not in seen.splitlines()[-1]
        assert said(pilot) == ["this run is not running: succeeded"]
        monkeypatch.setattr(run_source, "_PORTION_S", 1.0)
        await shown(pilot, "1 ✓")

    follower = Watch(run_dir)
    assert follower.bytes_read == (0, 0)
    while follower.refresh():
        pass
    done, of = follower.bytes_read
    assert done == of and size(of) == whole


def test_how_much_was_read_is_told_as_a_share_of_what_is_on_the_disk() -> None:
    class Reading(FoldedRun):
        @property
        def bytes_read(self) -> tuple[int, int]:
            return 3 * 2**20, 4 * 2**20

    run = Reading(running(), 1.0)
    run.is_caught_up, run.state = False, ""
    left, right = heading_of(RUN, run, 120)

    assert (left.plain, right.plain) == (
        "stability/accumulate-lowp · b1fd5e  1 ✓",
        "reading 75 % of 4 MiB",
    )


@pytest.mark.parametrize(
    ("state", "is_told"), [("running", True), ("stopping", True), ("queued", False)]
)
def test_what_a_run_waits_for_is_told_where_no_line_of_its_own_does(
    tmp_path: Path, state: str, is_told: bool
) -> None:
    summary = fold(
        [("supervisor", events.StateChanged(state=state, reason="waits for its verdicts"))],
        running(),
    )

    heading, _ = heading_of(RUN, FoldedRun(summary, elapsed_s=14.0), 120)
    watch = Watch(recorded("tour", tmp_path))
    watch.summary = summary
    assert ["waits for" in heading.plain, "waits for" in live_line(watch)] == [is_told] * 2


def test_a_run_whose_scenario_is_not_called_yet_loads_torch() -> None:
    records: list[Any] = [started(), events.StateChanged(state="running")]
    loading = fold([("supervisor", record) for record in records])
    begun = fold(
        [("worker-0", events.EnvironmentRecorded(part="torch", facts={}))],
        fold([("supervisor", r) for r in records]),
    )

    headings = [
        heading_of(RUN, FoldedRun(summary, 2.0), 120)[0].plain for summary in (loading, begun)
    ]
    assert ["loading torch" in heading for heading in headings] == [True, False]
