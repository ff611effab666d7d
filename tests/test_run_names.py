"""The name of a run's folder: made in one place, and taken apart in one."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuilab.runs import store
from tuilab.runs.entry import from_name
from tuilab.runs.folders import run_names
from tuilab.runs.run_name import RunName, new_name

GIVEN = "20261121T223331195Z-row-reduce-abbc91"


def test_a_name_tells_scenario_id_and_start() -> None:
    name = RunName(GIVEN)

    assert (name.scenario, name.id) == ("row-reduce", "abbc91")
    assert (name.started_s, name.started) == (1795300411.195, "2026-11-21 22:33Z")


def test_the_newest_run_is_one_whose_time_is_known(tmp_path: Path) -> None:
    names = [GIVEN, "20260101T000000000Z-tour-abc123", "tour-kept", "2027-plans"]
    for name in reversed(names):
        (tmp_path / name / "journal").mkdir(parents=True)

    assert [run.name for run in store.list_runs(tmp_path)] == names
    assert [run.name for run in store.newest([tmp_path])] == names
    assert run_names(str(tmp_path)) == names
    assert store.find("last", tmp_path).name == GIVEN


@pytest.mark.parametrize(
    ("text", "scenario", "id"),
    [
        ("tour", "", "tour"),
        ("my-run", "", "run"),
        ("crash-in-the-third-repeat", "in-the-third", "repeat"),
        ("2026-tour-abc123", "tour", "abc123"),
        ("20261321T223331195Z-tour-abc123", "tour", "abc123"),  # of the thirteenth month
        ("20261121T2233311ööZ-tour-abc123", "tour", "abc123"),
        ("-", "", "-"),
        ("x-", "", "x-"),
        ("", "", ""),
    ],
)
def test_a_name_that_somebody_else_gave_tells_what_it_can_and_no_time(
    text: str, scenario: str, id: str
) -> None:
    name = RunName(text)

    assert (name.scenario, name.id) == (scenario, id)
    assert (name.started_s, name.started) == (None, "n/a")


@given(st.from_regex(r"[a-zA-Z0-9_.+-]{1,60}", fullmatch=True))
def test_what_is_made_of_a_scenario_is_found_in_the_name_again(scenario: str) -> None:
    before_ms = int(time.time() * 1000)
    name = RunName(new_name(scenario))

    assert name.scenario == scenario
    assert (
        len(name.id) == 6
        and name.started_s is not None
        and before_ms <= round(1000 * name.started_s)
    )


def test_characters_that_a_folder_should_not_have_are_replaced_and_long_names_cut() -> None:
    assert RunName(new_name("my sc\x1b/enario")).scenario == "my_sc__enario"
    assert RunName(new_name("x" * 300)).scenario == "x" * 60


def test_every_view_takes_a_name_apart_in_the_same_way(root: Path) -> None:
    run_dir = store.create("row-reduce", root)

    assert from_name(run_dir.name).scenario == "row-reduce"
    assert (
        store.find(store.short_id(run_dir.name), root)
        == run_dir
        == store.find(run_dir.name[:19], root)
    )
    assert from_name("tour").scenario == "tour"  # a line has a name, whatever the folder is called
