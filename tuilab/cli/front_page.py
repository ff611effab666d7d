"""What `tuilab --help` prints: the subcommands, the options of the screens, the exit codes.

The page names all subcommands without loading them: to load them all would take a second.
"""

from collections.abc import Iterable

from tuilab.errors import MEANINGS
from tuilab.text.wrapping import terminal_width, wrap

# The subcommands of `tuilab --help` by heading, each with its summary; the file of one is loaded only when it is used.
GROUPS = {
    "Run and measure": {
        "run": "Run a scenario, a topic or all scenarios.",
        "exec": "Run your own training script and watch it.",
        "ab": "Compare ways to run a command, each in fresh processes.",
        "sweep": "Run a scenario or a command with every combination of values.",
        "learn": "Open the next lesson; show how close your predictions were.",
    },
    "Look at scenarios and runs": {
        "list": "List the scenarios in teaching order, with the latest verdicts.",
        "show": "Show a scenario: lesson, parameters, claims and source.",
        "runs": "List past and current runs, newest first.",
        "attach": "Show a run on the screens, or follow it and print its result.",
        "replay": "Replay a run on the screens, from its start.",
        "compare": "Compare runs, or the runs of two machines.",
        "report": "Write a report: HTML, Markdown, JSON, CSV, JUnit and more.",
    },
    "Keep and share runs": {
        "note": "Add a note or a tag to a run.",
        "export": "Pack a run into one file.",
        "import": "Unpack runs that were exported, here or on another machine.",
        "verify": "Check that the data of a run is complete and unchanged.",
        "rm": "Delete runs.",
    },
    "Check and set up this machine": {
        "doctor": "Check this machine for anything that disturbs or slows a run.",
        "calibrate": "Measure how reliable verdicts about time are on this machine.",
        "advise": "Write the environment settings that were fastest here.",
        "config": "Show the settings and where each value comes from.",
    },
    "Queue and stop": {
        "queue": "Show or change the queue of runs.",
        "stop": "Stop a run, or all runs of a sweep.",
    },
    "Write scenarios": {
        "new": "Write a new scenario from a template.",
        "check": "Check scenario files for mistakes.",
    },
}
VERBS = {verb: summary for group in GROUPS.values() for verb, summary in group.items()}
READ_ONLY = "Open the screens read-only: nothing can be started, stopped, changed or written."
LANG = "Language of the lessons, for example zh (default: TUILAB_LANG, else English)."
SCENARIOS = "Folder with your own scenarios; may be repeated (default: TUILAB_SCENARIOS, else the config file)."
ROOT = "Folder of runs (default: TUILAB_ROOT, else the config file, else your state folder; `tuilab config` shows it)."
FPS = "Redraw the screens this many times a second (default: TUILAB_FPS, else the config file, else 2)."
_OPTIONS = {
    "--read-only": READ_ONLY,
    "--lang CODE": LANG,
    "--scenarios DIR": SCENARIOS,
    "--root DIR": ROOT,
    "--fps NUMBER": FPS,
    "--version": "Show the version and exit.",
    "-h, --help": "Show this message and exit.",
}
_ABOUT = "A lab in the terminal: check the folklore of PyTorch training on your own machine."
_START = "Without a subcommand, the screens open. Start with: tuilab run stability --headless"
_MOST_COLUMNS = 80


def page() -> str:
    """Return the page, as wide as the terminal is."""
    width = max(min(terminal_width(), _MOST_COLUMNS), 50) - 2
    return "\n".join(
        [
            "Usage: tuilab [OPTIONS] [SUBCOMMAND] [ARGS]...",
            *_paragraph(_ABOUT, width),
            *_paragraph(_START, width),
            *_subcommands(width),
            *_table("Options (without a subcommand)", _OPTIONS.items(), width),
            *_table(
                "Exit codes", ((str(int(code)), when) for code, when in MEANINGS.items()), width
            ),
        ]
    )


def _paragraph(text: str, width: int) -> list[str]:
    return ["", *(f"  {line}" for line in wrap(text, width - 2))]


def _subcommands(width: int) -> list[str]:
    """Return a table for each group of subcommands, all with the same first column."""
    column = max(map(len, VERBS))
    return [
        line
        for heading, group in GROUPS.items()
        for line in _table(heading, group.items(), width, column)
    ]


def _table(heading: str, rows: Iterable[tuple[str, str]], width: int, column: int = 0) -> list[str]:
    """Return the rows below their heading: each term with its meaning next to it."""
    listed = list(rows)
    column = column or max(len(words) for words, _ in listed)
    lines = ["", f"{heading}:"]
    for words, meaning in listed:
        first, *rest = wrap(meaning, width - column - 4)
        lines += [f"  {words:{column}}  {first}", *(" " * (column + 4) + line for line in rest)]
    return lines
