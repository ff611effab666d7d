"""Pauses in which Python collects garbage: they are marked if they are long, and told with their share of the time."""

import gc
from types import SimpleNamespace
from typing import Any

import pytest

from tests.commands.made_marks import cut, make_mark
from tests.commands.watched_script import Watch
from tuilab.commands.marks import MarkedProcess
from tuilab.commands.step_sentences import story_of
from tuilab.commands.watcher._tuilab_watch import collecting, layout


def story(pause_ms: float, *, every: int) -> list[str]:
    """Return the story of steps of 10 ms, with a pause in each so many of them."""
    marks = []
    for step in range(40):
        end_ms = 10 * (step + 1)
        if step % every == 0:
            marks.append(make_mark(layout.COLLECTED, end_ms - 6, end_ms - 6 + pause_ms, number=2))
        marks.append(make_mark(layout.STEPPED, end_ms - 1, end_ms, name=1))
    return [*story_of(MarkedProcess(1), *cut(marks))]


def test_story_tells_the_share_of_the_time_and_the_longest_pause() -> None:
    assert (
        "Python collected garbage for 20 % of the time: 39 pauses of up to 2 ms; "
        "see `tuilab run gc-pause`"
    ) in story(2.0, every=1)


def test_single_pause_has_its_own_length() -> None:
    (sentence,) = [line for line in story(12.0, every=39) if "garbage" in line]
    assert "1 pause of 12 ms;" in sentence


def test_rare_pauses_are_not_told() -> None:
    assert not any("garbage" in sentence for sentence in story(4.0, every=30))


def test_pauses_leave_the_parts_of_a_step_as_they_are() -> None:
    assert [line for line in story(2.0, every=1) if "garbage" not in line] == story(0.1, every=50)[
        :3
    ]


@pytest.mark.real_torch
def test_long_collections_of_a_script_are_marked(watch: Watch) -> None:
    seen = watch(
        """
        import gc
        kept = [[number] for number in range(400_000)]
        o = sgd()
        for _ in range(6): loss().backward(); o.step(); gc.collect()
        """,
        "all",
    )

    pauses = [mark for mark in seen.marks if mark.kind == layout.COLLECTED]
    assert len(pauses) >= 5
    assert all(mark.ended - mark.began >= 1_000_000 for mark in pauses)
    assert {mark.number for mark in pauses} <= {0, 1, 2}
    assert sum(len(step.pauses_ns) for step in seen.steps) >= 5


def make_watcher(**more: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    marks: list[tuple[Any, ...]] = []
    watcher = SimpleNamespace(mark=lambda *mark: marks.append(mark), fail=marks.append, **more)
    return watcher, marks


@pytest.mark.parametrize(
    ("has_marks", "took_ns", "count"), [(True, 5_000_000, 1), (True, 900_000, 0), (False, 10**9, 0)]
)
def test_only_long_pauses_of_a_process_with_marks_are_marked(
    monkeypatch: pytest.MonkeyPatch, has_marks: bool, took_ns: int, count: int
) -> None:
    watcher, marks = make_watcher(has_marks=has_marks)
    callbacks: list[Any] = []
    monkeypatch.setattr(gc, "callbacks", callbacks)
    times_ns = iter([7, 7 + took_ns])
    monkeypatch.setattr(collecting, "_now", lambda: next(times_ns))
    collecting.watch(watcher)

    (notice,) = callbacks
    notice("start", {"generation": 2})
    notice("stop", {"generation": 2, "collected": 3})

    assert marks == [(layout.COLLECTED, 7, 7 + took_ns, 0.0, 2)][:count]
