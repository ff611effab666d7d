"""Open the next lesson that you have not done, and show how close your predictions were.

In a terminal, this opens the screens at that lesson, and you can enter your prediction there. With
--headless, or without a terminal, it prints the lessons that you have done and the next lesson.
"""

import shlex
import shutil
import sys
from collections.abc import Sequence

import click

from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Scenario
from tuilab.cli import options
from tuilab.runs import lesson_score
from tuilab.runs.lesson_score import LearnedLesson
from tuilab.text.display import show
from tuilab.text.wrapping import flow, wrap


@click.command(
    help=__doc__,
    params=[
        click.Option(
            ["--headless"],
            is_flag=True,
            help="Do not open the screens; print your score and the next lesson.",
        ),
        options.AS_JSON,
        options.FPS,
        *options.FOLDERS,
    ],
)
def command(
    headless: bool, as_json: bool, fps: float, scenarios: Sequence[str], root: str | None
) -> int:
    lessons = [scenario for scenario in catalog.load(scenarios) if not scenario.error]
    learned = lesson_score.read()
    upcoming = lesson_score.upcoming(lessons, learned)
    if as_json:
        options.print_document("tuilab.learn/1", **fields(lessons, learned, upcoming))
        return 0
    if not headless:
        from tuilab import tui

        why = tui.why_not()
        if not why:
            return tui.start(options.root(root), scenarios, is_learning=True, fps=fps)
        print(f"tuilab: {why}; printing the score instead (same as --headless)", file=sys.stderr)
    folders = "".join(f" --scenarios {shlex.quote(folder)}" for folder in scenarios)
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    print(render(lessons, learned, upcoming, folders, width))
    return 0


def render(
    lessons: Sequence[Scenario],
    learned: dict[str, LearnedLesson],
    upcoming: Scenario | None,
    folders: str = "",
    width: int = 100,
) -> str:
    """Return the lessons that were done with what was predicted of them, the score, and the next lesson."""
    done = lesson_score.done(lessons, learned)
    longest = max((len(one.lesson) for one in done), default=0)
    lines = [f"  {show(one.lesson):{longest}}  {_told(one)}" for one in done]
    lines += [""] if lines else []
    lines.append(lesson_score.describe_score(lessons, learned))
    return "\n".join([*lines, "", *_next(upcoming, folders, width)])


def _told(one: LearnedLesson) -> str:
    if one.nearness is None:
        return "done, without a prediction"
    return f"{one.nearness:5}  you predicted {one.predicted:.6g}, measured {one.measured:.6g}"


def _next(upcoming: Scenario | None, folders: str, width: int) -> list[str]:
    if upcoming is None:
        return ["You have done them all. Write one: tuilab new NAME"]
    question = _question(upcoming)
    return [
        *wrap(f"Next: {show(upcoming.topic)}/{show(upcoming.id)}  {show(upcoming.title)}", width),
        *(f"  {line}" for line in wrap(show(question), width - 2)),
        f"  read it: tuilab show {show(upcoming.id)}{folders}",
        f"  run it:  {_command(upcoming, folders)}",
    ]


def _question(lesson: Scenario) -> str:
    return flow(lesson.sections.get("Predict", ""))


def _command(lesson: Scenario, folders: str) -> str:
    return f"tuilab run {show(lesson.id)}{folders} --headless{' --predict NUMBER' if _question(lesson) else ''}"


def fields(
    lessons: Sequence[Scenario], learned: dict[str, LearnedLesson], upcoming: Scenario | None
) -> dict[str, object]:
    """Return the score for `--json`."""
    done = [
        {
            "scenario": one.lesson,
            "run": one.run,
            "predicted": one.predicted,
            "measured": one.measured,
            "nearness": one.nearness,
        }
        for one in lesson_score.done(lessons, learned)
    ]
    return {"lessons": len(lessons), "next": _fields(upcoming) if upcoming else None, "done": done}


def _fields(lesson: Scenario) -> dict[str, str]:
    return {
        "scenario": lesson.id,
        "topic": lesson.topic,
        "title": lesson.title,
        "question": _question(lesson),
    }
