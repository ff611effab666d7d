"""Run a lesson in the process of the test, on the CPU: its exact claims take a tenth of a second.

Its ranks are forks of that process. No time is measured that a test judges. Changes of torch's
generator and threads are undone.
"""

import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
    """Return the source of a scenario of the library."""
    (path,) = [entry.path for entry in catalog.load() if entry.id == lesson]
    return Path(path).read_text()


def reason_of(claim: dict[str, Any]) -> str:
    """Return the reason for a verdict, without the bound if the claim is supported."""
    reason = str(claim["why"])
    if claim["verdict"] == "SUPPORTED":
        reason = reason.partition(", claimed ")[0]
    return reason


@contextmanager
def short_races() -> Iterator[None]:
    """Give races one round of very short blocks: every arm is called and compared.

    Dynamo does not time its guards either: for that it empties the caches, which takes a third of
    the time.
    """
    with ExitStack() as patches:
        patches.enter_context(patch.dict("tuilab.lab.races.timing._BLOCK_S", cpu=1e-5))
        patches.enter_context(patch("tuilab.lab.races.rounds._MOST_ROUNDS", 1))
        guards = sys.modules.get("torch._dynamo.guards")
        if guards:
            untimed = patch.object(guards, "profile_guard_manager", return_value=0.0, create=True)
            patches.enter_context(untimed)
        yield


def claimed(folder: Path, source: str, **params: Any) -> dict[str, events.ClaimMeasured]:
    """Run a source with `params` in place of defaults. Return its exact claims by key."""
    import torch

    from tuilab.lab.lab import Lab
    from tuilab.lab.worker import begin

    (folder / "scenario.py").write_text(source)
    journal = Writer(folder / "worker-0.jsonl")
    threads = torch.get_num_threads()
    ours, theirs = socket_pair()
    spec = importlib.util.spec_from_file_location("scenario", folder / "scenario.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scenario"] = module  # torch.compile looks for it there
    line = messages.WorkerLine(ours)
    as_forks = patch.object(Lab, "ranks", ranks_in(folder, folder, line))
    with ours, theirs, torch.random.fork_rng(), as_forks, short_races(), warnings.catch_warnings():
        # pytest-xdist has threads; a worker has none when it forks.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
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
    claims = {}
    for event in read_stream(folder / "worker-0.jsonl"):
        if isinstance(event, events.ClaimMeasured):
            claims[event.key] = event
    return claims


def _defaults_of(run: Callable[..., Any]) -> dict[str, Any]:
    """Return the default of each parameter of a scenario."""
    _, *parameters = inspect.signature(run).parameters.values()  # the first is the lab
    return {parameter.name: parameter.default for parameter in parameters}


def check_values(folder: Path, lesson: str, values: Mapping[str, Any]) -> None:
    """Assert that all exact claims of a lesson hold, and that those with these keys have these values."""
    claims = claimed(folder, source_of(lesson))
    failed = [key for key, claim in claims.items() if not holds(claim)]
    measured = {key: claims[key].got for key in values}
    expected = {key: events.Measured.of(value) for key, value in values.items()}

    assert failed == []
    assert measured == expected
