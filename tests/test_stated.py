"""What a lesson states: keys, sentences, and the claims that a change refutes."""

from pathlib import Path

import pytest

from tuilab.catalogue.scenario import StatedClaim
from tuilab.catalogue.stated_claims import (
    Change,
    changes_of,
    claims_of,
    fits,
    match,
    sections_of,
    why_unknown,
)
from tuilab.record.events import VerdictReached
from tuilab.record.summary_parts import Claim
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


def test_word_of_the_source_leads_to_the_claim_with_its_key() -> None:
    claims = claims_of(LESSON)

    assert match("limit-{name}", claims) == claims[0]
    assert match("far", claims) == claims[2]
    assert (
        match("limit-bf16", claims)
        is match("a star begins a bullet, too", claims)
        is match("", claims)
        is None
    )


def test_word_that_is_no_key_of_a_bullet_says_what_to_write() -> None:
    claims = claims_of(LESSON)

    assert (
        why_unknown("fra", claims)
        == "no bullet under Look for has the key [fra]; add the bullet, or correct the key"
    )
    assert why_unknown("a star begins a bullet, too.", claims).endswith('; write "far"')
    assert why_unknown("It is so.", claims).endswith(
        'write the bullet "- [a-key] It is so" under ## Look for, and claim "a-key"'
    )


def test_gaps_fit_any_words_in_their_order() -> None:
    assert fits("row 7 is 6", "row {a} is {b}")
    assert not fits("row 7 was 6", "row {a} is {b}")
    assert not fits("aaa" * 30 + "b", "{a}a" * 30)


@pytest.mark.parametrize(
    ("stated", "recorded"),
    [
        (StatedClaim("far", "new words"), ("far", "old words")),
        (StatedClaim("far", "the words"), ("far", "the words")),
    ],
)
def test_verdict_of_an_earlier_run_is_found_by_the_key(
    stated: StatedClaim, recorded: tuple[str, str]
) -> None:
    key, text = recorded
    verdict = VerdictReached(key=key, text=text, verdict="REFUTED", rule="r")
    run = PastRun(
        Path("run"),
        from_name("run"),
        claims=[Claim("something else"), Claim(text, key, verdict=verdict)],
    )

    assert verdict_on(stated, run) is verdict
    assert verdict_on(StatedClaim("near", "other words"), run) is None
