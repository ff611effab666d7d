"""The Help screen: the keys of where one is, what the marks mean, and the command line that does the same."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict
from tuilab.tui.keys import KEYS, Key, bindings
from tuilab.tui.looks.marks import mark, plain, state_words, verdict_words
from tuilab.tui.screens.page import Page
from tuilab.tui.shown_keys import changes, shown
from tuilab.tui.widgets.sheet import Section, Sheet

_VERDICTS = {
    Verdict.SUPPORTED: "The measurement bears the claim out, in the size that was claimed.",
    Verdict.WEAKER: "There is such an effect, but a smaller one.",
    Verdict.NO_DIFFERENCE: "The two are equal, as far as it matters.",
    Verdict.REFUTED: "The measurement says otherwise.",
    Verdict.INCONCLUSIVE: "It cannot be told yet; how much more it needs is said.",
    Verdict.INVALID: "A control failed, or the two did not compute the same: no verdict can be trusted.",
    Verdict.NOT_TESTABLE: "The machine lacks something, or other values are meant.",
}
_STATES = {
    RunState.QUEUED: "It waits until others have done with the device that it needs for itself.",
    RunState.STARTING: "The processes of the run come up.",
    RunState.RUNNING: "It goes on, and goes on when you leave.",
    RunState.STOPPING: "It was asked to stop.",
    RunState.SUCCEEDED: "It came to its end, whatever its claims came to.",
    RunState.FAILED: "The scenario raised an error, or ended with one.",
    RunState.STOPPED: "Somebody stopped it.",
    RunState.KILLED: "It ran out of time or memory, or a signal ended it.",
    RunState.LOST: "Its supervisor is gone; what happened after its last record is not known.",
}
_ALSO = {
    "*": "A run that is marked, to be compared or deleted with others.",
    "n/a": "Not known; the reason stands beside it. It never means 0.",
    "[low, high]": "The interval that the true value lies in, at the confidence of the verdict.",
    "tuilab 9 %": "What tuilab itself takes of a core; then what it sends to this terminal. Told while a run goes on.",
}


class HelpPage(Page):
    """Lists keys from the one registry; those of the place that was left come first."""

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
        title = Content.assemble(("tuilab", "bold"), "  help  ", (f"keys of {places[0]}" if places else "", "dim"))
        self.heading.show(title, Content.styled("esc closes", "dim"))
        command = Section(Content.styled("On the command line", "bold $text-primary"), [(plain(self.command(), 400),)])
        idle = below.idle_keys() if below else set()
        titles = [f"Here: {place}" if at == 0 else place[:1].upper() + place[1:] for at, place in enumerate(places)]
        known = [[key for key in self._of(place, places[at:]) if key.key not in idle] for at, place in enumerate(places)]
        keys = [_keys(title, found) for title, found in zip(titles, known, strict=True) if found]
        self.query_one("#keys", Sheet).show([*keys, _keys("Everywhere", KEYS["everywhere"]), command])
        self.query_one("#marks", Sheet).show(_marks())
        self.query_one("#body").focus()

    def command(self) -> str:
        """Return the command line of the screen below."""
        return self._below.command() if self._below else "tuilab --help"

    def _of(self, place: str, places: Sequence[str]) -> list[Key]:
        """Return the keys of a place that may be used; `places` are that one and those around it."""
        return [key for key in KEYS[place] if not (self.desk.is_read_only and changes(key, places))]

    @property
    def _below(self) -> Page | None:
        """The screen that help was asked for on."""
        screens = self.app.screen_stack
        below = screens[screens.index(self) - 1] if self in screens[1:] else None
        return below if isinstance(below, Page) else None


def _keys(title: str, keys: Sequence[Key]) -> Section:
    rows = [(Content.styled(shown(key).rjust(11), "bold $text-accent"), Content(key.help)) for key in keys]
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
