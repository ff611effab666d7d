"""The line above the panes of a run that is queued: its place, behind whom it waits, and whether the queue is paused."""

from pathlib import Path

from textual import work
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tuilab.tui.looks.marks import plain

_POLL_S = 1.0


class WaitingLine(Static):
    """Hidden unless the run is queued; then it looks at the queue each second."""

    DEFAULT_CSS = """
    WaitingLine { height: auto; display: none; background: $surface; padding: 0 1; }
    WaitingLine.is-needed { display: block; }
    """

    class Looked(Message):
        """Where the run stands in the queue now."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    def __init__(self, run_dir: Path) -> None:
        super().__init__()
        self._run_dir = run_dir
        self._is_queued = False

    def on_mount(self) -> None:
        self._polling = self.set_interval(_POLL_S, self._look, pause=True)

    def tell(self, *, is_queued: bool) -> None:
        """Look at the queue from now on, or no more."""
        if is_queued == self._is_queued:
            return
        self._is_queued = is_queued
        if is_queued:
            self._polling.resume()
            self._look()
        else:
            self._polling.pause()
            self.remove_class("is-needed")

    @work(thread=True, exclusive=True, group="look")
    def _look(self) -> None:
        from tuilab.engine.turn import where_it_waits  # what only a queued run needs

        self.post_message(self.Looked(where_it_waits(self._run_dir)))

    def on_waiting_line_looked(self, message: Looked) -> None:
        message.stop()
        words = message.words if self._is_queued else ""
        self.set_class(bool(words), "is-needed")
        keys = ("  Q", "bold $text-accent"), (" queue", "$text-muted")
        self.update(Content.assemble(plain(words, 600), *keys))
