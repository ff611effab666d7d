"""Filters of runs as users type them: into the filter line of History, and after `tuilab runs`.

softmax !stopped verdict:refuted state:failed tag:mine since:1d

A run has to match every term. A term that begins with `!` matches the runs that do not have it.
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
TIMES = "2h, 3d, 1w, today, yesterday or a day such as 2026-11-21"
_CHOICES: Mapping[str, Sequence[str]] = {"verdict": list(VERDICTS), "state": STATES}
_KEYS = ("verdict", "state", "since", "tag")
_DAY_S = 86400
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": _DAY_S, "w": 7 * _DAY_S}
_DAYS_AGO = {"today": 0, "yesterday": 1}
# Patterns are compiled when a filter is used.
_KEYED = r"[a-z-]+:(?!//)\S"  # such as `host:a`, but no address such as https://a
_LAST_SWEEP = r"(?i:(?<![^\s!])sweep-last(?:~([0-9]{1,6}))?(?!\S))"


class FilterTerm(NamedTuple):
    """One word of a filter."""

    key: str  # one of _KEYS; empty if the word may be anywhere in the words of a run
    value: str
    is_not: bool = False  # a run must not have it
    since_s: float = 0.0  # of the key `since`, in seconds since 1970


class RunFilter(NamedTuple):
    """The terms that a run has to match; `problem` names the first one that makes no sense."""

    terms: tuple[FilterTerm, ...] = ()
    problem: str = ""

    @property
    def unknown_key(self) -> str:
        """The first word that has the form `key:value` with an unknown key; it is a plain word."""
        for term in self.terms:
            if not term.key and re.match(_KEYED, term.value):
                return term.value
        return ""

    def matches(self, entry: RunEntry, notes: Notes, words: Callable[[], str]) -> bool:
        """Return whether a run matches; `words` is only called if a term needs them."""
        return all(_has(term, entry, notes, words) != term.is_not for term in self.terms)

    def may_match(self, run: str) -> bool:
        """Return whether a run may match, by the name of its folder alone."""
        for term in self.terms:
            if term.key == "since" and _is_since(term, run) == term.is_not:
                return False
        return True


def parse(text: str, now_s: float) -> RunFilter:
    """Return the filter that a text spells; an unfinished term such as `state:` is left out.

    `now_s` is the time from which `since:2h` counts. A value that makes no sense matches nothing,
    or for `since` everything, and `problem` says why.
    """
    terms = []
    problem = ""
    for word in text.lower().split():
        term_text = word.removeprefix("!")
        is_not = term_text != word
        key, has_value, value = term_text.partition(":")
        if not has_value or key not in _KEYS:
            if term_text:
                terms.append(FilterTerm("", term_text, is_not))
        elif value:
            since_s: float | None = 0.0
            if key == "since":
                since_s = moment(value, now_s)
            problem = problem or _find_problem(key, value, since_s)
            terms.append(FilterTerm(key, value, is_not, since_s or 0.0))
    return RunFilter(tuple(terms), problem)


def _find_problem(key: str, value: str, since_s: float | None) -> str:
    """Return why the value of a key makes no sense, and what to use; empty if it does.

    `since_s` is None if a value of `since` is not a time.
    """
    if since_s is None:
        return f"since:{show(value, 40)} is not a time; use {TIMES}"
    choices = _CHOICES.get(key)
    if choices is None or any(word.startswith(value) for word in choices):
        return ""
    return f"no {key} begins with {show(value, 40)}; use one of {join(choices)}"


def with_sweeps(text: str, newest_first: Iterable[RunEntry]) -> str:
    """Return a filter with `sweep-last` and `sweep-last~1` replaced by the ids of these sweeps.

    They are counted among the given runs. A sweep that does not exist is left as it was typed.
    """
    if not text or not re.search(_LAST_SWEEP, text):
        return text
    ids = sweeps_among(newest_first)

    def replace(match: re.Match[str]) -> str:
        position = int(match[1] or 0)
        if position >= len(ids):
            return match[0]
        return ids[position]

    return re.sub(_LAST_SWEEP, replace, text)


def moment(text: str, now_s: float) -> float | None:
    """Return the time that a text names, in seconds since 1970; None if it names none.

    It is a duration before now, such as `2h`, or a day in UTC, `2026-11-21` or `today`, to which a
    time may be added: `2026-11-21T10:30`.
    """
    days_ago = _DAYS_AGO.get(text.lower())
    if days_ago is not None:
        return now_s // _DAY_S * _DAY_S - days_ago * _DAY_S
    for form in ("%Y-%m-%d", "%Y-%m-%dt%H:%M"):
        with suppress(ValueError):
            return datetime.strptime(text.lower(), form).replace(tzinfo=UTC).timestamp()
    unit_s = _UNITS_S.get(text[-1:])
    digits = text[:-1].replace(".", "", 1)
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 10
    if unit_s is None or not is_number:
        return None
    return now_s - float(text[:-1]) * unit_s


def completed(text: str, values: Mapping[str, Sequence[str]]) -> str | None:
    """Return a filter with its last word completed; None if no completion is known.

    `values` are the values that the runs have, by key.
    """
    start = text.rpartition(" ")[2].removeprefix("!")
    if not start:
        return None
    candidates = [f"{key}:" for key in _KEYS if values.get(key) or key == "since"]
    for key in _KEYS:
        candidates += [f"{key}:{value}" for value in values.get(key, ())]
    candidates += ["since:1d", "since:today", "since:yesterday", "since:2026-11-21"]
    for candidate in candidates:
        if candidate.startswith(start.lower()) and candidate != start.lower():
            return text + candidate[len(start) :]
    return None


def values_of(entries: Iterable[RunEntry]) -> dict[str, Sequence[str]]:
    """Return the values of the keys `verdict` and `state` that some runs have."""
    states: set[str] = set()
    verdicts: set[str] = set()
    for entry in entries:
        states.add(entry.state)
        verdicts.update(verdict for _, verdict in entry.claims)
    verdict_words = [word for word, verdict in VERDICTS.items() if verdict in verdicts]
    state_words = [state for state in STATES if state in states]
    return {"verdict": verdict_words, "state": state_words}


def words_of(entry: RunEntry, notes: Notes) -> str:
    """Return the text of a run in which a term without a key is searched, in lower case."""
    verdicts = dict.fromkeys(verdict for _, verdict in entry.claims)
    parts = [entry.name, entry.state, " ".join(verdicts)]
    parts += [own_words(entry), changed_words(entry), entry.run, format_time(entry.started_s)]
    tags_and_texts = [f"#{tag}" for tag in notes.tags]
    tags_and_texts += [text for _, text in notes.texts]
    parts.append(" ".join(tags_and_texts))
    parts.append(entry.sweep)
    parts.append(f"@{entry.host}" if entry.host else "")
    parts += entry.gpus
    return " ".join(parts).lower()


def _has(term: FilterTerm, entry: RunEntry, notes: Notes, words: Callable[[], str]) -> bool:
    """Return whether a run has what a term names, whatever its `!` says.

    Verdicts, states and tags only have to begin with the value.
    """
    match term.key:
        case "verdict":
            chosen = {verdict for word, verdict in VERDICTS.items() if word.startswith(term.value)}
            return any(verdict in chosen for _, verdict in entry.claims)
        case "state":
            return entry.state.startswith(term.value)
        case "tag":
            return any(tag.lower().startswith(term.value) for tag in notes.tags)
        case "since":
            return _is_since(term, entry.run)
    return term.value in words()


def _is_since(term: FilterTerm, run: str) -> bool:
    started_s = RunName(run).started_s
    return started_s is not None and started_s >= term.since_s
