"""The facts about the machine that decide which treatments apply."""

import os
from pathlib import Path

import pytest

from tests.commands.made_marks import cut, make_mark
from tests.tune.situations import MS
from tuilab.commands.cpu.core_time import CoreTime
from tuilab.commands.step_parts import BACKWARD, DATA, FORWARD, LOGGING, OPTIMIZER, REST
from tuilab.commands.steps import Step
from tuilab.commands.tune.planning.machine import TunedMachine, read_machine
from tuilab.commands.tune.planning.measured_steps import STARTING, MeasuredSteps, measure
from tuilab.commands.tune.planning.possible_gain import gain_without
from tuilab.commands.watcher._tuilab_watch.layout import BEGINS, STEPPED, WAITED, WENT_BACK


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_program(path: Path) -> None:
    write(path, "#!/bin/sh\n")
    path.chmod(0o755)


def machine_of(root: Path, **environ: str) -> TunedMachine:
    environ = {"PATH": str(root / "bin"), **environ}
    return read_machine(root, environ, str(root / "prefix"))


def test_bare_machine_has_nothing_to_offer(tmp_path: Path) -> None:
    machine = machine_of(tmp_path)

    assert machine == TunedMachine(
        cores=len(os.sched_getaffinity(0)), physical_cores=machine.physical_cores
    )
    assert machine.bf16_instructions is None
    assert 1 <= machine.physical_cores <= machine.cores


@pytest.mark.parametrize(
    ("cpuinfo", "instructions"),
    [
        ("flags\t\t: fpu avx512_bf16 amx_bf16 amx_tile\n", ["amx_bf16", "avx512_bf16"]),
        ("flags\t\t: fpu avx2\n", []),
        ("Features\t: fp asimd bf16\n", ["bf16"]),
        ("processor\t: 0\n", None),
    ],
)
def test_instructions_for_bfloat16_are_those_of_the_kernel(
    cpuinfo: str, instructions: list[str] | None, tmp_path: Path
) -> None:
    write(tmp_path / "proc/cpuinfo", cpuinfo)

    assert machine_of(tmp_path).bf16_instructions == instructions


def test_installed_allocators_are_found(tmp_path: Path) -> None:
    jemalloc = tmp_path / "usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    tcmalloc = tmp_path / "prefix/lib/libtcmalloc_minimal.so.4"
    write(jemalloc, "")
    write(tcmalloc, "")

    machine = machine_of(tmp_path)

    assert (machine.jemalloc, machine.tcmalloc) == (str(jemalloc), str(tcmalloc))


def test_programs_are_looked_for_in_the_path(tmp_path: Path) -> None:
    make_program(tmp_path / "bin/numactl")
    make_program(tmp_path / "bin/my-c++")

    assert machine_of(tmp_path).has_numactl
    assert not machine_of(tmp_path).has_compiler
    assert machine_of(tmp_path, CXX="my-c++").has_compiler


def test_nodes_without_memory_or_usable_cores_are_left_out(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    for node, cores in {0: str(core), 1: "", 2: "100000", 3: str(core)}.items():
        write(tmp_path / f"sys/devices/system/node/node{node}/cpulist", f"{cores}\n")
        write(tmp_path / f"sys/devices/system/node/node{node}/meminfo", "")
    write(tmp_path / "proc/self/status", "Mems_allowed_list:\t0-2\n")

    assert machine_of(tmp_path).nodes == [0]


def test_quota_limits_the_cores(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    mount = "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
    write(tmp_path / "proc/self/mountinfo", mount)
    write(tmp_path / "sys/fs/cgroup/cpu.max", "150000 100000\n")

    assert machine_of(tmp_path).cores == 1


# ---- what was measured about steps


def measured_training(steps: int) -> MeasuredSteps:
    """Return steps of 10 ms: 3 ms until the first batch of a loop, 4 backward, 1 optimizer."""
    marks = []
    for number in range(steps):
        start = 10 * number
        marks.append(make_mark(WAITED, start, start + 2, number=1, flags=BEGINS))
        marks.append(make_mark(WAITED, start + 2, start + 3, number=1))
        marks.append(make_mark(WENT_BACK, start + 4, start + 8))
        marks.append(make_mark(STEPPED, start + 9, start + 10, name=1))
    found, recent = cut(marks)
    return measure(found, recent)


def test_measured_steps_have_the_parts_of_the_marks() -> None:
    steps = measured_training(20)

    (parts,) = {tuple(sorted(step.parts.items())) for step in steps.times}
    assert dict(parts) == {
        DATA: 3 * MS,
        STARTING: 3 * MS,
        FORWARD: 0,
        BACKWARD: 4 * MS,
        OPTIMIZER: MS,
        LOGGING: 0,
        REST: 2 * MS,
    }
    assert {step.took_ns for step in steps.times} == {10 * MS}
    assert len(steps.times) == 19  # the beginning of the first step is unknown
    assert steps.span_ns == 190 * MS
    assert set(steps.lacks) == {FORWARD, LOGGING}
    assert steps.share_of(DATA) == pytest.approx(0.3)


def test_measured_steps_bound_the_gain() -> None:
    gain = gain_without(measured_training(20), {DATA: 0.0}, "waiting for data takes", 0.0)

    assert gain.at_most == pytest.approx(10 / 7)


def test_cores_that_a_process_wanted_include_its_delays() -> None:
    """Of 10 ms, the process computed 3 ms, and had no core for 2 ms."""
    found, recent = cut([])
    core_time = CoreTime(1, 10 * MS, 3 * MS, 3 * MS, 2 * MS, 5 * MS)
    recent = [Step(10 * MS, 20 * MS, core_time=core_time)] * 3

    assert measure(found, recent).used_cores == pytest.approx(0.5)


def test_no_steps_measure_nothing() -> None:
    found, recent = cut([])

    steps = measure(found, recent)

    assert (steps.times, steps.span_ns, steps.share_of(DATA)) == ([], 0, 0.0)
