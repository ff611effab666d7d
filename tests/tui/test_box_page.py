"""The Box screen, with the machine that the tests run on, and with a fake NVIDIA driver."""

import contextlib
import json
import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.tui.made_up import HOSTILE
from tests.tui.screens import UNSAFE, eventually, opened, press, settle, text
from tests.tui.screens import shown as shown_by
from tuilab.doctor import facts
from tuilab.doctor.facts import Fact
from tuilab.probes.gpu import own_process
from tuilab.probes.gpu.tenants import why_pids_mean_nothing
from tuilab.probes.processes import Process
from tuilab.tui.screens import box
from tuilab.tui.screens.box import BoxPage
from tuilab.tui.state.box import processes
from tuilab.tui.widgets.box.gauges import Gauges, GpuGauge, Moment, gauges_of
from tuilab.tui.widgets.box.processtable import ProcessTable

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]


async def test_the_machine_is_described(root: Path) -> None:
    async with opened(root, "b", size=(140, 60)) as pilot:
        shown = await shown_by(pilot, "GPUs  ")

    for words in ("Machine", os.uname().release, "Processor", "/dev/shm", "NUMA", "torch", "Variables", "Calibration"):
        assert words in shown


async def test_without_a_driver_it_says_why_there_are_no_gpus(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    if not isinstance(own_process.ask(), str) and "refusal" not in (own_process.ask() or {}):
        pytest.skip("this box has GPUs")
    async with opened(root, "b", size=(140, 60)) as pilot:
        shown = await shown_by(pilot, "NVIDIA driver")

    assert "n/a: no NVIDIA driver" in shown


async def test_who_computes_on_a_gpu_stands_in_its_line(root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.getpid()
    nvml.set("gpus=1", f"pids={me},4194304", f"pid_bytes={3 << 30}")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    user = "n/a" if why_pids_mean_nothing() else pwd.getpwuid(os.getuid()).pw_name
    async with opened(root, "b", size=(120, 40)) as pilot:
        pilot.app.screen.query_one(Gauges).show(Moment([10.0], 1, 2))
        shown = await shown_by(pilot, " 3 GiB")

    assert f"{user} {me} 3 GiB, n/a 4194304 3 GiB" in shown


async def test_slices_are_told_apart_and_a_gpu_that_never_answered_has_its_line_in_order(root: Path) -> None:
    piece = "MIG 1g.10gb Device "
    found = [
        {"uuid": "whole", "index": 0, "name": "H100"},
        *({"uuid": f"slice {end}", "index": 0, "name": "H100 MIG 1g.10gb", "slice": piece + end} for end in "01"),
        {"uuid": "last", "index": 2, "name": "H100"},
    ]
    known = gauges_of({"gpus": found, "unusable": {"1": "GPU is lost"}})
    async with opened(root) as pilot:
        await pilot.app.screen.mount(gauges := Gauges())
        gauges.show(Moment([10.0], 1, 2))
        gauges.show_gpus(list(known.values()))
        lines = [line.plain.rstrip() for line in gauges.lay_out(78) if line.plain.startswith("GPU")]
    table = ProcessTable()
    one = Process(7, "bob", 1.0, "python3 train.py --learning-rate 0.001")
    table.show(processes.Table("processes", [(box.device(gpu), one) for gpu in known.values()]))
    rows = [line.plain for line in table.lay_out(78)]

    assert [line[:9].strip() for line in lines] == ["GPU 0", "GPU 0", "GPU 0", "GPU 1", "GPU 2"]
    assert "MIG 1g.10gb Device 1  " in lines[2] and lines[3] == "GPU 1    n/a: GPU is lost"
    assert [row[18:33] for row in rows[2:5]] == ["GPU 0 Device 0 ", "GPU 0 Device 1 ", "GPU 1          "]
    assert rows[1].endswith(" python3 train.py --learni…")


async def test_gpus_are_named_and_have_gauges(root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    async with opened(root, "b", size=(140, 60)) as pilot:
        pilot.app.screen.query_one(Gauges).show(Moment([10.0], 1, 2))
        shown = await shown_by(pilot, " W ")

    assert "GPU 0" in shown


@pytest.mark.parametrize(
    ("mode", "patience_s", "words"),
    [("hang", 1.5, "NVML has not answered for 1.5 s"), ("segfault", 60, "NVML ended the process that asked it, by signal 11")],
)
def test_a_driver_that_breaks_costs_nothing_but_its_answers(
    nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch, mode: str, patience_s: float, words: str
) -> None:
    nvml.set("gpus=1", f"mode={mode}")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    asked = own_process.Apart()
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
        pilot.app.screen.query_one(Gauges).show(Moment([10.0], 1, 2))
        shown = await shown_by(pilot, "GPU 0")

    rows = [line for line in shown.splitlines() if "GPU 0" in line]
    assert rows and all("n/a: GPU is lost" in row for row in rows), shown


async def test_eight_gpus_fit_on_a_small_screen(root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.set("gpus=8")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    async with opened(root, "b", size=(80, 24)) as pilot:
        gauges = pilot.app.screen.query_one(Gauges)

        def has_room_for_two_of_four_lines_of_cores() -> bool:
            is_so = "+2 tab ↓" in text(pilot)
            gauges.show(Moment([10.0] * 224, 1, 2))  # again and again: the page measures the real cores in between
            return is_so

        await eventually(pilot, has_room_for_two_of_four_lines_of_cores, "two of the four lines of cores")
        shown = text(pilot)

    assert [f"GPU {number}  " in shown for number in range(8)] == [True] * 8


async def test_gauges_are_bars_to_an_eighth_of_a_column_and_without_utf8_to_a_column(root: Path) -> None:
    async with opened(root, "b", size=(80, 24)) as pilot:
        gauges = pilot.app.screen.query_one(Gauges)
        gauges.show(Moment([10.0], 3, 16))
        fine = gauges.lay_out(78)[1].plain
        await press(pilot, "B", "B")
        gauges.show(Moment([10.0], 3, 16))
        plain = gauges.lay_out(78)[1].plain

    assert "memory   ███████▌──" in fine
    assert "memory   ########--" in plain


async def test_the_facts_that_have_the_focus_at_first_fill_the_screen_and_give_it_back(root: Path) -> None:
    async with opened(root, "b", "z", size=(80, 24)) as pilot:
        zoomed = text(pilot)
        await press(pilot, "escape")

        assert isinstance(pilot.app.screen, BoxPage)
        assert "Machine" in zoomed and "▔▔▔" not in zoomed and "z zoom" in zoomed
        assert "▔▔▔" in text(pilot)


async def test_gauges_that_do_not_fit_are_counted_and_scrolled_to(
    root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.set("gpus=8")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    async with opened(root, "b", size=(60, 12)) as pilot:
        pilot.app.screen.query_one(Gauges).show(Moment([10.0], 1, 2))
        first = await shown_by(pilot, "+6 tab ↓")
        await press(pilot, "tab", "end")

        assert "GPU 7" not in first
        assert "GPU 7" in text(pilot) and "cores" in text(pilot)


async def test_gauges_show_every_core_of_a_large_machine(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_percent", lambda percpu: [100.0] * 256)
    async with opened(root, "b", size=(60, 20)) as pilot:
        await shown_by(pilot, " of 256 cores")
        shown = await shown_by(pilot, "████████")  # the gauges have their room a moment after the words

    assert "256.0 of 256 cores" in shown
    assert shown.count("████████") >= 8  # the rest can be scrolled to
    assert "Machine" in shown


async def test_gauges_stop_when_the_screen_is_left(root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_looking_again_gathers_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(root, "b", size=(140, 60)) as pilot:
        monkeypatch.setenv("OMP_NUM_THREADS", "7")
        await press(pilot, "r")

        assert "7, from OMP_NUM_THREADS" in text(pilot)


async def test_nothing_in_the_environment_steers_the_terminal(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_PLACES", HOSTILE.replace("\ud800", ""))
    monkeypatch.setenv("LD_PRELOAD", "")
    said = {"facts": {}, "gpus": [{"uuid": "u", "index": 0, "name": HOSTILE, "bytes_total": None}], "unusable": {"1": HOSTILE}}
    async with opened(root, "b", size=(140, 60)) as pilot:
        page = pilot.app.screen
        page.post_message(BoxPage.GpusSaid(said))
        page.post_message(BoxPage.GpusSaid({"readings": {"u": {"lost": HOSTILE}}}))
        page.query_one(Gauges).show(Moment([10.0], 1, 2))
        await settle(pilot)
        shown = text(pilot)

    assert UNSAFE.findall(shown.replace("\n", "")) == []
    assert "[/b][red]" in shown


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
    assert found["NUMA", "nodes"].reason == "this kernel reports no nodes"
    assert all(fact.value or fact.reason for fact in found.values())


@pytest.mark.parametrize(("numbers", "words"), [([], ""), ([3], "3"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8")])
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


class Loaded:
    """Looks at a box on which processes keep the cores busy."""

    count = 30

    def read(self, ours: object = ()) -> list[Process]:
        every = range(self.count)
        return [Process(n, "bob", 90000.0, f"job-{n} {HOSTILE[:-9]}", "", 1.5, 3 << 30) for n in every]


async def test_without_a_gpu_the_busiest_on_the_cores_are_listed_and_the_rest_counted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box, "Busy", Loaded)
    async with opened(root, "b", size=(80, 24)) as pilot:
        pilot.app.screen.query_one(Gauges).show(Moment([10.0], 1, 2))
        first = await shown_by(pilot, "job-0")
        counted = await shown_by(pilot, "tab ↓")
        pilot.app.screen.query_one(ProcessTable).focus()
        await press(pilot, "end")
        last = text(pilot)
        await press(pilot, "z")
        zoomed = text(pilot)
        await press(pilot, "escape")

        assert isinstance(pilot.app.screen, BoxPage)
    assert "bob       0       1.50 core 3 GiB     1.0 d    job-0" in first
    assert "job-29" not in counted and "job-29" in last
    assert zoomed.count("job-") > 15
    assert UNSAFE.findall(last.replace("\n", "")) == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/home/somebody/env/bin/python3 -u /home/somebody/work/train.py --lr 1", "python3 -u train.py --lr 1"),
        ("/home/somebody/env/bin/python3 -m torch.distributed.run train.py", "python3 -m torch.distributed.…"),
        ("/usr/bin/python3 a.py", "/usr/bin/python3 a.py"),  # there is room for all of it
    ],
)
def test_a_process_is_told_by_its_program_and_its_script_where_folders_have_no_room(command: str, told: str) -> None:
    table = ProcessTable()
    table.show(processes.Table("processes", [("1.00 core", Process(7, "bob", 1.0, command))]))

    assert told in table.lay_out(47 + 30)[1].plain.split("   ")[-1]


async def test_who_computes_on_the_gpus_stands_in_the_table(
    root: Path, nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    me = os.getpid()
    nvml.set("gpus=2", f"pids.0={me},4194304", f"pid_bytes={3 << 30}")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    async with opened(root, "b", size=(160, 60)) as pilot:
        pilot.app.screen.query_one(Gauges).show(Moment([10.0], 1, 2))
        shown = await shown_by(pilot, "4194304 GPU 0")

    (mine,) = [line for line in shown.splitlines() if f" {me} " in line and "GPU 0 " in line and "W " not in line]
    (other,) = [line for line in shown.splitlines() if "4194304 GPU 0" in line]
    if why_pids_mean_nothing():
        assert "n/a: not visible in a container" in mine
    else:
        assert mine.split()[0] == pwd.getpwuid(os.getuid()).pw_name and "python" in mine
        assert "n/a: its process is not visible from here" in other
    assert other.split()[0] == "n/a" and "3 GiB" in other


def test_gpus_that_do_not_tell_who_computes_there_are_named_with_the_reason() -> None:
    table = processes.of_gpus([("GPU 0", [], "no permission"), ("GPU 1", [], "no permission"), ("GPU 2", [], "")])

    assert (list(table.rows), table.note) == ([], "GPU 0, GPU 1 n/a: no permission")


def test_where_nobody_computes_that_is_said() -> None:
    assert processes.of_gpus([("GPU 0", [], "")]).note == "no processes on the GPUs"
    assert processes.of_cores([], "").note == "no process keeps a core busy"
    assert processes.of_cores([], "a container").note == "incomplete: a container"


def test_processes_are_looked_at_only_while_the_box_is_seen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    page = BoxPage()
    monkeypatch.setattr(BoxPage, "is_current", property(lambda self: False))
    monkeypatch.setattr(page, "_list_processes", lambda: looked.append(1))
    page._look_at_processes()  # noqa: SLF001

    assert looked == []


@pytest.mark.parametrize(("total", "words"), [(0, "no swap"), (8 << 30, "swap 2 GiB of 8 GiB")])
async def test_swap_is_told_beside_the_memory(root: Path, total: int, words: str) -> None:
    async with opened(root, "b", size=(80, 24)) as pilot:
        gauges = pilot.app.screen.query_one(Gauges)
        gauges.show(Moment([10.0], 1 << 30, 2 << 30, swap_used_bytes=2 << 30, swap_total_bytes=total))

        assert words in "\n".join(line.plain for line in gauges.lay_out(78))


@pytest.mark.parametrize("width", [56, 116])
async def test_what_holds_a_gpu_down_and_the_percent_that_waits_are_never_cut(root: Path, width: int) -> None:
    async with opened(root) as pilot:
        gauges = Gauges()
        await pilot.app.screen.mount(gauges)
        gauges.show(Moment([10.0], 1, 2, (120.25, 116.31, 113.43), 97.0))
        values = {"busy_percent": 98.0, "memory_used_bytes": 2.0**36, "throttle_mask": float(0x4), "power_w": 690.0}
        gauges.show_gpus([GpuGauge("NVIDIA H200", 141 * 2**30, values=values)])
        lines = [line.plain for line in gauges.lay_out(width)]

    (gpu,) = [line for line in lines if line.startswith("GPU")]
    (load,) = [line for line in lines if line.startswith("load")]
    assert "throttled: power cap  " in gpu and "98 %" in gpu
    assert load.endswith("waiting 97 %") and len(load) <= width
