"""Open the next lesson that you have not done, and show how close your predictions were.

In a terminal, this opens the screens at that lesson, and you can enter your prediction there. With
--headless, or without a terminal, it prints the lessons that you have done and the next lesson.
"""

import shlex
import shutil
from collections.abc import Mapping, Sequence

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
        options.print_document("tuilab.learn/1", **describe_score(lessons, learned, upcoming))
        return 0
    if not headless and options.can_open_screens("score"):
        from tuilab import tui

        return tui.start(options.root_path(root), scenarios, is_learning=True, fps=fps)
    folder_options = "".join(f" --scenarios {shlex.quote(folder)}" for folder in scenarios)
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    print(render(lessons, learned, upcoming, folder_options, width))
    return 0


# ---- text


def render(
    lessons: Sequence[Scenario],
    learned: Mapping[str, LearnedLesson],
    upcoming: Scenario | None,
    folder_options: str = "",
    width: int = 100,
) -> str:
    """Return the finished lessons with their predictions, the score, and the next lesson."""
    done = lesson_score.done(lessons, learned)
    name_width = max((len(lesson.lesson) for lesson in done), default=0)
    lines = []
    for lesson in done:
        lines.append(f"  {show(lesson.lesson):{name_width}}  {_describe_prediction(lesson)}")
    if lines:
        lines.append("")
    lines += [lesson_score.describe_score(lessons, learned), ""]
    lines += _describe_next(upcoming, folder_options, width)
    return "\n".join(lines)


def _describe_prediction(lesson: LearnedLesson) -> str:
    if lesson.nearness is None:
        return "done, without a prediction"
    numbers = f"you predicted {lesson.predicted:.6g}, measured {lesson.measured:.6g}"
    return f"{lesson.nearness:5}  {numbers}"


def _describe_next(upcoming: Scenario | None, folder_options: str, width: int) -> list[str]:
    """Return lines about the next lesson: its title, its question, and how to read and run it."""
    if upcoming is None:
        return ["You have done them all. Write one: tuilab new NAME"]
    name = show(upcoming.id)
    question = _question_of(upcoming)
    lines = wrap(f"Next: {show(upcoming.topic)}/{name}  {show(upcoming.title)}", width)
    lines += [f"  {line}" for line in wrap(show(question), width - 2)]
    prediction = " --predict NUMBER" if question else ""
    lines.append(f"  read it: tuilab show {name}{folder_options}")
    lines.append(f"  run it:  tuilab run {name}{folder_options} --headless{prediction}")
    return lines


def _question_of(lesson: Scenario) -> str:
    return flow(lesson.sections.get("Predict", ""))


# ---- the document of --json


def describe_score(
    lessons: Sequence[Scenario], learned: Mapping[str, LearnedLesson], upcoming: Scenario | None
) -> dict[str, object]:
    """Return the score for `--json`."""
    done = []
    for lesson in lesson_score.done(lessons, learned):
        document = {
            "scenario": lesson.lesson,
            "run": lesson.run,
            "predicted": lesson.predicted,
            "measured": lesson.measured,
            "nearness": lesson.nearness,
        }
        done.append(document)
    next_lesson = None
    if upcoming:
        next_lesson = {
            "scenario": upcoming.id,
            "topic": upcoming.topic,
            "title": upcoming.title,
            "question": _question_of(upcoming),
        }
    return {"lessons": len(lessons), "next": next_lesson, "done": done}
