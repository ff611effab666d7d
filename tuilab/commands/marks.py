"""Reads the marks that the processes of a command leave: what is new of each, in order, each file once."""

import json
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tuilab.commands.cpu.core_time import CoreTimeReading
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.storage.files import open_regular

_MOST_PROCESSES = 10_000  # of one command
_TEXT_LIMIT = 4_000
_SAID_LIMIT = 1_000
_LARGEST = 2**62  # that a fact may be
_MOST_GROUPS = 100  # of facts, such as those of a loader
_NUMBER = re.compile(r"[0-9]{1,18}")  # of a process, or of a file
_NO_WORD = "it could not write the reason; the disk of the run may be full"


class Mark(NamedTuple):
    """One mark; see layout.py for what its fields hold."""

    began: int
    ended: int
    value: float
    number: int
    name: int
    flags: int
    kind: int
    gpu_ns: int | None = None  # how long it took on a GPU
    gpu_since_ns: int | None = None  # and how long it was there since the end of the one before
    reading: CoreTimeReading | None = None  # of the CPU time, when an optimizer had stepped


@dataclass
class MarkedProcess:
    """A process that left marks: what it said of itself, what its ids mean, and how far it was read."""

    pid: int
    hello: dict[str, Any] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    losses: dict[int, int] = field(
        default_factory=dict
    )  # marks without room, by the first file of a program
    unnamed: int = 0  # values whose name had no room
    trouble: str = ""  # why nothing is watched in it, or only a part
    file: int = 0
    slot: int = layout.FIRST
    seen: int = (
        layout.FIRST
    )  # slots that were written when one looked last: what is in them is whole

    @property
    def lost(self) -> int:
        """Return how many marks had no room on the disk, of all programs that it executed."""
        return sum(self.losses.values())

    @property
    def has_torch(self) -> bool:
        """Whether it has loaded torch: without it a script may still call `tuilab.log`."""
        return bool(self.hello.get("torch"))

    @property
    def rank(self) -> str:
        return str(self.hello.get("rank", ""))[:12]

    @property
    def is_of_several(self) -> bool:
        """Whether it is one of several ranks."""
        return self.hello.get("world") not in ("", "1", None)


class MarksFolder:
    """The folder that the processes of a command leave marks in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[int, MarkedProcess] = {}
        self.is_gone = False  # nothing more can be read

    def read(self, *, is_last: bool = False) -> Iterator[tuple[MarkedProcess, list[Mark]]]:
        """Yield what is new of each process; what was written just now is left for the next time, but for the last."""
        for pid, numbers in self._files(is_last=is_last).items():
            process = self.processes.setdefault(pid, MarkedProcess(pid))
            for number in sorted(numbers):
                if number < process.file:
                    continue
                if number > process.file:
                    process.file, process.slot, process.seen = number, layout.FIRST, layout.FIRST
                is_whole = number < max(numbers)  # its process writes into a later file
                if marks := self._read_file(process, is_last=is_last or is_whole):
                    yield process, marks
                if is_whole:
                    self._remove(process)

    def _files(self, *, is_last: bool) -> dict[int, list[int]]:
        """Return the numbers of the files of each process; note what kept a process from leaving any."""
        files: dict[int, list[int]] = {}
        for name in self._names():
            pid, _, number = name.partition(".")
            if not _NUMBER.fullmatch(pid):
                continue
            if _NUMBER.fullmatch(number):
                if int(pid) in files or len(files) < _MOST_PROCESSES:
                    files.setdefault(int(pid), []).append(int(number))
            elif number == "trouble" and len(self.processes) < _MOST_PROCESSES:
                process = self.processes.setdefault(int(pid), MarkedProcess(int(pid)))
                if not process.trouble:
                    process.trouble = self.said(name) or ""
                if is_last and self.said(name) == "":
                    process.trouble = _NO_WORD
        return files

    def said(self, name: str) -> str | None:
        """Return the beginning of a small file in the folder; None where there is none: a FIFO may stand in its place."""
        try:
            with open(open_regular(self.folder / name), "rb") as file:
                return file.read(_SAID_LIMIT).decode(errors="replace")
        except OSError:
            return None

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.folder))
        except OSError:  # somebody has removed it
            self.is_gone = True
            return []

    def _read_file(self, process: MarkedProcess, *, is_last: bool) -> list[Mark]:
        """Return the next marks of a file."""
        try:
            with open(open_regular(self._path(process)), "rb") as file:
                file.seek(process.slot * layout.SLOT)
                data = file.read(layout.SIZE - process.slot * layout.SLOT)
                file.seek(0)
                magic, lost, first = layout.HEAD.unpack(file.read(layout.HEAD.size))
        except (OSError, struct.error):
            return []
        if magic == layout.MAGIC and lost:
            process.losses[first] = max(process.losses.get(first, 0), lost)
        return self._take(process, data, is_last=is_last)

    def _take(self, process: MarkedProcess, data: bytes, *, is_last: bool) -> list[Mark]:
        first = process.slot
        slots = [
            data[begin : begin + layout.SLOT]
            for begin in range(0, len(data) - layout.SLOT + 1, layout.SLOT)
        ]
        written = first + (len(slots) if is_last else _written(data))
        whole, process.seen = (written if is_last else min(process.seen, written)), written
        marks: list[Mark] = []
        while process.slot < whole:
            mark = Mark(*layout.MARK.unpack(slots[process.slot - first]))
            behind = process.slot + 1
            if mark.kind in (layout.HELLO, layout.NAME):
                behind += layout.slots_for(min(mark.number, _TEXT_LIMIT))
                if behind > whole and not is_last:
                    break
                self._take_text(
                    process, mark, b"".join(slots[process.slot + 1 - first : behind - first])
                )
            elif 0 < mark.kind < layout.TEXT:
                marks.append(mark)
            process.slot = behind
        return marks

    def _take_text(self, process: MarkedProcess, mark: Mark, data: bytes) -> None:
        text = layout.text_of(data, mark.number).decode(errors="replace")
        if mark.kind == layout.NAME:
            process.names[mark.name] = text
        else:
            try:
                facts = json.loads(text)
            except (ValueError, RecursionError):
                return
            if isinstance(facts, dict):
                process.hello = _plain_facts(facts)

    def _path(self, process: MarkedProcess) -> Path:
        return self.folder / f"{process.pid}.{process.file}"

    def _remove(self, process: MarkedProcess) -> None:
        try:
            self._path(process).unlink()
        except OSError:
            return


def _plain_facts(said: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that a record can hold: a script may have written anything in the place of a hello."""
    facts: dict[str, Any] = {}
    for name, value in said.items():
        if isinstance(value, str):
            facts[name] = value.encode(errors="replace").decode()
        elif isinstance(value, int) and abs(value) < _LARGEST:
            facts[name] = value
        elif isinstance(value, list):
            groups = [group for group in value[:_MOST_GROUPS] if isinstance(group, dict)]
            facts[name] = [_plain_facts(group) for group in groups]
    return facts


def _written(data: bytes) -> int:
    """Return how many slots were written, without gaps."""
    kinds = data[layout.SLOT - 1 :: layout.SLOT]
    end = kinds.find(0)
    return len(kinds) if end < 0 else end
