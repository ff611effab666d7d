"""Which scenarios are meant by some words: those that have them in their names come before those that only speak of them."""

import re
from collections.abc import Iterable, Sequence

from tuilab.catalogue.scenario import Scenario

WHOLE, BEGINNING, PART = range(3)  # how a word stands in a text
_AS_WHOLE = (0, 1, 2 + WHOLE, 5 + WHOLE)  # ranks: see _rank_of


def fit(word: str, text: str) -> int | None:
    """Return how a word stands in a text, at its best: whole, at the beginning of one, or within one; else None."""
    if word not in text:
        return None
    found = list(re.finditer(re.escape(word), text))
    starts = [match for match in found if not text[match.start() - 1 : match.start()].isalnum()]
    if any(not text[match.end() : match.end() + 1].isalnum() for match in starts):
        return WHOLE
    return BEGINNING if starts else PART


def matching(scenarios: Iterable[Scenario], text: str) -> list[Scenario]:
    """Return the scenarios that have every word of a text, by topic; what the words name best comes first."""
    words = text.lower().split()
    ranks = {
        at: (rank, one)
        for at, one in enumerate(scenarios)
        if (rank := _rank(one, words)) is not None
    }
    best: dict[str, tuple[int, int]] = {}
    for at, (rank, one) in ranks.items():
        best[one.topic] = min(best.get(one.topic, (rank, at)), (rank, at))
    return [
        ranks[at][1]
        for at in sorted(ranks, key=lambda at: (*best[ranks[at][1].topic], ranks[at][0], at))
    ]


def speaking_of(scenarios: Iterable[Scenario], text: str) -> list[Scenario]:
    """Return the scenarios that have each word of a text as a whole one, in the same order."""
    words = text.lower().split()
    return [
        one
        for one in matching(scenarios, text)
        if all(rank in _AS_WHOLE for rank in _ranks(one, words))
    ]


def _rank(scenario: Scenario, words: Sequence[str]) -> int | None:
    """Return how well some words name a scenario, 0 at best; None where one of them is nowhere."""
    ranks = _ranks(scenario, words)
    return None if None in ranks else sum(rank for rank in ranks if rank is not None)


def _ranks(scenario: Scenario, words: Sequence[str]) -> list[int | None]:
    places = (
        scenario.id.lower(),
        scenario.topic.lower(),
        scenario.title.lower(),
        f"{scenario.lesson}\n{scenario.error}".lower(),
    )
    return [_rank_of(word, places) for word in words]


def _rank_of(word: str, places: Sequence[str]) -> int | None:
    """Return 0 for a name itself; then whole words of names and title, their parts, and the same in the lesson."""
    *names, lesson = places
    if word in names[:2]:
        return names.index(word)
    found = [how for name in names if (how := fit(word, name)) is not None]
    if found:
        return 2 + min(found)
    how = fit(word, lesson)
    return None if how is None else 5 + how
