"""What torch compiles stays what it would be, and is seen as far as it runs between its graphs."""

from pathlib import Path

import pytest

from tests.commands.watched_script import run_afresh, run_unwatched

pytestmark = [pytest.mark.real_torch, pytest.mark.slow]

HEAD = """
import torch._dynamo.utils
o = torch.optim.Adam(model.parameters())
def step(): loss().backward(); o.step(); o.zero_grad()
"""
TAIL = """
for _ in range(10): step()
counters = torch._dynamo.utils.counters
print(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()), sum(counters["recompiles"].values()))
"""
MODEL = "model = torch.compile(model, backend='eager')\n"
STEP = "compiled = torch.compile(o.step, backend='eager')\ndef step(): loss().backward(); compiled(); o.zero_grad()\n"
ALL = "step = torch.compile(step, backend='eager')\n"


@pytest.mark.parametrize(
    ("compiled", "once"),
    [(MODEL, "back step"), (STEP, "back"), (ALL, "back")],
    ids=["model", "optimizer", "everything"],
)
def test_a_compiled_script_has_the_graphs_that_it_has_unwatched(
    tmp_path: Path, compiled: str, once: str
) -> None:
    """The step of an optimizer that is compiled is not seen: its backward then tells the steps."""
    watched = run_afresh(tmp_path, HEAD + compiled + TAIL)
    plain = run_unwatched(tmp_path, HEAD + compiled + TAIL)

    assert watched.kinds == " ".join([once] * 10)
    assert watched.done.stdout == plain.stdout
    assert len(watched.steps) == 10
