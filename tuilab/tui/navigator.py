"""The part of the app that the screens and the palette use.

With it, they need not know the app itself, which opens them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tuilab.tui.state.session import Session

if TYPE_CHECKING:
    from textual.screen import Screen

    from tuilab.catalogue.scenario import Value
    from tuilab.engine.messages import RunOrder


class Navigator(Protocol):
    """The app as a screen sees it."""

    desk: Session

    @property
    def is_stalled(self) -> bool: ...

    @property
    def is_link_slow(self) -> bool: ...

    @property
    def has_pending_keys(self) -> bool: ...

    @property
    def bytes_sent(self) -> int: ...

    def call_after_first_frame(self, act: Callable[[], object]) -> None: ...

    def may_change(self) -> bool: ...

    def run_orders(self, orders: "list[RunOrder]") -> None: ...

    def open_run(self, run_dir: Path, *, is_replay: bool = False) -> None: ...

    def show_instead(self, run_dir: Path) -> None: ...

    def open_form(
        self, scenario: str, values: "dict[str, Value]", *, is_quick: bool = False
    ) -> None: ...

    def open_next_lesson(self) -> None: ...

    def open_compare(self, run_dirs: list[Path]) -> None: ...

    def action_step_back(self) -> None: ...

    def tell(self, text: str, *, is_problem: bool = True) -> None: ...

    def clear_old_messages(self, page: "Screen[None]") -> None: ...

    def edit(self, path: str, line: int = 1) -> bool: ...

    def show_in_pager(self, text: str) -> str: ...

    def alert(self, text: str) -> None: ...

    def choose_theme(self, name: str) -> None: ...

    def copy(self, text: str) -> None: ...
