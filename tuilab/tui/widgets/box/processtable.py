"""Who computes on this box: the processes of all users on its GPUs; without a GPU those that keep its cores busy."""

from collections.abc import Sequence

from textual.content import Content

from tuilab.probes.processes import Process
from tuilab.tui.looks.marks import plain
from tuilab.tui.state.box.processes import Table
from tuilab.tui.widgets.box.counted import Counted
from tuilab.words import clock, size

_DEVICE = 2  # the column that is as wide as it needs: of slices the end tells one from another
_WIDTHS = (10, 8, 10, 10, 9)  # of all columns but the last, with the gap behind each
_DAY_S = 86400.0


class ProcessTable(Counted):
    """A line a process, below the names of the columns."""

    def __init__(self) -> None:
        super().__init__()
        self._table = Table("processes", (), "reading …")

    def show(self, table: Table) -> None:
        """Show these processes."""
        self._table = table
        self.repaint()

    def lay_out(self, width: int) -> list[Content]:
        table = self._table
        told = [Content.styled(part, "$text-muted") for part in [table.note] if part]
        if not table.rows:
            return [Content.assemble((f"{table.title}  ", "bold"), *told)]
        longest = max(len(device) for device, _ in table.rows)
        widths = [*_WIDTHS[:_DEVICE], max(_WIDTHS[_DEVICE], min(longest, 20) + 1), *_WIDTHS[_DEVICE + 1 :]]
        head = [Content.styled(word, "dim") for word in ("user", "pid", "device", "memory", "age", "command")]
        lines = [head, *(_cells(device, process, width - sum(widths)) for device, process in table.rows)]
        return [*(_columns(cells, widths).truncate(width, ellipsis=True) for cells in lines), *told]


def _cells(device: str, one: Process, room: int) -> Sequence[Content]:
    memory = "n/a" if one.rss_bytes is None else size(one.rss_bytes)
    return [
        plain(one.user or "n/a", 9),
        Content(str(one.pid)),
        plain(device, 20, "$text-primary"),
        Content(memory),
        Content("n/a" if one.age_s is None else _age(one.age_s)),
        plain(_in_short(one.command, room), 300) if one.command else plain(f"n/a: {one.why}", 200, "dim"),
    ]


def _in_short(command: str, room: int) -> str:
    """Return a command; one that is too long without the folders of its program and its script, which many have in common."""
    words = command.split(" ")
    if len(command) <= room or command.startswith("["):  # which is the name of a process without a command
        return command
    script = next((at for at, word in enumerate(words) if at and not word.startswith("-")), 0)
    return " ".join(word.rpartition("/")[2] or word if at in (0, script) else word for at, word in enumerate(words))


def _columns(cells: Sequence[Content], widths: Sequence[int]) -> Content:
    """Return cells below each other's; one that is too long gives way, but for the last."""
    parts = [
        cell.truncate(width - 1, ellipsis=True).pad_right(width - min(cell.cell_length, width - 1))
        for cell, width in zip(cells[:-1], widths, strict=True)
    ]
    return Content("").join([*parts, cells[-1]])


def _age(age_s: float) -> str:
    return f"{age_s / _DAY_S:.1f} d" if age_s >= _DAY_S else clock(age_s)
