"""Check the claims of a scenario: each is made once, by its key, before it is measured.

Claims about time are about two arms, which are functions that `lab.race` times in turn.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tuilab.catalogue.checked_file import CheckedFile, CheckFinding
from tuilab.catalogue.params import option_of, spell
from tuilab.catalogue.scenario import StatedClaim, Value
from tuilab.catalogue.source import (
    CLAIMING,
    RACE_OPTIONS,
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

_MAX_CLAIMS = 200  # bullets, and calls: the check compares each with each

_BRACKETS = re.compile(r"\[([^\[\]\n]*)\]\s*(\S?)")  # at the beginning of a bullet
_GAPS = re.compile(r"\{[^{}]*\}")
_BY_RATIO = "for two arms of a race, use lab.claim_ratio(key, ratio, ...)"
_BY_ADVICE = "to recommend a value of a variable, use lab.advise(name, values, ...)"


def check_claims(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that each bullet is claimed by a call, and that each call claims a bullet.

    Too many of them are refused first: to compare thousands would take hours.
    """
    count = max(len(_bullets(file)), len(file.calls(*CLAIMING)))
    if count > _MAX_CLAIMS:
        yield CheckFinding(
            1, f"there are {count} claims, too many to check; use at most {_MAX_CLAIMS}"
        )
        return
    yield from _check_bullets(file)
    yield from _check_calls(file)


def _bullets(file: CheckedFile) -> list[str]:
    return bullets(file.scenario.sections.get(SECTION, ""))


# ---- bullets


def _check_bullets(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that every bullet has a key and a sentence of its own, and that a call claims it."""
    claimed_words = [literal_text(call) for call in file.calls(*CLAIMING)]
    possible_keys = _keys_elsewhere(file)
    claims: list[StatedClaim] = []
    for bullet in _bullets(file):
        claim = stated(bullet)
        line = file.line_of(bullet.split("\n")[0].rstrip())
        if not claim.key:
            yield CheckFinding(line, _why_no_key(bullet, claim.text))
        elif not _is_claimed(claim, claimed_words, possible_keys):
            yield CheckFinding(
                line,
                f"nothing claims the key [{claim.key}]; "
                "add lab.claim or lab.claim_ratio, or remove the bullet",
            )
        if claim.text in [earlier.text for earlier in claims]:
            yield CheckFinding(
                line, "another bullet has the same sentence; give each claim its own sentence"
            )
        claims.append(claim)
    counts = Counter(claim.key for claim in claims if claim.key)
    for key, count in counts.items():
        if count > 1:
            yield CheckFinding(
                file.line_of(f"[{key}]"),
                f"{count} bullets have the key [{key}]; give each bullet its own key",
            )


def _is_claimed(claim: StatedClaim, words: Sequence[str | None], possible_keys: set[str]) -> bool:
    for word in words:
        if word and match(word, [claim]):
            return True
    return any(fits(claim.key, key) for key in possible_keys)


def _keys_elsewhere(file: CheckedFile) -> set[str]:
    """Return the texts of the code that may be keys of claims whose key is no literal.

    Such a claim may be made in a loop over keys. The set is empty if every key is a literal. Keys
    in the calls themselves are left out, as the checks read those directly.
    """
    calls = file.calls(*CLAIMING)
    if all(literal_text(call) for call in calls):
        return set()
    key_nodes: set[int] = set()
    for call in calls:
        for argument in call.args[:1]:
            key_nodes.update(id(node) for node in ast.walk(argument))
    keys = set()
    for node in file.nodes:
        if isinstance(node, ast.expr) and id(node) not in key_nodes:
            text = text_of(node)
            if text and is_key(text) and _GAPS.sub("", text):
                keys.add(text)
    return keys


def _why_no_key(bullet: str, text: str) -> str:
    """Return why a bullet has no key, and what to write."""
    brackets = _BRACKETS.match(bullet)
    if brackets is None:
        return (
            f'this bullet has no key; write "- [a-key] {show(text, 60)}", and claim it by that key'
        )
    word, next_character = brackets.groups()
    if not _is_plain_key(word):
        return (
            f"[{show(word, 60)}] is not a key ({KEY_RULE}); "
            "write a key instead, and claim it by that key"
        )
    if not next_character:
        return f"the key [{word}] has no sentence; write the claim after it"
    return f"there is no space after [{word}]; add a space, so that it is read as a key"


def _is_plain_key(word: str) -> bool:
    return is_key(word) and "{" not in word


# ---- calls


def _check_calls(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that each call claims a key of the lesson, once, and before its arms race."""
    claims = [stated(bullet) for bullet in _bullets(file)]
    places = _places(file.tree.body)
    possible_keys = _keys_elsewhere(file)
    earlier_calls: list[ast.Call] = []
    for call in file.calls(*CLAIMING):
        word = literal_text(call)
        yield from _check_arguments(call)
        yield from _check_arm_names(call)
        if word is None:
            if not any(claim.key and _is_claimed(claim, [], possible_keys) for claim in claims):
                yield CheckFinding(
                    call.lineno,
                    "the key of this claim is not a literal; write it as a literal string",
                )
        else:
            if not match(word, claims):
                yield CheckFinding(call.lineno, why_unknown(word, claims))
            yield from _check_at(file, call)
            if _is_plain_key(word) and _is_claimed_before(word, call, earlier_calls, places):
                yield CheckFinding(
                    call.lineno,
                    f"the key [{show(word, 60)}] is claimed twice; make each claim once in a run",
                )
            raced_arms = _arms_raced_before(file, call, places)
            if raced_arms:
                yield CheckFinding(
                    call.lineno,
                    f"{' and '.join(raced_arms)} were raced before this claim; "
                    "claim first, then measure",
                )
        earlier_calls.append(call)


def _check_arm_names(call: ast.Call) -> Iterator[CheckFinding]:
    """Check that no arm of a claimed ratio has the name of a parameter of `lab.race`."""
    for arm in _arms_of_ratio(call):
        if arm in RACE_OPTIONS:
            yield CheckFinding(
                call.lineno,
                f"{arm} is a parameter of lab.race, and cannot be the name of an arm; "
                "give the arm another name",
            )


def _check_arguments(call: ast.Call) -> Iterator[CheckFinding]:
    """Check that a call that claims has no unknown argument, and advise the call that takes it."""
    method = called_method(call)
    unknown = []
    for keyword in call.keywords:
        if keyword.arg and keyword.arg not in TAKES[method]:
            unknown.append(keyword.arg)
    if not unknown:
        return
    hint = ""
    if "advises" in unknown:
        hint = f"; {_BY_ADVICE}"
    elif method == "claim":
        if "ratio" in unknown or set(unknown) <= TAKES["claim_ratio"]:
            hint = f"; {_BY_RATIO}"
    yield CheckFinding(call.lineno, f"lab.{method} takes no {' and no '.join(unknown)}{hint}")


def _check_at(file: CheckedFile, call: ast.Call) -> Iterator[CheckFinding]:
    """Check that `at=` names parameters, and that it includes their defaults."""
    params = {param.name: param for param in file.scenario.params}
    for name, values in _values_at([call]).items():
        if name not in params:
            hint = did_you_mean(name, params)
            yield CheckFinding(
                call.lineno, f"at= names {show(name, 60)}, which is not a parameter of run{hint}"
            )
        elif values is not None and params[name].default not in values:
            default = spell(params[name].default)
            yield CheckFinding(
                call.lineno,
                f"at= leaves out the default of {name}, so a run with defaults does not test "
                f"this claim; add {default} to at=",
            )


def _values_at(calls: Sequence[ast.Call]) -> dict[str, list[Value] | None]:
    """Return the values of the parameters that `at=` names; None if they are not literals."""
    values_of_param: dict[str, list[Value] | None] = {}
    for call in calls:
        for keyword in call.keywords:
            if keyword.arg != "at" or not isinstance(keyword.value, ast.Dict):
                continue
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                name = text_of(key)
                if name:
                    values_of_param[name] = _literals(value)
    return values_of_param


def _literals(node: ast.expr) -> list[Value] | None:
    """Return the value of a literal, or those of a list of literals; None for an expression."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    if isinstance(value, list | tuple):
        return list(value)
    return [value]


def _is_claimed_before(
    key: str, call: ast.Call, earlier_calls: Sequence[ast.Call], places: dict[int, "Place"]
) -> bool:
    """Return whether one of the earlier calls surely claims the same key in the same run.

    Calls in different branches of an `if` do not count.
    """
    for earlier in earlier_calls:
        if literal_text(earlier) == key and _is_later(places, earlier, call):
            return True
    return False


def _arms_raced_before(file: CheckedFile, call: ast.Call, places: dict[int, "Place"]) -> list[str]:
    """Return those arms of the ratio which a call claims that surely raced before it, sorted."""
    raced: set[str] = set()
    for race in file.calls("race"):
        if _is_later(places, race, call):
            raced.update(race_arms(race))
    return sorted(raced.intersection(_arms_of_ratio(call)))


def _arms_of_ratio(call: ast.Call) -> list[str]:
    """Return the arms of the ratio that a call claims; none if it is not a literal."""
    nodes = [keyword.value for keyword in call.keywords if keyword.arg == "ratio"]
    if called_method(call) == "claim_ratio":
        nodes += call.args[1:2]
    arms = []
    for node in nodes:
        arms += (text_of(node) or "").split("/")
    return arms


# ---- the order of calls

# The blocks of statements around a call, from the outside in: the id of each block, and the index
# of the statement in it.
Place = list[tuple[int, int]]


def _is_later(places: dict[int, Place], first: ast.Call, second: ast.Call) -> bool:
    """Return whether the second call surely comes after the first.

    It does if it is in a later statement of the block that the first one is in.
    """
    first_place = places.get(id(first))
    if not first_place:
        return False
    block, index = first_place[-1]
    second_indexes = dict(places.get(id(second), []))
    return second_indexes.get(block, -1) > index


def _places(body: Sequence[ast.stmt], around: Sequence[tuple[int, int]] = ()) -> dict[int, Place]:
    """Return the place of each call, by the id of its node.

    `around` is the place of the block itself: empty for the body of the file.
    """
    places: dict[int, Place] = {}
    for index, statement in enumerate(_flatten(body)):
        place = [*around, (id(body), index)]
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                places[id(node)] = place
        for block in _inner_blocks(statement):  # replaces the places of the calls in them
            places |= _places(block, place)
    return places


def _inner_blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """Yield the blocks in a statement, also those of its `except` and `case` clauses."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        parts = getattr(statement, name, [])
        if parts and isinstance(parts[0], ast.stmt):
            yield parts
        else:
            for clause in parts:
                yield clause.body


def _flatten(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block; the body of a `with` counts as a part of the block."""
    for statement in body:
        if isinstance(statement, ast.With):
            for item in statement.items:
                yield ast.Expr(item.context_expr)
            yield from _flatten(statement.body)
        else:
            yield statement


# ---- Predict and Try next


def check_answer(file: CheckedFile) -> Iterator[CheckFinding]:
    """Check that exactly one claim answers the question under Predict."""
    calls = file.calls_with("answers", *CLAIMING)
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
    """Check that Try next refutes keys of claims, which the change refutes on every machine."""
    text = file.scenario.sections.get("Try next", "")
    if "refutes:" in text.partition("`--")[0]:
        yield CheckFinding(
            file.line_of("refutes:"),
            "refutes: comes before any change; write it after a `--option`",
        )
    for change in changes_of(text):
        line = file.line_of("refutes:", after=file.line_of(f"`{change.options}`") - 1)
        for word in change.refutes:
            reason = _why_not_refuted(file, word, change.options)
            if reason:
                yield CheckFinding(line, reason)


def _why_not_refuted(file: CheckedFile, word: str, options: str) -> str:
    """Return why a word after `refutes:` is wrong there; empty if it is right."""
    if not _is_plain_key(word):
        return (
            f'"{show(word, 60)}" after refutes: is not a key ({KEY_RULE}); '
            "write keys with commas between them"
        )
    claims = [claim for claim in file.scenario.claims if claim.key == word]
    if not claims:
        return (
            f"Try next refutes [{word}], but no bullet under Look for has this key; "
            "correct the key, or add the bullet"
        )
    calls = [call for call in file.calls(*CLAIMING) if match(literal_text(call) or "", claims)]
    if calls and all(is_about_ratio(call) for call in calls):
        return (
            f"Try next refutes [{word}], which is about time, so the result depends on the "
            "machine; describe it in words"
        )
    name = _param_changed_at(calls, options)
    if name:
        return (
            f"Try next changes {name} to refute [{word}], but at= limits this claim to other "
            f"values; leave {name} out of at="
        )
    return ""


def _param_changed_at(calls: Sequence[ast.Call], options: str) -> str:
    """Return the first parameter that the options set to a value which `at=` does not include.

    Empty if there is none, so that the change still tests the claim.
    """
    words = options.split()
    for name, values in _values_at(calls).items():
        option = option_of(name)
        if option not in words:
            continue
        values_in_words = words[words.index(option) + 1 :]
        new_value = values_in_words[0] if values_in_words else "true"
        spelled_values = [spell(value) for value in values or []]
        if new_value not in spelled_values:
            return name
    return ""
