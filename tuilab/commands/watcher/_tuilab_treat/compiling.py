"""Treat a training with torch.compile."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .places import user_place
from .reports import Reports

_UTILS = "torch._dynamo.utils"
_MODES_WITH_GRAPHS = ("reduce-overhead", "max-autotune")


class CompileTreatment:
    """Compiles the forward of root modules, or changes how the script itself compiles."""

    def __init__(self, torch: Any, treatment: str, value: str, reports: Reports) -> None:
        self._torch = torch
        self._treatment = treatment
        self._reports = reports
        self.options: dict[str, Any] = {}
        if value == "dynamic":
            self.options = {"dynamic": True}
        elif value:
            self.options = {"mode": value}
        self._compile = getattr(torch, "compile", None)
        self._has_treated = False
        self._is_within = False

    def begin(self) -> None:
        """Change the calls of torch.compile that the script makes from now on."""
        if self._compile is None or not self.options:
            return
        self._torch.compile = self._treated_compile()

    def why_not(self) -> str:
        """Return why no root is compiled, or an empty string."""
        if self._compile is None:
            return "this torch has no torch.compile"
        return ""

    def script_compiles(self) -> bool:
        """Return whether the script has compiled anything by itself."""
        utils: Any = sys.modules.get(_UTILS)
        return bool(getattr(utils, "counters", {}).get("frames"))

    def of(self, function: Any) -> Any:
        """Return a function compiled."""
        assert self._compile is not None
        self._has_treated = True
        return self._compile(function, **self.options)

    def report(self) -> None:
        """Report how many graphs were made; a treatment that made none is no gain."""
        if not self._has_treated:
            return
        self._has_treated = False
        utils: Any = sys.modules.get(_UTILS)
        counters = getattr(utils, "counters", {})
        graphs = int(counters.get("stats", {}).get("unique_graphs", 0))
        breaks = sum(counters.get("graph_break", {}).values())
        compile_s = 0.0
        for metrics in getattr(utils, "get_compilation_metrics", list)():
            compile_s += getattr(metrics, "entire_frame_compile_time_s", None) or 0.0
        if not graphs:
            self._reports.skipped(self._treatment, "torch.compile made no graph")
            return
        words = f"torch.compile made {graphs} graphs, with {breaks} breaks"
        self._reports.did(self._treatment, words, graphs=graphs, compile_s=round(compile_s, 3))

    def _treated_compile(self) -> Any:
        """Return torch.compile with the options of the treatment."""
        plain: Any = self._compile

        @functools.wraps(plain)
        def compile(model: Any = None, **kwargs: Any) -> Any:
            if model is None:  # as a decorator with arguments
                return lambda function: compile(function, **kwargs)
            place = user_place()
            if place[0]:
                kwargs = self._changed(kwargs, place)
            return plain(model, **kwargs)

        return compile

    def _changed(self, kwargs: dict[str, Any], place: Any) -> dict[str, Any]:
        """Return the arguments of a call of torch.compile as the treatment changes them."""
        ((name, new),) = self.options.items()
        before = kwargs.get(name)
        words = f"torch.compile({name}={new!r})"
        if before == new or (name == "mode" and before in _MODES_WITH_GRAPHS):
            why = f"the script has {name}={before!r}"
            self._reports.skipped(self._treatment, why, place, is_already_set=True)
            return kwargs
        if name == "mode" and kwargs.get("options"):
            self._reports.skipped(self._treatment, f"the script has options: no {words}", place)
            return kwargs
        self._has_treated = True
        self._reports.did(self._treatment, f"{words} instead of {name}={before!r}", place)
        return {**kwargs, name: new}
