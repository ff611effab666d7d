"""Which GPU the run races on at this moment, as its workers' records say: found by a search for two words, not by reading all.

A loop may log millions of records, and what watches it must cost nothing: their bytes are looked through, a few megabytes each
half second at most, and only lines that may tell of a GPU are decoded.
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
_PORTION = 4 * 1024 * 1024
_KINDS = events.RaceStarted | events.RaceFinished | events.EnvironmentRecorded
_decode = msgspec.json.Decoder(_KINDS).decode


class Raced(NamedTuple):
    """The GPU of a race by torch's name of it, and whether the race goes on in the worker that began last."""

    uuid: str = ""  # empty: not known
    is_going_on: bool = False


class RacedGpu:
    """Follows the workers of a run; `read` returns what they have said by now."""

    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / "journal"
        self._at: dict[str, int] = {}  # stream: bytes that were looked through
        self._raced = Raced()
        self._is_apart = False  # the race is between arms in processes of their own
        self._facts: dict[str, dict[str, Any]] = {}  # stream: what its torch said of CUDA

    def read(self) -> Raced:
        with suppress(OSError):
            for name in sorted(filter(_is_worker, os.listdir(self._folder)), key=_number):
                if (
                    name not in self._at
                ):  # a race that went on in another worker may have ended with it
                    self._raced = self._raced._replace(is_going_on=False)
                for line in self._lines(name):
                    self._take(name, line)
        return self._raced

    def _lines(self, name: str) -> Iterator[bytes]:
        """Yield the whole lines of a stream that were not seen yet and have one of the marks."""
        at = self._at.setdefault(name, 0)
        path = self._folder / name
        if path.stat().st_size <= at:
            return
        with open(open_regular(path), "rb") as file:
            file.seek(at)
            portion = file.read(_PORTION)
        whole = portion[: portion.rfind(b"\n") + 1]
        self._at[name] = at + len(whole)
        if any(mark in whole for mark in _MARKS):
            yield from (line for line in whole.split(b"\n") if any(mark in line for mark in _MARKS))

    def _take(self, stream: str, line: bytes) -> None:
        try:
            record = _decode(line[9:])  # behind its checksum
        except (msgspec.MsgspecError, ValueError):
            return
        match record:
            case events.EnvironmentRecorded(part="cuda"):
                self._facts[stream] = record.facts
                if self._is_apart or record.facts.get("chosen"):
                    self._note(torch_uuid("", record.facts), is_going_on=False)
            case events.RaceStarted():
                self._is_apart = record.device == "process"
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
    """Return the place of a stream among those of workers, which are numbered as they began."""
    digits = name.removeprefix("worker-").partition(".")[0].partition("-")[0]
    return (int(digits) if digits.isdecimal() else 0), name
