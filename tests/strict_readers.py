"""Readers that say what is wrong with a file: of JUnit's XML, trace events and the events of TensorBoard.

Of JUnit they know what the schemas of Jenkins and of Ant have in common, and that totals are totals; of a trace what Chrome's
description of the format demands, and that events of a lane lie within or beside each other, which Perfetto wants.
"""

import math
import re
import struct
from collections.abc import Iterator
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
        found += [
            f"{element.tag}: has {inner.tag}"
            for inner in element
            if inner.tag not in _INSIDE.get(element.tag, ())
        ]
        for name, form in _FORMS.items():
            if not form.fullmatch(
                element.get(name, "1.000" if name == "time" else "2026-01-01T00:00:00")
            ):
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
        found += [
            f"{name} is {event[name]}"
            for name in ("ts", "dur")
            if name in event and not 0 <= event[name] < math.inf
        ]
        if event["name"] == "process_name":
            named.add(event["pid"])
        if event["ph"] == "X":
            lanes.setdefault((event["pid"], event["tid"]), []).append(
                (event["ts"], event["ts"] + event["dur"])
            )
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


# ---- the files of TensorBoard, whose records are protocol buffers


def scalars_of(data: bytes) -> list[tuple[str, int, float, float]]:
    """Return the tag, step, value and time of every number in a file of events, after a look at each checksum."""
    found = []
    for number, record in enumerate(_records(data)):
        event = dict(_fields(record))
        assert number or event[3] == b"brain.Event:2"
        value = dict(_fields(dict(_fields(event[5]))[1])) if 5 in event else {}
        if 2 in value:
            (wall_s,), (simple,) = struct.unpack("<d", event[1]), struct.unpack("<f", value[2])
            found.append(
                (value[1].decode(), event[2] - (2**64 if event[2] >= 2**63 else 0), simple, wall_s)
            )
    return found


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        parts = [(data[at : at + 8], at + 8), (data[at + 12 : at + 12 + length], at + 12 + length)]
        for part, end in parts:
            assert struct.unpack_from("<I", data, end)[0] == _masked(crc32c(part)), (
                f"checksum at {end}"
            )
        yield parts[1][0]
        at += length + 16


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes, bit by bit."""
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def _masked(checksum: int) -> int:
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        length, at = _varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
        assert at + length <= len(data), "a field is cut short"
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = 0
    for count in range(10):
        found |= (data[at + count] & 0x7F) << 7 * count
        if data[at + count] < 0x80:
            return found & 2**64 - 1, at + count + 1
    raise AssertionError("a number of more than ten bytes")
