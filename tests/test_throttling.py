"""Blocks of a race on a GPU whose clocks were held down: marked by the sampler's readings, in a judgement and in its check."""

from typing import TYPE_CHECKING, Any

import pytest

from tests.test_verdict import recorded
from tuilab.judging.evidence import gather
from tuilab.judging.held_back import held_back
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.summary import RunSummary, fold

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]

PERIOD = 500_000_000
CLAIM = events.ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=2.0)


def run_on_gpu(readings: list[dict[str, float]], uuid: str = "GPU-fake-0", torch_uuid: str = "fake-0") -> RunSummary:
    """Return a run of 8 repeats in which every sample but those given is calm; a block of 10 ms begins every 10 ms."""
    summary = recorded(8, ratio=3.0)
    for _, race in summary.races:
        race.device = "cuda"
    t = 0
    for blocks in summary.blocks.values():
        for block in blocks:
            t += 10_000_000
            block.t, block.wall_ns = t, 10_000_000
    calm = {"throttle_mask": 0.0, "sm_mhz": 1980.0}
    samples = [*readings, *[calm] * (t // PERIOD + 2 - len(readings))]
    items: list[tuple[str, events.Record]] = [
        ("sampler", events.Sampled(t=i * PERIOD, processes=1, threads=1, cpu_percent=0.0, rss_bytes=0, gpus={uuid: sample}))
        for i, sample in enumerate(samples)
    ]
    facts: dict[str, Any] = {"devices": [{"name": "Fake GPU", "uuid": torch_uuid}]}
    return fold([*items, ("worker-0", events.EnvironmentRecorded(part="cuda", facts=facts))], summary)


def disturbed_share(summary: RunSummary) -> float:
    found = gather(CLAIM, summary)
    assert found is not None
    return found.disturbed_share


@pytest.mark.parametrize(
    ("reading", "share"),
    [
        ({"throttle_mask": 0x20, "sm_mhz": 1980}, 0.390625),  # software thermal slowdown: half a second of 1.28
        ({"throttle_mask": 0x40}, 0.390625),
        ({"throttle_mask": 0x8}, 0.390625),
        ({"throttle_mask": 0x80}, 0.390625),
        ({"throttle_mask": 0x1}, 0.0),  # idle
        ({"throttle_mask": 0x2}, 0.0),  # clocks set by the user
        ({"throttle_mask": 0x4}, 0.0),  # power cap
        ({"throttle_mask": 0, "sm_mhz": 1480}, 0.390625),  # 75 % of 1980 is 1485
        ({"throttle_mask": 0, "sm_mhz": 1500}, 0.0),
        ({}, 0.0),
        ({"throttle_mask": float("nan"), "sm_mhz": float("nan")}, 0.0),
    ],
)
def test_what_holds_the_clocks_down_marks_the_blocks_nearest_to_its_reading(reading: dict[str, float], share: float) -> None:
    calm = {"throttle_mask": 0.0, "sm_mhz": 1980.0}

    assert disturbed_share(run_on_gpu([calm, reading])) == pytest.approx(share, abs=0.02)


def test_more_than_thirty_percent_held_back_is_inconclusive() -> None:
    (reached,) = judge(run_on_gpu([{"throttle_mask": 0x20}]))
    (slowed,) = judge(run_on_gpu([{"throttle_mask": 0x20}] * 2))

    assert (reached.verdict, slowed.verdict) == ("SUPPORTED", "INCONCLUSIVE")
    assert slowed.why.startswith("the machine is too noisy: 59 % of the blocks were disturbed")


def test_a_race_on_the_cpu_does_not_care_for_the_gpu() -> None:
    summary = run_on_gpu([{"throttle_mask": 0x20}] * 9)
    for _, race in summary.races:
        race.device = "cpu"

    assert disturbed_share(summary) == 0.0


def test_another_gpu_is_not_ours_and_one_that_cannot_be_told_apart_marks_nothing() -> None:
    """torch's first device is found by its uuid; without one, the only GPU there is must be it."""
    slow = [{"throttle_mask": float(0x20)}] * 9

    assert disturbed_share(run_on_gpu(slow, torch_uuid="fake-1")) == 0.0
    assert disturbed_share(run_on_gpu(slow, torch_uuid="")) == 1.0


def test_a_block_that_the_cpus_sensors_marked_counts_once() -> None:
    summary = run_on_gpu([{"throttle_mask": 0x20}] * 9)
    for blocks in summary.blocks.values():
        blocks[0].is_disturbed = True

    assert disturbed_share(summary) == 1.0


def test_without_a_reading_nothing_is_marked() -> None:
    summary = run_on_gpu([])
    summary.gpu_states.clear()

    assert held_back(summary, summary.blocks["worker-0", "a"]) == [False] * 8


def test_what_the_driver_says_reaches_the_blocks(nvml: "FakeNvml", tmp_path: Any) -> None:
    """From a (fake) NVML library through a real sampler and its journal to the mark."""
    from tests.test_sampler import Sampler, of

    nvml.set("throttle=0x40")
    sampler = Sampler(tmp_path / "run")
    try:
        idle = sampler.spawn("sleep", "600")
        sampler.start(idle.pid, env=nvml.environment)
        found = sampler.wait_for(lambda records: [r for r in of(events.Sampled, records) if r.gpus])
        items = [("sampler", record) for record in sampler.records()]
    finally:
        sampler.end()

    summary = fold(items, run_on_gpu([]))
    block = summary.blocks["worker-0", "a"][0]
    block.t = found[0].t + block.wall_ns
    assert held_back(summary, [block]) == [True]
