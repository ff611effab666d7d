"""The benchmarks as one command: what is compared is of one round, what is not here says so, and each one runs to its end."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import pairs
from benchmarks.pairs import Missing, Row, in_rounds
from tests.conftest import CHECKOUT

BARE = "python -c pass"
HERE = {  # what is measured without any peer
    "command_line": {
        BARE, "tuilab --help", "tuilab list", "tuilab list, cold catalogue", "completion of a verb", "completion of a scenario",
        "tuilab runs, 0 runs", "tuilab runs, 20 runs", "runs --verdict, 20 runs", "runs --verdict, 20 runs, cold index",
        "tuilab doctor", "tuilab doctor --all, to the first answer",
    },
    "screens": {
        "bare Textual", "the Lab, first picture", "bare Textual, idle", "the Lab, idle", "enter to the first point, cold",
        "enter to the first point, warm", "a link of 10 KB/s",
    },
    "live": {
        "plotext in bare Textual", "one chart, 1 point/s", "one chart, 1,000 points/s", "four charts, 1,000 points/s each",
    },
    "opening": {
        "json.loads a line", "msgspec a line", "read 50,000 points", "read 50,000 points, in portions",
        "the screens, no points", "the screens, 50,000 points, first time", "the screens, 50,000 points, again",
        "the screens, 1 arm", "the screens, 10 arms",
    },
    "scalars": {"os.write of 24 bytes", "lab.log", "csv and flush", "a step with lab.log"},
    "headless": {
        "import torch", "an empty scenario", "three empty scenarios", "softmax --quick", "three lessons --quick",
    },
    "library": {"2 lessons --quick", "bare, 2 workers", "import torch"},
    "watching": {
        "a short step, --watch steps", "a 1 ms step, --watch all", "train_cnn, bare", "train_cnn, bare again",
        "train_cnn, --watch nothing", "train_cnn, --watch steps", "train_cnn, --watch all",
    },
    "long_run": {
        "500 steps", "0.05 h of 2 ms steps", "0.05 h of 6 ms steps", "open 500 steps", "open 0.05 h of 2 ms steps",
        "open 0.05 h of 6 ms steps",
    },
    "reports": {"reading", ".json", ".csv", ".tfevents", "json.dump", "csv.writer"},
    "verdict_rates": {
        "tuilab, decided", "tuilab, wrong", "quartiles of torch.utils.benchmark, decided",
        "quartiles of torch.utils.benchmark, wrong",
    },
    "simulated_verdicts": {
        "six repeats, at most 1.1, true 1.1: wrong", "quick, at least 100, true 100: wrong at most",
        "budget, at least 1.3, true 1.03: decided", "six repeats, at least 1.3, true 1.3: warm-up in half, over, wrong",
    },
    "tuning": {"waiting_loader", "found"},
    "instructions": set(),
}  # fmt: skip
PERHAPS = {  # what needs something besides
    "command_line": {
        "pyperf --help",
        "nvitop --help",
        "memray --help",
        "tensorboard --version",
        "wandb --version",
    },
    "scalars": {"trackio", "TensorBoard", "wandb, offline"},
    "watching": {"train_cnn, TraceML", "train_cnn, torchwatch"},
    "reports": {"TensorBoard's writer"},
    "instructions": set(),
}


# ---- rounds


def test_what_is_compared_is_of_one_round_and_the_first_does_not_count() -> None:
    values = {"a": iter([9.0, 1.0, 2.0]), "b": iter([9.0, 3.0, 8.0])}

    def way(name: str) -> Callable[[], dict[str, float]]:
        return lambda: {"s": next(values[name])}

    rows = list(in_rounds({"a": way("a"), "b": way("b")}, 2, {("b", "s"): "2 times"}, beside="a"))

    assert rows == [
        Row("a", "s", [1.0, 2.0]),
        Row("b", "s", [3.0, 8.0], "a", [1.0, 2.0], "2 times"),
    ]
    assert rows[1].ratios == [3.0, 4.0]
    assert "5.50 [3.00, 8.00] s" in pairs.line(rows[1]) and "3.50 [3.00, 4.00] × a" in pairs.line(
        rows[1]
    )


def test_each_round_mirrors_the_order_of_the_one_before() -> None:
    order = []

    def way(name: str) -> Callable[[], dict[str, float]]:
        return lambda: order.append(name) or {"s": 1.0}  # type: ignore[func-returns-value]

    list(in_rounds({"a": way("a"), "b": way("b")}, 3, is_warmed=False))

    assert order == ["a", "b", "b", "a", "a", "b"]


def test_what_is_missing_says_why_and_the_others_are_measured() -> None:
    def peer() -> dict[str, float]:
        raise Missing("no peer; pip install peer")

    rows = list(in_rounds({"ours": lambda: {"s": 1.0}, "peer": peer}, 2, beside="ours"))

    assert rows == [Row("ours", "s", [1.0, 1.0]), Row("peer", missing="no peer; pip install peer")]
    assert re.fullmatch("peer +n/a: no peer; pip install peer", pairs.line(rows[1]))


def test_beside_nothing_there_is_no_ratio() -> None:
    rows = list(
        in_rounds({"idle": lambda: {"B/s": 0.0}, "ours": lambda: {"B/s": 5.0}}, 1, beside="idle")
    )

    assert [row.ratios for row in rows] == [[], []]


@pytest.mark.parametrize(
    ("value", "told"),
    [(1234567.0, "1,234,567"), (0.01234, "0.0123"), (12.34, "12.3"), (3, "3"), (0.0, "0")],
)
def test_numbers_have_three_digits_and_counts_are_whole(value: float, told: str) -> None:
    assert pairs.number(value) == told


# ---- the command


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nonsense"], "there is no benchmark 'nonsense'; there are command_line, screens"),
        (["rounds=3"], "rounds=3 stands before any benchmark"),
        (["opening", "pionts=1e7"], "opening has no size 'pionts'; it has rounds, opened, points"),
        (["opening", "points=many"], "points=many is no size: it is a whole number above 0"),
        (["opening", "points=0"], "points=0 is no size"),
        (["opening", "points=1.5"], "points=1.5 is no size"),
        (["opening", "points=nan"], "points=nan is no size"),
        (["opening", "points=inf"], "points=inf is no size"),
        (
            ["opening", "--json", "nowhere/found.json"],
            "cannot write nowhere/found.json: No such file or directory",
        ),
        (["opening", "--json", "."], "cannot write .: Is a directory"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence_before_anything_is_measured(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)

    out, err = capsys.readouterr()
    assert ended.value.code == 2 and out == ""
    assert err.startswith(told) and err.count("\n") == 1 and err.endswith(".\n")


def test_sizes_belong_to_the_name_before_them() -> None:
    asked = command.parse(["reports", "numbers=5", "opening", "points=1e7"], is_tiny=True)

    assert list(asked) == ["reports", "opening"]
    assert asked["reports"]["numbers"] == 5 and asked["opening"]["points"] == 10_000_000


def test_the_list_has_each_name_with_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == list(command.NAMES)
    assert all(len(line) > 40 for line in lines[::2]) and all("=" in line for line in lines[1::2])


def made_up(name: str, rows: Callable[..., Iterator[Row]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a benchmark of one's own in the place of all."""
    module = ModuleType(f"benchmarks.{name}", "It measures what a test wants.\n")
    vars(module).update(FULL={"rounds": 2}, TINY={"rounds": 1}, rows=rows)
    monkeypatch.setitem(sys.modules, f"benchmarks.{name}", module)


def test_a_benchmark_that_fails_keeps_no_other_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(place: Path, rounds: int) -> Iterator[Row]:
        yield Row("before", "s", [1.0])
        raise ValueError("it broke")

    def whole(place: Path, rounds: int) -> Iterator[Row]:
        yield Row("ours", "s", [4.0] * rounds, "theirs", [2.0] * rounds, "3 times")

    def absent(place: Path, rounds: int) -> Iterator[Row]:
        raise Missing("no pyte; pip install pyte")

    for name, rows in (("broken", broken), ("whole", whole), ("absent", absent)):
        made_up(name, rows, monkeypatch)
    monkeypatch.setattr(command, "NAMES", ("broken", "whole", "absent"))
    monkeypatch.setattr(command, "keep_children", lambda: None)

    assert command.main(["--json", str(tmp_path / "found.json")]) == 1

    out, err = capsys.readouterr()
    assert "broken failed" in out and "ValueError: it broke" in err and "goal 3 times" in out
    kept = json.loads((tmp_path / "found.json").read_text())["benchmarks"]
    assert [one["sizes"] for one in kept.values()] == [{"rounds": 2}] * 3
    assert kept["broken"]["rows"] == [
        {"what": "before", "unit": "s", "values": [1.0], "median": 1.0}
    ]
    assert kept["whole"]["rows"] == [
        {
            "what": "ours", "unit": "s", "values": [4.0, 4.0], "median": 4.0, "beside": "theirs", "beside_values": [2.0, 2.0],
            "ratios": [2.0, 2.0], "ratio": 2.0, "goal": "3 times",
        }
    ]  # fmt: skip
    assert kept["absent"]["rows"] == [{"what": "absent", "n/a": "no pyte; pip install pyte"}]


# ---- all of it


@pytest.mark.tools
@pytest.mark.real_torch
@pytest.mark.timeout(600)
def test_every_benchmark_runs_to_its_end_and_has_all_its_rows(tmp_path: Path) -> None:
    """So small that the figures mean nothing: none is judged."""
    words = [sys.executable, "-m", "benchmarks", "--tiny", "--json", str(tmp_path / "found.json")]

    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert (
        found["is_tiny"] and found["cores"] > 0 and list(found["benchmarks"]) == list(command.NAMES)
    )
    every = {name: one["rows"] for name, one in found["benchmarks"].items()}
    for name, rows in every.items():
        measured = {row["what"] for row in rows if "n/a" not in row}
        assert not HERE[name] - measured, done.stdout
        assert not PERHAPS.get(name, set()) - {row["what"] for row in rows}, done.stdout
        for row in rows:
            check(row, rows)
            assert row["what"] in done.stdout
    lost = {row["what"]: row["values"] for row in every["scalars"] if "lost" in row.get("unit", "")}
    assert lost["lab.log"] == [0] and len(lost) + sum("n/a" in row for row in every["scalars"]) == 6


def check(row: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Each row has numbers, or says why not; a ratio is of the two values of its round."""
    if "n/a" in row:
        assert re.search("install|it failed: .|another build of Python|no GPU", row["n/a"]), row
        return
    assert row["unit"] and row["values"] and all(map(math.isfinite, row["values"])), row
    assert min(row["values"]) <= row["median"] <= max(row["values"]), row
    if "beside" in row:
        pairs_of_it = zip(row["values"], row["beside_values"], strict=True)
        assert row["ratios"] == pytest.approx([value / other for value, other in pairs_of_it]), row
        same = [
            one for one in rows if (one["what"], one.get("unit")) == (row["beside"], row["unit"])
        ]
        assert not same or row["beside_values"] in [one["values"] for one in same], row
