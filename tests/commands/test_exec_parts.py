"""Where a step's time goes: a part that was not measured has no number anywhere, and the reason is told."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.made_up import trainer

ALL = ["waits for data", "backward", "optimizer", "forward + rest"]


@pytest.mark.parametrize(
    ("parts", "names", "curves", "told"),
    [
        ("data backward optimizer", ALL, ["data_ms", "backward_ms", "optimizer_ms", "rest_ms"], "forward + rest 40 %"),
        (
            "backward optimizer", ALL[1:], ["backward_ms", "optimizer_ms", "rest_ms"],
            "forward + rest 60 %; waits for data: n/a, no DataLoader was used",
        ),
        (
            "data backward", [ALL[0], ALL[1], ALL[3]], ["data_ms", "backward_ms", "rest_ms"],
            "optimizer: n/a, none was seen to step",
        ),
        ("data optimizer", [ALL[0], *ALL[2:]], ["data_ms", "optimizer_ms", "rest_ms"], "backward: n/a, none was seen"),
        ("optimizer", [], [], "median of 58 steps\n"),
    ],
)  # fmt: skip
def test_a_part_that_was_not_measured_has_no_number(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"],
    tmp_path: Path,
    parts: str,
    names: list[str],
    curves: list[str],
    told: str,
) -> None:
    done = tuilab("exec", "--json", "--", sys.executable, trainer(tmp_path), "--parts", parts)

    (run,) = json.loads(done.stdout)["runs"]
    bars: list[dict[str, Any]] = run["bars"]
    assert [name for one in bars for name in one["names"]] == names
    assert [name for one in run["series"] if (name := one["name"]).endswith("_ms") and name != "step_ms"] == curves
    assert told in run["texts"][0]["text"]


def test_shares_are_told_in_tenths_of_a_percent(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    done = tuilab("exec", "--json", "--", sys.executable, trainer(tmp_path), "--step-ms", "0.0000075")

    values = json.loads(done.stdout)["runs"][0]["bars"][0]["values"]
    assert values == [14.3, 28.6, 14.3, 42.9]


def test_steps_are_counted_where_nothing_that_is_printed_says_of_how_many(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    done = tuilab("exec", "--jsonl", "--", sys.executable, trainer(tmp_path))

    told = [record for line in done.stdout.splitlines() if (record := json.loads(line))["k"] == "progressed"]
    assert [(one["done"], one["total"]) for one in told][-1] == (60, 0)
