"""Turn what a terminal sends into events; a paste is one text, and reports are never keys.

Textual's parser alone would do harm in three ways:
- If the end of a paste is lost, it takes everything typed later for a part of the paste.
- It passes on unknown sequences as single keys. A late answer to a question of the program that ran
  before us would open a screen.
- It raises on numbers that no key has.
"""

import re
import time
from collections.abc import Callable, Generator, Iterator

from textual import events
from textual.message import Message
from textual.messages import InBandWindowResize

from tuilab.text.display import show_lines
from tuilab.tui.terminal.textual_parts import KeyParser

_TOKEN = re.compile(
    "[^\x1b]+"
    r"|\x1b\[M(?s:...)"  # the oldest kind of mouse report
    r"|\x1b\[\[[A-E]"  # function keys of the Linux console
    r"|\x1b\[(?![\[M])[0-?]*[ -/]*[@-~]"
    "|\x1bO[^\x1b]"
    "|\x1b[^\x1b\\[O\\]PX^_]"  # with Alt
    "|\x1b(?=\x1b)"
)
_OPENING = re.compile(r"\x1b\[200~|\x1b[\]PX^_]")
_CLOSING = {True: re.compile(r"\x1b\[201~"), False: re.compile(r"\x07|\x1b\\")}
_LONGEST_CLOSING = 6
_SILENCE_S = 0.1  # if nothing follows an escape for so long, it is the escape key
_LONG_SILENCE_S = 1.0  # if nothing completes a sequence for so long, its rest is lost
_MOST_PASTED = 100_000  # characters
_MALFORMED = (ValueError, OverflowError, ZeroDivisionError)
# Reports that we did not ask for; the system reports the size.
_NOT_TYPED = (
    events.Resize,
    events.CursorPosition,
    InBandWindowResize,
)


class Typed:
    """Turns what a terminal sends into events."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._parser = KeyParser()
        self._held = ""  # the beginning of an incomplete sequence
        self._opening = ""  # the sequence that opened the current paste or string
        self._inside = ""  # the text of that paste or string so far
        self._heard = 0.0

    def feed(self, text: str) -> Iterator[Message]:
        """Yield the events that this text completes."""
        self._heard = self._clock()
        text, self._held = self._held + text, ""
        while text:
            if self._opening:
                text = yield from self._read_on(text)
            elif match := _OPENING.match(text):
                self._opening = match[0]
                text = text[match.end() :]
            elif match := _TOKEN.match(text):
                yield from self._parse(match[0], is_whole=match[0][1:2] in ("[", "O"))
                text = text[match.end() :]
            else:
                self._held, text = text, ""

    @property
    def is_begun(self) -> bool:
        """Whether the last text is incomplete, so that more text or a silence may complete it."""
        return bool(self._opening or self._inside or self._held)

    def tick(self) -> Iterator[Message]:
        """Yield the events that a silence completes.

        These are the escape key, keys with Alt that look like the beginning of a sequence, and a
        paste whose end is lost.
        """
        begun = self._opening + self._inside + self._held
        is_key = len(begun) <= 2
        if not begun or self._clock() - self._heard < (_SILENCE_S if is_key else _LONG_SILENCE_S):
            return
        if is_key or not self._opening:
            self._opening = self._held = ""
            yield from self._parse(begun, is_whole=not is_key)
        else:
            self._keep(self._held)
            self._held = ""
            yield from self._close()

    def _read_on(self, text: str) -> Generator[Message, None, str]:
        """Read more of a paste or a string; return the text after its end."""
        end = _CLOSING[self._is_paste].search(text)
        if end is None:
            self._keep(text[:-_LONGEST_CLOSING])
            self._held = text[-_LONGEST_CLOSING:]
            return ""
        self._keep(text[: end.start()])
        yield from self._close()
        return text[end.end() :]

    @property
    def _is_paste(self) -> bool:
        return len(self._opening) > 2

    def _keep(self, text: str) -> None:
        self._inside += text[: _MOST_PASTED - len(self._inside)]

    def _close(self) -> Iterator[Message]:
        """End a paste or a string; drop a string, because it answers a question we did not ask."""
        if self._is_paste and self._inside:
            yield events.Paste(show_lines(self._inside.replace("\r", "\n")))
        self._opening = self._inside = ""

    def _parse(self, token: str, *, is_whole: bool) -> Iterator[Message]:
        """Yield the events of a sequence or some characters; none for an unknown sequence."""
        messages: list[Message] = []
        try:
            messages += self._parser.feed(token)
        except _MALFORMED:
            self._parser = KeyParser()
        if any(isinstance(event, _NOT_TYPED) for event in messages):
            # From here on the old parser would take positions of the mouse for pixels.
            self._parser = KeyParser()
        if self._parser.is_waiting:
            if is_whole:
                self._parser = KeyParser()
            else:
                messages += self._parser.stop_waiting()
        yield from (_as_meant(event) for event in messages if not isinstance(event, _NOT_TYPED))


def _as_meant(event: Message) -> Message:
    """Return enter for a line feed, and any other event as it is.

    Until the screens take the terminal, the terminal turns a typed enter into a line feed.
    """
    return (
        events.Key("enter", "\r")
        if isinstance(event, events.Key) and event.key == "ctrl+j"
        else event
    )
