"""`tuilab doctor --gpu` and `tuilab calibrate --device cuda` on a real GPU: every answer is there, and could be true."""

import json
import re
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

from tuilab.doctor.gpu_page import IDS

Tuilab = Callable[..., "CompletedProcess[str]"]


def numbers(words: str) -> list[float]:
    return [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?", words)]


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    return {}


@pytest.mark.timeout(200)
def test_everything_is_answered_of_the_emptiest_gpu(
    tuilab: Tuilab, found: dict[str, dict[str, Any]]
) -> None:
    done = tuilab("doctor", "--gpu", "--json", timeout=180)

    assert done.returncode in (0, 1), done.stdout + done.stderr
    document = json.loads(done.stdout)
    found.update({check["id"]: check for check in document["checks"]})
    print(json.dumps(document, indent=1))
    assert list(found) == [name for ids in IDS.values() for name in ids]
    assert [
        name for name in IDS["gpu_speed"] if found[name]["status"] not in ("pass", "warn")
    ] == []
    assert document["facts"][0]["value"].startswith("cuda:")


def test_what_was_measured_could_be_true(found: dict[str, dict[str, Any]]) -> None:
    """Wide bounds, of what no GPU is outside of: a forgotten wait, or a unit, is off by a thousand."""
    if not found:
        pytest.skip("nothing was measured")
    rate = {
        kind: numbers(found[f"gpu.product_{kind}"]["found"])[0]
        for kind in ("ieee", "tf32", "bf16", "fp16")
    }

    assert 1 <= numbers(found["gpu.launch"]["found"])[0] <= 100
    assert 0.001 <= numbers(found["gpu.event_clock"]["found"])[0] <= 20
    assert all(
        1 <= way <= 1000
        for name in ("gpu.copy_pinned", "gpu.copy_pageable")
        for way in numbers(found[name]["found"])
    )
    assert all(0.5 <= one <= 10_000 for one in rate.values())
    assert rate["ieee"] <= 1.1 * min(rate["tf32"], rate["fp16"])
    assert 50 <= numbers(found["gpu.bandwidth"]["found"])[0] <= 30_000


def test_a_gpu_that_is_not_there_is_told_in_a_sentence(tuilab: Tuilab) -> None:
    done = tuilab("doctor", "--gpu", "cuda:99")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "cuda:99: torch sees " in done.stderr


@pytest.mark.timeout(300)
def test_a_gpu_is_calibrated_and_the_doctor_knows(tuilab: Tuilab) -> None:
    done = tuilab("calibrate", "--device", "cuda", "--minutes", "1.5", timeout=280)
    facts = json.loads(tuilab("doctor", "--json").stdout)["facts"]

    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert "within one process: " in done.stdout
    assert [
        fact["value"]
        for fact in facts
        if fact["section"] == "Calibration" and fact["name"].endswith(": measured")
    ]
