"""Orders are followed one after another, and an interrupt loses no result."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tuilab.cli import follow
from tuilab.cli.follow import ResultPrinter, run_each
from tuilab.engine import launch
from tuilab.engine.messages import RunOrder
from tuilab.errors import ExitCode


def make_order(name: str) -> RunOrder:
    return RunOrder(root="/runs", scenario=name, topic="mine", title="", path="", params={})


def test_interrupt_while_a_run_starts_keeps_earlier_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine a start takes longer than an interrupt is held back."""
    ended = subprocess.Popen([sys.executable, "-c", ""])

    def start(order: RunOrder, spare: Any) -> tuple[Path, "subprocess.Popen[bytes]"]:
        if order.scenario == "second":
            raise KeyboardInterrupt
        return Path("/runs/first"), ended

    def follow_one(run_dir: Path, printer: ResultPrinter, **_: Any) -> None:
        printer.codes.append(ExitCode.DONE)

    monkeypatch.setattr(launch, "start", start)
    monkeypatch.setattr(follow, "follow_one", follow_one)
    printer = ResultPrinter()
    orders = [make_order(name) for name in ("first", "second", "third")]

    finished = [order.scenario for order in run_each(orders, printer, lambda order: None)]

    assert finished == ["first"]
    assert printer.codes == [ExitCode.DONE, ExitCode.INTERRUPTED]
