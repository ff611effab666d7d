"""What watching costs: that each mark tells it, that a story does, and that steps alone need no more than their hooks."""

from pathlib import Path

import pytest

from tests.commands.made_marks import cut, make_mark
from tests.commands.watched_script import Watch
from tuilab.commands.marks import Mark, MarkedProcess, MarksFolder
from tuilab.commands.step_sentences import story_of
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.watcher._tuilab_watch.ring import Ring

ALL_FLAGS = layout.LATE | layout.TIMED | layout.WITHIN


def story(spent_ns: int, *, is_starved: bool = False) -> list[str]:
    """Return the story of a process whose steps take 2 ms, and whose marks took so long.

    The rest takes 80 % of a step.
    """
    marks = []
    for at_ms in range(0, 60, 2):
        marks.append(make_mark(layout.WENT_BACK, at_ms, at_ms + 0.2))
        marks.append(make_mark(layout.STEPPED, at_ms + 0.2, at_ms + 0.4, number=spent_ns, name=1))
    return [*story_of(MarkedProcess(1), *cut(marks), is_starved=is_starved)]


def test_a_story_tells_what_watching_took_of_a_step() -> None:
    assert "watching took 5 µs of a step (0.25 %, measured by itself)" in story(5000)


def test_cost_of_watching_on_a_busy_machine_includes_waits_for_a_core() -> None:
    assert (
        "watching took 5 µs of a step (0.25 %, measured by itself, by the clock, "
        "which includes waiting for a core)"
    ) in story(5000, is_starved=True)


def test_advice_on_the_rest_leaves_out_what_watching_took() -> None:
    cheap = [line for line in story(5000) if "check the rest of the loop" in line]
    costly = [line for line in story(400_000) if "check the rest of the loop" in line]
    largest = [line for line in story(1_400_000) if "largest" in line]

    part = "largest avoidable part: forward + rest, "
    assert len(cheap) == 1 and cheap[0].startswith(f"{part}80 % (backward")
    assert len(costly) == 1 and costly[0].startswith(f"{part}60 % without watching (backward")
    assert largest == []


def test_where_no_mark_tells_it_the_cost_is_not_told_as_nothing() -> None:
    assert not any("watching took" in line for line in story(0))


def test_a_mark_is_read_as_it_was_put(tmp_path: Path) -> None:
    put = [
        Mark(1, -(2**62), -1.5, 2**32 - 1, 60_000, ALL_FLAGS, layout.HELD),
        Mark(2**62, 3, float("inf"), 0, 0, 0, layout.STEPPED),
    ]
    ring = Ring(str(tmp_path))
    for mark in put:
        ring.mark(mark.kind, mark.began, mark.ended, mark.value, mark.number, mark.name, mark.flags)

    ((_, marks),) = MarksFolder(tmp_path).read(is_last=True)
    assert marks == put


@pytest.mark.real_torch
@pytest.mark.parametrize(("how", "kinds"), [("all", "wait wait back step"), ("steps", "step")])
def test_every_mark_tells_what_watching_took_since_the_one_before(
    watch: Watch, how: str, kinds: str
) -> None:
    seen = watch(
        """
        from torch.utils.data import DataLoader
        o = sgd()
        for _ in DataLoader(range(5)): loss().backward(); o.step()
        """,
        how,
    )

    assert seen.kinds.startswith(kinds)
    assert [mark.number > 0 for mark in seen.marks if mark.kind == layout.STEPPED][1:] == [True] * 4
    assert all(0 < step.watched_ns < (step.took_ns or step.ended) for step in seen.steps[1:])


@pytest.mark.real_torch
def test_steps_alone_are_hooks_of_the_optimizer_and_nothing_else(watch: Watch) -> None:
    """Nothing stands before backward, data, scaled losses, autocast or loggers, and no print is changed."""
    seen = watch(
        """
        from torch.utils.data import dataloader
        from torch.utils.data.dataloader import DataLoader
        class SummaryWriter:
            def add_scalar(self, name, value, step): pass
        import types
        fake = types.ModuleType("tensorboardX.writer"); fake.SummaryWriter = SummaryWriter
        sys.modules["tensorboardX.writer"] = fake
        o = sgd()
        for _ in range(3): loss().backward(); o.step()
        for one in (torch.autograd.backward, dataloader._BaseDataLoaderIter.__next__, DataLoader.__iter__,
                    torch.amp.GradScaler.scale, torch.autocast.__enter__, SummaryWriter.add_scalar):
            print("_tuilab_watch" in str(getattr(one, "__code__", "")))
        """,
        how="steps",
    )

    assert seen.done.stdout == "False\n" * 6
    assert seen.kinds == "step step step"


@pytest.mark.real_torch
def test_optimizers_in_the_backward_step_where_steps_alone_are_watched(watch: Watch) -> None:
    seen = watch(
        """
        for p in model.parameters():
            own = torch.optim.SGD([p], lr=0.01)
            p.register_post_accumulate_grad_hook(lambda p, own=own: own.step() or own.zero_grad())
        for _ in range(4): loss().backward()
        """,
        how="steps",
    )

    assert [step.optimized for step in seen.steps] == [2] * 4


@pytest.mark.real_torch
def test_what_was_suspended_for_long_tells_no_other_mark(watch: Watch) -> None:
    seen = watch(
        """
        import _tuilab_watch
        o = sgd()
        for at in range(4):
            _tuilab_watch._get_watcher("").spent_ns = 2**40 * (at % 2)
            loss().backward(); o.step()
        """,
    )

    assert seen.kinds == "back step " * 3 + "back step"
    assert max(mark.number for mark in seen.marks) == layout.MOST
