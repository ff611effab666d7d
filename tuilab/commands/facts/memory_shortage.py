"""Read who held the memory of a GPU when torch could not allocate more, and describe it.

The watcher writes this at each such error. The script runs in the same process, so it may have
written anything.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from tuilab.commands.watcher._tuilab_watch.out_of_memory import ENDING
from tuilab.record import events
from tuilab.storage.files import read_regular
from tuilab.text.display import plural, show
from tuilab.text.words import size

_MOST_BYTES = 64 * 1024  # of a file
_MOST_KINDS = 10
_MOST_BLOCKS = 20
_Bytes = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class Shortage(msgspec.Struct, frozen=True):
    """The last error of a process, in bytes."""

    device: Annotated[int, msgspec.Meta(ge=0, lt=10_000)]
    count: _Bytes  # errors so far
    requested: _Bytes
    allocated: _Bytes
    reserved: _Bytes
    free: _Bytes  # on the GPU, for all processes
    kinds: dict[str, _Bytes] = {}
    blocks: list[tuple[_Bytes, str, str]] = []  # size, kind, and shape or line of the script


def read_shortages(folder: Path) -> Iterator[tuple[int, Shortage]]:
    """Yield the processes that ran out of memory, each with its last error.

    A file that does not have this form is left out.
    """
    for path in sorted(folder.glob(f"*.{ENDING}")):
        if not path.stem.isdecimal():
            continue
        try:
            text = read_regular(path, _MOST_BYTES)
            yield int(path.stem), msgspec.json.decode(text, type=Shortage)
        except (OSError, ValueError, RecursionError):
            continue


def records_of(shortage: Shortage, arm: str) -> Iterator[events.Event]:
    """Yield the records of an error: a sentence, and tables of the kinds and the blocks."""
    title = "out of memory"
    if arm:
        title += f", {arm}"
    yield events.TextShown(text=describe(shortage), title=title)
    rows: list[list[events.Cell]] = []
    for kind, held in list(shortage.kinds.items())[:_MOST_KINDS]:
        rows.append([show(kind, 60), size(held), _share(held, shortage.reserved)])
    unused = max(shortage.reserved - shortage.allocated, 0)
    rows.append(["reserved by torch, but free", size(unused), _share(unused, shortage.reserved)])
    yield events.TableShown(title=f"{title}: who held it", rows=rows, head=["", "bytes", "share"])
    blocks: list[list[events.Cell]] = []
    for held, kind, words in shortage.blocks[:_MOST_BLOCKS]:
        blocks.append([size(held), show(kind, 60), show(words, 200)])
    if blocks:
        head = ["bytes", "kind", "what"]
        yield events.TableShown(title=f"{title}: largest blocks", rows=blocks, head=head)


def describe(shortage: Shortage) -> str:
    """Return in sentences what was asked for, what torch had, and who held most of it."""
    sentences = [
        f"cuda:{shortage.device} had {size(shortage.free)} free when torch needed "
        f"{size(shortage.requested)} more; torch held {size(shortage.reserved)}, of which "
        f"{size(shortage.allocated)} were in use"
    ]
    if shortage.kinds:
        kind, held = max(shortage.kinds.items(), key=lambda entry: entry[1])
        sentences.append(f"most of it: {show(kind, 60)}, {size(held)}")
    unused = shortage.reserved - shortage.allocated
    if unused >= shortage.requested:
        sentences.append(
            "torch had enough free memory, but in pieces: "
            "try PYTORCH_ALLOC_CONF=expandable_segments:True"
        )
    if shortage.count > 1:
        sentences.append(f"this was the last of {plural(shortage.count, 'such error')}")
    return "\n".join(sentences)


def _share(part: int, whole: int) -> str:
    if not whole:
        return "n/a"
    return f"{100 * part / whole:.0f} %"
