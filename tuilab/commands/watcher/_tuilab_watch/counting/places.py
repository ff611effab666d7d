"""Find the lines of the script that copy between host and device, or read a value of a tensor."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from types import FrameType
from typing import Any

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MOST_PLACES = 50
_MOST_PACKAGES = 20
_MOST_SHOWN = 6
_LONGEST_PATH = 200
_LONGEST_LINE = 100
_LARGEST_SOURCE = 2_000_000  # bytes
READ = ".item()"
# Files of torch that only pass on what their caller asks for. A formatted tensor reads its value,
# and `module.to(device)` copies its parameters.
_PASSING_ON = ("_tensor.py", "_tensor_str.py", os.path.join("nn", "modules", "module.py"))


class Places:
    """The copies and reads of one step, by the line of the script that makes them."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._torch_folder = os.path.dirname(torch.__file__) + os.sep
        self._installed = _installed_folders()
        # By file, line, kind and memory: how often, and bytes.
        self._by_place: dict[tuple[str, int, str, str], list[int]] = {}
        # By name of a package: copies, and reads.
        self._by_package: dict[str, list[int]] = {}
        self._lock = threading.Lock()
        aten = torch.ops.aten
        self._takers = {
            aten._local_scalar_dense.default: self._take_read,
            aten._to_copy.default: self._take_new_copy,
            aten.copy_.default: self._take_copy,
            aten.lift_fresh.default: self._take_new_tensor,
        }

    def take(self, operator: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Note an operator that has run, if it is a copy or a read."""
        taker = self._takers.get(operator)
        if taker is not None:
            taker(args, kwargs, result)

    def _take_read(self, args: Any, kwargs: Any, result: Any) -> None:
        device = args[0].device.type
        if device != "meta":
            self._note(READ, device, args[0])

    def _take_new_copy(self, args: Any, kwargs: Any, result: Any) -> None:
        is_late = bool(kwargs.get("non_blocking"))
        self._note_copy(args[0], result, is_late=is_late)

    def _take_copy(self, args: Any, kwargs: Any, result: Any) -> None:
        is_late = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking"))
        self._note_copy(args[1], args[0], is_late=is_late)

    def _take_new_tensor(self, args: Any, kwargs: Any, result: Any) -> None:
        """Note a tensor that `torch.tensor(numbers, device=...)` makes on the host and copies."""
        if args[0].device.type not in ("cpu", "meta"):
            self._note("host to device", "pageable", args[0])

    def _note_copy(self, source: Any, target: Any, *, is_late: bool) -> None:
        """Note a copy, if it is between the host and another device."""
        types = (source.device.type, target.device.type)
        if "meta" in types or types[0] == types[1] or "cpu" not in types:
            return
        kind = "host to device" if types[0] == "cpu" else "device to host"
        on_host = source if types[0] == "cpu" else target
        memory = "pageable"
        if on_host.is_pinned():
            memory = "pinned, non_blocking" if is_late else "pinned"
        self._note(kind, memory, source)

    def _note(self, kind: str, memory: str, tensor: Any) -> None:
        frame, package = self._caller()
        size = tensor.numel() * tensor.element_size()
        with self._lock:
            if package:
                if package in self._by_package or len(self._by_package) < _MOST_PACKAGES:
                    counts = self._by_package.setdefault(package, [0, 0])
                    is_on_device = kind != READ or memory != "cpu"
                    counts[kind == READ] += is_on_device
                return
            if frame is None:
                return
            key = frame.f_code.co_filename, frame.f_lineno, kind, memory
            if key in self._by_place or len(self._by_place) < _MOST_PLACES:
                sums = self._by_place.setdefault(key, [0, 0])
                sums[0] += 1
                sums[1] += size

    def _caller(self) -> tuple[FrameType | None, str]:
        """Return the frame of the script that asks for an operator, or the package that does.

        Neither is returned if torch itself asks for it, as an optimizer does.
        """
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith((_OWN_FOLDER, "<frozen")):
                frame = frame.f_back
                continue
            if path.startswith(self._torch_folder):
                if not path.endswith(_PASSING_ON):
                    return None, ""
                frame = frame.f_back
                continue
            package = self._package_of(path)
            if package is None:
                return frame, ""
            if package:
                return None, package
            frame = frame.f_back  # of the standard library
        return None, ""

    def _package_of(self, path: str) -> str | None:
        """Return the installed package of a file; empty for Python's own, None for the script."""
        for folder, is_standard in self._installed:
            if path.startswith(folder):
                if is_standard:
                    return ""
                name = path[len(folder) :].partition(os.sep)[0]
                return name.partition(".py")[0][:40]
        return None

    def as_facts(self) -> dict[str, Any]:
        """Return the facts for a mark: the lines that do most, the sums, and the packages."""
        shown = []
        totals = {"copies": 0, "reads": 0}
        for (path, line, kind, memory), (count, size) in self._by_place.items():
            if kind == READ and memory == "cpu":
                is_noted = False  # reading a value on the host costs nothing
            else:
                is_noted = True
                totals["reads" if kind == READ else "copies"] += count
            shown.append((is_noted, count, size, path, line, kind, memory))
        shown.sort(key=lambda place: (place[0], place[1], place[2]), reverse=True)
        places = []
        for _, count, size, path, line, kind, memory in shown[:_MOST_SHOWN]:
            place = {
                "file": path[-_LONGEST_PATH:],
                "line": line,
                "source": _source_line(path, line),
                "kind": kind,
                "memory": memory,
                "count": count,
                "bytes": size,
            }
            places.append(place)
        packages = [
            {"package": name, "copies": counts[0], "reads": counts[1]}
            for name, counts in list(self._by_package.items())[:5]
            if any(counts)
        ]
        return {"places": places, "packages": packages, **totals}


def _installed_folders() -> list[tuple[str, bool]]:
    """Return the folders of installed packages, and those of Python itself.

    The folder of the packages usually lies within that of Python, so it comes first.
    """
    paths = sysconfig.get_paths()
    folders = []
    for names, is_standard in ((("purelib", "platlib"), False), (("stdlib", "platstdlib"), True)):
        for name in names:
            folder = paths.get(name)
            if folder:
                folders.append((folder.rstrip(os.sep) + os.sep, is_standard))
    for path in sys.path:
        if path.rstrip(os.sep).endswith(("site-packages", "dist-packages")):
            folders.insert(0, (path.rstrip(os.sep) + os.sep, False))
    return folders


def _source_line(path: str, number: int) -> str:
    """Return a line of a file; empty if it cannot be read."""
    try:
        if os.path.getsize(path) > _LARGEST_SOURCE:
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            for index, line in enumerate(file, 1):
                if index == number:
                    return line.strip()[:_LONGEST_LINE]
    except (OSError, ValueError):
        return ""
    return ""
