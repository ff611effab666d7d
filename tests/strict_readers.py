"""Readers that find what is wrong with a file: JUnit's XML, trace events, events of TensorBoard.

The reader of JUnit knows what the schemas of Jenkins and Ant have in common, and checks the totals.
The reader of traces knows Chrome's description of the format. It also checks that the events of a
lane do not cross each other, because Perfetto refuses that.
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
_ROUNDING_US = 1e-3
_FIELDS = {"X": {"ts", "dur"}, "M": {"args"}, "i": {"ts", "s"}, "C": {"ts", "args"}}


def junit_faults(text: str) -> list[str]:
    """Return what a strict reader of JUnit's XML finds wrong."""
    root = ElementTree.fromstring(text)
    faults = []
    if root.tag != "testsuites":
        faults.append(f"the root is {root.tag}")
    for element in root.iter():
        faults += _element_faults(element)
    cases = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    if len(set(cases)) < len(cases):
        faults.append("two cases have one name")
    return faults


def _element_faults(element: ElementTree.Element) -> list[str]:
    """Return what is wrong with the attributes and children of an element, and with its totals."""
    tag = element.tag
    names = set(element.keys())
    needed, allowed = _ATTRIBUTES[tag]
    faults = [f"{tag}: lacks {name}" for name in needed - names]
    faults += [f"{tag}: has {name}" for name in names - needed - allowed]
    for child in element:
        if child.tag not in _INSIDE.get(tag, ()):
            faults.append(f"{tag}: has {child.tag}")
    for name, form in _FORMS.items():
        value = element.get(name)
        if value is not None and not form.fullmatch(value):
            faults.append(f"{tag}: {name} is {value}")
    if tag.startswith("testsuite"):
        for name, counted_tag in _TOTALS.items():
            total = element.get(name)
            count = len(list(element.iter(counted_tag)))
            if total is not None and total != str(count):
                faults.append(f"{tag}: {name} is {total} of {count}")
    return faults


def trace_faults(document: dict[str, Any]) -> list[str]:
    """Return what a strict reader of trace events finds wrong."""
    faults = []
    named_pids = set()
    lanes: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in document["traceEvents"]:
        faults += _event_faults(event)
        if event["name"] == "process_name":
            named_pids.add(event["pid"])
        if event["ph"] == "X":
            lane = lanes.setdefault((event["pid"], event["tid"]), [])
            lane.append((event["ts"], event["ts"] + event["dur"]))
    pids_of_lanes = {pid for pid, _ in lanes}
    faults += [f"{pid} has no name" for pid in pids_of_lanes - named_pids]
    for (pid, tid), spans in lanes.items():
        faults += [f"{pid} {tid}: events cross at {began}" for began in _crossings(spans)]
    return faults


def _event_faults(event: dict[str, Any]) -> list[str]:
    """Return which fields of an event are missing, and which of its times are impossible."""
    phase = event["ph"]
    needed = {"ph", "name", "pid", "tid"} | _FIELDS[phase]
    faults = [f"{phase}: lacks {name}" for name in needed - event.keys()]
    for name in ("ts", "dur"):
        if name in event and not 0 <= event[name] < math.inf:
            faults.append(f"{name} is {event[name]}")
    return faults


def _crossings(spans: list[tuple[float, float]]) -> list[float]:
    """Return the begin of each span that begins within another one and ends after it."""
    crossings: list[float] = []
    open_ends: list[float] = []  # of the spans around this one
    for began, ended in sorted(spans, key=_outer_first):
        while open_ends and open_ends[-1] <= began + _ROUNDING_US:
            open_ends.pop()
        if open_ends and ended > open_ends[-1] + _ROUNDING_US:
            crossings.append(began)
        open_ends.append(ended)
    return crossings


def _outer_first(span: tuple[float, float]) -> tuple[float, float]:
    began, ended = span
    return began, -ended


# ---- the files of TensorBoard, whose records are protocol buffers


def scalars_of(data: bytes) -> list[tuple[str, int, float, float]]:
    """Return tag, step, value and time of every number in a file of events.

    Fail if a checksum is wrong.
    """
    scalars = []
    for number, record in enumerate(_records(data)):
        event = dict(_fields(record))
        if number == 0:
            assert event[3] == b"brain.Event:2"
        if 5 not in event:
            continue
        summary = dict(_fields(event[5]))
        value = dict(_fields(summary[1]))
        if 2 in value:
            (wall_s,) = struct.unpack("<d", event[1])
            (number_logged,) = struct.unpack("<f", value[2])
            tag = value[1].decode()
            scalars.append((tag, _to_signed(event[2]), number_logged, wall_s))
    return scalars


def _to_signed(value: int) -> int:
    """Return a number of 64 bits as one with a sign."""
    return value - 2**64 if value >= 2**63 else value


def _records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a file. Fail if a checksum is wrong."""
    start = 0
    while start < len(data):
        head_end = start + 8
        (length,) = struct.unpack_from("<Q", data, start)
        _check_sum(data, start, head_end)
        body_start = head_end + 4  # the checksum of the length has 4 bytes
        body_end = body_start + length
        _check_sum(data, body_start, body_end)
        yield data[body_start:body_end]
        start = body_end + 4


def _check_sum(data: bytes, start: int, end: int) -> None:
    """Fail if the checksum behind some bytes is not theirs."""
    (checksum,) = struct.unpack_from("<I", data, end)
    assert checksum == _masked(crc32c(data[start:end])), f"checksum at {end}"


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes, bit by bit."""
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum ^= byte
        for _ in range(8):
            is_odd = checksum & 1
            checksum >>= 1
            if is_odd:
                checksum ^= 0x82F63B78
    return checksum ^ 0xFFFFFFFF


def _masked(checksum: int) -> int:
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a protocol buffer."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire_type = key & 7
        if wire_type == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire_type == 2:
            length, at = _varint(data, at)
        else:
            length = {1: 8, 5: 4}[wire_type]
        assert at + length <= len(data), "a field is cut short"
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of variable length that begins at a position, and where it ends."""
    value = 0
    for count in range(10):
        byte = data[at + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value & 2**64 - 1, at + count + 1
    raise AssertionError("a number of more than ten bytes")
