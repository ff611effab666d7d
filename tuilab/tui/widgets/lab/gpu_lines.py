"""The GPUs of the box below the field of the device: what is free on each, which card it is, and who is on it."""

from textual.content import Content

from tuilab.tui.looks.marks import plain
from tuilab.tui.looks.reading import fold
from tuilab.tui.state.gpus import GpuList, ListedGpu

_NARROW = 44  # columns that a GPU wants beside the names of the fields
_INDENT = 4


def gpu_lines(found: GpuList, chosen: str, column: int, width: int) -> list[Content]:
    """Return a line for each GPU, or two where one is too short, then what is not known; they begin at a column if they can."""
    indent = column if width - column >= _NARROW else _INDENT
    labels, free, names = (
        max((len(getattr(gpu, part)) for gpu in found.gpus), default=0) for part in ("label", "free", "name")
    )
    rows = [(gpu, f"{gpu.label:{labels}}  {gpu.free:{free}}  {gpu.name:{names}}") for gpu in found.gpus]
    is_short = any(len(words) + 2 + len(gpu.who) > width - indent for gpu, words in rows)
    lines = [line for gpu, words in rows for line in _lines(gpu, words, labels if is_short else 0, gpu.label == chosen)]
    notes = [line for note in found.notes for line in fold(plain(note, 400, "$text-muted"), width - indent)]
    return [Content(" " * indent) + line.truncate(width - indent, ellipsis=True) for line in [*lines, *notes]]


def _lines(gpu: ListedGpu, words: str, below: int, is_chosen: bool) -> list[Content]:
    """Return what there is to say of a GPU in one line; in two, the second of which begins `below` its name."""
    style = "bold $text-accent" if is_chosen else "$text-muted"
    if not below:
        return [plain(f"{words}  {gpu.who}", None, style)]
    who = [] if gpu.who == "nobody" else [plain(f"{'':{below}}  {gpu.who}", None, style)]
    return [plain(words.rstrip(), None, style), *who]
