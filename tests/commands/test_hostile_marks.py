"""A script can write into its own marks: whatever it puts there, watching goes on and ends."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine import read_stream
from tuilab.commands.marks import Mark, MarksFolder
from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.step_parts import steady
from tuilab.commands.steps import Step
from tuilab.commands.watched import Watched
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.watcher._tuilab_watch.ring import Ring
from tuilab.engine.messages import CommandOrder
from tuilab.record.events import Logged, Unavailable
from tuilab.record.journal.writer import Writer

LONG = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)])
MARKS = st.builds(
    Mark,
    began=LONG,
    ended=LONG,
    value=st.floats(),
    number=st.integers(0, 2**32 - 1) | st.integers(0, 100),
    name=st.integers(0, 3),
    flags=st.integers(0, 15),
    kind=st.integers(0, 12) | st.integers(0, 255),
)
HELLOS = [
    "[" * 3900,
    '{"threads": ' + "9" * 3900 + "}",
    '{"threads": ' + "[" * 900 + "]" * 900 + "}",
    '{"rank": "\\ud800", "world": NaN, "torch": {}}',
    "7",
]


def file_of(marks: list[Mark], hello: str | None) -> bytes:
    """Return a file of these marks, behind a hello."""
    slots = [layout.HEAD.pack(layout.MAGIC, 0, 0).ljust(layout.FIRST * layout.SLOT, b"\0")]
    if hello is not None:
        slots.append(layout.MARK.pack(1, 0, 0.0, len(hello), 0, 0, layout.HELLO))
        slots.append(layout.pieces_of(hello.encode()))
    for mark in marks:
        slots.append(layout.MARK.pack(*mark[:7]))
    return b"".join(slots)


@contextmanager
def watched(folder: Path) -> Iterator[tuple[Watched, Path]]:
    """Watch the marks of a folder, and give where they are recorded."""
    stream = folder / "worker-0.jsonl"
    journal = Writer(stream)
    yield Watched(CommandOrder(words=["python"]), folder, NumberScanner([]), journal), stream
    journal.close()


@given(marks=st.lists(MARKS, max_size=60), hello=st.none() | st.sampled_from(HELLOS))
def test_any_marks_are_read_to_the_end(marks: list[Mark], hello: str | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "7.0").write_bytes(file_of(marks, hello))

        with watched(folder) as (one, stream):
            one.finish()
        assert read_stream(stream)


@pytest.mark.parametrize("hello", HELLOS)
def test_a_hello_that_is_none_leaves_the_steps_as_they_are(tmp_path: Path, hello: str) -> None:
    ring = Ring(str(tmp_path))
    ring.text(layout.HELLO, hello)
    for at in range(10):
        ring.mark(layout.STEPPED, at * 10, at * 10 + 5, name=1)

    with watched(tmp_path) as (one, _):
        one.finish()
        assert [lane.count for lane in one.lanes.values()] == [10]


def test_steps_whose_times_go_back_have_no_duration() -> None:
    steps = [Step(began=at, ended=at - 5) for at in range(9, 0, -1)]

    assert [step.took_ns for step in steps] == [None] * 9
    assert steady(steps) == []


@pytest.mark.parametrize("number", ["10000000", "9" * 18, "9" * 200, "٣"])
def test_a_file_with_a_huge_number_is_read_at_once(tmp_path: Path, number: str) -> None:
    ring = Ring(str(tmp_path))
    ring.mark(layout.STEPPED, 1, 2, name=1)
    (tmp_path / f"{os.getpid()}.{number}").touch()
    (tmp_path / f"{'9' * 200}.0").touch()

    marks = [mark for _, news in MarksFolder(tmp_path).read(is_last=True) for mark in news]

    assert [mark.kind for mark in marks] == [layout.STEPPED]


def test_a_value_without_a_name_is_counted(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path))
    ring.mark(layout.LOGGED, 1, 1, 0.5, name=7)

    with watched(tmp_path) as (one, stream):
        one.finish()
        records = read_stream(stream)
    reasons = [record.reason for record in records if isinstance(record, Unavailable)]
    assert any(reason.startswith("the names of 1 value were lost") for reason in reasons)
    assert not any(isinstance(record, Logged) for record in records)
