"""The claims of a scenario as its author wrote them: each bullet is claimed once, by its key, before it is measured."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tuilab.catalogue.checked_file import CheckedFile, CheckFinding
from tuilab.catalogue.params import option_of, spell
from tuilab.catalogue.scenario import Value
from tuilab.catalogue.source import (
    CLAIMING,
    called_method,
    is_about_ratio,
    literal_text,
    race_arms,
    text_of,
)
from tuilab.catalogue.stated_claims import (
    KEY_RULE,
    SECTION,
    bullets,
    changes_of,
    fits,
    is_key,
    match,
    stated,
    why_unknown,
)
from tuilab.text.display import did_you_mean, show

_OF_BOTH = {"key", "at_most", "at_least", "lacks", "at", "answers"}
TAKES = {  # the arguments of a call that claims
    "claim": _OF_BOTH | {"got", "equals", "between", "tolerance", "unit"},
    "claim_ratio": _OF_BOTH | {"ratio", "margin", "cores"},
}

_MOST = 200  # bullets, and calls: each is held against each other

_MEANT = re.compile(r"\[([^\[\]\n]*)\]\s*(\S?)")
_GAPS = re.compile(r"\{[^{}]*\}")
_BY_RATIO = "for two arms of a race, use lab.claim_ratio(key, ratio, ...)"
_BY_ADVICE = "to recommend a value of a variable, use lab.advise(name, values, ...)"


def check_claims(file: CheckedFile) -> Iterator[CheckFinding]:
    """The bullets and the calls that claim them fit each other; very many would take hours."""
    count = max(len(bullets(file.scenario.sections.get(SECTION, ""))), len(file.calls(*CLAIMING)))
    if count > _MOST:
        yield CheckFinding(1, f"there are {count} claims, too many to check; use at most {_MOST}")
        return
    yield from _check_bullets(file)
    yield from _check_calls(file)


def _check_bullets(file: CheckedFile) -> Iterator[CheckFinding]:
    """Every bullet under Look for has a key and a sentence of its own, and the code claims it by that key."""
    written = bullets(file.scenario.sections.get(SECTION, ""))
    every = [stated(bullet) for bullet in written]
    words = [word for call in file.calls(*CLAIMING) if (word := literal_text(call))]
    others = _other_keys(file)
    for at, (bullet, claim) in enumerate(zip(written, every, strict=True)):
        line = file.line_of(bullet.split("\n")[0].rstrip())
        if not claim.key:
            yield CheckFinding(line, _why_no_key(bullet, claim.text))
        elif not any(match(word, [claim]) for word in words) and not any(
            fits(claim.key, key) for key in others
        ):
            yield CheckFinding(
                line,
                f"nothing claims the key [{claim.key}]; add lab.claim or lab.claim_ratio, or remove the bullet",
            )
        if claim.text in [earlier.text for earlier in every[:at]]:
            yield CheckFinding(
                line, "another bullet has the same sentence; give each claim its own sentence"
            )
    for key, count in Counter(claim.key for claim in every if claim.key).items():
        if count > 1:
            yield CheckFinding(
                file.line_of(f"[{key}]"),
                f"{count} bullets have the key [{key}]; give each bullet its own key",
            )


def _check_calls(file: CheckedFile) -> Iterator[CheckFinding]:
    """A claim names a key of the lesson that no claim before it named, before its arms race, with arguments that it takes."""
    every = [stated(bullet) for bullet in bullets(file.scenario.sections.get(SECTION, ""))]
    places = _places(file.tree.body)
    calls, others = file.calls(*CLAIMING), _other_keys(file)
    for at, call in enumerate(calls):
        word = literal_text(call)
        yield from _check_arguments(call)
        if word is None:
            if not any(claim.key and fits(claim.key, key) for claim in every for key in others):
                yield CheckFinding(
                    call.lineno,
                    "the key of this claim is not a literal; write it as a literal string",
                )
            continue
        if not match(word, every):
            yield CheckFinding(call.lineno, why_unknown(word, every))
        yield from _check_at(file, call)
        if _is_plain_key(word) and any(
            literal_text(one) == word and _is_later(places, one, call) for one in calls[:at]
        ):
            yield CheckFinding(
                call.lineno,
                f"the key [{show(word, 60)}] is claimed twice; make each claim once in a run",
            )
        early = [
            arm
            for race in file.calls("race")
            if _is_later(places, race, call)
            for arm in race_arms(race)
        ]
        if arms := sorted({*early} & {*_arms(call)}):
            yield CheckFinding(
                call.lineno,
                f"{' and '.join(arms)} were raced before this claim; claim first, then measure",
            )


def check_answer(file: CheckedFile) -> Iterator[CheckFinding]:
    """One claim answers the question under Predict: with a number that it measures."""
    calls = [
        call
        for call in file.calls("claim", "claim_ratio")
        for word in call.keywords
        if word.arg == "answers"
    ]
    if file.scenario.sections.get("Predict") and not calls:
        yield CheckFinding(
            file.line_of("## Predict"),
            "no claim answers Predict; add answers= to the one that measures the number",
        )
    for call in calls[1:]:
        yield CheckFinding(
            call.lineno,
            f"line {calls[0].lineno} already answers Predict; use answers= in one claim only",
        )


def check_refuted(file: CheckedFile) -> Iterator[CheckFinding]:
    """What Try next says it refutes are keys of claims that a change refutes on every box."""
    text = file.scenario.sections.get("Try next", "")
    if "refutes:" in text.partition("`--")[0]:
        yield CheckFinding(
            file.line_of("refutes:"),
            "refutes: comes before any change; write it after a `--option`",
        )
    for change in changes_of(text):
        line = file.line_of("refutes:", after=file.line_of(f"`{change.options}`") - 1)
        for word in change.refutes:
            if why := _why_not_refuted(file, word, change.options):
                yield CheckFinding(line, why)


def _why_no_key(bullet: str, text: str) -> str:
    """Return why a bullet has no key, and what to write."""
    meant = _MEANT.match(bullet)
    if meant is None:
        return (
            f'this bullet has no key; write "- [a-key] {show(text, 60)}", and claim it by that key'
        )
    if not _is_plain_key(meant[1]):
        return f"[{show(meant[1], 60)}] is not a key ({KEY_RULE}); write a key instead, and claim it by that key"
    if not meant[2]:
        return f"the key [{meant[1]}] has no sentence; write the claim after it"
    return f"there is no space after [{meant[1]}]; add a space, so that it is read as a key"


def _why_not_refuted(file: CheckedFile, word: str, options: str) -> str:
    """Return why a word after `refutes:` cannot stand there, or nothing."""
    if not _is_plain_key(word):
        return f'"{show(word, 60)}" after refutes: is not a key ({KEY_RULE}); write keys with commas between them'
    claim = next((claim for claim in file.scenario.claims if claim.key == word), None)
    if claim is None:
        return f"Try next refutes [{word}], but no bullet under Look for has this key; correct the key, or add the bullet"
    calls = [
        call
        for call in file.calls("claim", "claim_ratio")
        if match(literal_text(call) or "", [claim])
    ]
    if calls and all(map(is_about_ratio, calls)):
        return f"Try next refutes [{word}], which is about time, so the result depends on the machine; describe it in words"
    name = _changed_at(calls, options)
    if name:
        return f"Try next changes {name} to refute [{word}], but at= limits this claim to other values; leave {name} out of at="
    return ""


def _changed_at(calls: Sequence[ast.Call], options: str) -> str:
    """Return the first parameter of `at=` that options change to a value which `at=` does not name."""
    words = options.split()
    for name, values in _claimed_for(calls).items():
        option = option_of(name)
        if option not in words:
            continue
        given = words[words.index(option) + 1 :][:1] or ["true"]
        if not any(spell(value) == given[0] for value in values or []):
            return name
    return ""


def _check_at(file: CheckedFile, call: ast.Call) -> Iterator[CheckFinding]:
    """A claim that is made for some values of a parameter is made for its default."""
    params = {param.name: param for param in file.scenario.params}
    for name, values in _claimed_for([call]).items():
        if name not in params:
            hint = did_you_mean(name, params)
            yield CheckFinding(
                call.lineno, f"at= names {show(name, 60)}, which is not a parameter of run{hint}"
            )
        elif values is not None and params[name].default not in values:
            usual = spell(params[name].default)
            yield CheckFinding(
                call.lineno,
                f"at= leaves out the default of {name}, so a run with defaults does not test this claim; add {usual} to at=",
            )


def _claimed_for(calls: Sequence[ast.Call]) -> dict[str, list[Value] | None]:
    """Return the parameters that `at=` names, each with its values if these are literals."""
    found: dict[str, list[Value] | None] = {}
    nodes = [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "at"]
    for node in nodes:
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            name = text_of(key) if key is not None else None
            if name:
                found[name] = _literals(value)
    return found


def _literals(node: ast.expr) -> list[Value] | None:
    """Return the value of a literal, or those of a list of literals; None for an expression."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return list(value) if isinstance(value, list | tuple) else [value]


def _check_arguments(call: ast.Call) -> Iterator[CheckFinding]:
    method = called_method(call)
    others = [
        keyword.arg for keyword in call.keywords if keyword.arg and keyword.arg not in TAKES[method]
    ]
    if not others:
        return
    hint = ""
    if "advises" in others:
        hint = f"; {_BY_ADVICE}"
    elif method == "claim" and ("ratio" in others or set(others) <= TAKES["claim_ratio"]):
        hint = f"; {_BY_RATIO}"
    yield CheckFinding(call.lineno, f"lab.{method} takes no {' and no '.join(others)}{hint}")


def _other_keys(file: CheckedFile) -> set[str]:
    """Return what may be the key of a claim that has no literal one, as in a loop: texts that stand elsewhere in the code."""
    calls = file.calls(*CLAIMING)
    if all(literal_text(call) for call in calls):
        return set()
    named = {id(node) for call in calls for first in call.args[:1] for node in ast.walk(first)}
    texts = (
        text_of(node) for node in file.nodes if isinstance(node, ast.expr) and id(node) not in named
    )
    return {text for text in texts if text and is_key(text) and _GAPS.sub("", text)}


def _arms(call: ast.Call) -> list[str]:
    """Return the arms of the ratio that a call claims, if it is a literal."""
    nodes = [keyword.value for keyword in call.keywords if keyword.arg == "ratio"]
    nodes += call.args[1:2] if called_method(call) == "claim_ratio" else []
    return [arm for node in nodes for arm in (text_of(node) or "").split("/")]


def _is_plain_key(word: str) -> bool:
    return is_key(word) and "{" not in word


Place = list[tuple[int, int]]  # from the outside in: a block of statements, and which of them it is


def _is_later(places: dict[int, Place], first: ast.Call, other: ast.Call) -> bool:
    """Say whether a call surely comes after another: in a statement that stands behind it in the same block."""
    before, after = places.get(id(first), []), dict(places.get(id(other), []))
    if not before:
        return False
    block, at = before[-1]
    return after.get(block, -1) > at


def _places(body: Sequence[ast.stmt], around: Sequence[tuple[int, int]] = ()) -> dict[int, Place]:
    """Return, by call, where it stands; the body of a `with` belongs to the block that it stands in."""
    found: dict[int, Place] = {}
    for at, statement in enumerate(_flat(body)):
        place = [*around, (id(body), at)]
        found |= {id(node): place for node in ast.walk(statement) if isinstance(node, ast.Call)}
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(statement, name, [])
            for block in (
                [inner]
                if inner and isinstance(inner[0], ast.stmt)
                else [part.body for part in inner]
            ):
                found |= _places(block, place)
    return found


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block, those in a `with` after it in its place."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from (ast.Expr(item.context_expr) for item in statement.items)
            yield from _flat(statement.body)
        else:
            yield statement
