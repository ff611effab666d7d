"""Report each graph that torch.compile makes, and why it is made again.

Torch keeps these facts of its last 64 graphs. It calls the watcher when a graph is made, and at no
other time.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from . import layout

_CALLBACKS = "torch._dynamo.callback"
_UTILS = "torch._dynamo.utils"
_MOST_REPORTS = 1000
_MOST_BREAKS = 5
_LONGEST = 300  # characters of a reason


class GraphReports:
    """Puts the graphs of one process into its marks."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._reported: set[str] = set()  # ids of graphs
        self._is_registered = False

    def forget(self) -> None:
        """Begin again in a forked child."""
        self._reported.clear()

    def hook(self) -> None:
        """Have torch call the watcher, if the compiler is loaded; report all graphs so far."""
        module: Any = sys.modules.get(_CALLBACKS)
        handler = getattr(module, "callback_handler", None)
        if handler is None:
            return
        if not self._is_registered and hasattr(handler, "register_end_callback"):
            self._is_registered = True
            handler.register_end_callback(self._notice)
        self.report()

    def _notice(self, event: Any) -> None:
        """Report the graphs before the one that was just made, whose facts come later."""
        try:
            self.report()
        except Exception as problem:
            self._watcher.fail(problem)

    def report(self) -> None:
        """Report the graphs that are new."""
        utils: Any = sys.modules.get(_UTILS)
        get_metrics = getattr(utils, "get_compilation_metrics", None)
        if get_metrics is None:
            return
        for metrics in get_metrics():
            graph = str(getattr(metrics, "compile_id", ""))
            if not graph or graph in self._reported or len(self._reported) >= _MOST_REPORTS:
                continue
            self._reported.add(graph)
            facts = {
                "graph": graph,
                "function": _text_of(metrics, "co_name"),
                "file": _text_of(metrics, "co_filename"),
                "line": getattr(metrics, "co_firstlineno", None) or 0,
                "seconds": getattr(metrics, "entire_frame_compile_time_s", None) or 0.0,
                "reason": _text_of(metrics, "recompile_reason"),
                # Torch gives facts of attempts that made no graph as well.
                "failure": _text_of(metrics, "fail_reason") or _text_of(metrics, "fail_type"),
            }
            self._watcher.text(layout.COMPILED, json.dumps(facts))

    def report_breaks(self) -> None:
        """Report why graphs were broken; called at the end of the script."""
        utils: Any = sys.modules.get(_UTILS)
        breaks = getattr(utils, "counters", {}).get("graph_break")
        if not breaks:
            return
        reasons = []
        for reason, count in breaks.most_common(_MOST_BREAKS):
            reasons.append([str(reason).partition("\n")[0][:_LONGEST], count])
        self._watcher.text(layout.COMPILED, json.dumps({"breaks": reasons}))


def _text_of(metrics: Any, name: str) -> str:
    return str(getattr(metrics, name, None) or "")[:_LONGEST]
