"""Every key of every screen, once: the footer, `?`, the palette and the docs are made from this."""

from typing import NamedTuple

from textual.binding import Binding, BindingType


class Key(NamedTuple):
    """A key, what it does, and how that is told."""

    key: str  # as Textual names it
    action: str
    word: str  # in the footer
    help: str  # for `?`: a short sentence
    is_in_footer: bool = True


KEYS: dict[str, tuple[Key, ...]] = {
    "lab": (
        Key("enter", "run", "run", "Run the scenario, or every scenario of the topic, with the form's values."),
        Key("slash", "filter", "filter", "Narrow the list to what contains the words typed."),
        Key("p", "show_part('lesson')", "lesson", "Read the lesson."),
        Key("f", "show_part('form')", "form", "Fill in the form: parameters, repeats, prediction."),
        Key("c", "show_part('code')", "code", "Read the source, with the claims' lines marked."),
        Key("r", "show_part('runs')", "runs", "Past runs of the scenario."),
        Key("k", "toggle_quick", "quick", "Smaller sizes, one process: an answer in seconds; again: the full sizes.", False),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
        Key("n", "next_claim", "next claim", "In the code: the next line that claims or races.", False),
        Key("right", "step_in", "open", "Open the topic; of a scenario, go to what is open on the right.", False),
        Key("left", "step_aside", "aside", "Back to the list; in the list, to the topic, and close it.", False),
        Key("escape", "step_out", "back", "Clear the filter, or back to the list.", False),
        Key("h", "app.open_history", "history", "All runs on this box."),
        Key("b", "app.open_box", "box", "What this machine is.", False),
    ),
    "run": (
        Key("s", "stop", "stop", "Stop the run; again: at once."),
        Key("space", "freeze", "freeze", "Hold the picture still while the run goes on; of a finished run: play or pause."),
        Key("z", "maximise", "zoom", "Fill the screen with the focused pane, and back."),
        Key("l", "toggle_log", "log", "Logarithmic or linear axis."),
        Key("o", "toggle_smooth", "smooth", "Smooth the lines; the raw ones stay behind."),
        Key("t", "toggle_time", "time", "Steps or seconds along the axis.", False),
        Key("n", "next_bad", "next bad", "Move the cursor to the next NaN or Inf."),
        Key("left", "move_cursor(-1)", "", "Move the time cursor back.", False),
        Key("right", "move_cursor(1)", "", "Move the time cursor on.", False),
        Key("shift+left", "move_cursor(-10)", "", "Move the time cursor far back.", False),
        Key("shift+right", "move_cursor(10)", "", "Move the time cursor far on.", False),
        Key("plus", "zoom(0.5)", "", "Look closer along the axis.", False),
        Key("minus", "zoom(2.0)", "", "Look from further away.", False),
        Key("left_square_bracket", "speed(0.5)", "", "Replay at half the speed.", False),
        Key("right_square_bracket", "speed(2.0)", "", "Replay at twice the speed.", False),
        Key("comma", "seek(-0.05)", "", "In a replay: back.", False),
        Key("full_stop", "seek(0.05)", "", "In a replay: on.", False),
        Key("R", "replay", "replay", "Play a finished run again from its start.", False),
        Key("a", "again", "again", "Run the scenario again: back to its form with these values.", False),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
    ),
    "history": (
        Key("enter", "open", "open", "Open the run: live when it goes on, else its record."),
        Key("slash", "filter", "filter", "Narrow the list to what contains the words typed."),
        Key("space", "mark", "mark", "Mark the run, to compare or delete it with others."),
        Key("m", "compare", "compare", "Compare the marked runs, or this one with the last of its scenario."),
        Key("d", "delete", "delete", "Delete the marked runs or this one, after a question."),
        Key("s", "stop", "stop", "Stop the run; again: at once."),
        Key("u", "unmark", "unmark", "Take all marks away.", False),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
        Key("up", "move(-1)", "", "The run above.", False),
        Key("down", "move(1)", "", "The run below.", False),
        Key("pageup", "move_page(-1)", "", "A page of runs up.", False),
        Key("pagedown", "move_page(1)", "", "A page of runs down.", False),
        Key("home", "move(-1000000)", "", "The newest run.", False),
        Key("end", "move(1000000)", "", "The oldest run.", False),
    ),
    "compare": (
        Key("z", "maximise", "zoom", "Fill the screen with the focused pane, and back."),
        Key("l", "toggle_log", "log", "Logarithmic or linear axis."),
        Key("n", "next_curve", "next curve", "The curves of the next series."),
        Key("y", "copy_command", "copy", "Copy the command line that does the same."),
        Key("escape", "back", "back", "Out of the zoom, else one step back out.", False),
    ),
    "box": (
        Key("r", "measure_again", "look again", "Look again at what this machine is."),
        Key("y", "copy_command", "copy", "Copy the command line that does the same."),
    ),
    "help": (Key("question_mark", "app.step_back", "close", "Back to where you were."),),
    "question": (
        Key("y", "answer('yes')", "yes", "Do it."),
        Key("n", "answer('no')", "no", "Leave it as it is."),
        Key("escape", "answer('no')", "no", "Leave it as it is."),
    ),
    "everywhere": (
        Key("ctrl+p", "app.command_palette", "commands", "Every command by its name."),
        Key("question_mark", "app.open_help", "help", "The keys of what has the focus."),
        Key("escape", "app.step_back", "back", "One step back out.", False),
        Key("q", "app.leave", "quit", "Leave; what runs goes on."),
        Key("tab", "app.focus_next", "", "The next pane.", False),
        Key("shift+tab", "app.focus_previous", "", "The pane before.", False),
        Key("T", "app.next_theme", "", "The next theme.", False),
        Key("B", "app.next_symbols", "", "Draw with braille, blocks or plain characters.", False),
        Key("0", "app.reset_layout", "", "Layout and settings as they were at first.", False),
        Key("ctrl+l", "app.redraw", "", "Draw the whole screen again.", False),
        Key("ctrl+z", "app.suspend_process", "", "Suspend tuilab; fg brings it back.", False),
    ),
}

_SHOWN = {
    "slash": "/",
    "question_mark": "?",
    "escape": "esc",
    "plus": "+",
    "minus": "-",
    "comma": ",",
    "full_stop": ".",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


def bindings(place: str) -> list[BindingType]:
    """Return the keys of a place as Textual wants them."""
    return [Binding(key.key, key.action, key.word or key.help, show=key.is_in_footer) for key in KEYS[place]]


def shown(key: Key) -> str:
    """Return a key as the user sees it."""
    return _SHOWN.get(key.key, key.key.replace("ctrl+", "^"))
