"""The user's own commands, which the Lab lists next to the lessons, each with a form."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.catalogue.scenario import Param, Scenario
from tuilab.record.tuning.stages import tunes_script
from tuilab.runs.command_line import line, rerun_line, short, verb_of, why_not_again
from tuilab.runs.run_name import is_of_command, kind_of_run
from tuilab.text.display import show

if TYPE_CHECKING:
    from tuilab.record.events import RunStarted
    from tuilab.runs.past_runs import PastRun

TOPIC = "your commands"
ABOUT = "Your own commands, such as training scripts: run unchanged, and watched"
_MAX_COMMANDS = 12
_SEARCHED_RUNS = 200  # the newest
_WATCH = ("all", "steps", "nothing")
LEARNING = ("the same", "different")  # whether all arms have to learn the same
_INTRODUCTION = (
    "`tuilab exec -- python train.py` runs your script unchanged and shows where time goes. "
    "This form (`f`) does the same."
)
_ARMS_HELP = """\
To compare variants (arms) of a command, list them in the form under `arm`, separated by `;`:

- `x: OMP_NUM_THREADS=8`: sets a variable
- `x: numactl -N0`: puts words before the command
- `x: -- --batch 64`: puts arguments after it

They are compared with the unchanged command, called `base`. See docs/own-scripts.md."""


class OwnCommand(Scenario):
    """A command that is listed like a scenario. Its `path` identifies it, and is no file."""

    kind = ""  # the part of the names of its runs
    words: tuple[str, ...] = ()
    script = ""  # the file of its script, if it is on this machine
    state = ""  # of its last run
    point = ""  # the values of its last run in a sweep, which tell similar commands apart

    def is_of(self, run: "RunStarted | None") -> bool:
        """Return whether a run is of this command, with any options."""
        return run is not None and tuple(run.command) == self.words


def new_command() -> OwnCommand:
    """Return the form of a command that was never run."""
    return OwnCommand(
        "a new command",
        TOPIC,
        "new",
        "Run a command of your own",
        f"{_INTRODUCTION} {_ARMS_HELP}",
        params=_params({}, []),
    )


def of_run(run: "RunStarted", state: str = "", last_run: str = "") -> OwnCommand:
    """Return the command of a run; `last_run` is a text about how it ended."""
    from tuilab.commands.make_order import script_of
    from tuilab.reports.sweeps.points import point_words

    title = show(short(run.command), 160)
    is_tuned = tunes_script(run)
    # A form cannot tune. So a tuned command is listed as a command that is watched.
    topic = "exec" if is_tuned else run.topic
    # The options are behind `tuilab` and the subcommand.
    options = {} if is_tuned else _read_options(verb_of(run)[2:])
    if run.topic == "ab":
        title = f"ab: {title}"
    folder = f"In {run.folder}." if run.folder else ""
    again = f"Tune it again: `{rerun_line(run, 0)}`" if is_tuned else ""
    parts = [f"`{line(run.command)}`", folder, last_run, again, why_not_again(run), _ARMS_HELP]
    command = OwnCommand(
        id=title,
        topic=TOPIC,
        path=f"{topic} {run.scenario} in {run.folder}: {line(run.command)}",
        title=title,
        lesson="\n\n".join(part for part in parts if part),
        params=_params(options, run.command, run.folder),
    )
    command.kind = kind_of_run(run.scenario, run.topic)
    command.words = tuple(run.command)
    command.script = str(script_of(run.command, run.folder) or "")
    command.state = state
    if run.sweep:
        command.point = point_words(run.sweep.point)
    return command


def last(past_of: "Callable[[Path], PastRun]", root: Path) -> list[OwnCommand]:
    """Return the last commands, each once, the newest first; then the form of a new one.

    Only the newest runs are searched, and only a few commands are returned.
    """
    from tuilab.runs.folders import run_names

    commands: dict[str, OwnCommand] = {}  # by path
    for name in run_names(os.fspath(root))[:_SEARCHED_RUNS]:
        if len(commands) >= _MAX_COMMANDS:
            break
        if not is_of_command(name):
            continue
        past = past_of(root / name)
        if past.run is None or not past.run.command:
            continue
        last_run = _describe_last_run(past.state, past.entry.elapsed_s, root / name)
        command = of_run(past.run, past.state, last_run)
        commands.setdefault(command.path, command)
    return [*commands.values(), new_command()]


def _describe_last_run(state: str, elapsed_s: float | None, run_dir: Path) -> str:
    """Return how a run ended, and the first text that it showed: where the time of a step went."""
    from tuilab.record import events
    from tuilab.record.journal.lines import last_records

    words = f"Last run: {state}"
    if elapsed_s:
        words += f" in {elapsed_s:.1f} s"
    try:
        records = last_records(run_dir / "journal" / "worker-0.jsonl")
    except OSError:
        return words
    for record in records:
        if isinstance(record, events.TextShown):
            # Empty lines between the lines keep them apart: a paragraph would join them.
            return "\n\n".join([words, *record.text.splitlines()])
    return words


def _params(
    options: Mapping[str, list[str]], words: Sequence[str], folder: str = ""
) -> tuple[Param, ...]:
    """Return the fields of the form of a command that ran with these options."""

    def text(name: str, label: str, separator: str = " ") -> Param:
        return Param(name, "str", separator.join(options.get(name, [])), label=label)

    watch = options.get("watch", ["all"])[-1]
    if watch not in _WATCH:
        watch = "all"
    same_learning, different_learning = LEARNING
    learning = different_learning if "different-learning" in options else same_learning
    return (
        Param("command", "str", line(words), label="as in a shell, without pipes"),
        Param("folder", "str", folder, label="folder to run it in"),
        text("name", "run name, else the script's"),
        Param("watch", "choice", watch, _WATCH, label="what to measure"),
        text("metric", "printed: acc=acc ([0-9.]+); …", "; "),
        text("step-of", "optimizer that ends a step"),
        text("timeout", "stop it after: 90s, 2m"),
        text("arm", "variants: x: OMP_NUM_THREADS=8; …", "; "),
        text("claim", "about arms: x 1.3x base; …", "; "),
        text("measure", "memory, or a metric's last value"),
        Param("learning", "choice", learning, LEARNING, label="what the arms learn, else INVALID"),
        text("repeat", "processes per arm, else 6"),
        text("budget", "time for all arms: 5m"),
    )


def _read_options(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the options of a command line with their values. A flag has an empty value."""
    options: dict[str, list[str]] = {}
    remaining_words = iter(words)
    for word in remaining_words:
        name, equals_sign, value = word.removeprefix("--").partition("=")
        if name == "different-learning":
            value = ""
        elif not equals_sign:
            value = next(remaining_words, "")  # the value is the next word
        options.setdefault(name, []).append(value)
    return options
