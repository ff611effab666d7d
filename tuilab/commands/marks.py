"""Read the marks that the processes of a command write, in order, and each file once.

A mark is an event, such as a step, that the watcher in a process writes into a slot of a file.
"""

import json
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tuilab.commands.cpu.core_time import CoreTimeReading
from tuilab.commands.facts.compiled_graphs import CompiledGraphs
from tuilab.commands.facts.counted_steps import CountedParts
from tuilab.commands.facts.exchange import GradientExchange
from tuilab.commands.facts.treated import ProcessTreatments
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.storage.files import open_regular

_MOST_PROCESSES = 10_000  # of one command
_TEXT_LIMIT = 4_000  # bytes of a text in a file of marks
_SMALL_FILE_LIMIT = 1_000  # bytes
_LARGEST = 2**62  # the largest integer that a fact may have
_MOST_GROUPS = 100  # of facts, such as those of a loader
_NUMBER = re.compile(r"[0-9]{1,18}")  # of a process, or of a file
UNKNOWN_NS = -1
_NO_REASON = "it could not write the reason; the disk of the run may be full"


class Mark(NamedTuple):
    """One mark; layout.py describes its fields."""

    began: int
    ended: int
    value: float
    number: int
    name: int
    flags: int
    kind: int
    gpu_ns: int | None = None  # how long the marked work took on a GPU
    # On the GPU since the end of the previous timed mark; UNKNOWN_NS if that end was not timed.
    gpu_since_ns: int | None = None
    reading: CoreTimeReading | None = None  # CPU times, read after a step of an optimizer


@dataclass
class MarkedProcess:
    """A process with marks: its facts, the names of its ids, and how far it was read."""

    pid: int
    hello: dict[str, Any] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    losses: dict[int, int] = field(default_factory=dict)  # lost marks, by first file of a program
    unnamed: int = 0  # values whose name was lost
    trouble: str = ""  # why the process is not watched, or only in part
    compiled: CompiledGraphs = field(default_factory=CompiledGraphs)
    treatments: ProcessTreatments = field(default_factory=ProcessTreatments)
    exchange: GradientExchange = field(default_factory=GradientExchange)
    counted: CountedParts = field(default_factory=CountedParts)
    file: int = 0
    slot: int = layout.FIRST
    written: int = layout.FIRST  # slots written at the last read, so they are complete now

    @property
    def lost(self) -> int:
        """The number of marks that were lost on a full disk, of all programs of the process."""
        return sum(self.losses.values())

    @property
    def has_torch(self) -> bool:
        """Whether the process has loaded torch. A script may call `tuilab.log` without torch."""
        return bool(self.hello.get("torch"))

    @property
    def rank(self) -> str:
        return str(self.hello.get("rank", ""))[:12]

    @property
    def is_of_several(self) -> bool:
        """Whether the process is one of several ranks."""
        return self.hello.get("world") not in ("", "1", None)


class MarksFolder:
    """The folder with the marks of all processes of a command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[int, MarkedProcess] = {}
        self.is_gone = False  # the folder was removed

    def read(self, *, is_last: bool = False) -> Iterator[tuple[MarkedProcess, list[Mark]]]:
        """Yield the new marks of each process, and remove the files that were read to their end.

        The newest marks may be incomplete. They are left for the next read, unless this is the last
        read. Facts about a process, the names of ids and its losses are kept in `processes`.
        """
        for pid, numbers in self._files(is_last=is_last).items():
            process = self.processes.setdefault(pid, MarkedProcess(pid))
            for number in sorted(numbers):
                if number < process.file:
                    continue
                if number > process.file:
                    process.file = number
                    process.slot = layout.FIRST
                    process.written = layout.FIRST
                is_finished = number < max(numbers)  # the process writes into a later file now
                marks = self._read_file(process, is_last=is_last or is_finished)
                if marks:
                    yield process, marks
                if is_finished:
                    self._remove(process)

    def _files(self, *, is_last: bool) -> dict[int, list[int]]:
        """Return the numbers of the files of each process.

        This also notes why a process could not write any: it writes the reason into PID.trouble.
        """
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
                reason = self.read_text(name)
                if not process.trouble:
                    process.trouble = reason or ""
                if is_last and reason == "":
                    process.trouble = _NO_REASON
        return files

    def read_text(self, name: str) -> str | None:
        """Return the beginning of a small regular file in the folder; None if it cannot be read."""
        try:
            with open(open_regular(self.folder / name), "rb") as file:
                return file.read(_SMALL_FILE_LIMIT).decode(errors="replace")
        except OSError:
            return None

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.folder))
        except OSError:  # the folder was removed
            self.is_gone = True
            return []

    def _read_file(self, process: MarkedProcess, *, is_last: bool) -> list[Mark]:
        """Return the new marks of the current file of a process; none if it cannot be read.

        The number of lost marks, which the head of the file has, is noted.
        """
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
        """Return the complete marks in `data`, which begins at the next slot of the process.

        A slot counts as complete if it was written at the previous read already. Texts are noted.
        """
        first = process.slot
        slots = []
        for begin in range(0, len(data) - layout.SLOT + 1, layout.SLOT):
            slots.append(data[begin : begin + layout.SLOT])
        if is_last:
            written = first + len(slots)
            whole = written
        else:
            written = first + _count_written(data)
            whole = min(process.written, written)
        process.written = written
        marks: list[Mark] = []
        while process.slot < whole:
            mark = Mark(*layout.MARK.unpack(slots[process.slot - first]))
            next_slot = process.slot + 1
            if mark.kind in layout.TEXTS:
                text_slot = next_slot
                next_slot += layout.slots_for(min(mark.number, _TEXT_LIMIT))
                if next_slot > whole and not is_last:
                    break
                text = b"".join(slots[text_slot - first : next_slot - first])
                self._take_text(process, mark, text)
            elif 0 < mark.kind < layout.TEXT:
                marks.append(mark)
            process.slot = next_slot
        return marks

    def _take_text(self, process: MarkedProcess, mark: Mark, data: bytes) -> None:
        """Note the text of a mark: the name of an id, or facts about the process.

        Facts that are no JSON object are ignored.
        """
        text = layout.text_of(data, mark.number).decode(errors="replace")
        if mark.kind == layout.NAME:
            process.names[mark.name] = text
            return
        takers = {
            layout.COMPILED: process.compiled.take,
            layout.EXCHANGED: process.exchange.take,
            layout.COUNTED: process.counted.take,
            layout.TREATED: process.treatments.take_report,
            layout.SCRIPT_FACTS: process.treatments.take_facts,
        }
        if mark.kind in takers:
            takers[mark.kind](text)
            return
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


def _plain_facts(hello: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that a record can hold: texts, whole numbers, and groups of facts.

    Others are dropped, because a script may have changed them to anything.
    """
    facts: dict[str, Any] = {}
    for name, value in hello.items():
        if isinstance(value, str):
            facts[name] = value.encode(errors="replace").decode()
        elif isinstance(value, int) and abs(value) < _LARGEST:
            facts[name] = value
        elif isinstance(value, list):
            groups = [group for group in value[:_MOST_GROUPS] if isinstance(group, dict)]
            facts[name] = [_plain_facts(group) for group in groups]
    return facts


def _count_written(data: bytes) -> int:
    """Return the number of written slots before the first empty one."""
    kinds = data[layout.SLOT - 1 :: layout.SLOT]
    end = kinds.find(0)
    return len(kinds) if end < 0 else end
