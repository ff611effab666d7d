"""Describe what torch.compile made in a process: how many graphs, why again, where they break."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated

import msgspec

from tuilab.text.display import plural, show
from tuilab.text.words import seconds

_MOST = 1000  # graphs
_LONGEST = 200  # characters of a reason
_OFTEN = 3  # times that a function is compiled again, from which on this is an alert
# The function that goes on after a break, as torch names it.
_AFTER_BREAK = re.compile(r"torch_dynamo_resume_in_(?P<function>.*)_at_(?P<line>\d{1,7})")
# The settings of torch._dynamo.config, by their names of today and of torch up to 2.5.
_LIMIT = re.compile(r"\b(?:accumulated_)?(?:recompile|cache_size)_limit\b")
_SIZE_REASON = "size mismatch"  # in the reason, if a shape is new
_GRAPH_BEFORE = re.compile(r"^\d{1,6}/\d{1,6}: ")  # at the beginning of a reason


class Graph(msgspec.Struct, frozen=True):
    """One graph, or an attempt to make one that failed."""

    graph: str  # the number of the function, a slash, and the number of the attempt
    function: str = ""
    file: str = ""
    line: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0
    seconds: Annotated[float, msgspec.Meta(ge=0, lt=1e7)] = 0.0
    reason: str = ""  # why it was made again
    failure: str = ""  # why the attempt made no graph; empty for a graph

    @property
    def place(self) -> str:
        """The function with its file and line, for people."""
        file = show(PurePath(self.file).name, 60)
        after_break = _AFTER_BREAK.fullmatch(self.function)
        if after_break:
            function = show(after_break["function"], 60)
            return f"{file}:{after_break['line']} {function}, after a graph break,"
        return f"{file}:{self.line} {show(self.function, 60)}"

    @property
    def short_reason(self) -> str:
        return show(_GRAPH_BEFORE.sub("", self.reason), _LONGEST)


class _Breaks(msgspec.Struct, frozen=True):
    breaks: list[tuple[str, Annotated[int, msgspec.Meta(ge=0, lt=2**31)]]]


class CompiledGraphs:
    """The graphs of one process, as far as they were reported."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self._given_up: dict[str, str] = {}  # by place: that torch gave up, and what to do
        self._breaks: list[tuple[str, int]] = []
        self._again: Counter[str] = Counter()  # by place: graphs that were made again
        self._alerts: list[str] = []  # that nobody has taken yet

    def take(self, text: str) -> None:
        """Take a report of the watcher; one of another form is ignored."""
        try:
            facts = json.loads(text)
            if isinstance(facts, dict) and "breaks" in facts:
                self._breaks = msgspec.convert(facts, _Breaks).breaks
            elif len(self.graphs) < _MOST:
                self._add(msgspec.convert(facts, Graph))
        except (ValueError, RecursionError):
            return

    def take_alert(self) -> str:
        """Return a sentence about a function that is compiled again and again, or given up.

        Each function has each of the two sentences once.
        """
        return self._alerts.pop(0) if self._alerts else ""

    def _add(self, graph: Graph) -> None:
        if graph.failure:
            self._take_failure(graph)
            return
        self.graphs.append(graph)
        if not graph.reason:
            return
        place = graph.place
        self._again[place] += 1
        if self._again[place] == _OFTEN:
            self._alerts.append(
                f"{place} was compiled again {_OFTEN} times; the last time: {graph.short_reason}"
            )

    def _take_failure(self, attempt: Graph) -> None:
        """Note that torch gave up a function, if an attempt failed because of a limit.

        Torch reports no function for such an attempt, so its earlier graphs name it.
        """
        limit = _LIMIT.search(attempt.failure)
        if limit is None:
            return
        number = attempt.graph.partition("/")[0]
        graphs = [graph for graph in self.graphs if graph.graph.partition("/")[0] == number]
        if not graphs:
            return
        place = graphs[0].place
        if place in self._given_up or len(self._given_up) >= _MOST:
            return
        event = (
            f"torch gave up compiling {place} after {plural(len(graphs), 'graph')}"
            f" (torch._dynamo.config.{limit[0]})"
        )
        if _SIZE_REASON in attempt.reason or _SIZE_REASON in graphs[-1].reason:
            event += "; other shapes run uncompiled"
            remedy = "compile it with dynamic=True, or mark the size with mark_dynamic; "
        else:
            event += "; calls that fit none of them run uncompiled"
            remedy = f"the last reason to compile it again: {attempt.short_reason}; "
        self._given_up[place] = f"{event}; {remedy}see `tuilab run compile-start`"
        self._alerts.append(event)

    def sentences(self) -> Iterator[str]:
        """Yield how many graphs were made in which time, why again, and where they break."""
        if not self.graphs:
            return
        total_s = sum(graph.seconds for graph in self.graphs)
        again = [graph for graph in self.graphs if graph.reason]
        sentence = f"torch.compile made {plural(len(self.graphs), 'graph')} in {seconds(total_s)}"
        if again:
            again_s = sum(graph.seconds for graph in again)
            sentence += f"; {len(again)} of them again, in {seconds(again_s)}"
        yield sentence
        yield from self._given_up.values()
        if again:
            ((place, count),) = self._again.most_common(1)
            last = [graph for graph in again if graph.place == place][-1]
            yield (
                f"most often again: {place}, {plural(count, 'time')}; the last time: "
                f"{last.short_reason}; see `tuilab run compile-start`"
            )
        yield from self._describe_breaks()

    def _describe_breaks(self) -> Iterator[str]:
        places: dict[str, None] = {}
        for graph in self.graphs:
            after_break = _AFTER_BREAK.fullmatch(graph.function)
            if after_break:
                file = show(PurePath(graph.file).name, 60)
                places[f"{file}:{after_break['line']}"] = None
        if not places:
            return
        sentence = f"graphs break at {', '.join(list(places)[:3])}"
        if self._breaks:
            sentence += f": {show(self._breaks[0][0], _LONGEST)}"
        yield f"{sentence}; see `tuilab run graph-breaks`"
