"""Readers of two formats that say what is wrong with a file, for what no program at hand does: JUnit's XML and trace events.

Of JUnit they know what the schemas of Jenkins and of Ant have in common, and that totals are totals; of a trace what Chrome's
description of the format demands, and that events of a lane lie within or beside each other, which Perfetto wants.
"""

import math
import re
from typing import Any
from xml.etree import ElementTree

_ATTRIBUTES = {  # of each element: those that it must have, and those that it may have
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
    ),
    "properties": (set(), set()),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname"}, {"time"}),
    "failure": ({"type"}, {"message"}),
    "error": ({"type"}, {"message"}),
    "skipped": (set(), {"type", "message"}),
    "system-out": (set(), set()),
}
_INSIDE = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}
_TOTALS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
_FORMS = {
    "time": re.compile(r"[0-9]{1,12}\.[0-9]{3}"),
    "timestamp": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"),
}
_FIELDS = {"X": {"ts", "dur"}, "M": {"args"}, "i": {"ts", "s"}, "C": {"ts", "args"}}


def junit_faults(text: str) -> list[str]:
    """Return what a strict reader of JUnit's XML finds wrong."""
    root = ElementTree.fromstring(text)
    found = [] if root.tag == "testsuites" else [f"the root is {root.tag}"]
    for element in root.iter():
        needed, allowed = _ATTRIBUTES[element.tag]
        found += [f"{element.tag}: lacks {name}" for name in needed - set(element.keys())]
        found += [f"{element.tag}: has {name}" for name in set(element.keys()) - needed - allowed]
        found += [f"{element.tag}: has {inner.tag}" for inner in element if inner.tag not in _INSIDE.get(element.tag, ())]
        for name, form in _FORMS.items():
            if not form.fullmatch(element.get(name, "1.000" if name == "time" else "2026-01-01T00:00:00")):
                found.append(f"{element.tag}: {name} is {element.get(name)}")
        for name, tag in _TOTALS.items():
            count, told = sum(1 for _ in element.iter(tag)), element.get(name)
            if element.tag.startswith("testsuite") and told not in (None, str(count)):
                found.append(f"{element.tag}: {name} is {told} of {count}")
    cases = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    return found + (["two cases have one name"] if len(set(cases)) < len(cases) else [])


def trace_faults(document: dict[str, Any]) -> list[str]:
    """Return what a strict reader of trace events finds wrong."""
    found, named = [], set()
    lanes: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in document["traceEvents"]:
        lacking = ({"ph", "name", "pid", "tid"} | _FIELDS[event["ph"]]) - event.keys()
        found += [f"{event['ph']}: lacks {name}" for name in lacking]
        found += [f"{name} is {event[name]}" for name in ("ts", "dur") if name in event and not 0 <= event[name] < math.inf]
        if event["name"] == "process_name":
            named.add(event["pid"])
        if event["ph"] == "X":
            lanes.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    found += [f"{pid} has no name" for pid in {pid for pid, _ in lanes} - named]
    for (pid, tid), stretches in lanes.items():
        found += [f"{pid} {tid}: events cross at {began}" for began in _crossings(stretches)]
    return found


def _crossings(stretches: list[tuple[float, float]]) -> list[float]:
    """Return where a stretch begins within another one and ends after it; a thousandth of a microsecond is rounding."""
    found: list[float] = []
    around: list[float] = []
    for began, ended in sorted(stretches, key=lambda one: (one[0], -one[1])):
        while around and around[-1] <= began + 1e-3:
            around.pop()
        if around and ended > around[-1] + 1e-3:
            found.append(began)
        around.append(ended)
    return found
