"""What is typed goes on in grey, and → takes it: in the filter of the Lab, and where tags are typed."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.made_runs import FAST, PLAIN, finished, write
from tests.tui.screens import NotingApp, app_on, drive, opened, press, said
from tuilab.runs import notes
from tuilab.tui.widgets.filterline import complete_last_word


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        ("so", "softmax"),
        ("amp SO", "amp SOftmax"),
        ("!#so", "!#softmax"),
        ("softmax", None),
        ("", None),
        ("amp ", None),
        ("zz", None),
    ],
)
def test_the_last_word_goes_on_to_the_first_that_begins_so(typed: str, whole: str | None) -> None:
    assert complete_last_word(typed, ["amp", "softmax", "sort"]) == whole


def test_the_filter_of_the_lab_completes_topics_and_scenarios(tmp_path: Path) -> None:
    folder = write(tmp_path / "scenarios", fast=FAST, plain=PLAIN)

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await press(pilot, "slash", *"mine pl", "right")
        assert isinstance(app.focused, Input) and app.focused.value == "mine plain"

    drive(body, folder, tmp_path / "runs")


async def test_tags_that_runs_have_are_completed_where_tags_are_typed(tmp_path: Path) -> None:
    untagged = finished(tmp_path, {}, end="aaaaaa")
    tagged = finished(tmp_path, {}, at_s=1.7e9, end="bbbbbb")
    notes.add(tagged, tags=["baseline"])
    async with opened(app_on(tmp_path), "h", "t", *"new ba", "right", "enter") as pilot:
        assert said(pilot)[-1] == "tagged aaaaaa: new, baseline"
    assert sorted(notes.read(untagged).tags) == ["baseline", "new"]


async def test_the_filter_of_history_offers_what_its_runs_have(tmp_path: Path) -> None:
    finished(tmp_path, {"a": "REFUTED"}, state="stopped")
    async with opened(
        app_on(tmp_path), "h", "slash", *"state:st", "right", *" verdict:", "right"
    ) as pilot:
        assert (
            isinstance(pilot.app.focused, Input)
            and pilot.app.focused.value == "state:stopped verdict:refuted"
        )
