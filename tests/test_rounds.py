"""The rounds of a race: when the warm-up is over."""

from functools import partial
from itertools import count

import pytest
import torch

from tests.raced import Recorder
from tuilab.lab.device import door
from tuilab.lab.races.rounds import Rounds, Slot, has_settled
from tuilab.lab.races.sensors import Reading, Sensors
from tuilab.probes.core_work import Work
from tuilab.record.events import BlockTimed
from tuilab.record.order import CYCLE


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([3, 2, 1.01, 1, 1, 1], False),  # the three before drifted still
        ([3, 2, 1, 1.01, 1, 1, 1.02, 1], True),
        ([1, 1, 1, 1, 1], None),  # too few to tell
        ([1, 1, 1, 1.04, 1.04, 1.04], False),
    ],
)
def test_times_have_settled_when_the_last_three_are_those_before(times: list[float], expected: bool | None) -> None:
    assert has_settled({"arm": times}, 3) is expected
    assert has_settled({"arm": times, "steady": [1.0] * 8}, 3) is expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [([], None), ([1, 1, 1], None), ([1, 1.01, 1, 1], True), ([2, 1.2, 1, 1], False), ([2, 1, 1, 1, 1], True)],
)
def test_on_a_gpu_four_blocks_tell(times: list[float], expected: bool | None) -> None:
    """More than six of 50 ms would not fit the third of a race of two seconds."""
    assert has_settled({"arm": times}, 2) is expected


@pytest.mark.parametrize("others_used", [0.1, 1.9])
def test_block_that_waits_for_a_core_is_disturbed_if_others_used_the_cores(
    others_used: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two cores, the processes of the run used the rest."""
    seconds = count()
    delays_ns = count(step=10**12)

    def read_work(pid: int, cores: set[int]) -> Work:
        now = next(seconds) / 1e6  # long ago, so that each look is due
        return Work(at=now, used_s=2.0 * now, own_s=(2.0 - others_used) * now)

    def read_sensors(sensors: Sensors) -> Reading:
        return Reading(0, None, None, None, None, None, run_delay_ns=next(delays_ns))

    monkeypatch.setattr("tuilab.lab.races.other_work.usable_cores", lambda: {0, 1})
    monkeypatch.setattr("tuilab.lab.races.other_work.read_work", read_work)
    monkeypatch.setattr(Sensors, "read", read_sensors)
    lab = Recorder()

    Rounds(lab, [Slot("arm", lambda: None, loops=1, calm_share=0.1)], 5, 0.0, threads=1, device=door(torch.device("cpu"))).run()

    blocks = lab.of(BlockTimed)
    assert {block.others_share for block in blocks} == {others_used / 2}
    assert {block.is_disturbed for block in blocks} == {others_used > 1}


def test_each_cycle_begins_with_an_untimed_block_of_the_arm_that_comes_first() -> None:
    called: list[str] = []
    slots = [Slot(arm, partial(called.append, arm), loops=3, calm_share=1.0) for arm in "abc"]
    lab = Recorder()

    Rounds(lab, slots, seed=5, seconds=0.0, threads=1, device=door(torch.device("cpu"))).run()

    timed = lab.of(BlockTimed)
    expected = []
    for turn in range(timed[-1].round + 1):
        arms = [block.arm for block in timed if block.round == turn]
        if turn % CYCLE == 0:
            expected += [arms[0]] * 3
        for arm in arms:
            expected += [arm] * 3
    assert called == expected
