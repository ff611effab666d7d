"""What the GPUs are asked and how often: a fake driver with eight of them, a clock that only moves when it is told to."""

import json
import os
import pwd
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]

# A sampler's half seconds on a clock of its own: each question costs `price` seconds of it, and of the processor.
DRIVE = """
import json, os, sys
from pathlib import Path
from tuilab.engine.gpus.schedule import GpuContext, GpuSchedule
from tuilab.engine.gpus.raced import Raced
from tuilab.probes.gpu.nvml import open_gpus
from tuilab.record.events import GpuShared

price, uuid, is_going_on, seconds, late = json.loads(sys.argv[1])
log = Path(os.environ["TUILAB_FAKE_NVML"]).with_suffix(".log")

class Journal:
    records, shared, users = [], [], []
    def append(self, record):
        if isinstance(record, GpuShared):
            self.shared.append([tick / 2, record.uuid, record.count, [[one.pid, one.bytes_used] for one in record.others]])
            self.users += [one.user or one.why for one in record.others]
            return
        said = getattr(record, "reason", "") or record.xid
        self.records.append([type(record).__name__, getattr(record, "what", ""), said])

tick = 0
def cost():
    return price * len(log.read_text().splitlines()) if log.exists() else 0.0

gpus = open_gpus(Path(os.environ["BOX"]))
log.unlink(missing_ok=True)
schedule = GpuSchedule(gpus, Journal(), lambda: round((tick / 2 + cost()) * 1e9), cost)
told = []
for tick in range(2 * seconds):
    if late and tick == 6:
        with open(os.environ["TUILAB_FAKE_NVML"], "a") as switches:
            switches.write(late)
    answer = schedule.answer(GpuContext({os.getpid()}, Raced(uuid if tick else "", is_going_on)))
    told.append([answer.readings, answer.asked])
    for _ in range(40):
        if schedule.is_more:
            schedule.ask_next()
print(json.dumps({"told": told, "records": Journal.records, "shared": Journal.shared, "users": Journal.users}))
"""
HOST_PIDS = "the driver names processes by pids of the host"
FOUR = {"sm_clock", "throttle", "util"}  # each half second, and one more of those that charts need


def drive(
    nvml: "FakeNvml",
    *lines: str,
    price_s: float = 0.0,
    uuid: str = "fake-3",
    seconds: int = 60,
    is_going_on: bool = False,
    late: str = "",
) -> Any:
    """Return what was told, what was recorded and what each GPU was asked; the race begins in the second half second.

    After three seconds the driver has the fault that is `late`.
    """
    nvml.set("gpus=8", f"log={nvml.log}", *lines)
    words = json.dumps([price_s, uuid, is_going_on, seconds, late])
    done = subprocess.run(
        [sys.executable, "-c", DRIVE, words],
        capture_output=True,
        text=True,
        env=nvml.environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    said["calls"] = Counter(tuple(line.split()) for line in nvml.log.read_text().splitlines())
    return said


def asked(said: Any, gpu: str) -> Counter[str]:
    """Return how often a GPU was asked what."""
    return Counter({call: count for (of, call), count in said["calls"].items() if of == gpu})


def test_the_gpu_of_a_race_is_asked_four_things_twice_a_second_and_the_others_every_ten(
    nvml: "FakeNvml",
) -> None:
    said = drive(nvml)

    raced, other = asked(said, "3"), asked(said, "0")
    often = {
        call: raced[call] for call in ("sm_clock", "throttle", "util", "memory", "power", "busy")
    }
    assert often == {
        "sm_clock": 120,
        "throttle": 120,
        "util": 119,
        "memory": 41,
        "power": 21,
        "busy": 21,
    }
    assert {raced[call] for call in ("temperature", "memory_clock", "ecc")} == {7}
    assert (
        raced["processes"] == 7 + 39
    )  # each turn of the charts has it twice: what the run itself holds is one of their lines
    assert sum(raced.values()) / 60 < 9  # a second: twice four, and the seldom ones
    assert set(other.values()) == {7}
    assert sum(other.values()) / 60 < 1.1


def test_each_half_second_of_a_race_has_a_reading_of_its_clocks_however_slow_the_others_are(
    nvml: "FakeNvml",
) -> None:
    """Eight GPUs, five milliseconds a question: the others come round more seldom, the one that counts does not."""
    said = drive(nvml, price_s=0.005)

    clocks = [
        readings["GPU-fake-3"].keys() >= {"sm_mhz", "throttle_mask"}
        for readings, _ in said["told"][1:]
    ]
    assert clocks == [True] * 119
    others = asked(said, "0")
    assert others["ecc"] <= 2 and others["sm_clock"] <= 3


def test_before_it_is_known_who_races_all_are_asked_as_often_as_their_price_allows(
    nvml: "FakeNvml",
) -> None:
    cheap, dear = drive(nvml, uuid="", seconds=10), drive(nvml, uuid="", seconds=10, price_s=0.005)

    assert asked(cheap, "0")["sm_clock"] == asked(cheap, "7")["sm_clock"] == 20
    assert asked(cheap, "0")["ecc"] == 1
    assert sum(dear["calls"].values()) < 8 * 12  # one round of 0.4 s is the share of 80


def test_a_gpu_that_nvml_does_not_know_is_no_gpu_of_a_race(nvml: "FakeNvml") -> None:
    said = drive(nvml, uuid="somewhere-else", seconds=10)

    assert asked(said, "0")["sm_clock"] == asked(said, "3")["sm_clock"] == 20


def test_a_reading_has_the_time_at_which_it_was_asked(nvml: "FakeNvml") -> None:
    """What is told in a half second was asked in the one before, but for the GPU that is raced on."""
    said = drive(nvml, price_s=0.01, seconds=3)

    assert all(readings.keys() == times.keys() for readings, times in said["told"])
    _, times = said["told"][3]
    assert {"GPU-fake-3", "GPU-fake-0", "GPU-fake-1"} < times.keys()
    assert max(times, key=lambda uuid: times[uuid]) == "GPU-fake-3"
    assert times["GPU-fake-0"] > max(said["told"][2][1].values())


def test_clocks_that_take_longer_than_they_speak_for_are_left_out_with_the_reason(
    nvml: "FakeNvml",
) -> None:
    said = drive(nvml, price_s=0.3, seconds=10)

    assert not any("sm_mhz" in readings.get("GPU-fake-3", {}) for readings, _ in said["told"][1:])
    assert [
        "Unavailable",
        "GPU-fake-3 clocks",
        "the driver takes longer to tell them than they speak for",
    ] in said["records"]


def test_a_slice_is_raced_on_like_a_gpu_and_its_clocks_are_those_of_the_whole(
    nvml: "FakeNvml",
) -> None:
    said = drive(nvml, "mig.2=1", "slices.2=2", "sm_clock.2=1410", uuid="fake-2-1", seconds=20)

    last, _ = said["told"][-1]
    assert last["MIG-fake-2-1"]["sm_mhz"] == 1410
    assert asked(said, "2:1")["memory"] > 10
    assert asked(said, "2:0")["memory"] <= 4
    reasons = {what: reason for _, what, reason in said["records"]}
    assert (
        reasons["MIG-fake-2-1 foreign_percent"] == "the driver does not report it for a slice (MIG)"
    )


def test_an_error_of_the_gpu_that_is_raced_on_is_recorded_at_once(nvml: "FakeNvml") -> None:
    """It ends the run, most often, long before all GPUs have had their turn."""
    said = drive(nvml, late="events.3=1\nxid.3=31\nevents.5=1\nxid.5=94\n", seconds=4)
    later = drive(nvml, late="events.5=1\nxid.5=94\n", seconds=20)

    assert [record for record in said["records"] if record[0] == "XidReported"] == [
        ["XidReported", "", 31]
    ]
    assert [record for record in later["records"] if record[0] == "XidReported"] == [
        ["XidReported", "", 94]
    ]


def test_an_error_of_the_gpu_whose_slice_is_raced_on_is_recorded_at_once(nvml: "FakeNvml") -> None:
    said = drive(
        nvml, "mig.2=1", "slices.2=1", late="events.2=1\nxid.2=94\n", uuid="fake-2-0", seconds=4
    )

    assert ["XidReported", "", 94] in said["records"]


def test_others_on_the_gpu_of_a_race_are_told_each_half_second(nvml: "FakeNvml") -> None:
    said = drive(nvml, "pids.3=1", "util.3=1:40,1:20", seconds=4)

    shares = [readings["GPU-fake-3"].get("foreign_percent") for readings, _ in said["told"][1:]]
    assert shares == [None, *[40.0] * 6]


def test_while_the_process_that_races_is_not_on_the_list_the_others_are_not_known(
    nvml: "FakeNvml",
) -> None:
    said = drive(nvml, "pids.3=1", "util.3=1:40", seconds=4, is_going_on=True)

    assert not any("foreign_percent" in readings["GPU-fake-3"] for readings, _ in said["told"][1:])
    reasons = {what: reason for _, what, reason in said["records"]}
    assert (
        reasons["GPU-fake-3 processes"]
        == "not visible: the driver does not list the process that is timed there"
    )


def test_in_a_container_it_is_said_once_that_nobody_can_be_told_apart(nvml: "FakeNvml") -> None:
    nvml.set_namespace("pid:[4026532999]")
    said = drive(nvml, "pids=1", "util=1:50", seconds=15)

    assert [what for kind, what, _ in said["records"] if kind == "Unavailable"] == ["gpu processes"]
    assert not any(
        "foreign_percent" in reading
        for readings, _ in said["told"]
        for reading in readings.values()
    )


@pytest.mark.parametrize(
    "line", ["mode.3=lost", "na.3=used,total,busy,power,temperature,sm_clock,throttle,util"]
)
def test_a_gpu_of_a_race_that_says_nothing_more_stops_no_other(nvml: "FakeNvml", line: str) -> None:
    said = drive(nvml, line, seconds=20)

    assert asked(said, "0")["temperature"] >= 2


# ---- who else is there


def test_who_else_is_on_the_gpu_of_the_run_is_told_when_it_changes(nvml: "FakeNvml") -> None:
    """Of pids that are to be seen here the user is known, of others why not; the GPUs of others are their own matter."""
    me = os.getpid()
    (nvml.box / f"proc/{me}").mkdir()
    said = drive(nvml, f"pids.3={me},4194304", "pid_bytes.3=700", "pids.0=1", seconds=25)

    assert said["shared"] == [[0.5, "GPU-fake-3", 2, [[me, 700], [4194304, 700]]]]
    assert said["users"] == [
        pwd.getpwuid(os.getuid()).pw_name,
        "its process is not visible from here",
    ]


def test_who_comes_later_is_told_within_three_seconds(nvml: "FakeNvml") -> None:
    said = drive(nvml, seconds=25, late="pids.3=1\n")

    assert said["shared"] == [[3.0, "GPU-fake-3", 1, [[1, 300]]]]


def test_memory_alone_of_who_is_there_is_told_seldom(nvml: "FakeNvml") -> None:
    """After three seconds it is another, which is told ten seconds after what was told last."""
    said = drive(nvml, "pids.3=1", seconds=25, late="pid_bytes.3=700\n")

    assert [(at, others) for at, _, _, others in said["shared"]] == [
        (0.5, [[1, 300]]),
        (10.5, [[1, 700]]),
    ]


def test_in_a_container_nobody_is_told_of_as_somebody_else(nvml: "FakeNvml") -> None:
    nvml.set_namespace("pid:[4026532000]")
    said = drive(nvml, "pids.3=1", seconds=15)

    assert said["shared"] == []
    assert ["Unavailable", "gpu processes", f"not visible in a container: {HOST_PIDS}"] in said[
        "records"
    ]


def test_in_a_container_no_process_on_a_gpu_has_a_user(nvml: "FakeNvml") -> None:
    nvml.set("gpus=1", f"pids={os.getpid()}")
    nvml.set_namespace("pid:[4026532000]")
    script = (
        "import os, pathlib\nfrom tuilab.probes.gpu.nvml import open_gpus\n"
        "gpus = open_gpus(pathlib.Path(os.environ['BOX']))\nprint([tuple(one) for one in gpus.tenants(gpus.available[0])])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=nvml.environment,
        timeout=60,
    )

    assert done.stdout.strip() == str(
        [(os.getpid(), "", f"not visible in a container: {HOST_PIDS}", 300)]
    ), done.stderr
