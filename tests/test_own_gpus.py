"""What a run holds on its GPUs: told by its workers, and in no block that is timed; shown without those of others."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.engine import read_stream
from tuilab import Lab
from tuilab.drawings.gpu_strips import describe_throttling, version_of
from tuilab.engine import messages
from tuilab.engine.messages import ArmOrder, WorkerOrder
from tuilab.engine.spawn import socket_pair
from tuilab.lab.worker import serve
from tuilab.record import events
from tuilab.record.events import (
    BlockTimed,
    EnvironmentRecorded,
    GpuFound,
    GpuHeld,
    GpuShared,
    RaceStarted,
    Sampled,
    Tenant,
    Unavailable,
)
from tuilab.record.finding_words import gpu_rows, neighbour_notes, unmeasured
from tuilab.record.folding.fold import fold
from tuilab.record.gpus.own_gpus import Throttling, label_of, memory_lines, other_gpus, own_gpus
from tuilab.record.journal.lines import Item
from tuilab.record.journal.writer import Writer
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import GpuState

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]

MIB = 1 << 20
UUID = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Writer]:
    (tmp_path / "journal").mkdir()
    (tmp_path / "scenario.py").write_text('"""A lesson."""\n')
    with closing(Writer(tmp_path / "worker-0.jsonl")) as writer:
        yield writer


@pytest.fixture
def make_lab(journal: Writer, tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    words: dict[str, Any] = {
        "run_dir": str(tmp_path),
        "writer": "worker-0",
        "source_dir": str(tmp_path),
    }
    ours, theirs = socket_pair()
    with ours, theirs:
        yield lambda **more: Lab(
            journal, tmp_path, messages.WorkerLine(ours), WorkerOrder(**words, **more)
        )


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    return make_lab()


def recorded(tmp_path: Path) -> list[Item]:
    return read_stream(tmp_path / "worker-0.jsonl")


def held(tmp_path: Path) -> list[tuple[int, int]]:
    found = [record for record in recorded(tmp_path) if isinstance(record, GpuHeld)]
    return [(record.allocated_bytes // MIB, record.reserved_bytes // MIB) for record in found]


# ---- what a worker tells


def test_what_torch_holds_is_told_twice_a_second_at_most(
    cuda: "FakeCuda", lab: Lab, tmp_path: Path
) -> None:
    device = lab.device("cuda:1")
    cuda.gpus[1].allocate(3 * MIB)
    for step in range(21):
        lab.log(step, loss=1.0)
        cuda.sleep(0.1)

    assert device == torch.device("cuda:1")
    assert held(tmp_path) == [(3, 4)] * 5  # in two seconds, with both ends
    assert {record.uuid for record in recorded(tmp_path) if isinstance(record, GpuHeld)} == {
        cuda.gpus[1].uuid
    }


def test_stages_progress_and_the_end_tell_it_too(
    cuda: "FakeCuda", lab: Lab, tmp_path: Path
) -> None:
    lab.device("cuda:0")
    calls: list[Callable[[], None]] = [
        lambda: lab.stage("load"),
        lambda: lab.progress(1, 2),
        lab.close,
    ]
    for tell in calls:
        cuda.gpus[0].allocate(2 * MIB)
        cuda.sleep(1)
        tell()

    assert held(tmp_path) == [(2, 2), (4, 4), (6, 6)]


def test_a_race_on_the_current_gpu_tells_it_of_that_one(
    cuda: "FakeCuda", lab: Lab, tmp_path: Path
) -> None:
    cuda.set_device(1)
    cuda.gpus[1].allocate(2 * MIB)
    lab.race(
        one=lambda: cuda.work(10**5),
        two=lambda: cuda.work(10**5),
        device=torch.device("cuda"),
        seconds=0.01,
    )

    assert {record.uuid for record in recorded(tmp_path) if isinstance(record, GpuHeld)} == {
        cuda.gpus[1].uuid
    }


def test_to_tell_it_the_gpu_is_not_waited_for(cuda: "FakeCuda", lab: Lab, tmp_path: Path) -> None:
    lab.device("cuda:0")
    cuda.work(1e9)
    before = cuda.now
    lab.log(0, loss=1.0)

    assert held(tmp_path) == [(0, 2)]
    assert cuda.now - before < 1e6  # nanoseconds, of the second that it will take


def test_between_the_blocks_of_a_race_it_is_told_and_in_none_of_them(
    cuda: "FakeCuda", lab: Lab, tmp_path: Path
) -> None:
    """The arms log in their blocks; what is told there would be a part of their times."""
    device = lab.device("cuda:0")

    def slow() -> None:
        lab.log(0, loss=1.0)
        cuda.work(2e6)

    lab.race(slow=slow, fast=lambda: cuda.work(1e6), seconds=4.0, device=device)

    blocks = [record for record in recorded(tmp_path) if isinstance(record, BlockTimed)]
    assert len(held(tmp_path)) > 5
    assert {block.records - block.loops for block in blocks if block.arm == "slow"} == {0}
    assert {block.records for block in blocks if block.arm == "fast"} == {0}


def test_an_arm_in_a_process_of_its_own_tells_it_at_its_end(
    cuda: "FakeCuda", make_lab: Callable[..., Lab], tmp_path: Path
) -> None:
    """What it returns is a time that it has taken itself, round what it logs."""
    lab = make_lab(arm=ArmOrder(arm="a", function="body"))
    lab.device("cuda:0")
    lab.log(0, loss=1.0)
    before = held(tmp_path)
    lab.close()

    assert (before, held(tmp_path)) == ([], [(0, 2)])


@pytest.mark.parametrize(
    "arm", [None, ArmOrder(arm="a", function="run")], ids=["a repeat", "an arm of its own"]
)
@pytest.mark.parametrize(
    "failure", ["raise RuntimeError('CUDA out of memory')", "raise SystemExit(3)"]
)
def test_a_worker_that_fails_tells_it_for_the_last_time(
    cuda: "FakeCuda", tmp_path: Path, failure: str, arm: ArmOrder | None
) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "scenario.py").write_text(
        f'"""A lesson."""\ndef run(lab):\n lab.device("cuda:1")\n {failure}\n'
    )
    cuda.gpus[1].allocate(3 * MIB)
    ours, theirs = socket_pair()
    with ours, theirs:
        order = WorkerOrder(
            run_dir=str(tmp_path), writer="worker-0", source_dir=str(tmp_path), arm=arm
        )
        if not (child := os.fork()):
            try:
                serve(order, messages.WorkerLine(theirs))
            finally:
                os._exit(70)
        os.waitpid(child, 0)

    kinds = [type(record).__name__ for record in read_stream(tmp_path / "journal/worker-0.jsonl")]
    assert kinds.index("GpuHeld") > kinds.index("ScenarioFailed") and kinds.count("GpuHeld") == 1


def test_on_the_cpu_nobody_is_asked(unused_cuda: "FakeCuda", lab: Lab, tmp_path: Path) -> None:
    lab.device("cpu")
    lab.log(0, loss=1.0)
    lab.close()

    assert (held(tmp_path), unused_cuda.initialised_by) == ([], "")


def test_an_allocator_that_asks_the_driver_tells_nothing_after_an_error(
    cuda: "FakeCuda", lab: Lab, tmp_path: Path
) -> None:
    lab.device("cuda:0")
    cuda.counts_asked, cuda.broken = False, "CUDA error: device-side assert triggered"
    lab.log(0, loss=1.0)

    assert held(tmp_path) == []


# ---- which GPUs are those of a run


def box(count: int) -> list[events.Record]:
    return [
        GpuFound(uuid=f"GPU-u{n}", index=n, name="H100", bytes_total=80 << 30) for n in range(count)
    ]


def chosen(uuid: str) -> EnvironmentRecorded:
    return EnvironmentRecorded(
        part="cuda", facts={"devices": [{"uuid": "u0"}, {"uuid": "u1"}], "chosen": uuid}
    )


def sampled(**gpus: dict[str, float]) -> Sampled:
    readings = {f"GPU-{name}": values for name, values in gpus.items()}
    return Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=50, gpus=readings)


def folded(*records: events.Record, stream: str = "worker-0") -> RunSummary:
    return fold([(stream, record) for record in records])


def drawn(summary: RunSummary, **more: bool) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, series in memory_lines(summary, **more):
        found.setdefault(name, []).append(series.last)
    return found


def test_the_memory_of_a_run_is_that_of_its_own_gpu_and_of_others_on_request() -> None:
    used = {f"u{n}": {"memory_used_bytes": 70.0 + n} for n in range(3)}
    summary = folded(
        *box(3),
        chosen("u1"),
        sampled(**used),
        GpuHeld(uuid="u1", allocated_bytes=2, reserved_bytes=4),
    )

    assert [label_of(gpu, summary) for gpu in own_gpus(summary)] == ["GPU 1"]
    assert [gpu.uuid for gpu in other_gpus(summary)] == ["GPU-u0", "GPU-u2"]
    assert drawn(summary) == {"device": [71], "reserved": [4], "allocated": [2], "processes": [50]}
    assert [*drawn(summary, has_others=True)] == [
        "GPU 1 device", "GPU 1 reserved", "GPU 1 allocated", "processes", "GPU 0 device", "GPU 2 device",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        RaceStarted(arms=["a", "b"], threads=1, device="cuda", loops={"a": 1, "b": 1}, uuid="u2"),
        GpuHeld(uuid="u2", allocated_bytes=1, reserved_bytes=1),
        sampled(u2={"memory_tree_bytes": 1.0}),
        chosen("u2"),
    ],
    ids=["raced", "held", "seen there by the driver", "given"],
)
def test_a_gpu_is_the_runs_however_that_comes_to_be_known(record: events.Record) -> None:
    assert [gpu.nvml_uuid for gpu in own_gpus(folded(*box(3), record))] == ["GPU-u2"]


def test_a_run_on_the_cpu_has_no_gpu_though_the_box_has() -> None:
    summary = folded(*box(1), sampled(u0={"memory_used_bytes": 70.0}))

    assert own_gpus(summary) == []
    assert drawn(summary) == {"processes": [50]}
    assert drawn(summary, has_others=True) == {"processes": [50], "GPU 0 device": [70]}


def test_where_nvml_is_silent_torch_tells_its_own() -> None:
    summary = folded(chosen("u1"), GpuHeld(uuid="u1", allocated_bytes=2, reserved_bytes=4))

    assert [label_of(gpu, summary) for gpu in own_gpus(summary)] == ["cuda:1"]
    assert drawn(summary) == {"reserved": [4], "allocated": [2]}


def test_each_process_of_a_run_has_a_line_of_its_own_under_one_name() -> None:
    summary = folded(*box(1), GpuHeld(uuid="u0", allocated_bytes=1, reserved_bytes=2))
    fold([("worker-1", GpuHeld(uuid="u0", allocated_bytes=3, reserved_bytes=4))], summary)

    assert drawn(summary) == {"reserved": [2, 4], "allocated": [1, 3]}


def test_a_journal_that_tells_of_very_many_gpus_is_kept_in_bounds() -> None:
    many = [GpuHeld(uuid=f"u{n}", allocated_bytes=1, reserved_bytes=2) for n in range(2000)]

    assert len(folded(*many).gpus_held) == 500


# ---- what is told of them


def rows(*records: events.Record) -> dict[str, str]:
    return dict(gpu_rows(folded(*box(2), chosen("u0"), *records)))


HELD = GpuHeld(uuid="u0", allocated_bytes=1 << 30, reserved_bytes=2 << 30)


def test_where_pids_match_the_memory_of_a_run_is_the_drivers_word_and_torchs() -> None:
    reading = {
        "memory_used_bytes": 5.0 * (1 << 30),
        "memory_tree_bytes": 3.0 * (1 << 30),
        "foreign_processes": 0.0,
    }

    assert rows(sampled(u0=reading), HELD) == {
        "GPU 0": "at most 5 GiB used, by all processes, H100",
        "  this run": "at most 3 GiB (torch reserved 2 GiB, allocated 1 GiB)",
        "  others": "no other process was seen",
    }


def test_torch_tells_what_it_gave_out_between_two_looks_and_the_driver_may_have_been_asked_too_seldom() -> (
    None
):
    reading = {
        "memory_used_bytes": 5.0 * (1 << 30),
        "memory_tree_bytes": 1.0 * (1 << 30),
        "foreign_processes": 0.0,
    }
    peak = GpuHeld(
        uuid="u0", allocated_bytes=1 << 20, reserved_bytes=2 << 30, allocated_peak_bytes=3 << 29
    )

    told = rows(sampled(u0=reading), HELD, peak)["  this run"]
    assert told == "at most: torch reserved 2 GiB, allocated 1.5 GiB; the driver reported 1 GiB"


def test_in_a_container_the_memory_of_a_run_is_its_own_word_and_what_that_leaves_out_is_said() -> (
    None
):
    why = "not visible in a container: the driver names processes by pids of the host"
    found = rows(
        sampled(u0={"memory_used_bytes": 5.0 * (1 << 30)}),
        HELD,
        Unavailable(what="gpu processes", reason=why),
    )

    assert (
        found["  this run"]
        == f"at most: torch reserved 2 GiB, allocated 1 GiB; memory of CUDA itself: n/a: {why}"
    )
    assert found["  others"] == f"n/a: {why}"


def test_who_else_is_on_a_gpu_is_told_by_user_pid_and_memory_and_who_has_left() -> None:
    alice, hidden = (
        Tenant(4711, "alice", "", 3 << 30),
        Tenant(12, "", "its process is not visible from here"),
    )
    summary = folded(
        *box(2),
        chosen("u0"),
        GpuShared(uuid="GPU-u0", others=[hidden, alice], count=2, t=5),
        GpuShared(uuid="GPU-u0", others=[Tenant(4711, "alice", "", 1 << 30)], count=1, t=6),
        GpuShared(uuid="GPU-u1", others=[alice], count=1, t=6),
    )

    words = "alice (pid 4711) 3 GiB, pid 12 (user n/a: its process is not visible from here) memory n/a (gone later)"
    assert neighbour_notes(summary) == [f"others on GPU 0: {words}"]
    assert dict(gpu_rows(summary))["  others"] == words


def test_of_very_many_others_the_first_are_named_and_the_rest_counted() -> None:
    many = [Tenant(pid, "bob", "", 1) for pid in range(20)]

    assert rows(GpuShared(uuid="GPU-u0", others=many, count=33, t=5))["  others"].endswith(
        "bob (pid 4) 1 B, and 28 more"
    )


# ---- when its clocks were held down


def reading(at_s: float, mask: float) -> Sampled:
    record = sampled(u0={"throttle_mask": mask})
    record.t = round(at_s * 1e9)
    return record


def spans(*records: events.Record) -> list[tuple[float, float, int]]:
    return [
        (one.begin_t / 1e9, one.end_t / 1e9, one.mask)
        for one in Throttling().of(folded(*records), "GPU-u0")
    ]


def test_what_holds_clocks_down_lasts_until_a_reading_says_otherwise() -> None:
    masks = [0x1, 0x20, 0x21, 0x4, 0x0, 0x8]

    assert spans(*(reading(at / 2, mask) for at, mask in enumerate(masks))) == [
        (0.5, 1.5, 0x20), (1.5, 2.0, 0x4), (2.5, 3.0, 0x8),
    ]  # fmt: skip


def test_a_reading_speaks_for_twelve_seconds_at_most_and_one_that_cannot_be_for_none() -> None:
    assert spans(reading(1, 0x8), reading(100, 0x0)) == [(1, 13, 0x8)]
    assert spans(reading(1, -1), reading(2, 1e300), reading(3, math.nan)) == []
    assert spans() == []


def test_reasons_are_told_with_how_long_they_lasted_the_longest_first() -> None:
    summary = folded(reading(1, 0x24), reading(2, 0x4), reading(3, 0x0))

    words = describe_throttling({"GPU-u0": Throttling().of(summary, "GPU-u0")})
    assert words == "throttled: power cap 2 s, software thermal slowdown 1 s"
    assert describe_throttling({}) == ""


class Counted(list[GpuState]):
    """States that count how many of them are looked at."""

    looked_at = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.looked_at += len(found) if isinstance(at, slice) else 0
        return found


def test_of_readings_that_come_one_by_one_only_the_new_are_gone_through() -> None:
    summary, masks = RunSummary(gpu_states=Counted()), [0x1, 0x20, 0x20, 0x4, 0x0, 0x8, 0x8]
    throttling, seen = Throttling(), []
    for at, mask in enumerate(masks):
        summary.gpu_states.append(GpuState(at * 10**9, "GPU-u0", mask, None))
        seen.append(throttling.of(summary, "GPU-u0"))
        assert seen[-1] == Throttling().of(RunSummary(gpu_states=[*summary.gpu_states]), "GPU-u0")

    assert [len(spans) for spans in seen] == [0, 1, 1, 2, 2, 3, 3]
    assert isinstance(summary.gpu_states, Counted) and summary.gpu_states.looked_at == len(masks)


def test_readings_that_come_late_or_are_taken_back_count_as_if_all_were_read_at_once() -> None:
    """A second sampler's stream is read behind that of the first; a run that is played again goes back."""
    states = [
        GpuState(at * 10**9, "GPU-u0", mask, None)
        for at, mask in ((1, 0x8), (4, 0x0), (2, 0x20), (3, 0x0), (5, 0x4))
    ]
    throttling = Throttling()

    for moment in (2, 5, 3, 5, 0, 1, 4):
        summary = RunSummary(gpu_states=states[:moment])
        assert throttling.of(summary, "GPU-u0") == Throttling().of(summary, "GPU-u0")
    assert [(span.begin_t / 1e9, span.end_t / 1e9, span.mask) for span in throttling.of(summary, "GPU-u0")] == [
        (1, 2, 0x8), (2, 3, 0x20),
    ]  # fmt: skip


def test_the_rows_about_gpus_are_made_again_when_one_of_them_says_something_new_and_not_else() -> (
    None
):
    gpu = GpuFound(uuid="GPU-u0", index=0, name="H100", bytes_total=80)
    held = GpuHeld(uuid="u0", allocated_bytes=1, reserved_bytes=2)
    news: list[events.Record] = [
        sampled(u0={"power_w": 7.0}),
        sampled(u0={"throttle_mask": 8.0}),
        GpuShared(uuid="GPU-u0", others=[Tenant(12, "alice")], count=1, t=5),
        Unavailable(what="GPU-u0", reason="GPU is lost"),
    ]
    records: list[events.Record] = [gpu, held]
    versions = [version_of(folded(*records), [gpu])]
    for record in news:
        records.append(record)
        versions.append(version_of(folded(*records), [gpu]))

    assert len(set(versions)) == len(versions)
    assert version_of(folded(*records, held, sampled()), [gpu]) == versions[-1]


def test_what_was_not_measured_of_a_gpu_is_told_by_the_name_that_it_has_everywhere() -> None:
    told = {"GPU-u1": "GPU is lost", "GPU-u1 power_w": "Not Supported", "numa": "so"}

    gpu = GpuFound(uuid="GPU-u1", index=1, name="H100", bytes_total=80)
    found = unmeasured(
        folded(gpu, *(Unavailable(what=what, reason=why) for what, why in told.items()))
    )

    assert found == [("GPU 1", "GPU is lost"), ("GPU 1 power_w", "Not Supported"), ("numa", "so")]
