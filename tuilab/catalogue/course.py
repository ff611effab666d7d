"""Read `course.txt`, which has the order of the lessons of a folder and describes its topics.

Each topic has a line `name: what it is about`. Below it are its lessons, indented, each with the
lessons that it builds on: `lesson: one, another`. A folder needs no such file. A line that cannot
be understood does not affect others; `tuilab check all` reports it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tuilab.catalogue.scenario import Scenario
from tuilab.storage.files import Fault, Unusable, read_small
from tuilab.text.display import show

FILE = "course.txt"
MAX_BUILDS_ON = 2  # lessons that a lesson may build on

_LIMIT = 256 * 1024
_BOM = "\ufeff"  # a byte order mark, which some editors put before a text


class Course(NamedTuple):
    """Topics and lessons in their order; if several files name one, the first file counts."""

    topics: dict[str, str]  # the description of each
    lessons: dict[str, tuple[str, ...]]  # by id: the lessons that it builds on
    lines: dict[str, tuple[int, str]]  # by id of a lesson: its line, and its topic
    faults: list[tuple[int, str]]  # lines that cannot be understood, and why

    def sort(self, scenarios: Iterable[Scenario]) -> list[Scenario]:
        """Return scenarios in the order of the course; the rest comes last, by name."""
        topics = {topic: position for position, topic in enumerate(self.topics)}
        lessons = {lesson: position for position, lesson in enumerate(self.lessons)}

        def sort_key(scenario: Scenario) -> tuple[int, str, int, str]:
            return (
                topics.get(scenario.topic, len(topics)),
                scenario.topic,
                lessons.get(scenario.id, len(lessons)),
                scenario.id,
            )

        return sorted(scenarios, key=sort_key)


def read(folders: Iterable[str]) -> Course:
    """Return the course through some folders of scenarios; a folder without a course adds nothing.

    A file that cannot be read is a fault of the course, with line 1.
    """
    course = Course({}, {}, {}, [])
    for folder in folders:
        try:
            text = read_small(f"{folder}/{FILE}", _decode, _LIMIT, may_be_link=True)
        except Unusable as problem:
            if problem.fault is not Fault.ABSENT:
                course.faults.append((1, f"it cannot be read: {problem}"))
            continue
        _add_lines(course, text)
    return course


def _decode(data: bytes) -> str:
    return data.decode().removeprefix(_BOM)


def _add_lines(course: Course, text: str) -> None:
    """Add the topics and lessons of a text to a course, as far as the course does not have them.

    Lines that cannot be understood are added to its faults.
    """
    topic = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.rstrip().lstrip(" \t").partition(":")
        is_lesson = line.startswith((" ", "\t"))
        if not _is_name(name) or (is_lesson and not topic):
            fault = (
                'this line is not in the form "topic: what it is about" or, indented, '
                '"lesson: one, another"'
            )
            course.faults.append((number, fault))
        elif is_lesson:
            names = [part.strip() for part in rest.split(",")]
            builds_on = tuple(earlier for earlier in names if earlier)
            course.lines.setdefault(name, (number, topic))
            course.lessons.setdefault(name, builds_on)
        else:
            topic = name
            course.topics.setdefault(topic, rest.strip())


def _is_name(word: str) -> bool:
    """Return whether a word has only letters, digits, _ and -, and begins with a letter or digit.

    That first character must be ASCII. A regular expression would take longer to load.
    """
    has_good_start = word[:1].isascii() and word[:1].isalnum()
    return has_good_start and word.replace("-", "").replace("_", "").isalnum()


def check(course: Course, scenarios: Sequence[Scenario]) -> Iterator[tuple[int, str]]:
    """Yield each mistake in the course through these scenarios, with its line.

    A mistake that no line makes, such as a missing lesson, has line 1.
    """
    yield from course.faults
    scenario_of_id = {scenario.id: scenario for scenario in scenarios}
    for topic, description in course.topics.items():
        if not description:
            yield 1, f"the topic {show(topic)} has no description; add one"
    earlier: set[str] = set()
    for id, builds_on in course.lessons.items():
        line, topic = course.lines[id]
        if id not in scenario_of_id or scenario_of_id[id].topic != topic:
            path = f"{show(topic)}/{show(id)}"
            yield line, f"no scenario {path} exists; remove this line, or correct it"
        if len(builds_on) > MAX_BUILDS_ON:
            yield (
                line,
                f"{show(id)} builds on {len(builds_on)} lessons; "
                f"name at most {MAX_BUILDS_ON}, the most important ones",
            )
        for name in builds_on:
            if name not in earlier:
                yield line, f"{show(name)} has to come before {show(id)}, which builds on it"
        earlier.add(id)
    for id, scenario in scenario_of_id.items():
        if id not in course.lessons:
            path = f"{show(scenario.topic)}/{show(id)}"
            yield 1, f"the lesson {path} is missing; add a line for it"
