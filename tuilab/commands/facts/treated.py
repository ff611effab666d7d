"""Read what the treatments of a tuning did in a process, and the facts about its training.

Both come from the process that runs the script, so the script may have written anything. A report
of another form is ignored. Texts must be shown with `show`.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec

from tuilab.commands.tune.script_facts import (
    Count,
    DdpFacts,
    LoaderFacts,
    OptimizerFacts,
    RootFacts,
    ScriptFacts,
    ScriptPlace,
    SettingFacts,
)

_MOST_REPORTS = 500  # of a process
_MOST_FACTS = 100  # of each kind
_UPLOADS = "uploads"  # the name under which a process reports what it switched off
_PARTS: dict[str, Any] = {
    "loaders": LoaderFacts,
    "optimizers": OptimizerFacts,
    "roots": RootFacts,
    "ddp": DdpFacts,
    "settings": SettingFacts,
}


class TreatedReport(ScriptPlace, kw_only=True, frozen=True):
    """What a treatment did, or why it did nothing, and at which line of the script."""

    treatment: str  # with its value, such as "workers=2"
    did: str = ""
    why: str = ""  # why it did nothing
    is_already_set: bool = False  # it did nothing because the script does it
    count: Count = 1  # how often
    graphs: Count | None = None  # that torch.compile made
    compile_s: Annotated[float, msgspec.Meta(ge=0, lt=1e7)] | None = None


class _FactReport(msgspec.Struct, frozen=True):
    """A part of the facts: the item of a list."""

    part: str
    index: Annotated[int, msgspec.Meta(ge=0, lt=_MOST_FACTS)]
    facts: dict[str, Any]


class ProcessTreatments:
    """The reports and facts of one process."""

    def __init__(self) -> None:
        self._reports: dict[TreatedReport, int] = {}  # the highest count by report
        self._facts: dict[str, dict[int, Any]] = {}  # by part and index

    def take_report(self, text: str) -> None:
        """Take a report of a treatment; one of another form is ignored."""
        try:
            report = msgspec.convert(json.loads(text), TreatedReport)
        except (ValueError, RecursionError):
            return
        key = msgspec.structs.replace(report, count=1)
        if key in self._reports or len(self._reports) < _MOST_REPORTS:
            self._reports[key] = max(self._reports.get(key, 0), report.count)

    def take_facts(self, text: str) -> None:
        """Take a part of the facts; it replaces an earlier one of the same place in its list."""
        try:
            report = msgspec.convert(json.loads(text), _FactReport)
            kind = _PARTS[report.part]
            facts = msgspec.convert(report.facts, kind)
        except (ValueError, KeyError, RecursionError):
            return
        self._facts.setdefault(report.part, {})[report.index] = facts

    def reports(self) -> Iterator[TreatedReport]:
        """Yield the reports, each with its count."""
        for report, count in self._reports.items():
            yield msgspec.structs.replace(report, count=count)

    def script_facts(self) -> ScriptFacts:
        """Return the facts that have come so far."""
        lists: dict[str, list[Any]] = {}
        for part in _PARTS:
            items = self._facts.get(part, {})
            lists[part] = [items[index] for index in sorted(items)]
        settings = lists["settings"]
        return ScriptFacts(
            loaders=lists["loaders"],
            optimizers=lists["optimizers"],
            roots=lists["roots"],
            ddp=lists["ddp"],
            settings=settings[0] if settings else SettingFacts(),
        )


def merge_reports(processes: Iterable[ProcessTreatments]) -> list[TreatedReport]:
    """Return the reports of several processes; equal ones become one, with the sum of counts."""
    counts: dict[TreatedReport, int] = {}
    for process in processes:
        for report in process.reports():
            if report.treatment == _UPLOADS:
                continue
            key = msgspec.structs.replace(report, count=1)
            counts[key] = counts.get(key, 0) + report.count
    return [msgspec.structs.replace(report, count=count) for report, count in counts.items()]


def switched_off(processes: Iterable[ProcessTreatments]) -> list[str]:
    """Return what the processes switched off, such as uploads, each once."""
    words: dict[str, None] = {}
    for process in processes:
        for report in process.reports():
            if report.treatment == _UPLOADS:
                words[report.did or report.why] = None
    return list(words)
