"""A lesson in another language: `softmax.zh.md` beside `softmax.py`.

Its first line says from which English words it was made. Then come the title, the text, and the sections in the order of
the lesson, under headings in its own language: Predict, Look for (a bullet for each claim, by its key), Try next, Source; then
the labels of the parameters by their names, and other labels by their English words. What is missing is shown in English, and
so is a claim with other numbers than the lesson has; what runs record is always English.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from tuilab import language
from tuilab.catalogue.scenario import Scenario, Stated
from tuilab.catalogue.stated import SECTION, bullets, intro_of, key_of, sections_of, stated
from tuilab.files import Unusable, read_small
from tuilab.text import join

OLD = "translated from an older version of the lesson, which may differ now"

_LIMIT = 256 * 1024
_NAME = re.compile(r"[^.]+\.([a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|[0-9]{3}))?)\.md")
_MADE_FROM = re.compile(r"<!-- made from ([0-9a-f]{12}) -->\n")
_LABEL = re.compile(r"(?m)^- (.+?)(?:: +|：\s*)(\S.*)$")


@dataclass(frozen=True)
class Translation:
    """What a lesson says in another language."""

    made_from: str = ""  # the digest of the English words
    title: str = ""
    text: str = ""
    headings: dict[str, str] = field(default_factory=dict)  # by the English heading
    sections: dict[str, str] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)  # by key
    params: dict[str, str] = field(default_factory=dict)  # by name
    labels: dict[str, str] = field(default_factory=dict)  # by the English words
    twice: tuple[str, ...] = ()  # claims, parameters and labels that stand there more than once


def place(scenario: Scenario, code: str) -> str:
    """Return where the translation of a scenario into a language is, or would be."""
    return f"{scenario.path.removesuffix('.py')}.{code}.md"


def languages(scenarios: Iterable[Scenario]) -> list[str]:
    """Return the languages in which there is any lesson."""
    found = {language.ENGLISH}
    for folder in {os.path.dirname(scenario.path) for scenario in scenarios}:
        with suppress(OSError):
            found |= {name[1] for name in map(_NAME.fullmatch, os.listdir(folder)) if name}
    return sorted(found)


def is_name(name: str) -> bool:
    """Say whether a file can be a translation by its name."""
    return _NAME.fullmatch(name) is not None


def digest(scenario: Scenario) -> str:
    """Return what changes when the English words of a lesson do."""
    from hashlib import sha256  # the first picture needs none

    labels = [f"{param.name} {param.label}" for param in scenario.params]
    return sha256("\n".join([scenario.title, scenario.lesson, *labels]).encode()).hexdigest()[:12]


def text_in(path: str) -> str:
    """Return the text of a translation, or raise Unusable."""
    return read_small(path, _decode, _LIMIT, may_be_link=True)


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"line {data.count(bytes([10]), 0, problem.start) + 1}: not UTF-8; save it as UTF-8") from problem
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse(text: str, names: tuple[str, ...], params: tuple[str, ...]) -> Translation:
    """Return the translation in a text, whose lesson has sections and parameters of these names, or raise ValueError."""
    made_from = _MADE_FROM.match(text)
    title, _, rest = text[made_from.end() if made_from else 0 :].partition("\n")
    if title.strip() != "#" and not title.startswith("# "):
        raise ValueError(
            'the first line has to be "# " and the title (after the line "<!-- made from ... -->", if there is one)'
        )
    written = sections_of(rest)
    slots = (*names, *(["params"] if params else []), "labels")
    bodies = dict(zip(slots, written.values(), strict=False))
    claims = bullets(bodies.get(SECTION, ""))
    lists = {name: _LABEL.findall(bodies.get(name, "")) for name in ("params", "labels")}
    has_labels = len(written) == len(slots)
    is_cut = len(written) == len(slots) - 1 and (not params or any(name in params for name, _ in lists["params"]))
    if not (has_labels or is_cut) or ("\n- [" in rest and not any(map(key_of, claims))):
        wanted = [*names, *(["the parameters"] if params else []), "the labels"]
        raise ValueError(
            f'its sections are {join(written) or "missing"}; the sections have to be {join(wanted)}, each after "## "'
        )
    return Translation(
        made_from[1] if made_from else "",
        title.removeprefix("#").strip().removesuffix("。"),
        intro_of(rest).strip(),
        dict(zip(names, written, strict=False)),
        {name: bodies[name] for name in names},
        dict(map(stated, claims)),
        dict(lists["params"]),
        dict(lists["labels"]),
        tuple(name for words in (_keys(claims), *map(_names, lists.values())) for name in _twice(words)),
    )


def _keys(claims: Iterable[str]) -> list[str]:
    return [*filter(None, map(key_of, claims))]


def _names(labels: Iterable[tuple[str, str]]) -> list[str]:
    return [name for name, _ in labels]


def _twice(words: Iterable[str]) -> list[str]:
    return [word for word, count in Counter(words).items() if count > 1]


@cache
def read(path: str, names: tuple[str, ...], params: tuple[str, ...]) -> Translation | None:
    """Return the translation in a file; None where there is none of use: `tuilab check` says why."""
    with suppress(Unusable, ValueError):
        return parse(text_in(path), names, params)
    return None


def slots_of(scenario: Scenario) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the sections and of the parameters of a scenario."""
    return tuple(scenario.sections), tuple(param.name for param in scenario.params)


def of(scenario: Scenario) -> Translation | None:
    """Return a scenario's translation into the language that was chosen."""
    if language.chosen() == language.ENGLISH:
        return None
    return next(filter(None, (read(place(scenario, code), *slots_of(scenario)) for code in language.codes())), None)


def is_old(scenario: Scenario) -> bool:
    """Say whether a scenario is shown in words that were made from other ones than it has now."""
    words = of(scenario)
    return words is not None and words.made_from != digest(scenario)


def said(scenario: Scenario, words: Translation) -> dict[str, str]:
    """Return the claims of a translation by their keys, without those that have other numbers than the lesson."""
    from tuilab.catalogue import numbers  # which no English lesson is compared by

    english = {claim.key: claim.text for claim in scenario.claims if claim.key}
    return {key: text for key, text in words.claims.items() if key in english and not numbers.others(english[key], text)}


def translated(scenario: Scenario) -> Scenario:
    """Return a scenario as it is shown: in the language that was chosen, where it is translated; runs take the English one."""
    words = of(scenario)
    if words is None:
        return scenario
    claims = said(scenario, words)
    sections = {name: words.sections.get(name) or text for name, text in scenario.sections.items()}
    if SECTION in sections and claims.keys() != {claim.key for claim in scenario.claims if claim.key}:
        sections[SECTION] = _bullets(scenario, words, claims)
    headings = {name: words.headings.get(name) or name for name in sections}
    headed = [f"## {headings[name]}\n{text}" for name, text in sections.items()]
    return scenario._replace(
        title=words.title or scenario.title,
        lesson="\n".join([words.text or intro_of(scenario.lesson).strip(), *headed]),
        sections=sections,
        headings=headings,
        claims=tuple(Stated(claim.key, claims.get(claim.key, claim.text)) for claim in scenario.claims),
        params=tuple(param._replace(label=words.params.get(param.name, param.label)) for param in scenario.params),
    )


def _bullets(scenario: Scenario, words: Translation, claims: Iterable[str]) -> str:
    """Return the claims of a lesson as bullets, each translated one in its own words."""
    theirs = {key_of(bullet): bullet for bullet in bullets(words.sections.get(SECTION, ""))}
    ours = bullets(scenario.sections[SECTION])
    return "\n".join(f"- {theirs[key] if (key := key_of(bullet)) in claims else bullet}" for bullet in ours)
