"""A lesson in another language: `softmax.zh.md` beside `softmax.py`.

Its first line says from which English words it was made. Then come the title, the text, and the sections in the order of
the lesson, under headings in its own language: Predict, Look for (a bullet for each claim, by its key), Try next, Source; then
the labels of the parameters by their names, and other labels by their English words. What is missing is shown in English; what
runs record is always English.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256

from tuilab import language
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.stated import SECTION, SECTIONS, Stated, bullets, intro_of, sections_of, stated
from tuilab.files import Unusable, read_small

_LIMIT = 256 * 1024
_NAME = re.compile(r"[^.]+\.([a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|[0-9]{3}))?)\.md")
_MADE_FROM = re.compile(r"<!-- made from ([0-9a-f]{12}) -->\n")
_LABEL = re.compile(r"(?m)^- (.+?): +(\S.*)$")


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


def digest(scenario: Scenario) -> str:
    """Return what changes when the English words of a lesson do."""
    labels = [f"{param.name} {param.label}" for param in scenario.params]
    return sha256("\n".join([scenario.title, scenario.lesson, *labels]).encode()).hexdigest()[:12]


def parse(text: str) -> Translation:
    """Return the translation in a file's text; ValueError for a file that does not begin as one."""
    made_from = _MADE_FROM.match(text)
    title, _, rest = text[made_from.end() if made_from else 0 :].partition("\n")
    if not made_from or not title.startswith("# "):
        raise ValueError('it does not begin with "<!-- made from ... -->" (by `tuilab check --stamp`) and "# " with the title')
    written = [*sections_of(rest).items()]
    headings = dict(zip(SECTIONS, (heading for heading, _ in written), strict=False))
    bodies = dict(zip((*SECTIONS, "params", "labels"), (body for _, body in written), strict=False))
    return Translation(
        made_from[1],
        title.removeprefix("# ").strip().removesuffix("。"),
        intro_of(rest).strip(),
        headings,
        {name: bodies[name] for name in SECTIONS if name in bodies},
        dict(map(stated, bullets(bodies.get(SECTION, "")))),
        dict(_LABEL.findall(bodies.get("params", ""))),
        dict(_LABEL.findall(bodies.get("labels", ""))),
    )


@cache
def read(path: str) -> Translation | None:
    """Return the translation in a file; None where there is none of use: `tuilab check` says why."""
    with suppress(Unusable):
        return read_small(path, lambda data: parse(data.decode("utf-8-sig")), _LIMIT, may_be_link=True)
    return None


def of(scenario: Scenario) -> Translation | None:
    """Return a scenario's translation into the language that was chosen."""
    if language.chosen() == language.ENGLISH:
        return None
    return next(filter(None, (read(place(scenario, code)) for code in language.codes())), None)


def translated(scenario: Scenario) -> Scenario:
    """Return a scenario as it is shown: in the language that was chosen, where it is translated; runs take the English one."""
    words = of(scenario)
    if words is None:
        return scenario
    sections = {name: words.sections.get(name, text) for name, text in scenario.sections.items()}
    headed = [f"## {words.headings.get(name, name)}\n{text}" for name, text in sections.items()]
    return replace(
        scenario,
        title=words.title,
        lesson="\n".join([words.text, *headed]),
        sections=sections,
        headings=words.headings,
        claims=tuple(Stated(claim.key, words.claims.get(claim.key, claim.text)) for claim in scenario.claims),
        params=tuple(replace(param, label=words.params.get(param.name, param.label)) for param in scenario.params),
    )
