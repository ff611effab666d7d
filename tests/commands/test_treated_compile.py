"""The treatment compile: graphs are made of any root, and how many is reported at the end."""

import pytest

from tests.commands.treated_script import Treat

pytestmark = pytest.mark.real_torch
# No compiler of C++ is needed, and graphs are made all the same.
EAGER = """
plain_compile = torch.compile.__wrapped__ if hasattr(torch.compile, "__wrapped__") else torch.compile
torch._dynamo.config.suppress_errors = False
import torch._inductor.compile_fx as fx
fx.compile_fx = lambda module, inputs, **more: module
"""


def test_root_of_torchs_own_class_makes_graphs(treat: Treat) -> None:
    """`Module.compile` in place makes none of them."""
    plain = treat("", "train(DataLoader(data, 16), sgd())")
    treated = treat(
        "compile", "import torch._dynamo\n" + EAGER + "train(DataLoader(data, 16), sgd())"
    )

    made = [report for report in treated.reports if report.graphs is not None]
    assert treated.did("compile")[0] == "torch.compile(Sequential.forward)"
    assert [report.graphs for report in made] == [1] and (made[0].compile_s or 0) > 0
    assert made[0].did == "torch.compile made 1 graphs, with 0 breaks"
    assert treated.losses == pytest.approx(plain.losses, rel=1e-4)
    (process,) = treated.seen.processes
    assert len(process.compiled.graphs) == 1


def test_script_that_compiles_is_already_set(treat: Treat) -> None:
    treated = treat(
        "compile",
        """
        model = torch.compile(model, backend="eager")
        train(DataLoader(data, 16), torch.optim.SGD(model.parameters(), lr=0.1))
        """,
    )

    assert treated.is_set("compile") and treated.did("compile") == []


def test_watching_the_roots_breaks_no_graph_of_the_script(treat: Treat) -> None:
    script = """
        @torch.compile(backend="eager", fullgraph=True)
        def loss_of(x, y): return (model(x) - y).pow(2).mean()
        optimizer = sgd()
        for x, y in [data[:16]] * 6:
            optimizer.zero_grad()
            loss_of(x, y).backward()
            optimizer.step()
        """
    plain = treat("", script)
    treated = treat("bf16", script, facts=True)

    assert treated.losses == plain.losses  # no module was called outside compiled code
    assert treated.why("bf16") == ["no module was called with gradients in the first steps"]


def test_script_that_compiles_gets_dynamic_shapes(treat: Treat) -> None:
    script = """
        model = torch.compile(model, backend="eager", dynamic=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for rows in range(8, 16):
            optimizer.zero_grad()
            model(torch.ones(rows, 4)).sum().backward()
            optimizer.step()
        from torch._dynamo.utils import counters
        print(counters["stats"]["unique_graphs"])
        """
    plain = treat("", script)
    treated = treat("compile=dynamic", script)

    assert (plain.printed, treated.printed) == (["8"], ["1"])
    assert (
        treated.did("compile=dynamic")[0] == "torch.compile(dynamic=True) instead of dynamic=False"
    )
    assert treated.places("compile=dynamic") == {
        'model = torch.compile(model, backend="eager", dynamic=False)'
    }


def test_decorator_with_arguments_is_treated_once(treat: Treat) -> None:
    treated = treat(
        "compile=dynamic",
        """
        @torch.compile(backend="eager")
        def loss_of(x, y): return (model(x) - y).pow(2).mean()
        optimizer = sgd()
        for x, y in [data[:16]] * 4: loss_of(x, y).backward(); optimizer.step()
        """,
    )

    words = "torch.compile(dynamic=True) instead of dynamic=None"
    assert treated.did("compile=dynamic")[0] == words
    assert not treated.is_set("compile=dynamic")
