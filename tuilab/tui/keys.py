"""One table of all keys of all screens, for the footer, `?`, the palette and the docs."""

from typing import NamedTuple

from textual.binding import Binding, BindingType


class Key(NamedTuple):
    """A key, what it does, and the words that describe it."""

    key: str  # as Textual names it
    action: str  # empty if Textual binds the key, and this entry only describes it
    word: str  # in the footer
    help: str  # for `?` and the palette: a short sentence that starts with a verb
    is_in_footer: bool = True


READ_ONLY = "read-only mode (--read-only): nothing can be changed"

# Actions that start, stop, change or write something, or lend the terminal to a program that can.
CHANGES = frozenset([
    "run", "again", "try_next", "start", "stop", "cancel", "delete",
    "write", "pin", "shift", "pause", "edit", "export", "show_all",
])  # fmt: skip

# The keys by place. A place is a screen, the part of it that has the focus, or the state of what it
# shows. The help lists the most specific place first.
KEYS: dict[str, tuple[Key, ...]] = {
    "lab": (
        Key("enter", "run", "run", "Run the scenario with the values of its form."),
        Key("slash", "go('filter')", "filter", "Filter the list by words."),
        Key(
            "f",
            "go('show_part', 'form')",
            "form",
            "Fill in the form: parameters, repeats, prediction.",
        ),
        Key("h", "app.open_history", "history", "Show all runs on this machine."),
        Key("b", "app.open_box", "box", "Show this machine: its load, and who uses each GPU."),
        Key(
            "c", "go('show_part', 'code')", "code", "Read the source; lines with claims are marked."
        ),
        Key("p", "go('show_part', 'lesson')", "lesson", "Read the lesson."),
        Key("r", "go('show_part', 'runs')", "runs", "Show past runs of the scenario."),
        Key(
            "a", "attach", "attach", "Open a running or queued run; each time, the next one.", False
        ),
        Key(
            "K",
            "toggle_quick",
            "quick",
            "Run smaller sizes in one process; press again for full sizes.",
            False,
        ),
        Key(
            "l",
            "next_lesson",
            "next lesson",
            "Go to the next lesson that you have not done.",
            False,
        ),
        Key(
            "m",
            "compare",
            "compare",
            "Compare the newest run with its baseline, or an earlier run.",
            False,
        ),
        Key("v", "show_all", "", "Show the lesson, or the open code, in $PAGER.", False),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
        Key(
            "E",
            "edit",
            "edit",
            "Edit the file (VISUAL, EDITOR, vi); changes are read at once.",
            False,
        ),
        Key(
            "n",
            "go('next_claim')",
            "next claim",
            "Open the code; in it, go to the next claim or lab.race.",
            False,
        ),
        Key(
            "right",
            "go('step_in')",
            "open",
            "Open the topic, or move to the pane on the right.",
            False,
        ),
        Key(
            "left",
            "go('step_aside')",
            "close",
            "Return to the list; there, go to the topic, then close it.",
            False,
        ),
        Key("escape", "go('step_out')", "back", "Clear the filter, or return to the list.", False),
    ),
    "topic": (
        Key("enter", "", "run all", "Run its listed scenarios with defaults, timed ones in turn."),
        Key("space", "", "open/close", "Close the topic; press again to open it."),
    ),
    "running runs": (
        Key("a", "", "attach", "Open a running or queued run; each time, the next one."),
    ),
    "lesson": (
        Key("slash", "", "search", "Search the lesson."),
        Key("n", "", "", "Go to the next match; N goes to the previous one.", False),
        Key("v", "", "", "Show the whole lesson in $PAGER.", False),
        Key("escape", "", "list", "Clear the search; press again to return to the list."),
    ),
    "form": (
        Key("up", "", "", "Go to the field above.", False),
        Key("down", "", "", "Go to the field below.", False),
        Key("escape", "", "list", "Return to the list."),
    ),
    "choice": (
        Key("right", "", "next", "Choose the next value."),
        Key("left", "", "", "Choose the previous value.", False),
    ),
    "searched": (
        Key("n", "", "next match", "Go to the next match."),
        Key("N", "", "previous", "Go to the previous match."),
        Key("escape", "", "clear", "Clear the search."),
    ),
    "code": (
        Key("n", "", "next claim", "Go to the next line with a claim or lab.race."),
        Key("slash", "", "search", "Search the code."),
        Key("v", "", "", "Show the whole file in $PAGER.", False),
        Key("escape", "", "list", "Clear the search; press again to return to the list."),
    ),
    "past runs": (
        Key(
            "enter", "screen.open", "open", "Open the run: live if it is running, else its record."
        ),
        Key("m", "", "compare", "Compare this run with its baseline, or an earlier run."),
        Key("escape", "", "list", "Return to the list."),
    ),
    "filter": (
        Key("enter", "", "apply", "Apply the filter and go to the results."),
        Key("escape", "", "show all", "Clear the filter."),
    ),
    "text": (
        Key("slash", "", "search", "Search the pane."),
        Key("n", "", "", "Go to the next match (N: previous), else the next NaN or Inf.", False),
    ),
    "search": (
        Key("enter", "", "search", "Go to the next match."),
        Key("escape", "", "clear", "Clear the search."),
    ),
    "finished lesson": (
        Key("enter", "next_lesson", "next lesson", "Go to the next lesson of the course."),
    ),
    "run": (
        Key(
            "z",
            "look('maximise')",
            "zoom",
            "Fill the screen with the focused pane; press again to go back.",
        ),
        Key("l", "look('toggle_log')", "log", "Switch the y axis: logarithmic or linear."),
        Key(
            "L",
            "look('toggle_log_x')",
            "log x",
            "Switch the x axis: logarithmic or linear steps.",
            False,
        ),
        Key(
            "o",
            "look('toggle_smooth')",
            "smooth",
            "Smooth curves: light, strong, off; raw values stay visible.",
        ),
        Key("t", "look('toggle_time')", "time", "Show steps or seconds on the x axis.", False),
        Key(
            "b",
            "toggle_others",
            "baseline",
            "Show dimmed: the baseline (or previous run) and running runs.",
            False,
        ),
        Key(
            "r",
            "look('next_repeat')",
            "repeat",
            "Highlight one repeat; press again for the next, then for all.",
            False,
        ),
        Key("n", "next_bad", "next NaN", "Move the cursor to the next NaN or Inf.", False),
        Key(
            "greater_than_sign",
            "look('turn_page', 1)",
            "",
            "Show the next page, if there are many charts.",
            False,
        ),
        Key(
            "less_than_sign",
            "look('turn_page', -1)",
            "",
            "Show the previous page of charts.",
            False,
        ),
        Key(
            "slash",
            "filter_charts",
            "",
            "Filter the charts by name; in a pane of text, search it.",
            False,
        ),
        Key(
            "d",
            "look('toggle_gpus')",
            "all GPUs",
            "Show the GPUs (devices) of the run, or all of the machine.",
            False,
        ),
        Key("left", "look('move_cursor', -1)", "", "Move the time cursor back.", False),
        Key("right", "look('move_cursor', 1)", "", "Move the time cursor forward.", False),
        Key(
            "shift+left",
            "look('move_cursor', -10)",
            "",
            "Move the time cursor back by 10 columns.",
            False,
        ),
        Key(
            "shift+right",
            "look('move_cursor', 10)",
            "",
            "Move the time cursor forward by 10 columns.",
            False,
        ),
        Key("plus", "look('zoom', 0.5)", "", "Zoom in along the x axis.", False),
        Key("minus", "look('zoom', 2.0)", "", "Zoom out along the x axis.", False),
        Key("up", "look('scroll', -3)", "", "Scroll up.", False),
        Key("down", "look('scroll', 3)", "", "Scroll down.", False),
        Key("pageup", "look('scroll_pages', -1)", "", "Scroll up one page.", False),
        Key("pagedown", "look('scroll_pages', 1)", "", "Scroll down one page.", False),
        Key("home", "look('scroll', -1000000)", "", "Scroll to the top.", False),
        Key("end", "look('scroll', 1000000)", "", "Scroll to the end.", False),
        Key("tab", "look('step', 1)", "pane", "Go to the next pane, also while zoomed."),
        Key("shift+tab", "look('step', -1)", "", "Go to the previous pane.", False),
        Key(
            "w",
            "go_to_run(1)",
            "next run",
            "Go to the next running run, whoever started it.",
            False,
        ),
        Key("W", "go_to_run(-1)", "", "Go to the previous running run.", False),
        Key(
            "m",
            "compare",
            "compare",
            "Compare this run with its baseline, or an earlier run.",
            False,
        ),
        Key("s", "stop", "stop", "Stop the run (asks first); a stopping run: kill it.", False),
        Key(
            "space",
            "play('freeze')",
            "freeze",
            "Freeze the display; finished run: play or pause the replay.",
            False,
        ),
        Key(
            "left_square_bracket",
            "play('speed_up', 0.5)",
            "",
            "Halve the speed of the replay.",
            False,
        ),
        Key(
            "right_square_bracket",
            "play('speed_up', 2.0)",
            "",
            "Double the speed of the replay.",
            False,
        ),
        Key("comma", "play('seek', -0.05)", "", "Move the replay back by 5 % of the run.", False),
        Key(
            "full_stop",
            "play('seek', 0.05)",
            "",
            "Move the replay forward by 5 % of the run.",
            False,
        ),
        Key("R", "play('replay')", "replay", "Replay a finished run from its start.", False),
        Key(
            "a",
            "again",
            "rerun",
            "Open the form with the values of this run, to run it again.",
            False,
        ),
        Key("1", "try_next(1)", "", "Open the form with what the lesson says to try next.", False),
        Key("2", "try_next(2)", "", "Open the form with the second thing to try.", False),
        Key("3", "try_next(3)", "", "Open the form with the third thing to try.", False),
        Key("v", "show_all", "", "Show all kept output of the run in $PAGER.", False),
        Key(
            "e",
            "export",
            "report",
            "Write a report (HTML) on the run into the current folder.",
            False,
        ),
        Key(
            "E", "edit", "edit", "Edit the file; for a failed run, at the line that failed.", False
        ),
        Key("y", "copy_command", "copy", "Copy the command line that shows this run.", False),
        Key("Y", "copy_rerun", "", "Copy the command line that runs it again.", False),
        Key(
            "c",
            "choose_copy",
            "copy",
            "Choose what to copy: a pane, command, claim, value or chart.",
            False,
        ),
        Key("escape", "step_out", "back", "Leave the zoom, then show all charts, then go back."),
    ),
    "several charts": (
        Key("slash", "", "charts", "Show only charts whose names contain the words."),
    ),
    "NaN or Inf": (Key("n", "", "next NaN", "Move the cursor to the next NaN or Inf."),),
    "other GPUs": (Key("d", "", "all GPUs", "Show all GPUs of the machine; press again to undo."),),
    "other running runs": (
        Key("w", "", "next run", "Go to the next running run; W goes to the previous one."),
    ),
    "running run": (
        Key("s", "", "stop", "Stop the run (asks first); a stopping run: kill it."),
        Key("space", "", "freeze", "Freeze the display; the run continues."),
    ),
    "run being read": (),  # it may be finished, so no key can be offered yet
    "frozen run": (
        Key("s", "", "stop", "Stop the run (asks first); a stopping run: kill it."),
        Key("space", "", "resume", "Resume the display."),
    ),
    "failed run": (Key("E", "", "edit", "Edit the file, at the line that failed."),),
    "finished run": (
        Key("a", "", "rerun", "Open the form with the values of this run, to run it again."),
        Key("1", "", "try next", "Open the form with what the lesson says to try next."),
        Key("space", "", "replay", "Replay the run from its start."),
        Key("e", "", "report", "Write a report (HTML) on the run into the current folder."),
    ),
    "replay": (
        Key("space", "", "play/pause", "Pause the replay; press again to play on."),
        Key("comma", "", "back", "Move the replay back by 5 % of the run."),
        Key("full_stop", "", "forward", "Move the replay forward by 5 % of the run."),
        Key("right_square_bracket", "", "faster", "Double the speed of the replay."),
        Key("left_square_bracket", "", "slower", "Halve the speed of the replay."),
    ),
    "history": (
        Key("enter", "open", "open", "Open the run: live if it is running, else its record."),
        Key(
            "slash",
            "filter",
            "filter",
            "Filter by words, !word, verdict:refuted, state:stopped, since:1d, tag:mine.",
        ),
        Key("space", "mark", "mark", "Mark or unmark the run, to compare or delete several."),
        Key(
            "m",
            "compare",
            "compare",
            "Compare marked runs, or this run with its baseline or an earlier run.",
        ),
        Key("e", "export", "report", "Write a report (HTML) on the marked runs, or on this one."),
        Key("d", "delete", "delete", "Delete the marked runs, or this one (asks first)."),
        Key("s", "stop", "stop", "Stop the run (asks first); a stopping run: kill it.", False),
        Key(
            "b",
            "pin",
            "baseline",
            "Make this run its scenario's baseline; press again to undo.",
            False,
        ),
        Key(
            "n", "write('note')", "note", "Write a note on the marked runs, or on this one.", False
        ),
        Key(
            "t",
            "write('tags')",
            "tag",
            "Tag the marked runs, or this one; !tag removes a tag.",
            False,
        ),
        Key(
            "o", "order", "order", "Sort: newest, worst verdict, longest, largest, by name.", False
        ),
        Key("R", "replay", "replay", "Replay the run as it happened.", False),
        Key("u", "unmark", "unmark", "Unmark all runs.", False),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
        Key("up", "move(-1)", "", "Go to the run above.", False),
        Key("down", "move(1)", "", "Go to the run below.", False),
        Key("pageup", "move_page(-1)", "", "Go up one page.", False),
        Key("pagedown", "move_page(1)", "", "Go down one page.", False),
        Key("home", "move(-1000000)", "", "Go to the top of the list.", False),
        Key("end", "move(1000000)", "", "Go to the end of the list.", False),
        Key("escape", "step_out", "back", "Clear the filter; press again to go back."),
    ),
    "marked runs": (
        Key("m", "", "compare", "Compare marked runs; a single one with the run at the cursor."),
        Key("u", "", "unmark", "Unmark all runs."),
    ),
    "running run in the list": (
        Key("s", "", "stop", "Stop the run (asks first); a stopping run: kill it."),
    ),
    "compare": (
        Key(
            "z",
            "maximise",
            "zoom",
            "Fill the screen with the focused pane; press again to go back.",
        ),
        Key("l", "toggle_log", "log", "Switch the y axis: logarithmic or linear."),
        Key("n", "next_curve(1)", "next curve", "Show the curves of the next metric."),
        Key("p", "next_curve(-1)", "", "Show the curves of the previous metric.", False),
        Key(
            "r",
            "next_repeat",
            "repeat",
            "Show the next repeat of each run; after the last, the first.",
            False,
        ),
        Key(
            "e", "export", "report", "Write a report (HTML) on these runs into the current folder."
        ),
        Key("y", "copy_command", "copy", "Copy the command line that does the same."),
        Key("escape", "back", "back", "Leave the zoom; press again to go back."),
    ),
    "queue": (
        Key("enter", "open", "open", "Open the run."),
        Key("d", "cancel", "remove", "Remove the run from the queue, or stop it (asks first)."),
        Key("p", "pause", "pause", "Pause the queue: no run starts; press again to resume."),
        Key("K", "shift(-1)", "earlier", "Move the queued run forward by one place."),
        Key("J", "shift(1)", "later", "Move the queued run back by one place."),
        Key(
            "A", "again", "queue again", "Queue lost runs again, for example after a reboot.", False
        ),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
        Key("escape", "app.step_back", "back", "Go back."),
    ),
    "box": (
        Key("f", "app.open_facts", "facts", "Show the facts about this machine, and every check."),
        Key(
            "d",
            "app.open_doctor",
            "doctor",
            "Show what disturbs, slows or ends runs here, and the fix.",
        ),
        Key(
            "a",
            "app.open_advice",
            "advise",
            "Show the settings that your measurements here recommend.",
        ),
        Key(
            "c",
            "app.open_calibration",
            "calibrate",
            "Show or measure how reliable timing verdicts are here.",
        ),
        Key(
            "y",
            "copy_command",
            "copy",
            "Copy the command line that shows the facts and every check.",
        ),
        Key("escape", "app.step_back", "back", "Go back."),
    ),
    "printed text": (
        Key("slash", "", "search", "Search the text."),
        Key("N", "", "", "Go to the previous match; n goes to the next one.", False),
    ),
    "doctor": (
        Key(
            "a",
            "show_output('doctor --all')",
            "all",
            "Show every check, and the facts about this machine.",
        ),
        Key("r", "show_output", "check again", "Run the checks again."),
        Key("s", "interrupt", "stop", "Stop the checks.", False),
        Key("c", "copy_all", "copy", "Copy the whole text."),
        Key("y", "copy_command", "", "Copy the command line that does the same.", False),
        Key("v", "show_all", "", "Show the whole text in $PAGER.", False),
        Key("escape", "app.step_back", "back", "Clear the search; press again to go back."),
    ),
    "advise": (
        Key("r", "show_output", "refresh", "Read the runs again."),
        Key("s", "interrupt", "stop", "Stop reading.", False),
        Key("c", "copy_all", "copy", "Copy the whole text."),
        Key("y", "copy_command", "", "Copy the command line that does the same.", False),
        Key("v", "show_all", "", "Show the whole text in $PAGER.", False),
        Key("escape", "app.step_back", "back", "Clear the search; press again to go back."),
    ),
    "calibrate": (
        Key("enter", "start('cpu')", "calibrate", "Calibrate this machine (asks first)."),
        Key(
            "g", "start('cuda')", "GPU", "Calibrate the GPU with the most free memory (asks first)."
        ),
        Key(
            "r", "show_output('calibrate --show')", "", "Show the latest calibrations again.", False
        ),
        Key("s", "cancel", "stop", "Stop the calibration (asks first); nothing is kept.", False),
        Key("c", "copy_all", "copy", "Copy the whole text."),
        Key("y", "copy_command", "", "Copy the command line that does the same.", False),
        Key("escape", "app.step_back", "back", "Go back; a calibration continues."),
    ),
    "running subcommand": (
        Key("s", "", "stop", "Stop the subcommand; a calibration keeps nothing then (asks first)."),
    ),
    "help": (Key("question_mark", "app.step_back", "close", "Close the help."),),
    "question": (
        Key("y", "answer('yes')", "yes", "Do it."),
        Key("n", "answer('no')", "no", "Change nothing."),
        Key("escape", "answer('no')", "no", "Change nothing."),
    ),
    "question about stopping": (
        Key("y", "answer('yes')", "yes", "Stop it."),
        Key("s", "answer('yes')", "stop", "Confirm: the key that asked also answers yes."),
        Key("n", "answer('no')", "no", "Let it run."),
        Key("escape", "answer('no')", "no", "Let it run."),
    ),
    "menu": (
        Key("enter", "choose", "choose", "Choose the line at the cursor."),
        Key("escape", "give_up", "cancel", "Choose nothing."),
    ),
    "written line": (
        Key("enter", "", "save", "Save (empty text saves nothing)."),
        Key("escape", "give_up", "cancel", "Save nothing."),
    ),
    "prediction": (
        Key("enter", "", "run", "Run it; without a number, there is no prediction."),
        Key("escape", "give_up", "cancel", "Do not run it."),
    ),
    "everywhere": (
        Key("ctrl+p", "app.command_palette", "commands", "Find any command by its name."),
        Key("escape", "app.step_back", "back", "Go back.", False),
        Key("q", "app.leave", "quit", "Quit; running runs continue."),
        Key("ctrl+q", "app.leave", "", "Quit, also while you type or answer a question.", False),
        Key("question_mark", "app.open_help", "help", "Show the keys that work here."),
        Key("f1", "app.open_help", "help", "Show the keys, also while you type."),
        Key(
            "Q", "app.open_queue", "queue", "Show the queue: timed runs and those that wait.", False
        ),
        Key("h", "app.open_history", "", "Show all runs on this machine.", False),
        Key("b", "app.open_box", "", "Show this machine: its load, and who uses each GPU.", False),
        Key(
            "ctrl+c", "", "", "Copy the text selected with the mouse; else show how to quit.", False
        ),
        Key("tab", "app.focus_next", "", "Go to the next pane.", False),
        Key("shift+tab", "app.focus_previous", "", "Go to the previous pane.", False),
        Key("j", "app.press('down')", "", "Same as ↓.", False),
        Key("k", "app.press('up')", "", "Same as ↑.", False),
        Key("ctrl+d", "app.press('pagedown')", "", "Same as page down.", False),
        Key("ctrl+u", "app.press('pageup')", "", "Same as page up.", False),
        Key("g", "app.press('home')", "", "Same as home: go to the top.", False),
        Key("G", "app.press('end')", "", "Same as end: go to the end.", False),
        Key("T", "app.next_theme", "", "Switch to the next theme.", False),
        Key(
            "B",
            "app.next_symbols",
            "",
            "Switch between braille, block and plain characters.",
            False,
        ),
        Key("0", "app.reset_layout", "", "Reset the layout and the settings.", False),
        Key("ctrl+l", "app.redraw", "", "Redraw the whole screen.", False),
        Key("ctrl+z", "app.suspend_process", "", "Suspend tuilab; fg brings it back.", False),
    ),
}

# Entries that the palette offers on every screen, even if no key of the screen has the action.
BY_NAME = (
    Key("", "app.open_lab", "lab", "Show the scenarios: lessons, forms, code and verdicts."),
    Key("", "app.open_history", "history", "Show all runs on this machine."),
    Key("", "app.open_box", "box", "Show this machine: its load, and who uses each GPU."),
    Key(
        "", "app.open_doctor", "doctor", "Show what disturbs, slows or ends runs here, and the fix."
    ),
    Key(
        "", "app.open_advice", "advise", "Show the settings that your measurements here recommend."
    ),
    Key(
        "",
        "app.open_calibration",
        "calibrate",
        "Show or measure how reliable timing verdicts are here.",
    ),
)


def bindings(place: str) -> list[BindingType]:
    """Return the keys of a place that have an action, as bindings of Textual."""
    bound: list[BindingType] = []
    for key in KEYS[place]:
        if key.action:
            description = key.word or key.help
            is_first = key.key == "ctrl+q"  # it quits even while the user types
            bound.append(
                Binding(key.key, key.action, description, show=key.is_in_footer, priority=is_first)
            )
    return bound
