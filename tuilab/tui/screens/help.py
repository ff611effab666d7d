"""The Help screen: the keys that work here, the marks, and the equivalent command line."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict
from tuilab.tui.keys import KEYS, Key, bindings
from tuilab.tui.looks.marks import mark, state_words, to_content, verdict_words
from tuilab.tui.screens.page import Page
from tuilab.tui.shown_keys import changes, shown
from tuilab.tui.widgets.sheet import Section, Sheet

_VERDICTS = {
    Verdict.SUPPORTED: "The claim holds, with at least the claimed size.",
    Verdict.WEAKER: "The effect exists, but it is smaller than claimed.",
    Verdict.NO_DIFFERENCE: "The difference is too small to matter.",
    Verdict.REFUTED: "The measurement contradicts the claim.",
    Verdict.INCONCLUSIVE: "Not decided yet; the verdict says what is missing.",
    Verdict.INVALID: (
        "A control failed, or the arms computed different results: no verdict can be trusted."
    ),
    Verdict.NOT_TESTABLE: "The machine lacks something, or the claim is about other values.",
}
_STATES = {
    RunState.QUEUED: "Waiting until its device is free.",
    RunState.STARTING: "The processes of the run are starting.",
    RunState.RUNNING: "Running; it continues if you leave.",
    RunState.STOPPING: "The run was asked to stop.",
    RunState.SUCCEEDED: "The run finished, whatever its verdicts are.",
    RunState.FAILED: "The scenario raised an error, or its process exited with an error code.",
    RunState.STOPPED: "Somebody stopped the run.",
    RunState.KILLED: "The run ran out of time or memory, or a signal ended it.",
    RunState.LOST: "The supervisor of the run is gone; nothing is known after its last record.",
}
_ALSO = {
    "*": "A marked run: marked runs are compared or deleted together.",
    "n/a": "Not known; the reason is next to it. It never means 0.",
    "[low, high]": "The interval that contains the true value, at the confidence of the verdict.",
    "tuilab 9 %": (
        "CPU use of tuilab in % of a core, and the data it sends to this terminal; shown while a"
        " run is running."
    ),
}


class HelpPage(Page):
    """Lists the keys of the table in `keys.py`; those of the screen below come first."""

    PLACE = "help"
    BINDINGS = bindings("help")
    DEFAULT_CSS = """
    HelpPage #body { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    HelpPage.-wide #body { layout: horizontal; }
    HelpPage.-wide Sheet { width: 1fr; padding: 0 2 0 0; }
    HelpPage #marks { padding: 1 0 0 0; }
    HelpPage.-wide #marks { padding: 0; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(id="body"):
            yield Sheet(id="keys")
            yield Sheet(id="marks")

    def on_mount(self) -> None:
        below = self._below
        places = below.places() if below else [self._place] if self._place in KEYS else []
        title = Content.assemble(
            ("tuilab", "bold"), "  help  ", (f"keys of {places[0]}" if places else "", "dim")
        )
        self.heading.show(title, Content.styled("esc closes", "dim"))
        command = Section(
            Content.styled("On the command line", "bold $text-primary"),
            [(to_content(self.command(), 400),)],
        )
        idle = below.idle_keys() if below else set()
        titles = [
            f"Here: {place}" if index == 0 else place[:1].upper() + place[1:]
            for index, place in enumerate(places)
        ]
        keys_of_places = [
            [key for key in self._of(place, places[index:]) if key.key not in idle]
            for index, place in enumerate(places)
        ]
        keys = [
            _keys(title, keys_of_place)
            for title, keys_of_place in zip(titles, keys_of_places, strict=True)
            if keys_of_place
        ]
        self.query_one("#keys", Sheet).show(
            [*keys, _keys("Everywhere", KEYS["everywhere"]), command]
        )
        self.query_one("#marks", Sheet).show(_marks())
        self.query_one("#body").focus()

    def command(self) -> str:
        """Return the command line of the screen below."""
        return self._below.command() if self._below else "tuilab --help"

    def _of(self, place: str, places: Sequence[str]) -> list[Key]:
        """Return the keys of a place; in read-only mode, without those that change something.

        `places` are the place itself and the places around it.
        """
        return [key for key in KEYS[place] if not (self.desk.is_read_only and changes(key, places))]

    @property
    def _below(self) -> Page | None:
        """The page on which the user opened the help; None if it was on another kind of screen."""
        screens = self.app.screen_stack
        below = screens[screens.index(self) - 1] if self in screens[1:] else None
        return below if isinstance(below, Page) else None


def _keys(title: str, keys: Sequence[Key]) -> Section:
    rows = [
        (Content.styled(shown(key).rjust(11), "bold $text-accent"), Content(key.help))
        for key in keys
    ]
    return Section(Content.styled(title, "bold $text-primary"), rows)


def _marks() -> list[Section]:
    verdicts = [(verdict_words(verdict), Content(words)) for verdict, words in _VERDICTS.items()]
    waiting = (Content.assemble(mark("pending"), " pending"), Content("Not judged yet."))
    states = [(state_words(state), Content(words)) for state, words in _STATES.items()]
    also = [(Content.styled(sign, "bold"), Content(words)) for sign, words in _ALSO.items()]
    return [
        Section(Content.styled("Verdicts on claims", "bold $text-primary"), [*verdicts, waiting]),
        Section(Content.styled("States of runs", "bold $text-primary"), states),
        Section(Content.styled("Also", "bold $text-primary"), also),
    ]
