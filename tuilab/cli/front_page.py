"""What `tuilab --help` says: the verbs, the options of the screens, the exit codes.

Kept free of slow imports, as it is answered before anything is loaded that parses words.
"""

from collections.abc import Iterable

from tuilab.errors import MEANINGS
from tuilab.wrapping import columns, wrap

# Verb -> its line in `tuilab --help`; a verb's file is loaded only when it is used.
VERBS = {
    "list": "The scenarios by topic, with the last verdict on this box.",
    "show": "A scenario's lesson, parameters, claims and source.",
    "learn": "The next lesson, and how near your predictions came.",
    "run": "Run a scenario, a topic or all.",
    "exec": "Run a command of yours, such as a training script, and watch how it trains.",
    "ab": "Race ways to run a command against each other, in fresh processes.",
    "sweep": "Run a scenario or a command with every combination of values.",
    "runs": "The runs on this box, newest first.",
    "compare": "Runs, or the runs of two boxes, side by side.",
    "attach": "Show a run on the screens, or follow it to its end and print its result.",
    "replay": "Play a run again, as the screens would have shown it.",
    "note": "Write a note about a run, or tag it.",
    "queue": "The runs that wait for their turn: list, move, cancel, pause.",
    "stop": "Stop a run.",
    "rm": "Delete runs.",
    "export": "Pack a run into one file.",
    "import": "Unpack runs that were packed, here or on another box.",
    "verify": "Check that a run's record is whole.",
    "doctor": "Look at this box: what will disturb, slow or end a run here.",
    "report": "What runs found, as a file: HTML, Markdown, JSON, CSV, JUnit and more.",
    "advise": "The settings that follow from what was measured on this box.",
    "calibrate": "Measure how far verdicts about time can be trusted on this box.",
    "config": "What is set, and who says so.",
    "check": "Tell a scenario's author what is missing.",
    "new": "Write a new scenario from a template.",
}
READ_ONLY = "On the screens one may look, and start, stop, change or write nothing: for a wall, or a colleague."
LANG = "The language of the lessons, as in zh (else TUILAB_LANG, else that of the locale)."
SCENARIOS = "For the screens: a folder with scenarios of your own."
ROOT = "For the screens: the folder of runs."
FPS = "How often the screens draw: 0.1 to 30 times a second (else 2)."
_OPTIONS = {
    "--read-only": READ_ONLY,
    "--lang CODE": LANG,
    "--scenarios DIR": SCENARIOS,
    "--root DIR": ROOT,
    "--fps NUMBER": FPS,
    "--version": "Show the version and exit.",
    "-h, --help": "Show this message and exit.",
}
_ABOUT = "A lab in the terminal: checks the folklore of PyTorch training on your own box."
_START = "Without a command it opens the screens. Start with: tuilab run stability --headless"
_MOST_COLUMNS = 80


def page() -> str:
    """Return the page, as wide as the terminal is."""
    width = max(min(columns(), _MOST_COLUMNS), 50) - 2
    return "\n".join(
        [
            "Usage: tuilab [OPTIONS] [COMMAND] [ARGS]...",
            *_paragraph(_ABOUT, width),
            *_paragraph(_START, width),
            *_table("Options", _OPTIONS.items(), width),
            *_table("Commands", VERBS.items(), width),
            *_table("Exit codes", ((str(int(code)), when) for code, when in MEANINGS.items()), width),
        ]
    )


def _paragraph(text: str, width: int) -> list[str]:
    return ["", *(f"  {line}" for line in wrap(text, width - 2))]


def _table(heading: str, rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Return words with what each means beside it."""
    listed = list(rows)
    column = max(len(words) for words, _ in listed)
    lines = ["", f"{heading}:"]
    for words, meaning in listed:
        first, *rest = wrap(meaning, width - column - 4)
        lines += [f"  {words:{column}}  {first}", *(" " * (column + 4) + line for line in rest)]
    return lines
