"""Find out on which GPU a run compares arms now, from the records of its workers.

A race is a comparison whose arms are timed in turn. A loop may log millions of records, and
watching it must cost nothing. So the streams are searched for a few words, at most some megabytes
each half second, and only matching lines are decoded.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tuilab.record import events
from tuilab.record.gpus.raced_gpu import torch_uuid
from tuilab.storage.files import open_regular

_MARKS = (b'"k":"race_started"', b'"k":"race_finished"', b'"k":"environment_recorded"')
_CHUNK = 4 * 1024 * 1024  # bytes of a stream that are searched at a time
_KINDS = events.RaceStarted | events.RaceFinished | events.EnvironmentRecorded
_decode = msgspec.json.Decoder(_KINDS).decode


class Raced(NamedTuple):
    """The GPU of a race, and whether the race is running in the latest worker."""

    uuid: str = ""  # as torch names it; empty: unknown
    is_going_on: bool = False


class RacedGpu:
    """Follows the streams of the workers of a run."""

    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / "journal"
        self._offsets: dict[str, int] = {}  # by stream: bytes that were searched
        self._raced = Raced()
        self._is_apart = False  # the arms of the race have processes of their own
        self._facts: dict[str, dict[str, Any]] = {}  # by stream: the CUDA facts of its torch

    def read(self) -> Raced:
        """Read what is new in the streams, and return the current race.

        A race ends when its worker records that, or when the next worker begins.
        """
        with suppress(OSError):
            for name in sorted(filter(_is_worker, os.listdir(self._folder)), key=_number):
                if name not in self._offsets:  # a race may have ended with its worker
                    self._raced = self._raced._replace(is_going_on=False)
                for line in self._lines(name):
                    self._take(name, line)
        return self._raced

    def _lines(self, name: str) -> Iterator[bytes]:
        """Yield the new complete lines of a stream that contain one of the _MARKS.

        At most _CHUNK bytes are read; the next call continues there. Raises OSError if reading
        fails.
        """
        offset = self._offsets.setdefault(name, 0)
        path = self._folder / name
        if path.stat().st_size <= offset:
            return
        with open(open_regular(path), "rb") as file:
            file.seek(offset)
            chunk = file.read(_CHUNK)
        lines = chunk[: chunk.rfind(b"\n") + 1]
        self._offsets[name] = offset + len(lines)
        if not any(mark in lines for mark in _MARKS):
            return
        for line in lines.split(b"\n"):
            if any(mark in line for mark in _MARKS):
                yield line

    def _take(self, stream: str, line: bytes) -> None:
        """Update the race by one line of a stream; a line that is no such record is ignored."""
        try:
            record = _decode(line[9:])  # after the checksum
        except (msgspec.MsgspecError, ValueError):
            return
        match record:
            case events.EnvironmentRecorded(part="cuda"):
                self._facts[stream] = record.facts
                if self._is_apart or record.facts.get("chosen"):
                    self._note(torch_uuid("", record.facts), is_going_on=False)
            case events.RaceStarted():
                self._is_apart = record.device == events.OWN_PROCESS
                if record.uuid or record.device.startswith("cuda"):
                    self._note(
                        torch_uuid(record.uuid, self._facts.get(stream, {})), is_going_on=True
                    )
            case events.RaceFinished():
                self._is_apart = False
                self._raced = self._raced._replace(is_going_on=False)

    def _note(self, uuid: str, *, is_going_on: bool) -> None:
        if uuid:
            self._raced = Raced(uuid, is_going_on)


def _is_worker(name: str) -> bool:
    return name.startswith("worker-") and name.endswith(".jsonl")


def _number(name: str) -> tuple[int, str]:
    """Return the sort key of a stream: workers are numbered in the order of their start."""
    digits = name.removeprefix("worker-").partition(".")[0].partition("-")[0]
    return (int(digits) if digits.isdecimal() else 0), name
