"""Lessons in another language: what is shown in it, and that everything else stays English."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tuilab.catalogue import catalog
from tuilab.catalogue.source import read as read_scenario
from tuilab.catalogue.stated_claims import claims_of, sections_of
from tuilab.catalogue.translation import translated

Tuilab = Callable[..., "CompletedProcess[str]"]

LESSON = '''\
"""Four is two and two.

Numbers add up.
## Predict
How many is 2 and 2?
## Look for
- [four] 2 and 2 are 4
## Try next
`--two 3`: then it is 6. refutes: four
## Source
Here.
"""
from tuilab import Lab


def run(
    lab: Lab,
    two: int = 2,  # what is added to itself
) -> None:
    lab.log(0, sum=two)
    lab.claim("four", two + two, equals=4)
'''
CHINESE = """\
# 二加二等于四

数可以
相加。

## 先猜一猜
2 加 2 是多少？
## 看什么
- [four] 2 加 2 等于 4
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A lesson with a translation next to it."""
    file = tmp_path / "sums" / "four.py"
    file.parent.mkdir()
    file.write_text(LESSON)
    file.with_suffix(".zh.md").write_text(CHINESE)
    return file


def test_title_and_lesson_are_shown_in_the_language(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = read_scenario(path)
    monkeypatch.setenv("TUILAB_LANG", "zh")

    shown = translated(scenario)

    assert shown == scenario._replace(
        title="二加二等于四", lesson=CHINESE.partition("\n")[2].strip()
    )


@pytest.mark.parametrize("language", ["", "en", "de", "../zh", "zh/../zh", "\x1b[2J"])
def test_lesson_without_a_translation_is_shown_in_english(
    path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setenv("TUILAB_LANG", language)
    scenario = read_scenario(path)

    assert translated(scenario) is scenario


@pytest.mark.parametrize("content", [b"# \n\xff", b"# " + b"x" * 300_000, None])
def test_translation_that_cannot_be_read_is_as_none(
    path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    beside = path.with_suffix(".zh.md")
    beside.unlink()
    if content is None:
        beside.symlink_to(beside)
    else:
        beside.write_bytes(content)
    monkeypatch.setenv("TUILAB_LANG", "zh")
    scenario = read_scenario(path)

    assert translated(scenario) is scenario


def test_show_prints_the_translation_and_says_if_there_is_none(path: Path, tuilab: Tuilab) -> None:
    shown = tuilab("show", str(path), "--lang", "zh")
    missing = tuilab("show", str(path), "--lang", "de")

    assert (shown.stderr, shown.stdout.splitlines()[0]) == ("", "二加二等于四")
    assert "- [four] 2 加 2 等于 4\n" in shown.stdout
    assert missing.stderr == "tuilab: no translation into de; showing English\n"
    assert missing.stdout.startswith("Four is two and two\n")


def test_runs_and_lists_are_english(path: Path, tuilab: Tuilab) -> None:
    chinese = {"TUILAB_LANG": "zh"}

    done = tuilab("run", str(path), "--headless", env=chinese)
    listed = tuilab("list", "--scenarios", str(path.parent.parent), env=chinese)

    assert "2 and 2 are 4" in done.stdout and "二" not in done.stdout
    assert "Four is two and two" in listed.stdout
    (run,) = json.loads(tuilab("attach", "--json", env=chinese).stdout)["runs"]
    assert run["title"] == "Four is two and two"


def test_translations_that_come_with_tuilab_have_the_sections_and_claims_of_their_lessons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TUILAB_LANG", "zh")
    pairs = [(scenario, translated(scenario)) for scenario in catalog.load()]
    chinese = [(scenario, shown) for scenario, shown in pairs if shown is not scenario]

    assert {scenario.id for scenario, _ in chinese} == {"softmax", "xent", "xyy"}
    for scenario, shown in chinese:
        sections = [*sections_of(shown.lesson).values()]
        keys = [
            claim.key
            for text in sections
            for claim in claims_of(f"## Look for\n{text}")
            if claim.key
        ]
        assert len(sections) == len(scenario.sections) + 1  # and the parameters
        assert keys == [claim.key for claim in scenario.claims]
