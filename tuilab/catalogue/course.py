"""The order in which the lessons of a folder are read, and what each topic is about: `course.txt`, beside the topics.

A line of its own for each topic, `name: what it is about`; below it, indented, its lessons, each with those that it builds on.
A folder may do without, and a line that says nothing hurts no other: `tuilab check all` tells it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tuilab.catalogue.scenario import Scenario
from tuilab.storage.files import Fault, Unusable, read_small
from tuilab.text.display import show

FILE = "course.txt"
BUILDS_ON = 2  # lessons, at most

_LIMIT = 256 * 1024
_BOM = "\ufeff"  # which some editors put before a text


class Course(NamedTuple):
    """Topics and lessons in their order; of several files the first that names one counts."""

    topics: dict[str, str]  # what each is about
    lessons: dict[str, tuple[str, ...]]  # by id: those that it builds on
    lines: dict[str, tuple[int, str]]  # by id: where it stands, and in which topic
    faults: list[tuple[int, str]]  # lines that say nothing, and why

    def sort(self, scenarios: Iterable[Scenario]) -> list[Scenario]:
        """Return scenarios in the order of the course; what it does not name comes last, by name."""
        topics = {topic: at for at, topic in enumerate(self.topics)}
        lessons = {lesson: at for at, lesson in enumerate(self.lessons)}

        def place(one: Scenario) -> tuple[int, str, int, str]:
            return (
                topics.get(one.topic, len(topics)),
                one.topic,
                lessons.get(one.id, len(lessons)),
                one.id,
            )

        return sorted(scenarios, key=place)


def read(folders: Iterable[str]) -> Course:
    """Return the course through some folders of scenarios."""
    course = Course({}, {}, {}, [])
    for folder in folders:
        try:
            text = read_small(
                f"{folder}/{FILE}",
                lambda data: data.decode().removeprefix(_BOM),
                _LIMIT,
                may_be_link=True,
            )
        except Unusable as problem:
            if problem.fault is not Fault.ABSENT:
                course.faults.append((1, f"it cannot be read: {problem}"))
            continue
        _take(course, text)
    return course


def _take(course: Course, text: str) -> None:
    topic = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.rstrip().lstrip(" \t").partition(":")
        is_indented = line.startswith((" ", "\t"))
        if not _is_name(name) or (is_indented and not topic):
            course.faults.append(
                (
                    number,
                    'this line is not in the form "topic: what it is about" or, indented, "lesson: one, another"',
                )
            )
        elif is_indented:
            course.lines.setdefault(name, (number, topic))
            course.lessons.setdefault(
                name, tuple(word.strip() for word in rest.split(",") if word.strip())
            )
        else:
            topic = name
            course.topics.setdefault(topic, rest.strip())


def _is_name(word: str) -> bool:
    """Say whether a word is of letters, digits, _ and -, the first of ASCII and no sign; `re` would take longer."""
    return (
        word[:1].isascii()
        and word[:1].isalnum()
        and word.replace("-", "").replace("_", "").isalnum()
    )


def check(course: Course, scenarios: Sequence[Scenario]) -> Iterator[tuple[int, str]]:
    """Yield what is wrong in the course through these scenarios, with its line."""
    yield from course.faults
    known = {scenario.id: scenario for scenario in scenarios}
    for topic, about in course.topics.items():
        if not about:
            yield 1, f"the topic {show(topic)} has no description; add one"
    before: set[str] = set()
    for id, builds_on in course.lessons.items():
        line, topic = course.lines[id]
        if id not in known or known[id].topic != topic:
            yield (
                line,
                f"no scenario {show(topic)}/{show(id)} exists; remove this line, or correct it",
            )
        if len(builds_on) > BUILDS_ON:
            yield (
                line,
                f"{show(id)} builds on {len(builds_on)} lessons; name at most {BUILDS_ON}, the most important ones",
            )
        for name in builds_on:
            if name not in before:
                yield line, f"{show(name)} has to come before {show(id)}, which builds on it"
        before.add(id)
    for id in known.keys() - course.lessons.keys():
        yield 1, f"the lesson {show(known[id].topic)}/{show(id)} is missing; add a line for it"
