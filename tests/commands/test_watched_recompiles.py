"""What torch.compile makes in a watched script: its graphs, why they are made again, and where they break."""

import json

import pytest

from tests.commands.watched_script import Watch
from tuilab.commands.facts.compiled_graphs import CompiledGraphs

REASON = "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5"


def made(*graphs: dict[str, object]) -> CompiledGraphs:
    compiled = CompiledGraphs()
    for number, facts in enumerate(graphs):
        compiled.take(json.dumps({"graph": f"0/{number}", "file": "/home/ada/train.py"} | facts))
    return compiled


@pytest.mark.real_torch
def test_graphs_of_a_script_come_with_the_guard_and_the_line(watch: Watch) -> None:
    seen = watch(
        """
        o = sgd()
        @torch.compile(backend="eager", dynamic=False)
        def total(x):
            y = model(x)
            print("a break")
            return y.sum()
        for rows in range(4, 9):
            total(torch.ones(rows, 4)).backward(); o.step()
        """,
        "all",
    )

    (process,) = seen.processes
    graphs = process.compiled.graphs
    again = [graph for graph in graphs if graph.reason]
    assert len(graphs) == 10 and len(again) == 8
    assert all("size mismatch at index 0" in graph.reason for graph in again)
    assert all(graph.seconds > 0 and graph.file.endswith(".py") for graph in graphs)
    sentences = [*process.compiled.sentences()]
    assert sentences[0].startswith("torch.compile made 10 graphs in ")
    assert "graphs break at" in sentences[-1] and "print" not in sentences[0]


@pytest.mark.real_torch
def test_script_without_the_compiler_loads_nothing_of_it(watch: Watch) -> None:
    seen = watch(
        """
        o = sgd()
        for _ in range(3): loss().backward(); o.step()
        print([name for name in sys.modules if name.startswith("torch._dynamo.callback")])
        """,
        "all",
    )

    assert seen.processes[0].compiled.graphs == []
    assert [*seen.processes[0].compiled.sentences()] == []


def test_function_that_is_compiled_again_and_again_is_an_alert_once() -> None:
    again = {"function": "forward", "line": 31, "reason": REASON}
    compiled = made({"function": "forward", "line": 31}, again, again)
    assert compiled.take_alert() == ""

    compiled.take(json.dumps({"graph": "0/3", "file": "/home/ada/train.py"} | again))

    assert compiled.take_alert() == (
        "train.py:31 forward was compiled again 3 times; the last time: "
        "tensor 'x' size mismatch at index 0. expected 4, actual 5"
    )
    assert compiled.take_alert() == ""


def test_sentences_tell_times_the_guard_and_the_break() -> None:
    compiled = made(
        {"function": "forward", "line": 31, "seconds": 2.0},
        {"function": "torch_dynamo_resume_in_forward_at_33", "line": 33, "seconds": 1.0},
        {"function": "forward", "line": 31, "seconds": 3.0, "reason": REASON},
    )
    compiled.take('{"breaks": [["Failed to trace builtin operator", 4]]}')

    assert [*compiled.sentences()] == [
        "torch.compile made 3 graphs in 6 s; 1 of them again, in 3 s",
        "most often again: train.py:31 forward, 1 time; the last time: tensor 'x' size mismatch at "
        "index 0. expected 4, actual 5; see `tuilab run compile-start`",
        "graphs break at train.py:33: Failed to trace builtin operator; see `tuilab run graph-breaks`",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "[" * 5000,
        "{}",
        '{"graph": 7}',
        '{"graph": "0/0", "line": -1}',
        '{"graph": "0/0", "seconds": 1e300}',
        '{"graph": "0/0", "seconds": NaN}',
        '{"breaks": 7}',
        '{"breaks": [[1, 2]]}',
    ],
)
def test_report_of_another_form_is_ignored(text: str) -> None:
    compiled = CompiledGraphs()
    compiled.take(text)

    assert compiled.graphs == [] and [*compiled.sentences()] == []


def test_text_of_a_script_steers_no_terminal() -> None:
    compiled = made({"function": "\x1b[31mf", "file": "\x1b]0;x\x07.py", "reason": "\x1b[2J"})

    assert "\x1b" not in " ".join(compiled.sentences())
