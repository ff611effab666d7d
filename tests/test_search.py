"""What is meant by some words: names before what is only spoken of, whole words before parts of words."""

import pytest

from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.search import BEGINNING, PART, WHOLE, fit, matching


@pytest.mark.parametrize(
    ("word", "text", "how"),
    [
        ("amp", "amp: a topic", WHOLE),
        ("amp", "of samples, of amplifiers", BEGINNING),
        ("amp", "samples", PART),
        ("amp", "linear-amp", WHOLE),
        ("amp", "", None),
        ("(", "a (b", BEGINNING),
    ],
)
def test_a_word_stands_whole_at_the_beginning_or_within_another(
    word: str, text: str, how: int | None
) -> None:
    assert fit(word, text) == how


def test_what_is_called_so_comes_before_what_speaks_of_it_and_a_topic_stays_together() -> None:
    course = [
        Scenario("curve-fit", "basics", "/1", "Fitting", "samples"),
        Scenario("sum", "basics", "/2", "A sum", "what amp does"),
        Scenario("scale", "amp", "/3", "Scaling"),
        Scenario("cast", "amp", "/4", "Casting, as amp does"),
        Scenario("amp", "other", "/5"),
    ]

    assert [one.id for one in matching(course, "amp")] == [
        "amp",
        "scale",
        "cast",
        "sum",
        "curve-fit",
    ]
    assert [one.id for one in matching(course, "AMP cast")] == ["cast"]
    assert [one.id for one in matching(course, "")] == [one.id for one in course]
    assert matching(course, "zzz") == []


@pytest.mark.parametrize("topic", ["amp", "memory", "stability", "data"])
def test_a_topic_of_the_library_is_found_by_its_name(topic: str) -> None:
    assert matching(catalog.load(), topic)[0].topic == topic
