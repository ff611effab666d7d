"""The mechanical check of a translated lesson: its age, what is missing, and numbers and options that are others."""

import ast
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from tuilab.catalogue import catalog, numbers
from tuilab.catalogue.findings import Finding, line_of
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import lab_calls, lab_name, parse_source, read_text, text_of
from tuilab.catalogue.stated import SECTION, changes_of, intro_of
from tuilab.catalogue.translation import Translation, digest, is_name, parse, place, slots_of, text_in
from tuilab.errors import CannotRecord
from tuilab.files import Unusable, read_regular, replace
from tuilab.text import join, show

_HEAD = "<!-- made from {} -->\n"
_ERROR_LINE = re.compile(r"line (\d+): (.*)", re.DOTALL)
_LIKELY = re.compile(r"([^.]+)\.[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*\.md")
_ANY_SIZE = 1 << 30


def check_translation(scenario: Scenario, code: str) -> list[Finding]:
    """Return what is wrong with the translation of a scenario into a language."""
    try:
        text = text_in(place(scenario, code))
        words = parse(text, *slots_of(scenario))
    except (Unusable, ValueError) as problem:
        found = _ERROR_LINE.fullmatch(str(problem))
        return [Finding(int(found[1]), found[2]) if found else Finding(1, str(problem))]
    faults = [check(scenario, words) for check in (_check_age, _check_claims, _check_numbers, _check_changes, _check_labels)]
    faults += [_check_parts(scenario, words)]
    return sorted(Finding(line_of(text, part) if part else 1, sentence) for found in faults for part, sentence in found)


def stray_translations(scenarios: Iterable[Scenario], *, is_all: bool) -> list[tuple[str, Finding]]:
    """Return the files beside these scenarios that look like translations and are none; `is_all`: those of other names, too."""
    ids: dict[str, set[str]] = {}
    for scenario in scenarios:
        ids.setdefault(os.path.dirname(scenario.path), set()).add(scenario.id)
    found = []
    for folder, known in ids.items():
        names: list[str] = []
        with suppress(OSError):
            names = sorted(os.listdir(folder))
        for name, lesson in ((one[0], one[1]) for one in map(_LIKELY.fullmatch, names) if one):
            if why := _stray(folder, name, lesson, known, is_all=is_all):
                found.append((f"{folder}/{name}", Finding(1, why)))
    return found


def _stray(folder: str, name: str, lesson: str, known: set[str], *, is_all: bool) -> str:
    if lesson in known and not is_name(name):
        return f"the file name has no language code; use for example {show(lesson)}.zh.md or {show(lesson)}.zh_TW.md"
    if is_all and not os.path.exists(f"{folder}/{lesson}.py"):
        return f"this translates {show(lesson)}.py, which does not exist; rename or remove this file"
    return ""


def stamp(scenario: Scenario, code: str) -> bool:
    """Write down that a translation says what the lesson says now; return whether it did not say so before."""
    path = place(scenario, code)
    text = text_in(path)
    head = _HEAD.format(digest(scenario))
    rest = text.partition("\n")[2] if text.startswith("<!--") else text
    if is_new := head + rest != text:
        has_returns = b"\r\n" in read_regular(path, _ANY_SIZE, may_be_link=True)
        written = (head + rest).replace("\n", "\r\n" if has_returns else "\n").encode()
        try:
            replace(os.path.realpath(path), written, os.stat(path).st_mode & 0o777)  # people link their lessons into a folder
        except OSError as problem:
            raise CannotRecord(f"cannot write {show(path)}: {problem.strerror}") from problem
    return is_new


def is_age(finding: Finding) -> bool:
    """Say whether a finding is that the lesson has changed, which a stamp mends."""
    return finding.sentence.endswith("--stamp")


_Found = Iterator[tuple[str, str]]  # words of the line where it is, and what


def _check_age(scenario: Scenario, words: Translation) -> _Found:
    if words.made_from == digest(scenario):
        return
    folders = {os.path.dirname(scenario.path), os.path.dirname(os.path.dirname(scenario.path))}
    name = scenario.id if folders & set(catalog.scenario_dirs()) else scenario.path
    why = "the lesson has changed since this was translated" if words.made_from else "it does not name the lesson's version"
    yield "", f"{why}; compare them, then: tuilab check {show(name)} --stamp"


def _check_parts(scenario: Scenario, words: Translation) -> _Found:
    if not words.title or not words.text:
        yield "", "the title or the text is missing"
    if missing := [name for name in scenario.sections if not words.sections.get(name)]:
        yield "", f"the sections for {join(missing)} are missing or empty"
    if words.twice:
        yield words.twice[-1], f"these occur twice: {join(words.twice)}; remove one of each"


def _check_claims(scenario: Scenario, words: Translation) -> _Found:
    english = {claim.key: claim.text for claim in scenario.claims if claim.key}
    for key in english.keys() - words.claims.keys():
        yield "", f"the claim [{key}] is missing"
    for key, text in words.claims.items():
        if key not in english:
            yield f"[{key}]", f"the lesson has no claim [{show(key)}]"
        elif others := numbers.others(english[key], text):
            yield f"[{key}]", f"[{key}] has other numbers than the lesson: {join(others)}"


def _check_numbers(scenario: Scenario, words: Translation) -> _Found:
    """Those of the claims are told with their keys."""
    parts = [("the text", f"{scenario.title}\n{intro_of(scenario.lesson)}", f"{words.title}\n{words.text}")]
    parts += [(name, text, words.sections.get(name, "")) for name, text in scenario.sections.items() if name != SECTION]
    for name, english, text in parts:
        if text.strip() and (others := numbers.others(english, text)):
            part = next((line for line in text.split("\n") if any(number in line for number in others)), "")
            yield part, f"{name} has other numbers than the lesson: {join(others)}"


def _check_changes(scenario: Scenario, words: Translation) -> _Found:
    theirs, ours = (changes_of(sections.get("Try next", "")) for sections in (scenario.sections, words.sections))
    if theirs != ours:
        yield "`--", "Try next has other options, or refutes other claims, than the lesson"


def _check_labels(scenario: Scenario, words: Translation) -> _Found:
    names = {param.name for param in scenario.params}
    if missing := names - words.params.keys():
        yield "", f"labels are missing for the parameters {join(sorted(missing))}"
    if unknown := words.params.keys() - names:
        yield f"- {min(unknown)}", f"the lesson has no parameters {join(sorted(unknown))}"
    shown = _shown(scenario)
    if missing := shown - words.labels.keys():
        yield "", f"labels are missing for {join(sorted(missing))}"
    if unknown := words.labels.keys() - shown:
        yield f"- {min(unknown)}", f"the lesson has no such names: {join(sorted(unknown))}"


def _shown(scenario: Scenario) -> set[str]:
    """Return the English words that the screens show of a run, as far as they stand in the source as they are."""
    tree, run = parse_source(read_text(scenario.path))
    lab = lab_name(run)
    firsts = [call.args[:1] for call in lab_calls(tree, lab, "stage", "bars", "table", "image")]
    firsts += [call.args[1:2] for call in lab_calls(tree, lab, "sweep", "steps")]
    axes = [[word.value for word in call.keywords if word.arg in ("x", "y")] for call in lab_calls(tree, lab, "axes")]
    titles = [[word.value for word in call.keywords if word.arg == "title"] for call in lab_calls(tree, lab, "text")]
    nodes = [node for found in (*firsts, *axes, *titles) for node in found if isinstance(node, ast.Constant)]
    return {text for node in nodes if (text := text_of(node))}
