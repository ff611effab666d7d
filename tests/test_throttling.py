"""Blocks of a race on a GPU whose clocks were held down: marked by the sampler's readings, in a judgement and in its check."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.test_verdict import recorded
from tuilab.judging.evidence import Evidence, gather_evidence
from tuilab.judging.gpu_readings import GpuInterval, find_disturbances
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.journal.writer import Writer
from tuilab.record.summary import RunSummary
from tuilab.reports.samples import read_samples

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]

PERIOD = 500_000_000
CALM = {"throttle_mask": 0.0, "sm_mhz": 1980.0, "foreign_percent": 0.0}
CLAIM = events.ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=2.0)


def run_on_gpu(
    readings: list[dict[str, float]],
    uuid: str = "GPU-fake-0",
    torch_uuid: str = "fake-0",
    raced_uuid: str = "",
) -> RunSummary:
    """Return a run of 8 repeats in which every sample but those given is calm; a block of 10 ms begins every 10 ms."""
    summary = recorded(8, ratio=3.0)
    for _, race in summary.races:
        race.device, race.uuid = "cuda", raced_uuid
    t = 0
    for blocks in summary.blocks.values():
        for block in blocks:
            t += 10_000_000
            block.t, block.wall_ns = t, 10_000_000
    samples = [*readings, *[CALM] * (t // PERIOD + 2 - len(readings))]
    items: list[tuple[str, events.Record]] = [
        ("sampler", sampled(i * PERIOD, {uuid: sample})) for i, sample in enumerate(samples)
    ]
    return fold([*items, ("worker-0", torchs_gpus(torch_uuid))], summary)


def sampled(t: int, gpus: dict[str, dict[str, float]], **more: Any) -> events.Sampled:
    return events.Sampled(
        t=t, processes=1, threads=1, cpu_percent=0.0, rss_bytes=0, gpus=gpus, **more
    )


def torchs_gpus(*uuids: str) -> events.EnvironmentRecorded:
    return events.EnvironmentRecorded(
        part="cuda", facts={"devices": [{"name": "Fake GPU", "uuid": one} for one in uuids]}
    )


def found(summary: RunSummary) -> Evidence:
    evidence = gather_evidence(CLAIM, summary)
    assert evidence is not None
    return evidence


def disturbed_share(summary: RunSummary) -> float:
    return found(summary).disturbed_share


@pytest.mark.parametrize(
    ("reading", "share"),
    [
        (
            {"throttle_mask": 0x20, "sm_mhz": 1980},
            0.390625,
        ),  # software thermal slowdown: half a second of 1.28
        ({"throttle_mask": 0x40}, 0.390625),
        ({"throttle_mask": 0x8}, 0.390625),
        ({"throttle_mask": 0x80}, 0.390625),
        ({"throttle_mask": 0x1}, 0.0),  # idle
        ({"throttle_mask": 0x2}, 0.0),  # clocks set by the user
        ({"throttle_mask": 0x4}, 0.0),  # power cap
        ({"throttle_mask": 0, "sm_mhz": 1480}, 0.390625),  # 75 % of 1980 is 1485
        ({"throttle_mask": 0, "sm_mhz": 1500}, 0.0),
        (
            {"throttle_mask": 0, "sm_mhz": 1980, "foreign_percent": 2.1},
            0.390625,
        ),  # others keep it busy
        ({"throttle_mask": 0, "sm_mhz": 1980, "foreign_percent": 2.0}, 0.0),
        ({}, 0.0),
        ({"throttle_mask": float("nan"), "sm_mhz": float("nan")}, 0.0),
    ],
)
def test_what_holds_the_clocks_down_marks_the_blocks_nearest_to_its_reading(
    reading: dict[str, float], share: float
) -> None:
    assert disturbed_share(run_on_gpu([CALM, reading])) == pytest.approx(share, abs=0.02)


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

    assert disturbed_share(summary) == 0.0


# ---- which GPU


def test_the_gpu_that_a_race_names_counts_and_not_the_first_that_torch_sees() -> None:
    slow = [{"throttle_mask": float(0x20)}] * 9

    assert (
        disturbed_share(
            run_on_gpu(slow, uuid="GPU-fake-3", torch_uuid="fake-0", raced_uuid="fake-3")
        )
        == 1.0
    )
    assert (
        disturbed_share(
            run_on_gpu(slow, uuid="GPU-fake-0", torch_uuid="fake-0", raced_uuid="fake-3")
        )
        == 0.0
    )


def test_a_slice_of_a_gpu_is_found_by_its_own_name() -> None:
    slow = [{"throttle_mask": float(0x20)}] * 9

    assert disturbed_share(run_on_gpu(slow, uuid="MIG-fake-0-1", torch_uuid="fake-0-1")) == 1.0


@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_each_repeat_counts_on_the_gpu_that_it_raced_on(device: str) -> None:
    """`auto` may choose another one each time; the clocks of different models are no measure of each other."""
    summary = run_on_gpu([CALM])
    summary.gpu_states.clear()
    for writer, race in summary.races:
        race.device, race.uuid = device, "fake-1" if writer == "worker-1" else "fake-0"
    both = {"GPU-fake-0": CALM, "GPU-fake-1": {**CALM, "sm_mhz": 1000.0}}
    fold([("sampler", sampled(i * PERIOD, both)) for i in range(5)], summary)
    assert disturbed_share(summary) == 0.0

    summary.gpu_states.clear()
    both["GPU-fake-1"] = {**both["GPU-fake-1"], "throttle_mask": float(0x40)}
    fold([("sampler", sampled(i * PERIOD, both)) for i in range(5)], summary)
    assert disturbed_share(summary) == 1 / 8


# ---- what is not known


def test_a_block_without_a_reading_near_it_is_not_known_to_be_calm() -> None:
    summary = run_on_gpu([])
    assert (found(summary).unknown_clocks_share, found(summary).unknown_tenants_share) == (0.0, 0.0)

    summary.gpu_states.clear()
    assert (found(summary).unknown_clocks_share, found(summary).unknown_tenants_share) == (1.0, 1.0)
    assert found(summary).disturbed_share == 0.0


@pytest.mark.parametrize(("blind", "is_told"), [(1, False), (2, True)])
def test_a_verdict_says_when_the_clocks_were_not_watched_and_stands_all_the_same(
    blind: int, is_told: bool
) -> None:
    """Some 20 %, and some 60 % of the blocks have no reading near them."""
    (reached,) = judge(run_on_gpu([{}] * blind))

    assert reached.verdict == "SUPPORTED"
    assert ("; the clocks of the GPU were not watched" in reached.why) is is_told
    assert ("; whether others used the GPU is not known" in reached.why) is is_told


def test_where_others_cannot_be_seen_a_verdict_says_so() -> None:
    clocks = {name: value for name, value in CALM.items() if name != "foreign_percent"}
    (reached,) = judge(run_on_gpu([clocks] * 9))

    assert "; whether others used the GPU is not known" in reached.why
    assert "not watched" not in reached.why


def test_on_a_cpu_nothing_is_said_of_gpus() -> None:
    summary = run_on_gpu([{}] * 9)
    for _, race in summary.races:
        race.device = "cpu"

    assert (found(summary).unknown_clocks_share, found(summary).unknown_tenants_share) == (0.0, 0.0)
    assert "GPU" not in judge(summary)[0].why


# ---- when


def test_a_reading_speaks_for_the_time_at_which_it_was_asked(tmp_path: Path) -> None:
    sample = sampled(2 * PERIOD, {"GPU-fake-0": CALM}, gpus_asked={"GPU-fake-0": 7})
    (tmp_path / "journal").mkdir()
    Writer(tmp_path / "journal/sampler.jsonl").append(sample)
    summary = fold([("sampler", sample)])

    assert [state.t for state in summary.gpu_states] == [7]
    assert summary.resources["GPU-fake-0 sm_mhz"].last_t == 7
    assert {t for one in read_samples(tmp_path) if one.arm == "GPU-fake-0" for t in one.times} == {
        7
    }


# ---- arms in processes of their own


def run_apart(reading: dict[str, float], *, on_gpu: bool = True) -> RunSummary:
    """Return a run whose arms ran in processes of their own, one after another, a second each."""
    summary = run_on_gpu([])
    summary.gpu_states.clear()
    summary.cuda.clear()
    for _, race in summary.races:
        race.device = "process"
    items: list[tuple[str, events.Record]] = []
    t, number = 0, 8
    for (writer, arm), blocks in summary.blocks.items():
        repeat = int(writer.partition("-")[2])
        summary.workers[writer].started = events.WorkerStarted(
            writer=writer, pid=1, start=1, repeat=repeat
        )
        for block in blocks:
            name = f"worker-{number}"
            items.append(
                (
                    "supervisor",
                    events.WorkerStarted(
                        t=t, writer=name, pid=1, start=1, repeat=repeat, arm=f"the {arm}"
                    ),
                )
            )
            items += [(name, torchs_gpus("fake-0"))] if on_gpu else []
            items.append(
                ("sampler", sampled(t + PERIOD, {"GPU-fake-0": reading if arm == "a" else CALM}))
            )
            t, number = t + 2 * PERIOD, number + 1
            block.t, block.wall_ns = t, 1_000_000
    return fold(items, summary)


def test_arms_in_processes_of_their_own_are_held_back_as_long_as_their_process_runs() -> None:
    assert found(run_apart(CALM)).disturbed_share == 0.0
    assert found(run_apart({**CALM, "throttle_mask": float(0x40)})).disturbed_share == 0.5
    assert found(run_apart({**CALM, "foreign_percent": 50.0})).disturbed_share == 0.5


def test_a_gpu_that_idles_while_such_a_process_starts_is_not_held_back() -> None:
    assert found(run_apart({**CALM, "throttle_mask": 1.0, "sm_mhz": 210.0})).disturbed_share == 0.0


def test_arms_in_processes_of_their_own_without_cuda_do_not_care_for_the_gpu() -> None:
    summary = run_apart({**CALM, "throttle_mask": float(0x40)}, on_gpu=False)

    assert (found(summary).disturbed_share, found(summary).unknown_clocks_share) == (0.0, 0.0)


# ---- all the way


def test_what_the_driver_says_reaches_the_blocks(nvml: "FakeNvml", tmp_path: Any) -> None:
    """From a (fake) NVML library through a real sampler and its journal to the mark."""
    from tests.test_sampler import Sampler, of

    nvml.set("throttle=0x40")
    sampler = Sampler(tmp_path / "run")
    try:
        idle = sampler.spawn("sleep", "600")
        sampler.start(idle.pid, env=nvml.environment)
        read = sampler.wait_for(lambda records: [r for r in of(events.Sampled, records) if r.gpus])
        items = [("sampler", record) for record in sampler.records()]
    finally:
        sampler.end()

    asked = read[0].gpus_asked["GPU-fake-0"]
    (seen,) = find_disturbances(fold(items), [GpuInterval(asked - 10, asked, "fake-0")])
    assert (seen.is_disturbed, seen.has_clocks) == (True, True)
