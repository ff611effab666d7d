"""Report what the treatments did, or why they did nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .places import NOWHERE, Place

_MOST = 200  # different reports of a process
_LONGEST = 600  # characters of a sentence
_LONGEST_FILE = 1000  # characters


class Reports:
    """The reports of one process. The same report is put once, and at the end with its count."""

    def __init__(self, put: Callable[[str], None]) -> None:
        self._put = put
        self._counts: dict[str, int] = {}  # by the JSON of a report without its count
        self._put_counts: dict[str, int] = {}  # the count that was put last
        self._heard: set[str] = set()  # the treatments that have a report
        self._done: set[str] = set()  # the treatments that did something

    def did(self, treatment: str, words: str, place: Place = NOWHERE, **numbers: Any) -> str:
        """Report that a treatment did something. Return the key of the report for `again`."""
        self._done.add(treatment)
        return self._add({"treatment": treatment, "did": words[:_LONGEST]}, place, numbers)

    def again(self, key: str) -> None:
        """Count a report once more. This costs next to nothing, so that it may run in each step."""
        if key in self._counts:
            self._counts[key] += 1

    def skipped(
        self, treatment: str, why: str, place: Place = NOWHERE, *, is_already_set: bool = False
    ) -> None:
        """Report why a treatment did nothing.

        What is already set after the treatment did something was set by the treatment: libraries
        make a DataLoader from another one.
        """
        if is_already_set and treatment in self._done:
            return
        facts: dict[str, Any] = {"treatment": treatment, "why": why[:_LONGEST]}
        if is_already_set:
            facts["is_already_set"] = True
        self._add(facts, place, {})

    def failed(self, treatment: str, problem: BaseException) -> None:
        """Report that our own code failed, so that the treatment did nothing."""
        reason = f"tuilab could not apply it: {type(problem).__name__}: {problem}"
        self.skipped(treatment, reason)

    def has_heard_of(self, treatment: str) -> bool:
        """Return whether a treatment has a report."""
        return treatment in self._heard

    def finish(self) -> None:
        """Put the reports whose count has changed since they were put."""
        for report, count in list(self._counts.items()):
            if count != self._put_counts.get(report):
                self._put_with_count(report, count)

    def forget(self) -> None:
        """Begin again in a forked child, which has marks of its own."""
        self._put_counts.clear()

    def _add(self, facts: dict[str, Any], place: Place, numbers: dict[str, Any]) -> str:
        """Put a report if it is new, or count it; return its key."""
        file, line = place
        if file and len(file) <= _LONGEST_FILE:
            facts["file"] = file
            facts["line"] = line
        facts.update(numbers)
        self._heard.add(facts["treatment"])
        report = json.dumps(facts, ensure_ascii=False)
        if report in self._counts:
            self._counts[report] += 1
        elif len(self._counts) < _MOST:
            self._counts[report] = 1
            self._put_with_count(report, 1)
        return report

    def _put_with_count(self, report: str, count: int) -> None:
        self._put_counts[report] = count
        facts = json.loads(report)
        facts["count"] = count
        try:
            self._put(json.dumps(facts, ensure_ascii=False))
        except Exception:  # a report that is lost must not harm the script
            return
