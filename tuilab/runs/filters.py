"""Which runs are wanted, in words: as they are typed into the filter of History, and behind `tuilab runs`.

softmax !stopped verdict:refuted state:failed tag:mine since:1d      all of it; `!` before a word: none that has it
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict
from tuilab.runs.entry import RunEntry, changed_words, own_words, sweeps_among
from tuilab.runs.notes import Notes
from tuilab.runs.run_name import RunName
from tuilab.text.display import join, show
from tuilab.text.words import format_time

VERDICTS = {
    "supported": Verdict.SUPPORTED,
    "weaker": Verdict.WEAKER,
    "no-difference": Verdict.NO_DIFFERENCE,
    "refuted": Verdict.REFUTED,
    "inconclusive": Verdict.INCONCLUSIVE,
    "invalid": Verdict.INVALID,
    "not-testable": Verdict.NOT_TESTABLE,
}
STATES = [state.value for state in RunState]
HINT = "words  !word  verdict:refuted  state:stopped  since:1d  tag:mine"
_CHOICES: Mapping[str, Sequence[str]] = {"verdict": list(VERDICTS), "state": STATES}
_KEYS = ("verdict", "state", "since", "tag")
_KEYED = r"[a-z-]+:(?!//)\S"  # compiled when a filter is used
TIMES = "2h, 3d, 1w, today, yesterday or a day such as 2026-11-21"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DAYS = {"today": 0, "yesterday": 1}  # ago
_LAST_SWEEP = r"(?i:(?<![^\s!])sweep-last(?:~([0-9]{1,6}))?(?!\S))"


class FilterTerm(NamedTuple):
    """One word of a filter: of what, what it must be, or must not."""

    key: str  # empty: of all that is told of the run
    value: str
    is_not: bool = False
    since_s: float = 0.0


class RunFilter(NamedTuple):
    """What a run must be; `problem` says which word makes no sense."""

    asked: tuple[FilterTerm, ...] = ()
    problem: str = ""

    @property
    def odd(self) -> str:
        """The first word that looks as if it had a key, and has none: it is looked for as it stands."""
        return next(
            (one.value for one in self.asked if not one.key and re.match(_KEYED, one.value)), ""
        )

    def matches(self, entry: RunEntry, notes: Notes, words: Callable[[], str]) -> bool:
        """Say whether a run is wanted; `words` are those that are told of it, asked for only where they matter."""
        return all(_has(one, entry, notes, words) != one.is_not for one in self.asked)

    def may_match(self, run: str) -> bool:
        """Say whether a run may be wanted, by the name of its folder alone."""
        return all(_is_since(one, run) != one.is_not for one in self.asked if one.key == "since")


def parse(text: str, now_s: float) -> RunFilter:
    """Return the filter that some words are; a word that is not finished, as `state:`, asks for nothing yet."""
    asked, problems = [], []
    for word in text.lower().split():
        bare = word.removeprefix("!")
        key, has_value, value = bare.partition(":")
        if not has_value or key not in _KEYS:
            asked.append(FilterTerm("", bare, word != bare))
        elif value:
            since_s = moment(value, now_s) if key == "since" else 0.0
            problems += _problems(key, value, since_s)
            asked.append(FilterTerm(key, value, word != bare, since_s or 0.0))
    return RunFilter(tuple(one for one in asked if one.value), next(iter(problems), ""))


def with_sweeps(text: str, newest_first: Iterable[RunEntry]) -> str:
    """Return the words of a filter with the id of the sweep that `sweep-last`, or `sweep-last~1`, means among some runs."""
    if not text or not re.search(_LAST_SWEEP, text):
        return text
    ids = sweeps_among(newest_first)
    return re.sub(_LAST_SWEEP, lambda word: next(iter(ids[int(word[1] or 0) :]), word[0]), text)


def moment(text: str, now_s: float) -> float | None:
    """Return the second since 1970 that `2h` ago was, or a day (UTC): 2026-11-21, today; None where it is neither."""
    if (days := _DAYS.get(text.lower())) is not None:
        return now_s // _UNITS["d"] * _UNITS["d"] - days * _UNITS["d"]
    for form in ("%Y-%m-%d", "%Y-%m-%dt%H:%M"):
        with suppress(ValueError):
            return datetime.strptime(text.lower(), form).replace(tzinfo=UTC).timestamp()
    unit = _UNITS.get(text[-1:])
    number = text[:-1].replace(".", "", 1)
    return (
        now_s - float(text[:-1]) * unit
        if unit and number.isascii() and number.isdigit() and len(number) < 10
        else None
    )


def completed(text: str, there: Mapping[str, Sequence[str]]) -> str | None:
    """Return a filter with its last word completed, by the values of a key that are there; None where there is none."""
    bare = text.rpartition(" ")[2].removeprefix("!")
    known = [f"{key}:{value}" for key in _KEYS for value in there.get(key, ())]
    keys = [f"{key}:" for key in _KEYS if there.get(key) or key == "since"]
    whole = [*keys, *known, "since:1d", "since:today", "since:yesterday", "since:2026-11-21"]
    found = next(
        (one for one in whole if bare and one.startswith(bare.lower()) and one != bare.lower()),
        None,
    )
    return text + found[len(bare) :] if found else None


def values_of(entries: Iterable[RunEntry]) -> dict[str, Sequence[str]]:
    """Return which of the words that a filter takes some runs have, by their key."""
    states: set[str] = set()
    verdicts: set[str] = set()
    for entry in entries:
        states.add(entry.state)
        verdicts.update(verdict for _, verdict in entry.claims)
    found = {"verdict": [word for word, verdict in VERDICTS.items() if verdict in verdicts]}
    return {**found, "state": [state for state in STATES if state in states]}


def words_of(entry: RunEntry, notes: Notes) -> str:
    """Return what is told of a run, for words that may stand anywhere."""
    verdicts = " ".join(dict.fromkeys(verdict for _, verdict in entry.claims))
    written = " ".join([*(f"#{tag}" for tag in notes.tags), *(text for _, text in notes.texts)])
    words = f"{own_words(entry)} {changed_words(entry)}"
    machine = f"@{entry.host}" if entry.host else ""
    parts = [
        entry.name,
        entry.state,
        verdicts,
        words,
        entry.run,
        format_time(entry.started_s),
        written,
        entry.sweep,
        machine,
    ]
    return " ".join([*parts, *entry.gpus]).lower()


def _problems(key: str, value: str, since_s: float | None) -> list[str]:
    if since_s is None:
        return [f"since:{show(value, 40)} is not a time; use {TIMES}"]
    known = _CHOICES.get(key, ())
    is_known = not known or any(word.startswith(value) for word in known)
    return [] if is_known else [f"no {key} begins with {show(value, 40)}; use one of {join(known)}"]


def _has(one: FilterTerm, entry: RunEntry, notes: Notes, words: Callable[[], str]) -> bool:
    match one.key:
        case "verdict":
            meant = {verdict for word, verdict in VERDICTS.items() if word.startswith(one.value)}
            return any(verdict in meant for _, verdict in entry.claims)
        case "state":
            return entry.state.startswith(one.value)
        case "tag":
            return any(tag.lower().startswith(one.value) for tag in notes.tags)
        case "since":
            return _is_since(one, entry.run)
    return one.value in words()


def _is_since(one: FilterTerm, run: str) -> bool:
    started_s = RunName(run).started_s
    return started_s is not None and started_s >= one.since_s
