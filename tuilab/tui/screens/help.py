"""The Help screen: the keys that work here, the marks, and the equivalent command line."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

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
    RunState.UNKILLABLE: "One of the processes of the run could not be ended.",
    RunState.LOST: "The supervisor of the run is gone; nothing is known after its last record.",
    RunState.UNREADABLE: "The records of the run cannot be read; the reason is next to it.",
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
        """Show the keys of the page below; if that is no page, those of the given place."""
        page_below = self._page_below
        places: list[str] = []
        idle_keys: set[str] = set()
        if page_below is not None:
            places = page_below.places()
            idle_keys = page_below.idle_keys()
        elif self._place in KEYS:
            places = [self._place]

        subject = f"keys of {places[0]}" if places else ""
        title = Content.assemble(("tuilab", "bold"), "  help  ", (subject, "dim"))
        self.heading.show(title, Content.styled("esc closes", "dim"))

        sections = self._list_keys_here(places, idle_keys)
        sections.append(_make_key_section("Everywhere", KEYS["everywhere"]))
        command_line = to_content(self.command(), 400)
        sections.append(Section(_style_title("On the command line"), [(command_line,)]))
        self.query_one("#keys", Sheet).show(sections)
        self.query_one("#marks", Sheet).show(_explain_marks())
        self.query_one("#body").focus()

    def command(self) -> str:
        """Return the command line of the screen below."""
        page_below = self._page_below
        if page_below is None:
            return "tuilab --help"
        return page_below.command()

    @property
    def _page_below(self) -> Page | None:
        """The page on which the user opened the help; None if it was on another kind of screen."""
        screens = self.app.screen_stack
        if self not in screens[1:]:
            return None
        screen_below = screens[screens.index(self) - 1]
        if not isinstance(screen_below, Page):
            return None
        return screen_below

    def _list_keys_here(self, places: Sequence[str], idle_keys: AbstractSet[str]) -> list[Section]:
        """Return a section for each place that has keys, without the idle keys.

        `places` are the place of the user, then the places around it. In read-only mode, the keys
        that change something are left out.
        """
        sections = []
        for index, place in enumerate(places):
            title = place[:1].upper() + place[1:]
            if index == 0:
                title = f"Here: {place}"
            keys = []
            for key in KEYS[place]:
                is_forbidden = self.desk.is_read_only and changes(key, places[index:])
                if not is_forbidden and key.key not in idle_keys:
                    keys.append(key)
            if keys:
                sections.append(_make_key_section(title, keys))
        return sections


def _make_key_section(title: str, keys: Sequence[Key]) -> Section:
    rows = []
    for key in keys:
        name = Content.styled(shown(key).rjust(11), "bold $text-accent")
        rows.append((name, Content(key.help)))
    return Section(_style_title(title), rows)


def _explain_marks() -> list[Section]:
    """Return the sections that explain verdicts, states, and other signs on the screens."""
    verdicts = [(verdict_words(verdict), Content(text)) for verdict, text in _VERDICTS.items()]
    pending = Content.assemble(mark("pending"), " pending")
    verdicts.append((pending, Content("Not judged yet.")))
    states = [(state_words(state), Content(text)) for state, text in _STATES.items()]
    also = [(Content.styled(sign, "bold"), Content(text)) for sign, text in _ALSO.items()]
    return [
        Section(_style_title("Verdicts on claims"), verdicts),
        Section(_style_title("States of runs"), states),
        Section(_style_title("Also"), also),
    ]


def _style_title(text: str) -> Content:
    return Content.styled(text, "bold $text-primary")
