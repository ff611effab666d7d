"""Write notes and tags from a screen, into the same file as `tuilab note`."""

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
from tuilab.tui.widgets.dialog import Dialog, shorten_list
from tuilab.tui.widgets.filterline import Completion, complete_last_word
from tuilab.tui.widgets.history.runline import describe_runs
from tuilab.tui.widgets.keybar import answers

_SHOWN_NOTES = 3  # of a run, the newest


class WrittenLine(Dialog[str]):
    """Asks for a line of text. Answers with an empty text if the user cancels."""

    PLACE: ClassVar[str] = "written line"
    BINDINGS = bindings("written line")

    def __init__(
        self,
        title: str,
        about: Sequence[str],
        hint: str,
        check: Callable[[str], None],
        completions: Sequence[str] = (),
    ) -> None:
        """Ask for a line; `check` raises UsageError if the line cannot be written.

        `about` are the lines above it, and `completions` the words that complete it.
        """
        super().__init__(title)
        self._about = about
        self._hint = hint
        self._check = check
        self._completions = completions

    def compose_box(self) -> ComposeResult:
        """Yield the lines above, the line to type in, its problem, and the keys."""
        about_lines = [to_content(line, 200, "$text-muted") for line in self._about]
        yield Static(Content("\n").join(about_lines))
        suggester = None
        if self._completions:
            suggester = Completion(lambda text: complete_last_word(text, self._completions))
        line = Input(placeholder=self._hint, compact=True, suggester=suggester)
        line.cursor_blink = False
        yield line
        yield Static(id="problem")
        yield Static(answers(self.PLACE))

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the line. A line that cannot be written stays, with the reason below it."""
        line = event.value.strip()
        try:
            self._check(line)
        except UsageError as problem:
            self.show_problem(problem)
        else:
            self.dismiss(line)

    def action_give_up(self) -> None:
        self.dismiss("")


def line_for(kind: str, entries: Sequence[RunEntry], reader: HistoryReader) -> WrittenLine:
    """Return the question for a note or for tags of some runs; `kind` is "tags" or "note".

    Above the line are the old notes or tags of the run. For several runs, their names are there.
    """
    if len(entries) == 1:
        name = store.short_id(entries[0].run)
        old_notes = reader.notes_of(entries[0].run)
        about = []
    else:
        name = plural(len(entries), "run")
        old_notes = notes.Notes()
        about = shorten_list(describe_runs(entries))
    if kind == "tags":
        if old_notes.tags:
            tags = " ".join(f"#{tag}" for tag in old_notes.tags)
            about.append(f"now: {tags}")
        hint = "tags to add; !tag removes a tag"
        return WrittenLine(f"Tags of {name}", about, hint, _check_tags, reader.tags)
    for written_at, text in old_notes.texts[-_SHOWN_NOTES:]:
        about.append(f"{notes.day(written_at)}  {text}")
    return WrittenLine(f"Note on {name}", about, "text of the note", _check_note)


def _split_tags(line: str) -> tuple[list[str], list[str]]:
    """Return the tags of a line that are added, and those that are removed."""
    added = []
    removed = []
    for word in line.split():
        tag = word.lstrip("#")
        if tag.startswith("!"):
            removed.append(tag[1:].lstrip("#"))
        else:
            added.append(tag)
    return added, removed


def _check_tags(line: str) -> None:
    added, removed = _split_tags(line)
    notes.check("", added, removed)


def _check_note(line: str) -> None:
    notes.check(line, (), ())


def write(kind: str, root: Path, runs: Sequence[str], line: str) -> str:
    """Write a line onto runs and return a sentence that says so; `kind` is "tags" or "note".

    Raise UsageError if a word cannot be a tag. If a run cannot be written, the runs before it have
    the line already.
    """
    added, removed = _split_tags(line)
    for run in runs:
        if kind == "tags":
            notes.add(root / run, tags=added, untags=removed)
        else:
            notes.add(root / run, line)
    if len(runs) == 1:
        name = store.short_id(runs[0])
    else:
        name = plural(len(runs), "run")
    if kind != "tags":
        return f"added the note to {name}"
    changes = added + [f"!{tag}" for tag in removed]
    return f"tagged {name}: {join(changes)}"
