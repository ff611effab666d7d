"""The summary: records in, one object out, however they come."""

import math
import random
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args

import msgspec
import pytest

from tuilab.record import events
from tuilab.record.blocks import in_order, times_of
from tuilab.record.finding_words import gpu_errors, leftover_words, unmeasured
from tuilab.record.folding.fold import fold
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.series import BAD_LIMIT, LIMIT, Series
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Few

ITEMS: list[tuple[str, Item]] = [
    ("supervisor", events.StateChanged(n=1, t=1, state="running")),
    ("worker-0", events.StageEntered(n=0, t=2, name="training")),
    ("worker-0", events.Progressed(n=1, t=3, done=1, total=10)),
    ("worker-0", events.Logged(n=2, t=4, s=0, v={"loss": 2.0})),
    ("worker-0", events.Logged(n=3, t=5, s=1, v={"loss": math.nan})),
    ("worker-0", events.Logged(n=4, t=6, s=2, v={"loss": 1.0}, a="fp16")),
    ("supervisor", events.StateChanged(n=2, t=7, state="succeeded")),
]


def test_a_summary_holds_state_stage_progress_and_series_by_arm() -> None:
    summary = fold(ITEMS)

    assert (summary.state, summary.is_over) == ("succeeded", True)
    assert [stage.name for stage in summary.stages] == ["training"]
    assert summary.progress is not None and summary.progress.done == 1
    assert list(summary.series) == [("loss", "", "worker-0"), ("loss", "fp16", "worker-0")]
    assert summary.records == 7


def test_stages_of_several_processes_are_in_the_order_of_time_however_they_are_read() -> None:
    stages = [
        ("worker-0", 1, "a"),
        ("worker-1", 3, "c"),
        ("worker-0", 2, "b"),
        ("worker-1", 4, "d"),
    ]
    summary = fold(
        [(stream, events.StageEntered(n=0, t=t, name=name)) for stream, t, name in stages]
    )

    assert [stage.name for stage in summary.stages] == ["a", "b", "c", "d"]


def kinds(base: type[events.Event] = events.Event) -> Iterator[type[events.Event]]:
    """Yield every kind of record that tuilab defines; another test may have made one of its own from it."""
    for kind in base.__subclasses__():
        if kind.__module__ == events.__name__:
            yield from list(kinds(kind)) or [kind]


def test_every_kind_of_record_is_read_back_and_folded() -> None:
    """A kind that is in no union cannot be read; one without a fold is an error in every view at once."""
    assert set(get_args(events.Record)) == set(kinds())
    assert len(events.KINDS) == len(set(kinds()))
    for kind in kinds():
        summary = fold([("supervisor", usual(kind))])
        assert summary.records == 1, kind


def usual(kind: type[events.Event]) -> Any:
    """Return a record of a kind with something of its type in every field that must be there."""
    fields = {
        field.name: _something(field.type)
        for field in msgspec.structs.fields(kind)
        if field.required
    }
    return msgspec.convert(fields, kind)


def _something(kind: object) -> object:
    samples: tuple[object, ...] = (
        1,
        "word",
        [],
        {},
        {"host": "box", "boot": "b", "pid": 1, "start": 1},
        "equals",
    )
    for sample in samples:
        try:
            return msgspec.to_builtins(msgspec.convert(sample, kind))
        except msgspec.ValidationError:
            continue
    raise AssertionError(f"a sample of {kind} is missing here")


def test_folding_piece_by_piece_gives_what_folding_at_once_gives() -> None:
    whole = fold(ITEMS)

    pieces = fold([])
    for item in ITEMS:
        fold([item], pieces)

    assert pieces == whole


def test_the_order_of_the_streams_does_not_matter() -> None:
    by_stream = sorted(ITEMS, key=lambda pair: pair[0])

    assert fold(by_stream).series == fold(ITEMS).series
    assert fold(by_stream).state == fold(ITEMS).state


def test_what_is_wrong_with_the_record_is_counted() -> None:
    summary = fold([("a", Corrupt("a", 0, "checksum does not match")), ("a", Gap("a", 3)), *ITEMS])

    assert (summary.damage.corrupt_count, summary.damage.missing_count, summary.damage.is_any) == (
        1,
        3,
        True,
    )


def test_numbers_that_are_not_finite_are_kept_apart_with_their_place() -> None:
    series = Series("loss")
    for step, value in enumerate([1.0, math.nan, 2.0, math.inf]):
        series.add(step, step, value)

    assert (series.low, series.high, series.count, series.bad_count) == (1.0, 2.0, 4, 2)
    assert [(bad.step, repr(bad.value)) for bad in series.bad] == [(1, "nan"), (3, "inf")]


def test_a_million_points_stay_small_and_keep_every_extreme() -> None:
    series = Series("loss")
    spikes = {123_456: 50.0, 654_321: -50.0}
    for step in range(1_000_000):
        series.add(step, step, spikes.get(step, 0.0))

    assert len(series.steps) <= LIMIT
    assert (series.low, series.high, series.count, series.last_step) == (
        -50.0,
        50.0,
        1_000_000,
        999_999,
    )
    (at,) = [i for i, high in enumerate(series.highs) if high == 50.0]
    assert series.steps[at] <= 123_456 < series.steps[at + 1]


def test_a_flood_of_nan_is_counted_and_bounded() -> None:
    series = Series("loss")
    for step in range(BAD_LIMIT + 10):
        series.add(step, step, math.nan)

    assert (len(series.bad), series.bad_count, series.low) == (BAD_LIMIT, BAD_LIMIT + 10, None)


@pytest.mark.parametrize("seed", range(5))
def test_thinning_never_loses_the_range(seed: int) -> None:
    generator = random.Random(seed)
    values = [generator.gauss(0, 1) for _ in range(LIMIT * 3 + 17)]
    series = Series("x")
    for step, value in enumerate(values):
        series.add(step, step, value)

    assert (series.low, series.high) == (min(values), max(values))
    assert series.steps == sorted(series.steps)


def test_arms_are_told_in_the_order_of_the_scenario_whoever_had_the_first_turn() -> None:
    started = events.RaceStarted(
        arms=["slow", "fast"], threads=1, device="cpu", loops={"slow": 1, "fast": 1}
    )
    turns = [
        events.BlockTimed(arm=arm, round=0, slot=0, loops=1, wall_ns=10, cpu_ns=1)
        for arm in ("fast", "slow", "other")
    ]

    items: list[tuple[str, Item]] = [("worker-0", started), *(("worker-0", turn) for turn in turns)]
    summary = fold(items)

    assert list(times_of(summary)) == ["slow", "fast", "other"]
    assert list(in_order(summary)) == [("worker-0", arm) for arm in ("slow", "fast", "other")]


def test_errors_of_a_gpu_are_counted_and_told_by_its_name_and_their_meaning() -> None:
    records = [
        events.XidReported(uuid=uuid, xid=xid)
        for uuid, xid in (("GPU-a", 31), ("MIG-b", 94), ("GPU-a", 31), ("?", 999))
    ]
    summary = fold(
        [
            ("sampler", events.GpuFound(uuid="GPU-a", index=1, name="H100")),
            (
                "sampler",
                events.GpuFound(uuid="MIG-b", index=1, name="H100", slice="MIG 1g.10gb Device 0"),
            ),
            *(("sampler", record) for record in records),
        ]
    )

    assert gpu_errors(summary) == [
        "GPU 1 reported Xid 31 (a kernel used an invalid memory address), 2 times",
        "GPU 1 MIG 1g.10gb Device 0 reported Xid 94 (uncorrectable memory error, limited to one program)",
        "? reported Xid 999",
    ]


def test_how_often_a_sampler_was_started_again_is_told_in_words() -> None:
    ends = [
        [("supervisor", events.SamplerEnded(reason="killed", restarts=restarts))]
        for restarts in (0, 1, 2)
    ]

    assert [fold(end).unavailable["sampler"] for end in ends] == [
        "killed",
        "killed (restarted once)",
        "killed (restarted 2 times)",
    ]


def test_very_many_kinds_of_errors_are_counted_within_bounds() -> None:
    summary = fold([("sampler", events.XidReported(uuid="GPU-a", xid=xid)) for xid in range(1000)])

    assert len(summary.xids) == 500


def test_whatever_is_kept_by_a_name_of_a_record_is_bounded() -> None:
    """A few bytes of an archive are a name; what is kept by it takes hundreds."""
    summary = RunSummary()

    assert [one.name for one in fields(summary) if type(getattr(summary, one.name)) is dict] == []


def test_of_more_names_than_are_kept_the_first_are_shown_and_the_rest_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Few, "MOST", 3)
    items: list[tuple[str, Item]] = [
        ("w", events.Logged(n=at, t=at + 1, s=at, v={f"a{at % 5}": 1.0})) for at in range(10)
    ]
    items += [
        ("w", events.Unavailable(n=at, t=at, what=f"u{at % 3}", reason="r")) for at in range(10, 20)
    ]
    summary = fold(items)

    assert [(key[0], line.count) for key, line in summary.series.items()] == [
        ("a0", 2),
        ("a1", 2),
        ("a2", 2),
    ]
    assert sorted(summary.unavailable) == ["u0", "u1", "u2"]
    assert unmeasured(summary)[-1] == ("series", "more than 3; the rest is not shown")


def test_of_very_many_states_the_last_one_counts() -> None:
    items = [
        ("s", events.StateChanged(n=at, t=at + 1, state="running", reason=f"{at}"))
        for at in range(2000)
    ]
    summary = fold([*items, ("s", events.StateChanged(n=2000, t=3000, state="succeeded"))])

    assert (summary.state, summary.states[-1].state, len(summary.states)) == (
        "succeeded",
        "succeeded",
        500,
    )


def test_of_more_processes_that_were_left_behind_than_are_named_the_others_are_counted() -> None:
    ended = [
        events.LeftoversEnded(processes=[f"{pid} sleep" for pid in pids], count=len(pids))
        for pids in ((1, 2), (3, 4))
    ]

    assert (
        leftover_words(fold([("supervisor", ended[0])]))
        == "ended 2 processes that the run left behind: 1 sleep, 2 sleep"
    )
    told = leftover_words(fold([("supervisor", one) for one in ended]))
    assert (
        told == "ended 4 processes that the run left behind: 1 sleep, 2 sleep, 3 sleep and 1 more"
    )


def test_a_table_with_the_title_of_the_arms_stays_the_scenarios_own() -> None:
    shown = events.TableShown(title="arms", rows=[["a", 1]], n=1)
    verdict = events.VerdictReached(
        key="fast", text="it is fast", verdict="supported", rule="r", n=2
    )
    race = events.RaceFinished(arms=[], accounts={"": {"rest_s": 1.0}}, n=3)

    summary = fold([("worker-0", shown), ("judge", verdict), ("worker-0", race)])

    assert summary.figures == {"arms": shown}
