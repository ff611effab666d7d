"""The sampler as the supervisor starts it: a real process, its journal, its pipes and its faults."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import read_stream, until
from tuilab.engine.sampler import ticks
from tuilab.engine.spawn import BOX_TOLD
from tuilab.probes.gpu.tenants import why_pids_mean_nothing
from tuilab.record import presence
from tuilab.record.events import (
    EnvironmentRecorded,
    GpuFound,
    RaceStarted,
    Sampled,
    Unavailable,
    XidReported,
)
from tuilab.record.journal.lines import Gap
from tuilab.record.journal.writer import Writer

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]

NVML_TROUBLE = {
    "version_mismatch": "the NVIDIA driver and its library have different versions, for example after an upgrade: reboot",
    "not_loaded": "the NVIDIA driver is not loaded",
    "no_permission": "no permission to use the NVIDIA driver (/dev/nvidia*)",
    "unknown": "NVML does not start (unknown error): if this is a container, it may have lost its devices: restart it",
}


class Sampler:
    """A sampler, the run folder that it writes into, and the processes that it looks at."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.processes: list[subprocess.Popen[bytes]] = []
        (run_dir / "journal").mkdir(parents=True)

    def spawn(self, *command: str, **more: Any) -> "subprocess.Popen[bytes]":
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command, start_new_session=True, **(pipes | more)
        )
        self.processes.append(process)
        return process

    def start(self, top: int, stream: str = "sampler", **more: Any) -> "subprocess.Popen[bytes]":
        return self.spawn(*command(self.run_dir, top, stream), **more)

    def records(self, stream: str = "sampler") -> list[Any]:
        path = self.run_dir / "journal" / f"{stream}.jsonl"
        return read_stream(path) if path.exists() else []

    def wait_for(self, found: Callable[[list[Any]], Any], stream: str = "sampler") -> Any:
        """Return what `found` makes of the records as soon as it is something."""
        return until(lambda: found(self.records(stream)))

    def end(self) -> None:
        for process in self.processes:
            for pid in presence.descendants(
                process.pid
            ):  # those that have sessions of their own, as workers do
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def command(run_dir: Path, top: int | str, stream: str = "sampler") -> list[str]:
    return [sys.executable, "-P", "-m", "tuilab.engine.sampler", str(run_dir), str(top), stream]


def of(kind: type, records: list[Any]) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


def samples_after(count: int) -> Callable[[list[Any]], list[Any]]:
    """Return a question for the samples, once there are more than `count`."""
    return lambda records: samples if len(samples := of(Sampled, records)) > count else []


def seen_lacking(sampler: Sampler) -> dict[str, str]:
    """Return what is not known, and why, but for what nobody knows in a container."""
    lacking = {record.what: record.reason for record in of(Unavailable, sampler.records())}
    return {
        what: why
        for what, why in lacking.items()
        if not why.startswith("not visible in a container")
    }


@pytest.fixture
def sampler(tmp_path: Path) -> Iterator[Sampler]:
    started = Sampler(tmp_path / f"run-{os.urandom(4).hex()}")
    yield started
    started.end()


@pytest.fixture
def idle(sampler: Sampler) -> int:
    """The pid of a stand-in for a supervisor without children."""
    return sampler.spawn("sleep", "600").pid


# ---- what is written


def test_the_first_record_is_a_sample_so_that_slow_facts_delay_nothing(
    sampler: Sampler, idle: int
) -> None:
    sampler.start(idle)

    records = sampler.wait_for(lambda records: records if of(EnvironmentRecorded, records) else [])
    assert isinstance(records[0], Sampled)
    assert (
        records[0].processes,
        records[0].threads,
        records[0].cpu_percent,
        records[0].rss_bytes,
    ) == (0, 0, 0.0, 0)


def test_the_box_is_described_once(sampler: Sampler, idle: int) -> None:
    sampler.start(idle)

    sampler.wait_for(samples_after(3))
    facts = [
        record.facts
        for record in of(EnvironmentRecorded, sampler.records())
        if record.part == "box"
    ]
    assert len(facts) == 1
    assert list(facts[0]) == ["cpu", "numa", "env"]
    assert facts[0]["cpu"]["usable_cores"] == len(os.sched_getaffinity(0))


def test_a_sample_counts_neither_the_supervisor_nor_the_sampler_nor_who_is_in_the_session_of_the_one(
    sampler: Sampler,
) -> None:
    script = (
        "import os, subprocess, sys;"
        "workers = [subprocess.Popen(['sleep', '600'], start_new_session=True) for _ in range(2)];"
        "judge = subprocess.Popen(['sleep', '600']);"
        "subprocess.Popen([*sys.argv[1:], str(os.getpid()), 'sampler'], stdin=subprocess.PIPE).wait()"
    )
    sampler.spawn(sys.executable, "-c", script, *command(sampler.run_dir, "")[:-2])

    samples = sampler.wait_for(samples_after(3))
    assert {sample.processes for sample in samples} == {2}
    assert {sample.threads for sample in samples} == {2}
    assert all(sample.rss_bytes > 0 for sample in samples)


def test_cpu_time_of_a_busy_child_is_seen(sampler: Sampler) -> None:
    supervisor = sampler.spawn("sh", "-c", 'setsid "$0" -c "while 1: 0" & wait', sys.executable)
    sampler.start(supervisor.pid)

    busy = sampler.wait_for(
        lambda records: [r for r in of(Sampled, records)[1:] if r.processes and r.cpu_percent > 0]
    )
    assert busy[0].processes == 1


def test_private_memory_is_read_more_seldom_than_the_rest(sampler: Sampler) -> None:
    supervisor = sampler.spawn("sh", "-c", "setsid sleep 600 & wait")
    sampler.start(supervisor.pid)

    samples = sampler.wait_for(samples_after(4))
    private = [sample.uss_bytes for sample in samples if sample.uss_bytes is not None]
    assert 0 < len(private) < len(samples)


# ---- lifeline, heartbeat, signals, disk


def test_when_the_supervisor_is_gone_the_rest_of_the_run_is_ended(
    sampler: Sampler, idle: int
) -> None:
    marked = sampler.spawn("sleep", "600", env={**os.environ, "TUILAB_RUN": sampler.run_dir.name})
    innocent = sampler.spawn("sleep", "600", env={**os.environ, "TUILAB_RUN": "another"})
    process = sampler.start(idle)
    sampler.wait_for(samples_after(0))

    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None

    assert until(lambda: marked.poll() is not None and marked.returncode) == -signal.SIGTERM
    assert process.wait(60) == 0
    assert innocent.poll() is None


def test_every_sample_is_a_heartbeat_and_so_is_what_is_told_of_the_box(
    sampler: Sampler, idle: int
) -> None:
    process = sampler.start(idle)
    assert process.stdout is not None
    told = b""
    while told.count(b".") < 3 or BOX_TOLD not in told:
        told += process.stdout.read(1)

    assert (told.strip(b"."), len(of(Sampled, sampler.records())) >= 3) == (BOX_TOLD, True)
    assert [record.part for record in of(EnvironmentRecorded, sampler.records())] == ["box"]


def test_a_deaf_supervisor_does_not_end_the_sampler(sampler: Sampler, idle: int) -> None:
    process = sampler.start(idle)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None

    seen = len(sampler.wait_for(samples_after(0)))
    sampler.wait_for(samples_after(seen + 2))
    assert process.poll() is None


def test_a_full_heartbeat_pipe_does_not_end_the_sampler(sampler: Sampler, idle: int) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(write_end, b"." * 4096)
    process = sampler.start(idle, stdout=write_end)

    sampler.wait_for(samples_after(2))
    assert process.poll() is None
    os.close(read_end)
    os.close(write_end)


def test_the_terminals_signals_are_ignored_and_sigterm_ends_it_without_a_word(
    sampler: Sampler, idle: int
) -> None:
    process = sampler.start(idle)
    seen = len(sampler.wait_for(samples_after(0)))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGHUP)
    sampler.wait_for(samples_after(seen + 1))

    process.terminate()
    _, words = process.communicate(timeout=60)
    assert (process.returncode, words) == (-signal.SIGTERM, b"")


@pytest.mark.slow
def test_a_full_disk_costs_samples_that_are_counted_and_nothing_else(
    sampler: Sampler, idle: int
) -> None:
    process = sampler.start(idle)
    assert process.stdout is not None
    sampler.wait_for(lambda records: of(EnvironmentRecorded, records))
    limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, limits[1]))
    written = len(sampler.records())
    process.stdout.read(written + 4)  # it beats on, whatever it could write
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)

    lost = sampler.wait_for(lambda records: of(Gap, records))
    assert lost[0].missing >= 1
    assert process.poll() is None


def test_a_tick_that_was_missed_is_not_made_up_and_the_clock_does_not_drift() -> None:
    now = [100.0]
    costs = iter([0.1, 0.2, 1.3, 0.0, 0.0])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    at = []
    for _, cost in zip(ticks(0.5, lambda: now[0], sleep), costs, strict=False):
        at.append(round(now[0] - 100, 6))
        now[0] += cost

    assert at == [0.5, 1.0, 1.5, 3.0, 3.5]


# ---- GPUs


def test_the_memory_of_two_gpus_is_in_the_journal_by_uuid(
    sampler: Sampler, idle: int, nvml: "FakeNvml"
) -> None:
    nvml.set("gpus=2", "used.0=123", "used.1=456", "total=1000", "name.1=Fake H100")
    sampler.start(idle, env=nvml.environment)

    gpus = sampler.wait_for(
        lambda records: next((r.gpus for r in of(Sampled, records) if r.gpus), None)
    )
    assert {uuid: reading["memory_used_bytes"] for uuid, reading in gpus.items()} == {
        "GPU-fake-0": 123,
        "GPU-fake-1": 456,
    }
    found = of(GpuFound, sampler.records())
    assert [(gpu.uuid, gpu.index, gpu.name, gpu.bytes_total) for gpu in found] == [
        ("GPU-fake-0", 0, "Fake GPU", 1000),
        ("GPU-fake-1", 1, "Fake H100", 1000),
    ]
    assert not seen_lacking(sampler)


@pytest.mark.slow
def test_the_gpu_of_a_race_is_read_each_half_second_although_every_answer_takes_long(
    sampler: Sampler, idle: int, nvml: "FakeNvml"
) -> None:
    """Eight GPUs, ten milliseconds a question: a round of all takes longer than a sample waits."""
    nvml.set("gpus=8", "sleep_ms=10")
    race = RaceStarted(arms=["a"], threads=1, device="cuda", loops={"a": 1}, uuid="fake-3")
    Writer(sampler.run_dir / "journal/worker-0.jsonl").append(race)
    sampler.start(idle, env=nvml.environment)

    samples = sampler.wait_for(
        lambda records: [r for r in of(Sampled, records) if "GPU-fake-3" in r.gpus][5:]
    )
    times = [
        sample.gpus_asked["GPU-fake-3"]
        for sample in of(Sampled, sampler.records())
        if "GPU-fake-3" in sample.gpus
    ]
    assert samples[-1].gpus["GPU-fake-3"].keys() >= {"sm_mhz", "throttle_mask"}
    assert times == sorted(set(times))
    assert all(sample.gpus_asked["GPU-fake-3"] <= sample.t for sample in samples)
    assert (
        len(
            [
                r
                for r in of(Sampled, sampler.records())
                if "ecc_uncorrected" in r.gpus.get("GPU-fake-0", {})
            ]
        )
        <= 2
    )


def test_an_error_of_a_gpu_is_a_record(sampler: Sampler, idle: int, nvml: "FakeNvml") -> None:
    sampler.start(idle, env=nvml.environment)
    sampler.wait_for(lambda records: [r for r in of(Sampled, records) if r.gpus])
    nvml.set("gpus=1", "events=1", "xid=94")

    errors = sampler.wait_for(lambda records: of(XidReported, records))
    assert [(error.uuid, error.xid) for error in errors] == [("GPU-fake-0", 94)]


def test_a_slice_is_found_with_its_gpu(sampler: Sampler, idle: int, nvml: "FakeNvml") -> None:
    nvml.set("mig=1", "slices=1", "total.0:0=500", "used.0:0=5")
    sampler.start(idle, env=nvml.environment)

    gpus = sampler.wait_for(
        lambda records: next(
            (r.gpus for r in of(Sampled, records) if "MIG-fake-0-0" in r.gpus), None
        )
    )
    assert gpus["MIG-fake-0-0"]["memory_used_bytes"] == 5
    assert [(gpu.label, gpu.bytes_total) for gpu in of(GpuFound, sampler.records())] == [
        ("GPU 0", 80000),
        ("GPU 0 MIG 1g.10gb Device 0", 500),
    ]


@pytest.mark.skipif(
    why_pids_mean_nothing() != "",
    reason="a container: what the driver says of pids is not believed here",
)
def test_the_memory_of_the_runs_own_processes_is_told_apart(
    sampler: Sampler, nvml: "FakeNvml"
) -> None:
    supervisor = sampler.spawn("sh", "-c", "setsid sleep 600 & echo $!; wait")
    assert supervisor.stdout is not None
    child = int(supervisor.stdout.readline())
    nvml.set(f"pids={child},{os.getpid()}", "pid_bytes=70")
    sampler.start(supervisor.pid, env=nvml.environment)

    gpus = sampler.wait_for(
        lambda records: next((r.gpus for r in of(Sampled, records) if r.gpus), None)
    )
    assert (gpus["GPU-fake-0"]["memory_tree_bytes"], gpus["GPU-fake-0"]["foreign_processes"]) == (
        70,
        1,
    )


@pytest.mark.parametrize("mode", NVML_TROUBLE)
def test_nvml_that_does_not_start_is_one_record_with_the_reason(
    sampler: Sampler, idle: int, nvml: "FakeNvml", mode: str
) -> None:
    nvml.set(f"mode={mode}")
    sampler.start(idle, env=nvml.environment)

    sampler.wait_for(samples_after(2))
    records = sampler.records()
    assert [(r.what, r.reason) for r in of(Unavailable, records)] == [("gpu", NVML_TROUBLE[mode])]
    assert all(sample.gpus == {} for sample in of(Sampled, records))


@pytest.mark.slow
def test_a_gpu_lost_in_the_middle_is_one_record_and_the_other_goes_on(
    sampler: Sampler, idle: int, nvml: "FakeNvml"
) -> None:
    nvml.set("gpus=2")
    sampler.start(idle, env=nvml.environment)
    sampler.wait_for(lambda records: [r for r in of(Sampled, records) if len(r.gpus) == 2])

    nvml.set("gpus=2", "mode.1=lost", "events.1=1", "xid.1=79")

    sampler.wait_for(
        lambda records: [r for r in of(Unavailable, records) if r.what == "GPU-fake-1"]
    )
    seen = len(of(Sampled, sampler.records()))
    later = sampler.wait_for(samples_after(seen + 4))[seen + 1 :]
    assert {uuid for sample in later for uuid in sample.gpus} == {"GPU-fake-0"}
    assert seen_lacking(sampler) == {"GPU-fake-1": "GPU is lost after Xid 79"}


def test_what_a_gpu_does_not_tell_is_explained_once(
    sampler: Sampler, idle: int, nvml: "FakeNvml"
) -> None:
    nvml.set("na=power", "missing=busy")
    sampler.start(idle, env=nvml.environment)

    samples = sampler.wait_for(
        lambda records: s if len(s := [r for r in of(Sampled, records) if r.gpus]) > 2 else []
    )
    assert not {"power_w", "busy_percent"} & samples[-1].gpus["GPU-fake-0"].keys()
    assert seen_lacking(sampler) == {
        "GPU-fake-0 power_w": "Not Supported",
        "GPU-fake-0 busy_percent": "Function Not Found",
    }
    told = [record.what for record in of(Unavailable, sampler.records())]
    assert len(told) == len(set(told))


@pytest.mark.faults
def test_nvml_that_hangs_costs_the_readings_and_neither_samples_nor_the_lifeline(
    sampler: Sampler, idle: int, nvml: "FakeNvml"
) -> None:
    process = sampler.start(idle, env=nvml.environment)
    sampler.wait_for(lambda records: [r for r in of(Sampled, records) if r.gpus])

    nvml.set("mode=hang")

    silent = sampler.wait_for(
        lambda records: [r for r in of(Unavailable, records) if r.what == "gpu"]
    )
    seen = len(of(Sampled, sampler.records()))
    later = sampler.wait_for(samples_after(seen + 2))
    assert [(r.what, r.reason) for r in silent] == [("gpu", "NVML has not answered for 5 s")]
    assert all(sample.gpus == {} for sample in later[seen:])
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    assert process.wait(60) == 0


@pytest.mark.faults
def test_the_lifeline_holds_while_the_main_thread_hangs_too(
    sampler: Sampler, idle: int, nvml: "FakeNvml"
) -> None:
    hang = "import tuilab.engine.sampler as s, tuilab.probes.gpu.nvml as g; s.Tree.read = lambda self: g.open_gpus(); s.main()"
    nvml.set("mode=hang")
    process = sampler.spawn(
        sys.executable,
        "-P",
        "-c",
        hang,
        str(sampler.run_dir),
        str(idle),
        "sampler",
        env=nvml.environment,
    )
    until(lambda: "libnvidia-ml" in Path(f"/proc/{process.pid}/maps").read_text())

    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    assert process.wait(60) == 0


@pytest.mark.faults
def test_nvml_that_crashes_costs_two_samplers_and_is_then_left_alone(
    sampler: Sampler, idle: int, nvml: "FakeNvml"
) -> None:
    nvml.set("mode=segfault")
    for stream in ("sampler", "sampler-1"):
        assert sampler.start(idle, stream, env=nvml.environment).wait(60) == -signal.SIGSEGV
        assert of(Sampled, sampler.records(stream))
    third = sampler.start(idle, "sampler-2", env=nvml.environment)

    sampler.wait_for(samples_after(2), "sampler-2")
    unavailable = of(Unavailable, sampler.records("sampler-2"))
    assert [(r.what, r.reason) for r in unavailable] == [
        ("gpu", "not asked any more: the sampler has died 2 times")
    ]
    assert third.poll() is None
