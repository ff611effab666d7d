"""What a lesson states: keys, sentences, and the claims that a change refutes."""

from pathlib import Path

import pytest

from tuilab.catalogue.scenario import Stated
from tuilab.catalogue.stated import Change, changes_of, claims_of, fits, match, named, sections_of
from tuilab.record.events import VerdictReached
from tuilab.record.parts import Claim
from tuilab.runs.entry import from_name
from tuilab.runs.past_runs import PastRun, verdict_on

LESSON = """
Why.

## Look for
- [limit-f32] in float32 it works up to
  `88.72`.
- [1, 2] is a list and no key
* [far] a star begins a bullet, too

What follows a blank line is no bullet.

## Try next
`--tied 1000`: the limits fall
by ln(1000).
refutes: limit-f32,
far
`--device cuda`: the same; refutes: far
`--rows 5` changes nothing.
`--cols 5` more than it says; refutes: The words, far.
refutes:
"""


def test_a_bullet_is_a_key_and_a_sentence() -> None:
    assert claims_of(LESSON) == [
        ("limit-f32", "in float32 it works up to 88.72"),
        ("", "[1, 2] is a list and no key"),
        ("far", "a star begins a bullet, too"),
    ]


def test_a_change_names_the_claims_that_it_refutes() -> None:
    assert changes_of(sections_of(LESSON)["Try next"]) == [
        Change("--tied 1000", ("limit-f32", "far")),
        Change("--device cuda", ("far",)),
        Change("--rows 5", ()),
        Change("--cols 5", ("The words", "far", "")),
    ]


def test_a_lesson_without_sections_states_nothing() -> None:
    assert claims_of("only words") == []
    assert changes_of("only words") == []


def test_a_claim_is_named_by_its_key_or_its_words() -> None:
    claims = claims_of(LESSON)

    assert named("far", claims) == named("a star begins a bullet, too.", claims) == claims[2]
    assert named("some other words", claims) is named("", claims) is named("far", []) is None


def test_words_of_the_source_lead_to_their_claim() -> None:
    claims = [*claims_of(LESSON), Stated("", "row {row + 1} is {row}")]

    assert match("limit-{name}", claims) == claims[0]
    assert match("far", claims) == claims[2]
    assert match("row 7 is 6", claims) == claims[3]
    assert match("limit-bf16", claims) is None


def test_gaps_fit_any_words_in_their_order() -> None:
    assert fits("row 7 is 6", "row {a} is {b}")
    assert not fits("row 7 was 6", "row {a} is {b}")
    assert not fits("aaa" * 30 + "b", "{a}a" * 30)


@pytest.mark.parametrize(
    ("stated", "recorded"),
    [
        (Stated("far", "new words"), ("far", "old words")),
        (Stated("far", "the words"), ("", "the words")),
        (Stated("", "the words"), ("far", "the words")),
        (Stated("", "row {row} is right"), ("", "row 7 is right")),
    ],
)
def test_a_verdict_of_an_earlier_run_is_found_by_key_or_words(stated: Stated, recorded: tuple[str, str]) -> None:
    key, text = recorded
    verdict = VerdictReached(key=key, text=text, verdict="REFUTED", rule="r")
    run = PastRun(Path("run"), from_name("run"), claims=[Claim("something else"), Claim(text, key, verdict=verdict)])

    assert verdict_on(stated, run) is verdict
    assert verdict_on(Stated("near", "other words"), run) is None
