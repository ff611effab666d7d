"""The file in which the memory of past runs is kept: what of it is not asked for is not decoded.

Its first line is the last verdict on each scenario, the second names the runs, how many bytes each takes on disk, and how long
its row is; then there is a row for each. Each of them is sealed by itself. Kept free of slow imports.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from tuilab.files import Unusable, read_small, replace, sealed, unsealed
from tuilab.runs.last_verdicts import FINAL, Said

if TYPE_CHECKING:
    from tuilab.runs.listing.entry import Entry

_FORMAT = 11  # another number for each other form, and for each other field of an entry
FILE = f".ledger-{_FORMAT}.json"
_LIMIT = 64 * 1024 * 1024
_SIZE = 9  # where bytes_total stands in an entry: it is in the second line


class Rows(NamedTuple):
    """What is kept of the runs that are over."""

    data: bytes = b""
    places: Mapping[str, tuple[int, int]] = {}  # by run: where its row begins and ends
    sizes: Mapping[str, int | None] = {}  # by run: the bytes on disk

    def row(self, run: str) -> bytes:
        """Return a row as it stands there."""
        start, end = self.places[run]
        return self.data[start:end]

    def entry(self, run: str) -> "Entry | None":
        """Return what is kept of a run; nothing where there is nothing, or nothing of use."""
        if run not in self.places:
            return None
        from tuilab.runs.listing.entry import from_fields  # `tuilab list` needs none

        with suppress(KeyError, ValueError, TypeError, AttributeError, RecursionError):
            fields = json.loads(unsealed(self.row(run)))
            entry = from_fields([*fields[:_SIZE], self.sizes[run], *fields[_SIZE:]])
            return entry if entry.is_over and entry.run == run else None
        return None


def read_verdicts(root: str) -> dict[str, Said]:
    """Return by run what is said by those that are needed to know the last verdicts; of a file of no use nothing."""
    with suppress(Unusable):
        return read_small(f"{root}/{FILE}", _verdicts, _LIMIT)
    return {}


def read_rows(root: str) -> Rows:
    """Return what is kept of the runs that are over; of a file of no use nothing."""
    with suppress(Unusable):
        return read_small(f"{root}/{FILE}", _rows, _LIMIT)
    return Rows()


def write(root: str | os.PathLike[str], verdicts: Mapping[str, Said], rows: Mapping[str, tuple[bytes, int | None]]) -> None:
    """Replace the file; of each run its row and its bytes on disk are given."""
    first = json.dumps({"verdicts": verdicts}).encode()
    second = json.dumps([[*rows], [size for _, size in rows.values()], [len(row) + 1 for row, _ in rows.values()]]).encode()
    lines = [sealed(first), sealed(second), *(row for row, _ in rows.values())]
    replace(f"{os.fspath(root)}/{FILE}", b"".join(line + b"\n" for line in lines))


def row_of(entry: "Entry") -> bytes:
    """Return what is kept of a run."""
    return sealed(json.dumps([*entry[:_SIZE], *entry[_SIZE + 1 :]]).encode())


def _verdicts(data: bytes) -> dict[str, Said]:
    head = json.loads(unsealed(data[: data.index(b"\n")]))
    verdicts = head.get("verdicts") if isinstance(head, dict) else None
    if not isinstance(verdicts, dict) or not all(map(_is_said, verdicts.values())):
        raise ValueError("it holds no verdicts")
    return {run: Said(*said) for run, said in verdicts.items()}


def _is_said(said: object) -> bool:
    return isinstance(said, list) and len(said) == 2 and all(isinstance(word, str) for word in said) and said[0] in FINAL


def _rows(data: bytes) -> Rows:
    first = data.index(b"\n") + 1
    second = data.index(b"\n", first)
    try:
        runs, sizes, lengths = json.loads(unsealed(data[first:second]))
        if not all(isinstance(size, int | None) for size in sizes) or not all(isinstance(length, int) for length in lengths):
            raise ValueError("it holds no index")
        places = ((start, end - 1) for start, end in pairwise(accumulate(lengths, initial=second + 1)))
        return Rows(data, dict(zip(runs, places, strict=True)), dict(zip(runs, sizes, strict=True)))
    except TypeError as problem:
        raise ValueError("it holds no index") from problem
