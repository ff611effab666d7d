"""Find scenarios by words; those with the words in their names come before all others."""

import re
from collections.abc import Iterable, Sequence

from tuilab.catalogue.scenario import Scenario

# How a word is part of a text, best first.
WHOLE = 0  # it is a whole word of the text
BEGINNING = 1  # a word of the text begins with it
PART = 2

# The rank of a word: 0 if it is the id of the scenario, 1 if it is its topic; then, if it is part
# of these names or of the title, 2 + the number above; if it is part of the lesson, 5 + that.
_IN_NAMES = 2
_IN_LESSON = 5
_WHOLE_WORD_RANKS = (0, 1, _IN_NAMES + WHOLE, _IN_LESSON + WHOLE)


def fit(word: str, text: str) -> int | None:
    """Return the best way in which a word is part of a text; None if it is not."""
    if word not in text:
        return None
    best = PART
    for match in re.finditer(re.escape(word), text):
        if text[match.start() - 1 : match.start()].isalnum():
            continue
        if not text[match.end() : match.end() + 1].isalnum():
            return WHOLE
        best = BEGINNING
    return best


def matching(scenarios: Iterable[Scenario], text: str) -> list[Scenario]:
    """Return the scenarios that have every word of a text, by topic.

    The topic with the best match comes first, and in a topic the best match.
    """
    words = text.lower().split()
    matches: list[tuple[int, int, Scenario]] = []  # the rank and the position of each
    best_of_topic: dict[str, tuple[int, int]] = {}
    for position, scenario in enumerate(scenarios):
        ranks = _rank_words(scenario, words)
        if ranks is None:
            continue
        rank = sum(ranks)
        matches.append((rank, position, scenario))
        best = best_of_topic.get(scenario.topic, (rank, position))
        best_of_topic[scenario.topic] = min(best, (rank, position))

    def sort_key(match: tuple[int, int, Scenario]) -> tuple[tuple[int, int], int, int]:
        rank, position, scenario = match
        return best_of_topic[scenario.topic], rank, position

    matches.sort(key=sort_key)
    return [scenario for _, _, scenario in matches]


def mentioning(scenarios: Iterable[Scenario], text: str) -> list[Scenario]:
    """Return the scenarios that have each word of a text as a whole word, in the same order."""
    words = text.lower().split()
    mentions = []
    for scenario in matching(scenarios, text):
        ranks = _rank_words(scenario, words) or []
        if all(rank in _WHOLE_WORD_RANKS for rank in ranks):
            mentions.append(scenario)
    return mentions


def _rank_words(scenario: Scenario, words: Sequence[str]) -> list[int] | None:
    """Return the rank of each word; None if the scenario lacks one of them."""
    names = (scenario.id.lower(), scenario.topic.lower(), scenario.title.lower())
    lesson = f"{scenario.lesson}\n{scenario.error}".lower()
    ranks = []
    for word in words:
        rank = _rank_word(word, names, lesson)
        if rank is None:
            return None
        ranks.append(rank)
    return ranks


def _rank_word(word: str, names: tuple[str, str, str], lesson: str) -> int | None:
    """Return the rank of a word, 0 at best; None if it is nowhere."""
    id, topic, _ = names
    if word == id:
        return 0
    if word == topic:
        return 1
    fits = []
    for name in names:
        name_fit = fit(word, name)
        if name_fit is not None:
            fits.append(name_fit)
    if fits:
        return _IN_NAMES + min(fits)
    lesson_fit = fit(word, lesson)
    return None if lesson_fit is None else _IN_LESSON + lesson_fit
