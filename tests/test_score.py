"""Which lessons were done, and how near the predictions came: from the claim that answers to `tuilab learn`."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.report_aids import checked_document
from tuilab.judging.prediction import Nearness, find_answer, rate_prediction
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.runs import lesson_score
from tuilab.runs.lesson_score import LearnedLesson
from tuilab.storage import places

Tuilab = Callable[..., "CompletedProcess[str]"]

LESSON = '''\
"""Four is two and two.

## Predict
How many is two and two?

## Look for
- [four] two and two are four
"""
from tuilab import Lab


def run(lab: Lab, two: int = 2) -> None:
    lab.claim("four", two + two, equals=4, answers=True)
'''


@pytest.fixture
def lesson(tmp_path: Path) -> str:
    path = tmp_path / "sums" / "four.py"
    path.parent.mkdir()
    path.write_text(LESSON)
    return str(path)


@pytest.fixture
def kept() -> Path:
    """Where the score is kept: with the user, wherever the runs are."""
    return Path(places.score_file())


@pytest.mark.parametrize(
    ("predicted", "measured", "how_near"),
    [
        (4, 4, Nearness.RIGHT),
        (105, 100, Nearness.RIGHT),
        (50, 100, Nearness.NEAR),
        (-3, -2, Nearness.NEAR),
        (49, 100, Nearness.OFF),
        (2, -2, Nearness.OFF),
        (0, 0, Nearness.RIGHT),
        (0, 1e-9, Nearness.OFF),
        (math.inf, math.inf, Nearness.RIGHT),
        (1e300, math.inf, Nearness.OFF),
        (math.nan, math.nan, Nearness.RIGHT),
        (1e300, 1e-300, Nearness.OFF),
    ],
)
def test_a_prediction_is_right_to_a_tenth_and_near_to_a_factor_of_two(
    predicted: float, measured: float, how_near: Nearness
) -> None:
    assert rate_prediction(predicted, measured) == how_near


def test_a_claim_about_a_ratio_answers_with_its_estimate() -> None:
    declared = events.ClaimDeclared(
        key="fast", text="it is fast", over="a", under="b", op="at_least", bound=2.0
    )
    answered = events.QuestionAnswered(key="fast", text="it is fast")
    verdict = events.VerdictReached(
        key="fast", text="it is fast", verdict="SUPPORTED", rule="r", estimate=3.5
    )
    told = [("worker-0", record) for record in (answered, declared)]

    assert find_answer(fold(told).claims.values()) is None
    found = find_answer(fold([*told, ("judge", verdict)]).claims.values())
    assert found and (found.value, found.claim.key) == (3.5, "fast")


def test_a_run_tells_what_was_predicted_and_what_came_out(tuilab: Tuilab, lesson: str) -> None:
    done = tuilab("run", lesson, "--headless", "--predict", "5")

    assert "\nyou predicted 5; measured 4: near (within a factor of 2)\n" in done.stdout
    shown = json.loads(tuilab("attach", "--json").stdout)["runs"][0]["answer"]
    assert shown == {"value": 4.0, "claim": "four", "predicted": 5.0, "nearness": "near"}


def test_the_first_prediction_of_a_lesson_is_the_one_that_counts(
    tuilab: Tuilab, lesson: str, kept: Path
) -> None:
    tuilab("run", lesson, "--headless", "--quiet")
    assert lesson_score.read()["four"].nearness is None
    tuilab("run", lesson, "--headless", "--quiet", "--predict", "9")
    tuilab("run", lesson, "--headless", "--quiet", "--predict", "4")

    (learned,) = lesson_score.read().values()
    assert (learned.lesson, learned.predicted, learned.measured) == ("four", 9.0, 4.0)
    assert len(kept.read_text().splitlines()) == 2
    assert kept.stat().st_mode & 0o777 == 0o600


def test_what_was_predicted_for_other_parameters_is_not_scored(
    tuilab: Tuilab, lesson: str, kept: Path
) -> None:
    done = tuilab("run", lesson, "--headless", "--two", "3", "--predict", "6")

    said = "you predicted 6; measured 6: right; not scored: two is 3, and the question is about the lesson as it comes"
    assert said in " ".join(done.stdout.split())
    assert lesson_score.read()["four"].predicted is None


def test_a_run_that_was_not_finished_is_no_lesson_done(
    tuilab: Tuilab, lesson: str, kept: Path
) -> None:
    Path(lesson).write_text(LESSON + "    raise ValueError\n")
    tuilab("run", lesson, "--headless", "--quiet")

    assert not kept.exists()


def test_a_score_that_cannot_be_kept_hurts_no_run_and_is_told(
    tuilab: Tuilab, lesson: str, kept: Path
) -> None:
    kept.mkdir(parents=True)
    done = tuilab("run", lesson, "--headless", env={"COLUMNS": "300"})

    assert done.returncode == 0
    assert f"the score of lessons: {kept}: Is a directory" in done.stdout
    assert tuilab("verify", "last").returncode == 0
    assert lesson_score.read() == {}


@pytest.mark.parametrize("torn", ["torn{", '{"lesson": "xyy", "run": "r"}'])
def test_a_line_that_was_torn_swallows_no_other(
    tuilab: Tuilab, lesson: str, kept: Path, torn: str
) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text(torn)
    tuilab("run", lesson, "--headless", "--quiet")

    assert "four" in lesson_score.read()
    assert kept.read_text().splitlines()[0] == torn


def test_a_point_of_a_sweep_with_another_value_is_no_lesson_done(
    tuilab: Tuilab, lesson: str, kept: Path
) -> None:
    tuilab("sweep", lesson, "--set", "two=3,4", "--quiet")
    assert not kept.exists()

    tuilab("sweep", lesson, "--set", "two=2,5", "--quiet")
    assert "four" in lesson_score.read()


def test_a_run_that_was_ordered_otherwise_and_could_test_nothing_is_no_lesson_done(
    tuilab: Tuilab, lesson: str, kept: Path
) -> None:
    Path(lesson).write_text(LESSON.replace("equals=4", "equals=4, lacks='a GPU' * (two > 2)"))

    tuilab("run", lesson, "--headless", "--quiet", "--two", "3")
    assert lesson_score.read() == {}
    tuilab("run", lesson, "--headless", "--quiet")
    assert [*lesson_score.read()] == ["four"]


@pytest.mark.parametrize("given", ["nan", "inf", "1e400", "1_000", "12 ms", "0,5", "1/3"])
def test_a_prediction_is_a_number_and_no_more(
    tuilab: Tuilab, lesson: str, kept: Path, given: str
) -> None:
    done = tuilab("run", lesson, "--headless", "--predict", given)

    assert done.returncode == 2
    assert (
        f'"{given}" is not a number; use a number without a unit, for example 12 or 0.5'
        in done.stderr
    )


def test_where_nothing_is_asked_nothing_can_be_predicted(tuilab: Tuilab, lesson: str) -> None:
    Path(lesson).write_text(LESSON.replace("## Predict\nHow many is two and two?\n\n", ""))
    done = tuilab("run", lesson, "--headless", "--predict", "4")

    assert (done.returncode, done.stderr) == (
        2,
        "tuilab: four has no question to predict; drop --predict\n",
    )


def test_lines_that_cannot_be_read_are_passed_over(kept: Path) -> None:
    good = json.dumps({"lesson": "four", "run": "r", "predicted": 4, "measured": 4})
    kept.parent.mkdir(parents=True, exist_ok=True)
    huge = f'{{"lesson": "huge", "run": "r", "measured": {"9" * 400}}}'
    lines = (
        f'{{"lesson"\n[]\n{{"lesson": 1, "run": 2}}\n{{"x": 1}}\n{huge}\n\xff\n{good}\n{good[:9]}'
    )
    kept.write_bytes(lines.encode("latin-1"))

    assert lesson_score.read() == {"four": LearnedLesson("four", "r", 4, 4)}


def test_the_deletion_of_runs_leaves_the_score(tuilab: Tuilab, lesson: str, kept: Path) -> None:
    tuilab("run", lesson, "--headless", "--quiet", "--predict", "4")
    tuilab("rm", "--older-than", "0s", "--yes")

    assert lesson_score.read()["four"].nearness == Nearness.RIGHT


def test_learn_tells_the_score_and_the_next_lesson(tuilab: Tuilab, lesson: str, kept: Path) -> None:
    folder = str(Path(lesson).parent.parent)
    tuilab("run", lesson, "--headless", "--quiet", "--predict", "9")
    done = tuilab("learn", "--scenarios", folder)

    assert (
        done.stderr
        == "tuilab: there is no terminal; printing the score instead (same as --headless)\n"
    )
    first, _, told, _, upcoming, *_, command = done.stdout.splitlines()
    assert first == "  four  off    you predicted 9, measured 4"
    assert told.startswith("1 of ") and told.endswith(" lessons done; of 1 prediction 1 off")
    assert upcoming.startswith("Next: basics/tensor-basics  ")
    assert (
        command
        == f"  run it:  tuilab run tensor-basics --scenarios {folder} --headless --predict NUMBER"
    )


def test_learn_as_json_is_one_document(tuilab: Tuilab, lesson: str, kept: Path) -> None:
    tuilab("run", lesson, "--headless", "--quiet", "--predict", "65504")
    document = checked_document(
        json.loads(tuilab("learn", "--json", "--scenarios", str(Path(lesson).parent.parent)).stdout)
    )

    (row,) = document.pop("done")
    assert (row["scenario"], row["predicted"], row["measured"], row["nearness"]) == (
        "four",
        65504.0,
        4.0,
        "off",
    )
    assert document["schema"] == "tuilab.learn/1"
    assert (document["next"]["scenario"], document["next"]["topic"]) == ("tensor-basics", "basics")
    assert document["next"]["question"].endswith("?")


def test_a_prediction_is_for_one_lesson(tuilab: Tuilab) -> None:
    done = tuilab("run", "stability", "--headless", "--predict", "5")

    assert (done.returncode, done.stderr) == (
        2,
        "tuilab: --predict answers the question of one lesson; name only one scenario\n",
    )


def test_whoever_has_done_all_lessons_is_told_so() -> None:
    from tuilab.cli.verbs.learn import render

    assert render([], {}, None).endswith("You have done them all. Write one: tuilab new NAME")


def test_a_name_in_the_file_cannot_steer_the_terminal(
    tuilab: Tuilab, lesson: str, kept: Path
) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"lesson": "\x1b[2J", "run": "r"}) + "\n")

    assert "\x1b" not in tuilab("learn").stdout
    assert os.path.exists(kept)


@pytest.mark.parametrize(
    ("got", "answers", "value"),
    [(4, True, 4.0), ([1, 2], 7, 7.0), (0.5, math.nan, math.nan), (True, 3, 3.0)],
)
def test_a_claim_answers_with_its_value_or_with_a_number(
    lesson: str, tuilab: Tuilab, got: Any, answers: Any, value: float
) -> None:
    given = f'float("{answers}")' if isinstance(answers, float) else repr(answers)
    Path(lesson).write_text(
        LESSON.replace(
            "two + two, equals=4, answers=True", f"{got!r}, equals={got!r}, answers={given}"
        )
    )
    (run,) = json.loads(tuilab("run", lesson, "--headless", "--json", "--quiet").stdout)["runs"]

    assert run["answer"]["value"] == (str(value) if math.isnan(value) else value)


def test_an_answer_that_is_several_numbers_is_refused(lesson: str, tuilab: Tuilab) -> None:
    Path(lesson).write_text(LESSON.replace("two + two, equals=4", "[2, 2], equals=[2, 2]"))
    done = tuilab("run", lesson, "--headless")

    assert (
        "TypeError: answers=True takes a measured value that is one number; pass the number itself, for example answers=4.7"
        in done.stdout
    )
