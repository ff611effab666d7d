"""Write the page of `tuilab --help`: the subcommands, the options of the screens, the exit codes.

The page names all subcommands without loading their modules, which would take a second.
"""

from collections.abc import Mapping

from tuilab.errors import MEANINGS
from tuilab.text.wrapping import terminal_width, wrap

# The subcommands by heading, each with its summary.
GROUPS = {
    "Run and measure": {
        "run": "Run a scenario, a topic or all scenarios.",
        "exec": "Run your own training script and watch it.",
        "ab": "Compare ways to run a command, each in fresh processes.",
        "tune": "Try training advice on your own script, unchanged.",
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
VERBS: dict[str, str] = {}
for _group in GROUPS.values():
    VERBS |= _group
READ_ONLY = "Open the screens read-only: nothing can be started, stopped, changed or written."
LANG = "Language of the lessons, for example zh (default: TUILAB_LANG, else English)."
SCENARIOS = (
    "Folder with your own scenarios; may be repeated "
    "(default: TUILAB_SCENARIOS, else the config file)."
)
ROOT = (
    "Folder of runs (default: TUILAB_ROOT, else the config file, else your state folder; "
    "`tuilab config` shows it)."
)
FPS = (
    "Redraw the screens this many times a second "
    "(default: TUILAB_FPS, else the config file, else 2)."
)
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
_MOST_COLUMNS = 80  # of the page, however wide the terminal is


def page() -> str:
    """Return the page, as wide as the terminal is."""
    width = max(min(terminal_width(), _MOST_COLUMNS), 50) - 2
    exit_codes = {str(int(code)): meaning for code, meaning in MEANINGS.items()}
    lines = ["Usage: tuilab [OPTIONS] [SUBCOMMAND] [ARGS]..."]
    for paragraph in (_ABOUT, _START):
        lines.append("")
        lines += [f"  {line}" for line in wrap(paragraph, width - 2)]
    verb_width = max(map(len, VERBS))
    for heading, group in GROUPS.items():
        lines += _table(heading, group, width, verb_width)
    lines += _table("Options (without a subcommand)", _OPTIONS, width)
    lines += _table("Exit codes", exit_codes, width)
    return "\n".join(lines)


def _table(heading: str, meanings: Mapping[str, str], width: int, term_width: int = 0) -> list[str]:
    """Return the terms below their heading, each with its meaning next to it."""
    term_width = term_width or max(map(len, meanings))
    lines = ["", f"{heading}:"]
    for term, meaning in meanings.items():
        first, *rest = wrap(meaning, width - term_width - 4)
        lines.append(f"  {term:{term_width}}  {first}")
        lines += [" " * (term_width + 4) + line for line in rest]
    return lines
