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
def test_attempt_beyond_the_limit_of_torch_is_no_graph(watch: Watch) -> None:
    seen = watch(
        """
        o = sgd()
        @torch.compile(backend="eager", dynamic=False)
        def total(x):
            return model(x).sum()
        for rows in range(4, 16):
            total(torch.ones(rows, 4)).backward(); o.step()
        """,
        "all",
    )

    (process,) = seen.processes
    assert len(process.compiled.graphs) == 8
    made, given_up, again = process.compiled.sentences()
    assert made.startswith("torch.compile made 8 graphs in ") and "7 of them again" in made
    assert given_up == (
        "torch gave up compiling script.py:9 total after 8 graphs "
        "(torch._dynamo.config.recompile_limit); other shapes run uncompiled; compile it with "
        "dynamic=True, or mark the size with mark_dynamic; see `tuilab run compile-start`"
    )
    assert again.startswith("most often again: script.py:9 total, 7 times")
    alerts = [process.compiled.take_alert() for _ in range(3)]
    assert alerts[1] == given_up.partition("; compile it")[0]
    assert alerts[2] == ""


def test_function_given_up_for_another_reason_than_a_shape_has_that_reason() -> None:
    graph = {"function": "forward", "line": 31}
    reason = "0/0: L['lr'] == 0.1"
    compiled = made(graph, graph | {"reason": reason})
    limit = json.dumps({"graph": "0/2", "reason": reason, "failure": "cache_size_limit reached"})
    compiled.take(limit)
    compiled.take(limit)

    assert len(compiled.graphs) == 2
    assert [*compiled.sentences()][1] == (
        "torch gave up compiling train.py:31 forward after 2 graphs "
        "(torch._dynamo.config.cache_size_limit); calls that fit none of them run uncompiled; "
        "the last reason to compile it again: L['lr'] == 0.1; see `tuilab run compile-start`"
    )
    assert compiled.take_alert().startswith("torch gave up compiling train.py:31 forward")
    assert compiled.take_alert() == ""


@pytest.mark.parametrize("number", ["0/1", "7/0"])
def test_attempt_that_failed_otherwise_says_nothing(number: str) -> None:
    compiled = made({"function": "forward", "line": 31})
    compiled.take(json.dumps({"graph": number, "reason": REASON, "failure": "Unsupported"}))
    compiled.take(json.dumps({"graph": "8/8", "failure": "recompile_limit"}))

    assert len(compiled.graphs) == 1 and len([*compiled.sentences()]) == 1
    assert compiled.take_alert() == ""


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
