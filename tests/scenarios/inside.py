"""Runs a lesson in this process, which has torch loaded: for exact values, where nothing is timed."""

import inspect
import runpy
from pathlib import Path
from typing import Any

from tests.engine import read_stream
from tuilab.catalogue import catalog
from tuilab.engine import messages
from tuilab.record import events
from tuilab.record.journal import Writer


def source_of(lesson: str) -> str:
    (path,) = [Path(found.path) for found in catalog.load() if found.id == lesson]
    return path.read_text()


def claims_in(folder: Path, source: str, **options: Any) -> list[events.ClaimMeasured]:
    """Run a lesson with --quick on the CPU, seeded as a worker is, and return its exact claims as they were measured."""
    import torch

    from tuilab.lab.lab import Lab

    (folder / "scenario.py").write_text(source)
    journal = Writer(folder / "worker-0.jsonl")
    order = messages.WorkerOrder(run_dir=str(folder), writer="worker-0", source_dir=str(folder), quick=True)
    before = torch.get_num_threads()
    torch.manual_seed(0)
    run = runpy.run_path(str(folder / "scenario.py"))["run"]
    if "device" in inspect.signature(run).parameters:
        options["device"] = "cpu"
    ours, theirs = messages.pair()
    with ours, theirs:
        run(Lab(journal, folder, messages.WorkerLine(ours), order, "cpu"), **options)
    journal.close()
    torch.set_num_threads(before)
    return [event for event in read_stream(folder / "worker-0.jsonl") if isinstance(event, events.ClaimMeasured)]
