"""Run a lesson in the process of the test, on the CPU, as a worker would: its exact claims in a tenth of a second.

Its ranks are forks of that process. Nothing is timed there that a test judges, and what the lesson does to torch's generator
and threads is undone.
"""

import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.engine import read_stream
from tests.forked_ranks import ranks_in
from tuilab.catalogue import catalog
from tuilab.engine import messages
from tuilab.engine.spawn import socket_pair
from tuilab.record import events
from tuilab.record.exact_claims import holds
from tuilab.record.journal.writer import Writer


def source_of(lesson: str) -> str:
    (path,) = [found.path for found in catalog.load() if found.id == lesson]
    return Path(path).read_text()


def reason_of(claim: dict[str, Any]) -> str:
    """Return the reason for a verdict; that of a claim which holds without the bound."""
    reason = str(claim["why"])
    return reason.partition(", claimed ")[0] if claim["verdict"] == "SUPPORTED" else reason


@contextmanager
def short_races() -> Iterator[None]:
    """Let a race have the fewest rounds, of blocks that are next to nothing: all is called and compared, little is timed.

    Nor does Dynamo time the guards of what it compiled, for which it empties the caches: a third of what it takes.
    """
    guards = sys.modules.get("torch._dynamo.guards")
    untimed = (
        patch.object(guards, "profile_guard_manager", return_value=0.0, create=True)
        if guards
        else nullcontext()
    )
    with (
        patch.dict("tuilab.lab.races.timing._BLOCK_S", cpu=1e-5),
        patch("tuilab.lab.races.rounds._MOST_ROUNDS", 1),
        untimed,
    ):
        yield


def claimed(folder: Path, source: str, **params: Any) -> dict[str, events.ClaimMeasured]:
    """Run a source with `params` besides its defaults, and return the exact claims that it made by their keys."""
    import torch

    from tuilab.lab.lab import Lab
    from tuilab.lab.worker import begin

    (folder / "scenario.py").write_text(source)
    journal = Writer(folder / "worker-0.jsonl")
    threads = torch.get_num_threads()
    ours, theirs = socket_pair()
    spec = importlib.util.spec_from_file_location("scenario", folder / "scenario.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["scenario"] = importlib.util.module_from_spec(
        spec
    )  # torch.compile looks for it there
    line = messages.WorkerLine(ours)
    as_forks = patch.object(Lab, "ranks", ranks_in(folder, folder, line))
    with ours, theirs, torch.random.fork_rng(), as_forks, short_races(), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "This process .* is multi-threaded"
        )  # pytest-xdist's threads; a worker has none
        begin(is_placed=False)
        spec.loader.exec_module(module)
        run = module.run
        own = {"device": "cpu"} if "device" in inspect.signature(run).parameters else {}
        order = messages.WorkerOrder(
            run_dir=str(folder),
            writer="worker-0",
            source_dir=str(folder),
            quick=True,
            params=_defaults_of(run) | params,
        )
        run(Lab(journal, folder, line, order, "cpu"), **own, **params)
    journal.close()
    torch.set_num_threads(threads)
    del sys.modules["scenario"]
    found = [
        event
        for event in read_stream(folder / "worker-0.jsonl")
        if isinstance(event, events.ClaimMeasured)
    ]
    return {claim.key: claim for claim in found}


def _defaults_of(run: Callable[..., Any]) -> dict[str, Any]:
    """Return the default of each parameter of a scenario."""
    parameters = list(inspect.signature(run).parameters.values())[1:]  # without the lab
    return {one.name: one.default for one in parameters}


def check_values(folder: Path, lesson: str, values: Mapping[str, Any]) -> None:
    """Assert that all exact claims of a lesson hold, and that those with these keys measured these values."""
    claims = claimed(folder, source_of(lesson))

    assert [key for key, claim in claims.items() if not holds(claim)] == []
    assert {key: claims[key].got for key in values} == {
        key: events.Measured.of(got) for key, got in values.items()
    }
