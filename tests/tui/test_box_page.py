"""The Box screen, with the machine that the tests run on, and with a fake NVIDIA driver."""

import contextlib
import json
import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.made_runs import HOSTILE
from tests.tui.screens import UNSAFE, opened, press, settle, text
from tests.tui.screens import shown as shown_by
from tuilab.doctor import facts
from tuilab.doctor.facts import Fact
from tuilab.probes.gpu import own_process
from tuilab.probes.gpu.tenants import why_pids_mean_nothing
from tuilab.tui.screens.box import BoxPage
from tuilab.tui.screens.command import DoctorPage
from tuilab.tui.state import subcommand
from tuilab.tui.widgets.gauges import GaugeReading, Gauges

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]


async def test_without_a_driver_it_says_why_there_are_no_gpus(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    if not isinstance(own_process.ask(), str) and "refusal" not in (own_process.ask() or {}):
        pytest.skip("this box has GPUs")
    async with opened(root, "b", size=(140, 60)) as pilot:
        shown = await shown_by(pilot, "n/a: no NVIDIA")

    assert "GPUs     n/a: no NVIDIA driver" in shown


async def test_gpus_are_named_and_have_gauges(
    root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    async with opened(root, "b", size=(140, 60)) as pilot:
        pilot.app.screen.query_one(Gauges).show(GaugeReading([10.0], 1, 2))
        shown = await shown_by(pilot, " W ")

    assert "GPU 0" in shown


@pytest.mark.parametrize(
    ("mode", "patience_s", "words"),
    [
        ("hang", 1.5, "NVML has not answered for 1.5 s"),
        ("segfault", 60, "NVML ended the process that asked it, by signal 11"),
    ],
)
def test_a_driver_that_breaks_costs_nothing_but_its_answers(
    nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch, mode: str, patience_s: float, words: str
) -> None:
    nvml.set("gpus=1", f"mode={mode}")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    asked = own_process.NvmlProcess()
    while not isinstance(said := asked.next(patience_s), str):
        pass
    asked.close()

    assert said == words


async def test_a_gpu_that_is_lost_keeps_its_name_and_says_why(
    root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.set("gpus=1", "mode=lost", "na=uuid")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    async with opened(root, "b", size=(140, 60)) as pilot:
        pilot.app.screen.query_one(Gauges).show(GaugeReading([10.0], 1, 2))
        shown = await shown_by(pilot, "GPU 0")

    rows = [line for line in shown.splitlines() if "GPU 0" in line]
    assert rows and all("n/a: GPU is lost" in row for row in rows), shown


async def test_gauges_are_bars_to_an_eighth_of_a_column_and_without_utf8_to_a_column(
    root: Path,
) -> None:
    async with opened(root, "b", size=(80, 24)) as pilot:
        gauges = pilot.app.screen.query_one(Gauges)
        gauges.show(GaugeReading([10.0], 3, 16))
        fine = gauges.lay_out(78)[1].plain
        await press(pilot, "B", "B")
        gauges.show(GaugeReading([10.0], 3, 16))
        plain = gauges.lay_out(78)[1].plain

    assert "memory   ███████▌──" in fine
    assert "memory   ########--" in plain


async def test_gauges_stop_when_the_screen_is_left(
    root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.set("gpus=1")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    async with opened(root, "b") as pilot:
        await shown_by(pilot, "GPU 0")
        counts = [len(askers())]
        await press(pilot, "question_mark")
        counts.append(len(askers()))
        await press(pilot, "escape")
        counts.append(len(askers()))

    assert counts == [1, 0, 1]
    assert askers() == []


def askers() -> list[psutil.Process]:
    """Return the processes of ours that ask the GPUs."""
    return [one for one in psutil.Process().children() if is_asker(one)]


def is_asker(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):  # it was given up, and has ended
        return any("own_process" in word for word in process.cmdline())
    return False


def test_facts_of_a_made_up_machine(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "model name : Made Up 9000\nflags : fpu avx2 amx_tile\n",
        "sys/devices/system/cpu/online": "0-127\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "proc/self/cgroup": "0::/box\n",
        "proc/self/mountinfo": "30 1 0:1 / /cg rw - cgroup2 none rw\n",
        "cg/box/cpu.max": "50000 100000\n",
        "cg/box/memory.max": "max\n",
        "etc/os-release": 'PRETTY_NAME="Made Up Linux"\n',
        "usr/lib/x86_64-linux-gnu/libjemalloc.so.2": "",
    }
    for name, text_ in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text_)
    found = {(fact.section, fact.name): fact for fact in facts.facts(tmp_path)}

    assert found["Machine", "system"].value == "Made Up Linux"
    assert found["Processor", "vector units"].value == "avx2, amx_tile"
    assert found["Processor", "governor"].note.startswith("clocks rise slowly")
    assert found["Processor", "cgroup limit"].value == "0.5 cores"
    assert found["Processor", "cgroup limit"].note.startswith("torch counts cores")
    assert found["Memory", "cgroup limit"].value == "none"
    assert found["Libraries", "jemalloc"].value.endswith("libjemalloc.so.2")
    assert found["NUMA", "nodes"].reason == "this kernel reports no NUMA nodes"
    assert all(fact.value or fact.reason for fact in found.values())


@pytest.mark.parametrize(
    ("numbers", "words"), [([], ""), ([3], "3"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8")]
)
def test_numbers_are_spelled_as_the_kernel_does(numbers: list[int], words: str) -> None:
    assert facts.spans(numbers) == words


def test_what_the_gpus_say_becomes_facts() -> None:
    said = {"facts": {"driver": "580.1", "missing": {"nvml": "why"}}, "gpus": [{"uuid": "u", "index": 3, "name": "H200",
            "bytes_total": 150e9}], "unusable": {"4": "reset required"}}  # fmt: skip

    assert facts.gpu_facts(json.loads(json.dumps(said))) == [
        Fact("GPUs", "driver", "580.1"),
        Fact("GPUs", "NVML", "", "why"),
        Fact("GPUs", "newest CUDA", "", "not asked"),
        Fact("GPUs", "GPU 3", "H200, 139.7 GiB"),
        Fact("GPUs", "GPU 4", "", "reset required"),
    ]


@pytest.mark.parametrize(("total", "words"), [(0, "no swap"), (8 << 30, "swap 2 GiB of 8 GiB")])
async def test_swap_is_told_beside_the_memory(root: Path, total: int, words: str) -> None:
    async with opened(root, "b", size=(80, 24)) as pilot:
        gauges = pilot.app.screen.query_one(Gauges)
        gauges.show(
            GaugeReading([10.0], 1 << 30, 2 << 30, swap_used_bytes=2 << 30, swap_total_bytes=total)
        )

        assert words in "\n".join(line.plain for line in gauges.lay_out(78))


GPU = {"uuid": "u", "index": 0, "name": "NVIDIA H200", "bytes_total": 141 * 2**30}


async def test_users_of_a_gpu_are_below_it(
    root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    me = os.getpid()
    nvml.set("gpus=1", f"pids={me},4194304", f"pid_bytes={3 << 30}")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    user = "n/a" if why_pids_mean_nothing() else pwd.getpwuid(os.getuid()).pw_name
    async with opened(root, "b", size=(120, 40)) as pilot:
        pilot.app.screen.query_one(Gauges).show(GaugeReading([10.0], 1, 2))
        shown = await shown_by(pilot, "used by ")

    assert f"used by {user} (pid {me}, 3 GiB), n/a (pid 4194304, 3 GiB)" in shown


async def test_every_user_is_named_on_a_narrow_screen(root: Path) -> None:
    tenants = [{"user": "somebody", "pid": pid, "bytes_used": 1 << 30} for pid in range(10)]
    async with opened(root) as pilot:
        await pilot.app.screen.mount(gauges := Gauges())
        gauges.show(GaugeReading([10.0], 1, 2))
        gauges.show_gpus({"gpus": [GPU]})
        gauges.show_readings({"u": {"values": {"busy_percent": 98.0}, "tenants": tenants}})
        lines = [line.plain for line in gauges.lay_out(58)]

    assert "".join(lines).count("somebody") == 10
    assert max(map(len, lines)) <= 58


async def test_a_gpu_that_does_not_name_its_users_gives_the_reason(root: Path) -> None:
    async with opened(root) as pilot:
        await pilot.app.screen.mount(gauges := Gauges())
        gauges.show(GaugeReading([10.0], 1, 2))
        gauges.show_gpus({"gpus": [GPU]})
        gauges.show_readings({"u": {"values": {"busy_percent": 98.0}, "unseen": "no permission"}})
        lines = [line.plain.strip() for line in gauges.lay_out(78)]

    assert "used by n/a: no permission" in lines


async def test_slices_and_a_gpu_that_never_answered_have_their_lines_in_order(root: Path) -> None:
    piece = "MIG 1g.10gb Device "
    gpus = [{"uuid": "whole", "index": 0, "name": "H100"}]
    gpus += [
        {"uuid": f"slice {end}", "index": 0, "name": "H100 MIG 1g.10gb", "slice": piece + end}
        for end in "01"
    ]
    gpus += [{"uuid": "last", "index": 2, "name": "H100"}]
    async with opened(root) as pilot:
        await pilot.app.screen.mount(gauges := Gauges())
        gauges.show(GaugeReading([10.0], 1, 2))
        gauges.show_gpus({"gpus": gpus, "unusable": {"1": "GPU is lost"}})
        lines = [line.plain.rstrip() for line in gauges.lay_out(78) if line.plain.startswith("GPU")]

    assert [line[:9].strip() for line in lines] == ["GPU 0", "GPU 0", "GPU 0", "GPU 1", "GPU 2"]
    assert "MIG 1g.10gb Device 1  " in lines[2] and lines[3].rstrip() == "GPU 1    n/a: GPU is lost"


async def test_eight_gpus_and_every_core_fit_or_are_scrolled_to(
    root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.set("gpus=8")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(psutil, "cpu_percent", lambda percpu: [100.0] * 256)
    async with opened(root, "b", size=(60, 12)) as pilot:
        first = await shown_by(pilot, "GPU 6")
        await press(pilot, "end")
        last = text(pilot)

    assert "256.0 of 256 cores" in first and "GPU 7" not in first
    assert "cores    ████████ " in last


async def test_answers_of_a_driver_do_not_steer_the_terminal(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(11, "no process")  # else the real driver would answer meanwhile

    monkeypatch.setattr("tuilab.tui.screens.box.NvmlProcess", fail)
    gpus = [{"uuid": "u", "index": 0, "name": HOSTILE, "bytes_total": None}]
    async with opened(root, "b", size=(140, 60)) as pilot:
        page = pilot.app.screen
        page.post_message(
            BoxPage.GpusAnswered({"facts": {}, "gpus": gpus, "unusable": {"1": HOSTILE}})
        )
        page.post_message(
            BoxPage.GpusAnswered({"readings": {"u": {"lost": HOSTILE, "unseen": HOSTILE}}})
        )
        page.query_one(Gauges).show(GaugeReading([10.0], 1, 2))
        await settle(pilot)
        shown = text(pilot)

    assert UNSAFE.findall(shown.replace("\n", "")) == []
    assert "[/b][red]" in shown


@pytest.mark.parametrize("width", [56, 116])
async def test_throttling_and_the_waiting_percent_are_never_cut(root: Path, width: int) -> None:
    async with opened(root) as pilot:
        await pilot.app.screen.mount(gauges := Gauges())
        gauges.show(GaugeReading([10.0], 1, 2, (120.25, 116.31, 113.43), 97.0))
        values = {
            "busy_percent": 98.0,
            "memory_used_bytes": 2.0**36,
            "throttle_mask": float(0x4),
            "power_w": 690.0,
        }
        gauges.show_gpus({"gpus": [GPU]})
        gauges.show_readings({"u": {"values": values}})
        lines = [line.plain for line in gauges.lay_out(width)]

    (gpu,) = [line for line in lines if line.startswith("GPU")]
    (load,) = [line for line in lines if line.startswith("load")]
    assert "throttled: power cap  " in gpu and "98 %" in gpu
    assert load.endswith("waiting 97 %") and len(load) <= width


async def test_a_key_shows_the_facts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subcommand, "TUILAB", ("echo",))
    async with opened(root, "b", "f", size=(140, 20)) as pilot:
        assert isinstance(pilot.app.screen, DoctorPage)
        assert "doctor --all" in text(pilot).splitlines()[1]
