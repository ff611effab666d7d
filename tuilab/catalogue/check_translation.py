"""The mechanical check of a translated lesson: its age, what is missing, and numbers and options that are others."""

import ast
import re
from collections.abc import Iterator

from tuilab.catalogue.findings import Finding, line_of
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import Broken, lab_calls, lab_name, parse_source, read_text, text_of
from tuilab.catalogue.stated import SECTIONS, changes_of
from tuilab.catalogue.translation import Translation, digest, parse, place
from tuilab.files import replace
from tuilab.text import join, show

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
_HEAD = "<!-- made from {} -->\n"


def check_translation(scenario: Scenario, code: str) -> list[Finding]:
    """Return what is wrong with the translation of a scenario into a language."""
    try:
        text = read_text(place(scenario, code))
        words = parse(text)
    except (Broken, ValueError) as problem:
        return [Finding(1, str(problem))]
    found = [*_check_age(scenario, words), *_check_claims(scenario, words), *_check_changes(scenario, words)]
    found += [*_check_labels(scenario, words), *_check_sections(scenario, words)]
    return sorted(Finding(line_of(text, part) if part else 1, sentence) for part, sentence in found)


def stamp(scenario: Scenario, code: str) -> bool:
    """Write down that a translation says what the lesson says now; return whether it did not say so before."""
    path = place(scenario, code)
    text = read_text(path)
    head = _HEAD.format(digest(scenario))
    rest = text.partition("\n")[2] if text.startswith("<!--") else text
    if is_new := head + rest != text:
        replace(path, (head + rest).encode())
    return is_new


_Found = Iterator[tuple[str, str]]  # words of the line where it is, and what


def _check_age(scenario: Scenario, words: Translation) -> _Found:
    if words.made_from != digest(scenario):
        yield "", "the lesson was changed since this was made from it; compare them, then: tuilab check --stamp"


def _check_sections(scenario: Scenario, words: Translation) -> _Found:
    if not words.title or not words.text:
        yield "", "there is no title, or no text"
    if missing := [name for name in SECTIONS if name in scenario.sections and not words.sections.get(name)]:
        yield "", f"there is no section for {join(missing)}, or it is empty"


def _check_claims(scenario: Scenario, words: Translation) -> _Found:
    english = {claim.key: claim.text for claim in scenario.claims if claim.key}
    for key in english.keys() - words.claims.keys():
        yield "", f"the claim [{key}] is missing"
    for key, text in words.claims.items():
        if key not in english:
            yield f"[{key}]", f"the lesson has no claim [{show(key)}]"
        elif others := _numbers(english[key]) ^ _numbers(text):
            yield f"[{key}]", f"the numbers of [{key}] are others than in the lesson: {join(sorted(others))}"


def _check_changes(scenario: Scenario, words: Translation) -> _Found:
    theirs, ours = (changes_of(sections.get("Try next", "")) for sections in (scenario.sections, words.sections))
    if theirs != ours:
        yield "`--", "the options after Try next, or what they refute, are others than in the lesson"


def _check_labels(scenario: Scenario, words: Translation) -> _Found:
    names = {param.name for param in scenario.params}
    if others := names ^ words.params.keys():
        yield "", f"the parameters are others than those of the lesson: {join(sorted(others))}"
    shown = _shown(scenario)
    if missing := shown - words.labels.keys():
        yield "", f"no label says what this is: {join(sorted(missing))}"
    if unknown := words.labels.keys() - shown:
        yield f"- {min(unknown)}", f"nothing in the lesson is called so: {join(sorted(unknown))}"


def _numbers(text: str) -> set[str]:
    return {number.rstrip(",").replace(",", "") for number in _NUMBER.findall(text)}


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
