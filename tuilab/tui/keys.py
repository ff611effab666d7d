"""Every key of every screen, once: the footer, `?`, the palette and the docs are made from this."""

from typing import NamedTuple

from textual.binding import Binding, BindingType


class Key(NamedTuple):
    """A key, what it does, and how that is told."""

    key: str  # as Textual names it
    action: str  # empty where the key is bound by Textual itself, and only told here
    word: str  # in the footer
    help: str  # for `?`: a short sentence
    is_in_footer: bool = True


READ_ONLY = "tuilab was started with --read-only: here one looks, and changes nothing"

# Actions that start, end, change or write something, or lend the terminal to a program that could.
CHANGES = frozenset(
    ["run", "again", "try_next", "start", "stop", "cancel", "delete", "write", "shift", "pause", "edit", "export", "show_all"]
)

# By place: a screen, what has the focus on it, or the state of what it shows. The more special place tells its keys first.
KEYS: dict[str, tuple[Key, ...]] = {
    "lab": (
        Key("enter", "run", "run", "Run the scenario, or every scenario of the topic, with the form's values."),
        Key("slash", "go('filter')", "filter", "Narrow the list to what contains the words typed."),
        Key("f", "go('show_part', 'form')", "form", "Fill in the form: parameters, repeats, prediction."),
        Key("h", "app.open_history", "history", "All runs on this box."),
        Key("b", "app.open_box", "box", "What this machine is."),
        Key("c", "go('show_part', 'code')", "code", "Read the source, with the claims' lines marked."),
        Key("p", "go('show_part', 'lesson')", "lesson", "Read the lesson."),
        Key("r", "go('show_part', 'runs')", "runs", "Past runs of the scenario."),
        Key("a", "attach", "attach", "Go to the run that goes on; with several, to the next of them.", False),
        Key("K", "toggle_quick", "quick", "Smaller sizes, one process: an answer in seconds; again: the full sizes.", False),
        Key("l", "next_lesson", "next lesson", "The first lesson of the course that you have not done.", False),
        Key("m", "compare", "compare", "Compare the two newest runs of the scenario.", False),
        Key("v", "show_all", "", "The lesson, or the open code, in $PAGER.", False),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
        Key("E", "edit", "edit", "Open the file in your editor (VISUAL, EDITOR, vi); what you change is read again.", False),
        Key("n", "go('next_claim')", "next claim", "In the code: the next line that claims or races.", False),
        Key("right", "go('step_in')", "open", "Open the topic; of a scenario, go to what is open on the right.", False),
        Key("left", "go('step_aside')", "aside", "Back to the list; in the list, to the topic, and close it.", False),
        Key("escape", "go('step_out')", "back", "Clear the filter, or back to the list.", False),
    ),
    "topic": (
        Key("enter", "", "run all", "Run every scenario of the topic with its defaults; what times something in turn."),
        Key("space", "", "fold", "Close the topic, or open it."),
    ),
    "a run goes on": (Key("a", "", "attach", "Go to the run that goes on; with several, to the next of them."),),
    "lesson": (
        Key("slash", "", "search", "Look for words in the lesson."),
        Key("n", "", "", "The next line that has them; N the one before.", False),
        Key("v", "", "", "The whole lesson in $PAGER.", False),
        Key("escape", "", "list", "Look for none; then back to the list."),
    ),
    "form": (
        Key("up", "", "", "The field above.", False),
        Key("down", "", "", "The field below.", False),
        Key("escape", "", "list", "Back to the list."),
    ),
    "choice": (
        Key("right", "", "next", "The next of the words."),
        Key("left", "", "", "The word before.", False),
    ),
    "searched": (
        Key("n", "", "next hit", "The next line that has the words."),
        Key("N", "", "hit before", "The line before it that has them."),
        Key("escape", "", "no search", "Look for no words."),
    ),
    "code": (
        Key("n", "", "next claim", "The next line that claims or races."),
        Key("slash", "", "search", "Look for words in the code."),
        Key("v", "", "", "The whole file in $PAGER.", False),
        Key("escape", "", "list", "Look for none; then back to the list."),
    ),
    "past runs": (
        Key("enter", "screen.open", "open", "Open the run: live when it goes on, else its record."),
        Key("m", "", "compare", "Compare this run with the one before it."),
        Key("escape", "", "list", "Back to the list."),
    ),
    "filter": (
        Key("enter", "", "keep", "Keep the filter, and go to what it leaves."),
        Key("escape", "", "show all", "Take the filter away."),
    ),
    "text": (
        Key("slash", "", "search", "Look for words in the pane."),
        Key("n", "", "", "The next line that has them; N the one before. Without a search: the next NaN or Inf.", False),
    ),
    "search": (
        Key("enter", "", "look", "Go to the first line that has the words."),
        Key("escape", "", "none", "Look for nothing."),
    ),
    "run": (
        Key("z", "look('maximise')", "zoom", "Fill the screen with the focused pane, and back."),
        Key("l", "look('toggle_log')", "log", "Logarithmic or linear axis."),
        Key("L", "look('toggle_log_x')", "log x", "Logarithmic or linear steps along the axis.", False),
        Key("o", "look('toggle_smooth')", "smooth", "Smooth the lines, again: more, again: not; the raw ones stay behind."),
        Key("t", "look('toggle_time')", "time", "Steps or seconds along the axis.", False),
        Key("b", "toggle_others", "baseline", "Other runs dim behind: the baseline, else one before; those that go on.", False),
        Key("r", "look('next_repeat')", "repeat", "One repeat in front, the others dim; again: the next; then all.", False),
        Key("n", "next_bad", "next bad", "Move the cursor to the next NaN or Inf.", False),
        Key("greater_than_sign", "look('turn_page', 1)", "", "The next page of charts, where a run logs many.", False),
        Key("less_than_sign", "look('turn_page', -1)", "", "The page of charts before.", False),
        Key("slash", "filter_charts", "", "Show the charts whose names have the words typed; in a text, search.", False),
        Key("d", "look('toggle_gpus')", "all GPUs", "The GPUs (devices) of the run, or all of the box.", False),
        Key("left", "look('move_cursor', -1)", "", "Move the time cursor back.", False),
        Key("right", "look('move_cursor', 1)", "", "Move the time cursor on.", False),
        Key("shift+left", "look('move_cursor', -10)", "", "Move the time cursor far back.", False),
        Key("shift+right", "look('move_cursor', 10)", "", "Move the time cursor far on.", False),
        Key("plus", "look('zoom', 0.5)", "", "Look closer along the axis.", False),
        Key("minus", "look('zoom', 2.0)", "", "Look from further away.", False),
        Key("up", "look('scroll', -3)", "", "Scroll up.", False),
        Key("down", "look('scroll', 3)", "", "Scroll down.", False),
        Key("pageup", "look('scroll_pages', -1)", "", "Scroll a page up.", False),
        Key("pagedown", "look('scroll_pages', 1)", "", "Scroll a page down.", False),
        Key("home", "look('scroll', -1000000)", "", "Scroll to the top.", False),
        Key("end", "look('scroll', 1000000)", "", "Scroll to the end.", False),
        Key("tab", "look('step', 1)", "pane", "The next pane, zoomed too."),
        Key("shift+tab", "look('step', -1)", "", "The pane before.", False),
        Key("w", "go_to_run(1)", "next run", "The next run that goes on, whoever started it.", False),
        Key("W", "go_to_run(-1)", "", "The run that goes on before this one.", False),
        Key("m", "compare", "compare", "Compare the run with its baseline, else the one before it.", False),
        Key("s", "stop", "stop", "Stop the run, after a question; again: at once.", False),
        Key("space", "play('freeze')", "freeze", "Hold the picture still; of a run that is over: play it, or pause.", False),
        Key("left_square_bracket", "play('speed', 0.5)", "", "Replay at half the speed.", False),
        Key("right_square_bracket", "play('speed', 2.0)", "", "Replay at twice the speed.", False),
        Key("comma", "play('seek', -0.05)", "", "In a replay: back.", False),
        Key("full_stop", "play('seek', 0.05)", "", "In a replay: on.", False),
        Key("R", "play('replay')", "replay", "Play a finished run again from its start.", False),
        Key("a", "again", "again", "Run it again: back to its form, with these values.", False),
        Key("1", "try_next(1)", "", "What the lesson says to try next: its form, filled in.", False),
        Key("2", "try_next(2)", "", "The second thing to try.", False),
        Key("3", "try_next(3)", "", "The third.", False),
        Key("v", "show_all", "", "All that was kept of what the run printed in $PAGER.", False),
        Key("e", "export", "report", "Write a page about the run into the current folder.", False),
        Key("E", "edit", "edit", "Open its file in your editor; of a run that failed, where it failed.", False),
        Key("y", "copy_command", "copy", "Copy the command line that shows this run.", False),
        Key("Y", "copy_rerun", "", "Copy the command line that makes this run again.", False),
        Key("c", "choose_copy", "copy", "Choose what to copy: the pane, a command, a claim, a value, a chart as text.", False),
        Key("escape", "step_out", "back", "Out of the zoom, else all charts again, else one step back out."),
    ),
    "several charts": (Key("slash", "", "charts", "Show only the charts whose names contain the words typed."),),
    "NaN or Inf": (Key("n", "", "next bad", "Move the cursor to the next NaN or Inf."),),
    "other GPUs": (Key("d", "", "all GPUs", "All GPUs of the box; again: those of the run alone."),),
    "other runs go on": (Key("w", "", "next run", "The next run that goes on; W: the one before."),),
    "run that goes on": (
        Key("s", "", "stop", "Stop the run, after a question; again: at once."),
        Key("space", "", "freeze", "Hold the picture still while the run goes on."),
    ),
    "run that is read": (),  # it may be over: what can be done with it is not known yet
    "run that is frozen": (
        Key("s", "", "stop", "Stop the run, after a question; again: at once."),
        Key("space", "", "go on", "Show what happens again."),
    ),
    "run that failed": (Key("E", "", "edit", "Open the file in your editor, where it failed."),),
    "run that is over": (
        Key("a", "", "again", "Run it again: back to its form, with these values."),
        Key("1", "", "try next", "What the lesson says to try next: its form, filled in."),
        Key("space", "", "replay", "Play the run again from its start."),
        Key("e", "", "report", "Write a page about the run into the current folder."),
    ),
    "replay": (
        Key("space", "", "play/pause", "Play on, or pause."),
        Key("comma", "", "back", "Back by a twentieth."),
        Key("full_stop", "", "on", "On by a twentieth."),
        Key("right_square_bracket", "", "faster", "Replay at twice the speed."),
        Key("left_square_bracket", "", "slower", "Replay at half the speed."),
    ),
    "history": (
        Key("enter", "open", "open", "Open the run: live when it goes on, else its record."),
        Key("slash", "filter", "filter", "Narrow the list: words, !word, verdict:refuted, state:stopped, since:1d, tag:mine."),
        Key("space", "mark", "mark", "Mark the run, to compare or delete it with others."),
        Key("m", "compare", "compare", "Compare the marked runs, or this one with its baseline, else the last."),
        Key("e", "export", "report", "Write a page about the marked runs, or this one, into the current folder."),
        Key("d", "delete", "delete", "Delete the marked runs or this one, after a question."),
        Key("s", "stop", "stop", "Stop the run, after a question; again: at once.", False),
        Key("b", "pin", "baseline", "Hold the other runs of the scenario against this one; again: against none.", False),
        Key("n", "write('note')", "note", "Write a note onto the marked runs, or this one.", False),
        Key("t", "write('tags')", "tag", "Tag the marked runs, or this one; with ! before a tag, take it off.", False),
        Key("o", "order", "order", "Another order: newest, worst verdict, longest, largest, by name.", False),
        Key("R", "replay", "replay", "Play the run again, as it happened.", False),
        Key("u", "unmark", "unmark", "Take all marks away.", False),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
        Key("up", "move(-1)", "", "The run above.", False),
        Key("down", "move(1)", "", "The run below.", False),
        Key("pageup", "move_page(-1)", "", "A page of runs up.", False),
        Key("pagedown", "move_page(1)", "", "A page of runs down.", False),
        Key("home", "move(-1000000)", "", "The newest run.", False),
        Key("end", "move(1000000)", "", "The oldest run.", False),
        Key("escape", "step_out", "back", "Show all runs again, else one step back out."),
    ),
    "marked runs": (
        Key("m", "", "compare", "Compare the marked runs, or this one with its baseline, else the last."),
        Key("u", "", "unmark", "Take all marks away."),
    ),
    "running run": (Key("s", "", "stop", "Stop the run, after a question; again: at once."),),
    "compare": (
        Key("z", "maximise", "zoom", "Fill the screen with the focused pane, and back."),
        Key("l", "toggle_log", "log", "Logarithmic or linear axis."),
        Key("n", "next_curve(1)", "next curve", "The curves of the next series."),
        Key("p", "next_curve(-1)", "", "The curves of the series before.", False),
        Key("r", "next_repeat", "repeat", "The curves of the next repeat of each run; after the last the first.", False),
        Key("e", "export", "report", "Write a page about these runs into the current folder."),
        Key("y", "copy_command", "copy", "Copy the command line that does the same."),
        Key("escape", "back", "back", "Out of the zoom, else one step back out."),
    ),
    "queue": (
        Key("enter", "open", "open", "Open the run."),
        Key("d", "cancel", "take out", "Take the run out of the queue, or stop it, after a question."),
        Key("p", "pause", "pause", "Let no run begin; again: let them begin."),
        Key("K", "shift(-1)", "earlier", "Move the run that waits towards the front."),
        Key("J", "shift(1)", "later", "Move it towards the end."),
        Key("A", "again", "queue again", "Queue again what was lost, as when the box was started anew.", False),
        Key("y", "copy_command", "copy", "Copy the command line that does the same.", False),
        Key("escape", "app.step_back", "back", "One step back out."),
    ),
    "box": (
        Key("d", "app.open_doctor", "doctor", "What will disturb, slow or end a run here, and what to do about it."),
        Key("a", "app.open_advice", "advise", "The settings that follow from what was measured here."),
        Key("c", "app.open_calibration", "calibrate", "How far verdicts about time can be trusted here; measure it."),
        Key("z", "zoom", "zoom", "Fill the screen with the gauges, the processes or the facts, and back."),
        Key("r", "measure_again", "look again", "Look again at what this machine is."),
        Key("y", "copy_command", "copy", "Copy the command line that does the same."),
        Key("escape", "step_out", "back", "Out of the zoom, else one step back out."),
    ),
    "printed text": (
        Key("slash", "", "search", "Look for words."),
        Key("N", "", "", "Of a search, the line before; n the next.", False),
    ),
    "doctor": (
        Key("n", "next_warning", "next warning", "The next answer that warns or fails; of a search, the next line."),
        Key("r", "ask_again", "ask again", "Ask everything again."),
        Key("c", "copy_all", "copy", "Copy all of it as text."),
        Key("y", "copy_command", "", "Copy the command line that does the same.", False),
        Key("v", "show_all", "", "All of it in $PAGER.", False),
        Key("escape", "app.step_back", "back", "Look for no words; then one step back out."),
    ),
    "advise": (
        Key("r", "read_again", "read again", "Read the runs again."),
        Key("c", "copy_all", "copy", "Copy all of it as text."),
        Key("y", "copy_command", "", "Copy the command line that writes it into a file.", False),
        Key("v", "show_all", "", "All of it in $PAGER.", False),
        Key("escape", "app.step_back", "back", "Look for no words; then one step back out."),
    ),
    "calibrate": (
        Key("enter", "start('cpu')", "calibrate", "Calibrate this box, after a question."),
        Key("g", "start('cuda')", "a GPU", "Calibrate the GPU with the most free memory, after a question."),
        Key("s", "cancel", "end it", "End the calibration that goes on, after a question; nothing is kept.", False),
        Key("c", "copy_all", "copy", "Copy all of it as text."),
        Key("y", "copy_command", "", "Copy the command line that does the same.", False),
        Key("escape", "app.step_back", "back", "One step back out; a calibration goes on."),
    ),
    "calibration that goes on": (Key("s", "", "end it", "End the calibration, after a question; nothing is kept."),),
    "help": (Key("question_mark", "app.step_back", "close", "Back to where you were."),),
    "question": (
        Key("y", "answer('yes')", "yes", "Do it."),
        Key("n", "answer('no')", "no", "Leave it as it is."),
        Key("escape", "answer('no')", "no", "Leave it as it is."),
    ),
    "question of stopping": (
        Key("y", "answer('yes')", "yes", "Stop it."),
        Key("s", "answer('yes')", "stop", "The same: the key that asked says yes, too."),
        Key("n", "answer('no')", "no", "Let it go on."),
        Key("escape", "answer('no')", "no", "Let it go on."),
    ),
    "menu": (
        Key("enter", "choose", "this one", "Take the line of the cursor."),
        Key("escape", "give_up", "not now", "Take none."),
    ),
    "written line": (
        Key("enter", "", "write it", "Write it; nothing, where nothing was typed."),
        Key("escape", "give_up", "not now", "Write nothing."),
    ),
    "prediction": (
        Key("enter", "", "run", "Run it; without a number there is no prediction."),
        Key("escape", "give_up", "not now", "Do not run it."),
    ),
    "everywhere": (
        Key("ctrl+p", "app.command_palette", "commands", "Every command by its name."),
        Key("escape", "app.step_back", "back", "One step back out.", False),
        Key("q", "app.leave", "quit", "Leave; what runs goes on."),
        Key("ctrl+q", "app.leave", "", "The same, while something is typed or asked, too.", False),
        Key("question_mark", "app.open_help", "help", "The keys of what has the focus."),
        Key("f1", "app.open_help", "help", "The same, while something is typed."),
        Key("Q", "app.open_queue", "queue", "The runs that wait for their turn.", False),
        Key("h", "app.open_history", "", "All runs on this box.", False),
        Key("b", "app.open_box", "", "What this machine is.", False),
        Key("ctrl+c", "", "", "Copy what is selected with the mouse; else say how to leave.", False),
        Key("tab", "app.focus_next", "", "The next pane.", False),
        Key("shift+tab", "app.focus_previous", "", "The pane before.", False),
        Key("j", "app.press('down')", "", "As ↓.", False),
        Key("k", "app.press('up')", "", "As ↑.", False),
        Key("ctrl+d", "app.press('pagedown')", "", "As page down.", False),
        Key("ctrl+u", "app.press('pageup')", "", "As page up.", False),
        Key("g", "app.press('home')", "", "As home: to the top.", False),
        Key("G", "app.press('end')", "", "As end: to the end.", False),
        Key("T", "app.next_theme", "", "The next theme.", False),
        Key("B", "app.next_symbols", "", "Draw with braille, blocks or plain characters.", False),
        Key("0", "app.reset_layout", "", "Layout and settings as they were at first.", False),
        Key("ctrl+l", "app.redraw", "", "Draw the whole screen again.", False),
        Key("ctrl+z", "app.suspend_process", "", "Suspend tuilab; fg brings it back.", False),
    ),
}

# What the palette offers wherever one is, although no key leads there.
BY_NAME = (
    Key("", "app.open_lab", "lab", "The scenarios: their lessons, forms and code, and what came of them."),
    Key("", "app.open_history", "history", "All runs on this box."),
    Key("", "app.open_box", "box", "What this machine is, what it does now, and who computes there."),
    Key("", "app.open_doctor", "doctor", "What will disturb, slow or end a run here, and what to do about it."),
    Key("", "app.open_advice", "advise", "The settings that follow from what was measured here."),
    Key("", "app.open_calibration", "calibrate", "How far verdicts about time can be trusted here; measure it."),
)


def bindings(place: str) -> list[BindingType]:
    """Return the keys of a place as Textual wants them."""
    return [
        Binding(key.key, key.action, key.word or key.help, show=key.is_in_footer, priority=key.key == "ctrl+q")
        for key in KEYS[place]
        if key.action
    ]
