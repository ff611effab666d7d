"""A menu in the middle of the screen."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import to_content
from tuilab.tui.widgets.dialog import Dialog
from tuilab.tui.widgets.keybar import answers
from tuilab.tui.widgets.lines import PickList


class Item(NamedTuple):
    """A line of a menu: its kind, its words, and the text that is the answer."""

    kind: str
    words: str
    text: str


class Menu(Dialog[str]):
    """Answers with the text of the chosen line; with an empty text if the user cancels."""

    PLACE: ClassVar[str] = "menu"
    BINDINGS = bindings("menu")
    DEFAULT_CSS = """
    Menu > Vertical { width: 100; }
    Menu Static { height: 1; }
    """

    def __init__(self, title: str, items: Sequence[Item]) -> None:
        super().__init__(title)
        self._items = items

    def compose_box(self) -> ComposeResult:
        self._list = _Items(self._items)
        self._list.styles.height = "auto"
        self._list.styles.max_height = max(self.app.size.height * 9 // 10 - 3, 1)
        yield self._list
        yield Static(answers(self.PLACE))

    def on_mount(self) -> None:
        self._list.focus()

    def on_pick_list_chosen(self) -> None:
        self.action_choose()

    def action_choose(self) -> None:
        """Answer with the text of the line at the cursor; in an empty menu, as if cancelled."""
        if not self._items:
            self.dismiss("")
            return
        self.dismiss(self._items[self._list.cursor].text)

    def action_give_up(self) -> None:
        self.dismiss("")


class _Items(PickList):
    def __init__(self, items: Sequence[Item]) -> None:
        super().__init__()
        self._items = items

    @property
    def count(self) -> int:
        return len(self._items)

    def get_content_height(self, *_: object) -> int:
        return self.count

    def lay_out(self, width: int) -> Sequence[Content]:
        """Return a line for each item: its kind in a column, then its words."""
        longest_kind = max((len(item.kind) for item in self._items), default=0)
        column = longest_kind + 2
        lines = []
        for item in self._items:
            kind = to_content(item.kind.ljust(column), 40, "$text-muted")
            line = kind + to_content(item.words, 400)
            lines.append(line.truncate(width, ellipsis=True))
        return lines
