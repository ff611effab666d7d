"""The user's own commands, as the Lab lists them beside the lessons: what ran last, each once, with a form of its words."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.catalogue.scenario import Param, Scenario
from tuilab.runs.command_line import line, short, verb_of, why_not_again
from tuilab.runs.run_name import RunName, kind_of_run
from tuilab.text.display import show

if TYPE_CHECKING:
    from tuilab.record.events import RunStarted
    from tuilab.runs.past_runs import PastRun

TOPIC = "your commands"
ABOUT = "Your own commands, such as training scripts: run unchanged, and watched"
_LISTED = 12
_LOOKED_AT = 200  # runs, the newest
_WATCH = ("all", "steps", "nothing")
LEARNING = ("the same", "different")  # that the arms have to learn, or that they may on purpose
_HOW = "`tuilab exec -- python train.py` runs your script unchanged and shows where time goes. This form (`f`) does the same."
_EXPLAINED = """To compare variants (arms) of a command, list them in the form under `arm`, separated by `;`:

- `x: OMP_NUM_THREADS=8`: sets a variable
- `x: numactl -N0`: puts words before the command
- `x: -- --batch 64`: puts arguments after it

They are compared with the unchanged command, called `base`. See docs/own-scripts.md."""


class OwnCommand(Scenario):
    """A command that is listed as a scenario is; its `path` only tells it from others, and is no file."""

    kind = ""  # what stands in the names of its runs
    words: tuple[str, ...] = ()
    script = ""  # its file, if that is on this box
    state = ""  # of its last run
    point = (
        ""  # its values, where that was a point of a sweep: the words of several may begin alike
    )

    def is_of(self, run: "RunStarted | None") -> bool:
        """Say whether a run is of this command, with whatever options."""
        return run is not None and tuple(run.command) == self.words


def new_command() -> OwnCommand:
    """Return the form of a command that was never run."""
    return OwnCommand(
        "a new command",
        TOPIC,
        "new",
        "Run a command of your own",
        f"{_HOW} {_EXPLAINED}",
        params=_params({}, []),
    )


def of_run(run: "RunStarted", state: str = "", ended: str = "") -> OwnCommand:
    """Return the command that a run was of."""
    from tuilab.commands.make_order import script_of
    from tuilab.reports.sweeps.points import point_words

    told = f"{'ab: ' if run.topic == 'ab' else ''}{show(short(run.command), 160)}"  # that it was raced, or watched alone
    script = script_of(run.command, run.folder)
    lesson = [
        f"`{line(run.command)}`",
        f"In {run.folder}." if run.folder else "",
        ended,
        why_not_again(run),
        _EXPLAINED,
    ]
    given = dict(_options(verb_of(run)[2:]))
    command = OwnCommand(
        id=told,
        topic=TOPIC,
        path=f"{run.topic} {run.scenario} in {run.folder}: {line(run.command)}",
        title=told,
        lesson="\n\n".join(filter(None, lesson)),
        params=_params(given, run.command, run.folder),
    )
    command.kind, command.words = kind_of_run(run.scenario, run.topic), tuple(run.command)
    command.script, command.state = str(script or ""), state
    command.point = point_words(run.sweep.point) if run.sweep else ""
    return command


def last(past_of: "Callable[[Path], PastRun]", root: Path) -> list[OwnCommand]:
    """Return the commands that ran last, each once, the newest first; then the form of a new one."""
    from tuilab.runs.folders import run_names

    names = [
        name
        for name in run_names(os.fspath(root))[:_LOOKED_AT]
        if RunName(name).scenario.endswith((".exec", ".ab"))
    ]
    found: dict[str, OwnCommand] = {}
    for name in names:
        past = past_of(root / name)
        if past.run is None or not past.run.command or len(found) >= _LISTED:
            continue
        command = of_run(
            past.run, past.state, _ended(past.state, past.entry.elapsed_s, root / name)
        )
        found.setdefault(command.path, command)
    return [*found.values(), new_command()]


def _ended(state: str, elapsed_s: float | None, run_dir: Path) -> str:
    """Return how a run ended, and what its steps took."""
    from tuilab.record import events
    from tuilab.record.journal.lines import last_records

    took = f"Last run: {state}" + (f" in {elapsed_s:.1f} s" if elapsed_s else "")
    try:
        records = last_records(run_dir / "journal" / "worker-0.jsonl")
    except OSError:
        return took
    told = [record.text for record in records if isinstance(record, events.TextShown)]
    return "\n\n".join([took, *(told[0].splitlines() if told else ())])  # each line stays one


def _params(
    given: dict[str, list[str]], words: Sequence[str], folder: str = ""
) -> tuple[Param, ...]:
    def text(name: str, label: str, between: str = " ") -> Param:
        return Param(name, "str", between.join(given.get(name, [])), label=label)

    watch = given.get("watch", ["all"])[-1]
    return (
        Param("command", "str", line(words), label="as in a shell, without pipes"),
        Param("folder", "str", folder, label="folder to run it in"),
        text("name", "run name, else the script's"),
        Param(
            "watch", "choice", watch if watch in _WATCH else "all", _WATCH, label="what to measure"
        ),
        text("metric", "printed: acc=acc ([0-9.]+); …", "; "),
        text("step-of", "optimizer that ends a step"),
        text("timeout", "stop it after: 90s, 2m"),
        text("arm", "variants: x: OMP_NUM_THREADS=8; …", "; "),
        text("claim", "about arms: x 1.3x base; …", "; "),
        text("measure", "memory, or a metric's last value"),
        Param(
            "learning",
            "choice",
            LEARNING["different-learning" in given],
            LEARNING,
            label="what the arms learn, else INVALID",
        ),
        text("repeat", "processes per arm, else 6"),
        text("budget", "time for all arms: 5m"),
    )


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the options of a command line with their values."""
    found: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        name, is_given, value = word.removeprefix("--").partition("=")
        has_value = name != "different-learning"
        found.setdefault(name, []).append(
            "" if not has_value else value if is_given else next(rest, "")
        )
    yield from found.items()
