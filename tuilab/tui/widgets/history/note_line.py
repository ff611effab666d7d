"""Notes and tags from the screens: a line to type, and the same file that `tuilab note` writes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from tuilab.errors import UsageError
from tuilab.runs import notes, store
from tuilab.runs.entry import RunEntry
from tuilab.text.display import join, plural
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import to_content
from tuilab.tui.state.history_reader import HistoryReader
from tuilab.tui.widgets.dialog import Dialog, first_of
from tuilab.tui.widgets.filterline import Completion, last_word_completed
from tuilab.tui.widgets.history.runline import named
from tuilab.tui.widgets.keybar import answers

_NAMED = 3  # notes of a run


class WrittenLine(Dialog[str]):
    """A line to be typed; nothing where the user has thought better of it."""

    PLACE: ClassVar[str] = "written line"
    BINDINGS = bindings("written line")

    def __init__(
        self,
        title: str,
        about: Sequence[str],
        hint: str,
        check: Callable[[str], None],
        known: Sequence[str] = (),
    ) -> None:
        super().__init__(title)
        self._about, self._hint, self._check = about, hint, check
        self._known = known  # words that may be meant

    def compose_box(self) -> ComposeResult:
        yield Static(
            Content("\n").join(to_content(line, 200, "$text-muted") for line in self._about)
        )
        completion = Completion(lambda typed: last_word_completed(typed, self._known))
        line = Input(
            placeholder=self._hint, compact=True, suggester=completion if self._known else None
        )
        line.cursor_blink = False
        yield line
        yield Static(id="problem")
        yield Static(answers(self.PLACE))

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the line; one that cannot be written stays, with the reason below it."""
        try:
            self._check(line := event.value.strip())
        except UsageError as problem:
            self.tell_problem(problem)
        else:
            self.dismiss(line)

    def action_give_up(self) -> None:
        self.dismiss("")


def line_for(what: str, entries: Sequence[RunEntry], known: HistoryReader) -> WrittenLine:
    """Return the line for a note, or for tags, of some runs; above it stands what was written before, or which they are."""
    if len(entries) > 1:
        name, written, before = plural(len(entries), "run"), notes.Notes(), first_of(named(entries))
    else:
        name, written, before = store.short_id(entries[0].run), known.notes_of(entries[0].run), []
    if what == "tags":
        before += [f"now: {' '.join('#' + tag for tag in written.tags)}"] if written.tags else []
        hint = "tags to add; !tag removes a tag"
        return WrittenLine(f"Tags of {name}", before, hint, _check_tags, known.tags)
    before += [f"{notes.day(when)}  {text}" for when, text in written.texts[-_NAMED:]]
    return WrittenLine(f"Note on {name}", before, "text of the note", _check_note)


def _tags(line: str) -> tuple[list[str], list[str]]:
    """Return the tags of a line that are put on, and those that are taken off."""
    words = [word.lstrip("#") for word in line.split()]
    return [word for word in words if word[:1] != "!"], [
        word[1:].lstrip("#") for word in words if word[:1] == "!"
    ]


def _check_tags(line: str) -> None:
    notes.check("", *_tags(line))


def _check_note(line: str) -> None:
    notes.check(line, (), ())


def write(what: str, root: Path, runs: Sequence[str], line: str) -> str:
    """Write a line onto runs and say so; UsageError where a word cannot be a tag."""
    put, off = _tags(line)
    for run in runs:
        if what == "tags":
            notes.add(root / run, tags=put, untags=off)
        else:
            notes.add(root / run, line)
    of = store.short_id(runs[0]) if len(runs) == 1 else plural(len(runs), "run")
    return (
        f"tagged {of}: {join([*put, *(f'!{tag}' for tag in off)])}"
        if what == "tags"
        else f"added the note to {of}"
    )
