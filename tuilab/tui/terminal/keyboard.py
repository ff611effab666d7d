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
_PASTE_END = re.compile(r"\x1b\[201~")
_STRING_END = re.compile(r"\x07|\x1b\\")
_LONGEST_CLOSING = 6
_SILENCE_S = 0.1  # if nothing follows an escape for so long, it is the escape key
_LONG_SILENCE_S = 1.0  # if nothing completes a sequence for so long, its rest is lost
_MOST_PASTED = 100_000  # characters
_MALFORMED = (ValueError, OverflowError, ZeroDivisionError)
# Reports that we did not ask for; the system reports the size.
_NOT_TYPED = (events.Resize, events.CursorPosition, InBandWindowResize)


class Typed:
    """Turns what a terminal sends into events."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._parser = KeyParser()
        self._rest = ""  # the beginning of an incomplete sequence
        self._opening = ""  # the sequence that opened the current paste or string
        self._inside = ""  # the text of that paste or string so far
        self._last_fed_s = 0.0

    def feed(self, text: str) -> Iterator[Message]:
        """Yield the events that this text completes."""
        self._last_fed_s = self._clock()
        text = self._rest + text
        self._rest = ""
        while text:
            if self._opening:
                text = yield from self._read_on(text)
            elif match := _OPENING.match(text):
                self._opening = match[0]
                text = text[match.end() :]
            elif match := _TOKEN.match(text):
                token = match[0]
                yield from self._parse(token, is_whole=token[1:2] in ("[", "O"))
                text = text[match.end() :]
            else:
                self._rest = text
                return

    @property
    def is_begun(self) -> bool:
        """Whether the last text is incomplete, so that more text or a silence may complete it."""
        return bool(self._opening or self._inside or self._rest)

    def tick(self) -> Iterator[Message]:
        """Yield the events that a silence completes.

        These are the escape key, keys with Alt that look like the beginning of a sequence, and a
        paste whose end is lost.
        """
        begun = self._opening + self._inside + self._rest
        if not begun:
            return
        is_key = len(begun) <= 2
        silence_s = _SILENCE_S if is_key else _LONG_SILENCE_S
        if self._clock() - self._last_fed_s < silence_s:
            return
        if is_key or not self._opening:
            self._opening = ""
            self._rest = ""
            yield from self._parse(begun, is_whole=not is_key)
        else:
            self._add_inside(self._rest)
            self._rest = ""
            yield from self._close()

    def _read_on(self, text: str) -> Generator[Message, None, str]:
        """Read more of a paste or a string; return the text after its end."""
        end_pattern = _PASTE_END if self._is_paste else _STRING_END
        end = end_pattern.search(text)
        if end is None:
            self._add_inside(text[:-_LONGEST_CLOSING])
            self._rest = text[-_LONGEST_CLOSING:]
            return ""
        self._add_inside(text[: end.start()])
        yield from self._close()
        return text[end.end() :]

    @property
    def _is_paste(self) -> bool:
        return len(self._opening) > 2

    def _add_inside(self, text: str) -> None:
        room = _MOST_PASTED - len(self._inside)
        self._inside += text[:room]

    def _close(self) -> Iterator[Message]:
        """End a paste or a string; drop a string, because it answers a question we did not ask."""
        if self._is_paste and self._inside:
            pasted = self._inside.replace("\r", "\n")
            yield events.Paste(show_lines(pasted))
        self._opening = ""
        self._inside = ""

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
        for event in messages:
            if isinstance(event, events.Key) and event.key == "ctrl+j":
                # Until the screens take the terminal, it turns a typed enter into a line feed.
                yield events.Key("enter", "\r")
            elif not isinstance(event, _NOT_TYPED):
                yield event
