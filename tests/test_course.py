"""The order in which the lessons are read: what `course.txt` says, and what is wrong with it."""

from pathlib import Path

import pytest

from tests.test_catalog import GOOD
from tuilab.catalogue import catalog, course
from tuilab.catalogue.scenario import Scenario
from tuilab.cli.verbs.authors import check as check_verb


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of three lessons in two topics of its own."""
    folder = tmp_path / "mine"
    for place in ("zoo/apes", "zoo/bees", "art/oils"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{place}.py").write_text(GOOD)
    return folder


def write(folder: Path, *lines: str) -> None:
    (folder / course.FILE).write_text("\n".join(lines) + "\n")


def own(folder: Path) -> list[Scenario]:
    return [
        scenario for scenario in catalog.load([folder]) if scenario.path.startswith(str(folder))
    ]


def faults(folder: Path) -> list[tuple[int, str]]:
    return sorted(course.check(course.read([str(folder)]), own(folder)))


def test_missing_lessons_are_named_in_the_order_of_the_catalogue(mine: Path) -> None:
    for number in range(8):
        (mine / f"zoo/cat{number}.py").write_text(GOOD)
    write(mine, "zoo: animals", "    bees", "art: pictures", "    oils")
    scenarios = own(mine)

    found = list(course.check(course.read([str(mine)]), scenarios))

    missing = [scenario.id for scenario in scenarios if scenario.id not in ("bees", "oils")]
    assert len(missing) == 9
    assert found == [
        (1, f"the lesson zoo/{name} is missing; add a line for it") for name in missing
    ]


def test_lessons_are_listed_in_the_order_of_the_course(mine: Path) -> None:
    write(
        mine,
        "# of my own",
        "zoo: animals",
        "    bees",
        "    apes: bees",
        "",
        "art: pictures",
        "    oils: apes",
    )

    assert [(one.id, one.builds_on) for one in own(mine)] == [
        ("bees", ()),
        ("apes", ("bees",)),
        ("oils", ("apes",)),
    ]
    assert {
        topic: about for topic, about in catalog.topics([mine]).items() if topic in ("zoo", "art")
    } == {
        "zoo": "animals",
        "art": "pictures",
    }
    assert faults(mine) == []


def test_without_a_course_lessons_are_listed_by_name(mine: Path) -> None:
    assert [one.id for one in own(mine)] == ["oils", "apes", "bees"]
    assert faults(mine)[0] == (1, "the lesson art/oils is missing; add a line for it")


@pytest.mark.parametrize(
    ("lines", "line", "why"),
    [
        (["zoo:", "  apes"], 1, "the topic zoo has no description; add one"),
        (
            ["  apes"],
            1,
            'this line is not in the form "topic: what it is about" or, indented, "lesson: one, another"',
        ),
        (
            ["zoo: x", "  \x1b[31m"],
            2,
            'this line is not in the form "topic: what it is about" or, indented, "lesson: one, another"',
        ),
        (["zoo: x", "  bats"], 2, "no scenario zoo/bats exists; remove this line, or correct it"),
        (["zoo: x", "  oils"], 2, "no scenario zoo/oils exists; remove this line, or correct it"),
        (
            ["zoo: x", "  apes: bees", "  bees"],
            2,
            "bees has to come before apes, which builds on it",
        ),
        (
            ["zoo: x", "  a", "  b", "  c", "  apes: a, b, c"],
            5,
            "apes builds on 3 lessons; name at most 2, the most important ones",
        ),
        (["zoo: x", "  apes"], 1, "the lesson zoo/bees is missing; add a line for it"),
    ],
)
def test_what_is_wrong_in_a_course_is_told_with_its_line(
    mine: Path, lines: list[str], line: int, why: str
) -> None:
    write(mine, *lines)

    assert (line, why) in faults(mine)


def test_a_course_that_cannot_be_read_hurts_no_lesson(mine: Path) -> None:
    (mine / course.FILE).write_bytes(b"zoo: \xff")

    assert [one.id for one in own(mine)] == ["oils", "apes", "bees"]
    assert faults(mine)[0][1].startswith("it cannot be read: ")


def test_the_check_of_all_lessons_tells_what_is_wrong_in_their_order(
    mine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine)
    write(mine, "zoo: x", "    apes: bees", "    bees", "art: y", "    oils")

    code = check_verb.command.main(["--scenarios", str(mine)], standalone_mode=False)

    assert (
        "course.txt:2: bees has to come before apes, which builds on it\n"
        in capsys.readouterr().out
    )
    assert code == 1


def test_the_course_that_comes_with_tuilab_is_whole() -> None:
    folder, *_ = catalog.scenario_dirs()

    assert list(course.check(course.read([folder]), catalog.load())) == []
