"""Treat one process: apply its treatments, count its steps, and end it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from . import (
    FACTS,
    FIRST_TREATED_STEP,
    STEPS,
    TREATMENTS,
    ddp,
    ending,
    loader,
    memory,
    optimizer,
    settings,
    uploads,
)
from .compiling import CompileTreatment
from .facts import FactFinder
from .reports import Reports
from .roots import RootFinder, RootTreatments

_REPORTING_STEP = 10  # the facts are reported after so many steps, and at the end


def begin(torch: Any, watcher: Any) -> Any:
    """Apply the treatments that can be applied now; return the object that applies the others.

    The watcher calls its `stepped` after each step of an optimizer, and its `finish` at the end of
    the script.
    """
    treated = TreatedProcess(torch, watcher)
    treated.begin()
    return treated


class TreatedProcess:
    """The treatments of one process."""

    def __init__(self, torch: Any, watcher: Any) -> None:
        self._torch = torch
        self._watcher = watcher
        self._reports = Reports(watcher.report_treatment)
        self._wanted = _parse(os.environ.get(TREATMENTS, ""))
        self._last_step = _number(os.environ.get(STEPS, ""))
        self._counts: Any = weakref.WeakKeyDictionary()  # steps by optimizer
        self._most = 0  # steps of one optimizer
        self._roots: RootFinder | None = None
        self._facts: FactFinder | None = None
        # Treatments that are applied after FIRST_TREATED_STEP.
        self._late: list[tuple[str, Callable[[], None]]] = []
        self._optimizers: Any = None
        self._compile: CompileTreatment | None = None
        self._has_left = False
        os.register_at_fork(after_in_child=self._forget)

    def begin(self) -> None:
        """Apply what can be applied before the script begins."""
        torch = self._torch
        reports = self._reports
        if self._last_step:
            self._guarded([uploads.TREATMENT], uploads.switch_off, reports)
        has_facts = os.environ.get(FACTS) == "1"
        if has_facts or RootTreatments.is_wanted(self._wanted):
            self._roots = RootFinder(torch, self._watcher.is_compiling)
            self._guarded(["roots"], self._roots.begin)
        if has_facts:
            self._facts = FactFinder(torch, self._watcher, self._roots)
            self._guarded(["facts"], self._facts.begin)
        if not self._wanted:
            return
        for part in (loader, ddp, memory, settings):
            names = [name for name in self._wanted if name in part.NAMES]
            if not names:
                continue
            late = self._guarded(
                names, part.treat, torch, self._chosen(names), reports, self._watcher
            )
            self._late += late or []
        self._begin_optimizers()
        self._begin_roots()
        for name in self._wanted:
            if not _is_known(name):
                reports.skipped(self._full(name), "this version of tuilab has no such treatment")

    def stepped(self, stepping_optimizer: Any) -> None:
        """Take note of a step that an optimizer has made, or that GradScaler has skipped.

        Nothing is raised, but the process may end here.
        """
        try:
            count = self._counts.get(stepping_optimizer, 0) + 1
            self._counts[stepping_optimizer] = count
            if count == 1:
                self._see(stepping_optimizer)
            if count <= self._most:
                return
            self._most = count
            if count == FIRST_TREATED_STEP:
                self._apply_late()
            if self._facts is not None:
                self._facts.stepped()
                if count == _REPORTING_STEP:
                    self._facts.report()
        except Exception as problem:
            self._reports.failed("steps", problem)
        if self._last_step and self._most >= self._last_step:
            self._leave()

    def finish(self) -> None:
        """Report what is known at the end of the script."""
        try:
            if self._facts is not None:
                self._facts.report()
            if self._compile is not None:
                self._compile.report()
            for name in self._wanted:
                if not self._reports.has_heard_of(self._full(name)):
                    self._reports.skipped(self._full(name), self._why_nothing(name))
        except Exception as problem:
            self._reports.failed("end", problem)
        self._reports.finish()

    def _begin_optimizers(self) -> None:
        names = [name for name in self._wanted if name in optimizer.NAMES]
        if not names:
            return
        treatment = optimizer.OptimizerTreatments(
            self._torch, self._chosen(names), self._reports, self._watcher
        )
        self._guarded(names, treatment.begin)
        self._optimizers = treatment

    def _begin_roots(self) -> None:
        if self._roots is None or not RootTreatments.is_wanted(self._wanted):
            return
        names = [name for name in self._wanted if name in RootTreatments.NAMES]
        treatments = RootTreatments(self._torch, self._chosen(names), self._reports, self._roots)
        if "compile" in self._wanted:
            self._compile = CompileTreatment(
                self._torch, self._full("compile"), self._wanted["compile"], self._reports
            )
            self._guarded(["compile"], self._compile.begin)
        self._late.insert(0, (names[0], lambda: treatments.apply(self._counts, self._compile)))

    def _see(self, new_optimizer: Any) -> None:
        """Look at an optimizer that makes its first step."""
        if self._optimizers is not None:
            self._optimizers.see(new_optimizer)
        if self._facts is not None:
            self._facts.see(new_optimizer)

    def _apply_late(self) -> None:
        """Apply the treatments for which the training has to be known."""
        if self._roots is not None:
            self._guarded(["roots"], self._roots.end)
        if self._facts is not None:
            self._guarded(["facts"], self._facts.take_roots)
        for name, apply in self._late:
            self._guarded([name], apply)
        self._late = []

    def _leave(self) -> None:
        """End this process as if its last step had been the last of the script."""
        if self._has_left:
            return
        self._has_left = True
        ending.leave(self._torch, self._watcher)

    def _why_nothing(self, name: str) -> str:
        """Return why a treatment without any report did nothing."""
        if self._most < FIRST_TREATED_STEP and name not in loader.NAMES + ddp.NAMES:
            return f"the script made fewer than {FIRST_TREATED_STEP} steps"
        if name in loader.NAMES:
            return "the script made no DataLoader"
        if name in ddp.NAMES:
            return "the script made no DistributedDataParallel"
        if name == "set-to-none":
            return "the script did not call zero_grad"
        return "it had nothing to apply to"

    def _full(self, name: str) -> str:
        """Return a treatment with its value, as it was given."""
        value = self._wanted.get(name, "")
        return f"{name}={value}" if value else name

    def _chosen(self, names: list[str]) -> dict[str, str]:
        """Return the wanted values of some treatments."""
        return {name: self._wanted[name] for name in names}

    def _guarded(self, names: list[str], function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of ours; report a failure for each treatment instead of raising it."""
        try:
            return function(*args)
        except Exception as problem:
            for name in names:
                self._reports.failed(self._full(name), problem)
            return None

    def _forget(self) -> None:
        """Count again in a forked child."""
        self._counts.clear()
        self._most = 0
        self._reports.forget()


def _parse(text: str) -> dict[str, str]:
    """Return the values of the treatments that a variable names."""
    wanted: dict[str, str] = {}
    for item in text.split(","):
        name, _, value = item.strip().partition("=")
        if name:
            wanted[name] = value.strip()
    return wanted


def _is_known(name: str) -> bool:
    parts: Any = (loader, ddp, memory, settings, optimizer, RootTreatments)
    return any(name in part.NAMES for part in parts)


def _number(text: str) -> int:
    """Return a positive number; 0 if the text is none."""
    return int(text) if text.isdecimal() else 0
