"""The GPUs that a run can have: CUDA's numbers of them, told without CUDA, and what a form says of each."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tuilab.probes import NotKnown
from tuilab.probes.gpu.gpu_choices import cuda_numbers
from tuilab.probes.gpu.nvml import Gpu
from tuilab.tui.state.gpus import GpuList, GpuQuestion, ListedGpu, listed
from tuilab.tui.widgets.lab.field import gpu_lines

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]

LIST = """
import json, os
from pathlib import Path
from tuilab.probes.gpu.nvml import open_gpus
from tuilab.probes.gpu.gpu_choices import describe_choices
print(json.dumps(describe_choices(open_gpus(Path(os.environ["BOX"])), os.environ)))
"""
TWO = [Gpu("GPU-ab1", 0, "H100", 80), Gpu("GPU-ac2", 1, "H100", 80)]
MIXED = [Gpu("GPU-ab1", 0, "T4", 16), Gpu("GPU-ac2", 1, "H100", 80)]
CUT = [*TWO, Gpu("MIG-1", 1, "H100", 10, "MIG 1g.10gb Device 0", "GPU-ac2")]


def listed_by(nvml: "FakeNvml", **environ: str) -> dict[str, Any]:
    environment = {**nvml.environment, **environ}
    if "CUDA_VISIBLE_DEVICES" not in environ:
        del environment["CUDA_VISIBLE_DEVICES"]
    done = subprocess.run(
        [sys.executable, "-c", LIST], env=environment, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("gpus", "environ", "numbered"),
    [
        (TWO, {}, ["GPU-ab1", "GPU-ac2"]),
        (MIXED, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, ["GPU-ab1", "GPU-ac2"]),
        (TWO, {"CUDA_VISIBLE_DEVICES": "1, 0"}, ["GPU-ac2", "GPU-ab1"]),
        (TWO, {"CUDA_VISIBLE_DEVICES": "1,7,0"}, ["GPU-ac2"]),
        (TWO, {"CUDA_VISIBLE_DEVICES": "1,-1,0"}, ["GPU-ac2"]),
        (TWO, {"CUDA_VISIBLE_DEVICES": "0,0"}, []),
        (TWO, {"CUDA_VISIBLE_DEVICES": ""}, []),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-ac,GPU-ab1"}, ["GPU-ac2", "GPU-ab1"]),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-a"}, []),
        (CUT, {"CUDA_VISIBLE_DEVICES": "MIG-1"}, ["MIG-1"]),
    ],
)
def test_a_gpu_has_the_number_that_cuda_gives_it(
    gpus: list[Gpu], environ: Mapping[str, str], numbered: list[str]
) -> None:
    assert [gpu.uuid for gpu in cuda_numbers(gpus, environ)] == numbered


@pytest.mark.parametrize(
    ("gpus", "environ", "why"),
    [
        (MIXED, {}, "CUDA numbers the fastest"),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "0"}, "CUDA numbers the fastest"),
        (CUT, {}, "with slices of a GPU"),
        (TWO[1:], {}, "a GPU does not answer"),
    ],
)
def test_a_number_that_only_cuda_knows_is_not_guessed(
    gpus: list[Gpu], environ: Mapping[str, str], why: str
) -> None:
    with pytest.raises(NotKnown, match=why):
        cuda_numbers(gpus, environ)


def test_each_gpu_is_listed_with_what_is_free_and_who_is_there(nvml: "FakeNvml") -> None:
    pids = f"pids.1=999999999,{os.getpid()}"
    (nvml.box / f"proc/{os.getpid()}").mkdir()
    nvml.set(
        "gpus=3", "total=80000", "used.0=1000", "used.1=79000", pids, "pid_bytes=300", "mode.2=lost"
    )

    assert listed_by(nvml)["no_numbers"] == ""  # the third was counted by nobody
    nvml.set(
        "gpus=3",
        "total=80000",
        "used.0=1000",
        "used.1=79000",
        pids,
        "pid_bytes=300",
        "na.2=used,processes",
    )
    free, busy, silent = listed_by(nvml)["listed"]

    assert free == {
        "label": "cuda:0",
        "name": "Fake GPU",
        "bytes_free": 79000,
        "tenants": [],
        "why": "",
    }
    assert (busy["label"], busy["bytes_free"]) == ("cuda:1", 1000)
    assert [one["pid"] for one in busy["tenants"]] == [os.getpid(), 999999999]
    assert busy["tenants"][0]["user"] and not busy["tenants"][1]["user"]
    assert (silent["bytes_free"], silent["tenants"]) == (None, []) and silent["why"]


def test_memory_of_a_process_that_cannot_be_is_not_told(nvml: "FakeNvml") -> None:
    nvml.set("gpus=1", f"pids.0={os.getpid()}", "pid_bytes=0xfffffffffffffff0")

    assert [one["bytes_used"] for one in listed_by(nvml)["listed"][0]["tenants"]] == [None]


def test_in_a_container_nobody_is_named_and_none_is_not_nobody(nvml: "FakeNvml") -> None:
    nvml.set_namespace("pid:[4026532000]")
    nvml.set("gpus=2", f"pids.0={os.getpid()}")

    busy, empty = listed_by(nvml)["listed"]

    assert [(one["user"], one["bytes_used"]) for one in busy["tenants"]] == [("", 300)]
    assert empty["why"].startswith("not visible in a container")


def test_gpus_whose_numbers_are_not_known_have_those_of_nvml(nvml: "FakeNvml") -> None:
    nvml.set("gpus=2", "name.0=T4", "name.1=H100")

    said = listed_by(nvml)

    assert [row["label"] for row in said["listed"]] == ["GPU 0", "GPU 1"]
    assert said["no_numbers"].startswith("CUDA numbers the fastest")
    (hidden,) = listed_by(nvml, CUDA_VISIBLE_DEVICES="GPU-fake-1")["listed"]
    assert (hidden["label"], hidden["name"]) == ("cuda:0", "H100")


def row(*tenants: tuple[int, str, int | None], **more: Any) -> dict[str, Any]:
    found = [{"pid": pid, "user": user, "bytes_used": used} for pid, user, used in tenants]
    return {
        "label": "cuda:0",
        "name": "NVIDIA T4",
        "bytes_free": 2**30,
        "tenants": found,
        "why": "",
        **more,
    }


@pytest.mark.parametrize(
    ("tenants", "who"),
    [
        ([], "no processes"),
        ([(812, "ana", 2**30)], "ana 1 GiB (pid 812)"),
        ([(812, "ana", None)], "ana (pid 812)"),
        (
            [(1, "ana", 2**30), (2, "bo", 2**30), (3, "ana", 2**30)],
            "ana 2 GiB (2 processes), bo 1 GiB (pid 2)",
        ),
        ([(1, "", 2**30)], "1 process, 1 GiB"),
        ([(1, "ana", 2**30), (2, "", 2**30)], "ana 1 GiB (pid 1), pid 2, 1 GiB"),
        ([(1, "", 2**30), (2, "", 2**30)], "2 processes, 2 GiB"),
        ([(1, "e\x1b[2J", None)], "e\ufffd[2J (pid 1)"),
    ],
)
def test_who_is_there_is_told_by_user(tenants: list[tuple[int, str, int | None]], who: str) -> None:
    assert listed({"listed": [row(*tenants)]}) == GpuList(
        (ListedGpu("cuda:0", "1 GiB free", who, "T4"),)
    )


def test_a_narrow_form_has_a_second_line_for_the_users_of_a_gpu_that_has_some() -> None:
    gpus = listed({"listed": [row(), row((812, "ana", 2**30))]})
    assert gpus

    lines = [line.plain.strip() for line in gpu_lines(gpus, chosen="", column=20, width=40)]

    assert lines == ["cuda:0  1 GiB free  T4", "cuda:0  1 GiB free  T4", "ana 1 GiB (pid 812)"]


def test_what_is_not_known_is_said_once() -> None:
    said = {"listed": [row(why="no", bytes_free=None)] * 2, "no_numbers": "CUDA counts otherwise"}
    found = listed(said)

    assert found is not None
    assert found.gpus == (ListedGpu("cuda:0", "free n/a", "n/a", "T4"),) * 2
    assert found.notes == (
        "it is not known which GPU is cuda:0: CUDA counts otherwise",
        "processes on the GPUs n/a: no",
    )


def test_it_is_asked_again_only_after_some_seconds_and_never_where_there_is_no_driver(
    nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    question = GpuQuestion()
    question.begin(100.0)
    assert not question.is_due(200.0)

    answer = question.answer()

    assert answer is not None and [gpu.label for gpu in answer.gpus] == ["cuda:0"]
    assert (question.is_due(104.9), question.is_due(105.0)) == (False, True)

    nvml.set("mode=not_loaded")
    question.begin(200.0)
    question.answer()
    assert not question.is_due(300.0)


def test_a_question_that_is_given_up_is_answered_at_once(
    nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.set("mode=hang")
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    question = GpuQuestion()
    question.begin(0.0)
    answers: list[GpuList | None] = []
    waits = Thread(target=lambda: answers.append(question.answer()))
    waits.start()
    question.close()
    waits.join(5.0)  # a question to this driver is given up after ten by itself

    assert answers == [None]
