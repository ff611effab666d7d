"""Parse the arms of a command, and the claims about them, as the user writes them.

The user writes an arm as `NAME: [VARIABLE=VALUE...] [PREFIX...] [-- WORDS...]`.
"""

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress

from tuilab.engine.messages import ArmClaim, CommandArm
from tuilab.errors import UsageError
from tuilab.text.display import did_you_mean, show

BASE = "base"
_VARIABLE = re.compile(r"(?a:[A-Za-z_]\w*)=")
_NAME = re.compile(r"(?a:[\w.+-]{1,40})")
_CLAIM = re.compile(r"(?P<arm>\S+)\s+(?P<bound>[0-9.]+)x\s+(?P<other>\S+)")
_WRITES = re.compile(
    r"--?(?:[\w-]*[_-])?(?:out|output|save|log|logging|ckpt|checkpoint|results?|run)[_-]?(?:dir|path|folder)?"
)
_MOST = 12  # arms
_MOST_BOUND = 1e6  # a larger factor in a claim is a mistake


def parse(texts: Sequence[str]) -> list[CommandArm]:
    """Return the arms, which are variants of a command that are timed against each other.

    If the user names only one arm, and it changes the command, the unchanged command comes first.
    Raises UsageError if an arm cannot be read, if two are alike, or if there are too few or too
    many.
    """
    arms = [_parse_arm(text) for text in texts]
    if len(arms) == 1 and not is_plain(arms[0]):
        arms = [CommandArm(name=BASE), *arms]
    if len(arms) < 2:
        raise UsageError(
            "name at least two arms, for example --arm base --arm 'threads8: OMP_NUM_THREADS=8'"
        )
    if len(arms) > _MOST:
        raise UsageError(f"{len(arms)} arms are too many; use at most {_MOST}")
    for index, arm in enumerate(arms):
        for earlier in arms[:index]:
            _check_differs(arm, earlier)
    return arms


def _check_differs(arm: CommandArm, earlier: CommandArm) -> None:
    """Raise UsageError if an arm has the name or the command of an earlier one."""
    if arm.name == earlier.name:
        raise UsageError(f"two arms are named {show(arm.name)}; give each arm its own name")
    if (arm.env, arm.prefix, arm.words) == (earlier.env, earlier.prefix, earlier.words):
        names = f"{show(earlier.name)} and {show(arm.name)}"
        raise UsageError(f"{names} are the same command; change or drop one of them")


def is_plain(arm: CommandArm) -> bool:
    """Say whether an arm is the unchanged command."""
    return not (arm.env or arm.prefix or arm.words)


def _parse_arm(text: str) -> CommandArm:
    """Return the arm that `NAME: [VARIABLE=VALUE...] [PREFIX...] [-- WORDS...]` means.

    Raises UsageError if the name is invalid, a quotation is open, or the prefix is an option.
    """
    name, _, definition = text.partition(":")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--arm takes NAME, or 'NAME: VARIABLE=VALUE PREFIX -- WORDS', not {show(text, 60)}"
        )
    try:
        words_before, words_behind = _split_at_dashes(shlex.split(definition))
    except ValueError as problem:
        raise UsageError(f"--arm {show(name)}: {problem}; close the quotation") from problem
    env: dict[str, str] = {}
    prefix: list[str] = []
    for word in words_before:
        if prefix or not _VARIABLE.match(word):
            prefix.append(word)
        else:
            variable, _, value = word.partition("=")
            env[variable] = value
    if prefix and prefix[0].startswith("-"):
        options = show(shlex.join(prefix), 40)
        raise UsageError(
            f"--arm {show(name)}: {options} would come before the command; "
            f"to add it after the command, write '{show(name)}: -- {options}'"
        )
    return CommandArm(name=name, env=env, prefix=prefix, words=words_behind)


def _split_at_dashes(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words before the first -- and the words after it."""
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end + 1 :]


def command_of(arm: CommandArm, words: Sequence[str]) -> list[str]:
    """Return the whole command of an arm."""
    return [*arm.prefix, *words, *arm.words]


def parse_claims(
    texts: Sequence[str], arms: Sequence[CommandArm], measure: str = ""
) -> list[ArmClaim]:
    """Return the claims about the arms; raise UsageError if one is invalid or given twice.

    Without any texts, claim that each arm is faster than the first. If there is a `measure`, claim
    that each arm has less of it than the first.
    """
    if not texts:
        base = arms[0].name
        return [_make_claim(arm.name, base, 1.0, measure) for arm in arms[1:]]
    names = [arm.name for arm in arms]
    claims = [_parse_claim(text, names, measure) for text in texts]
    if len({claim.key for claim in claims}) < len(claims):
        raise UsageError("a claim is given twice; drop one of them")
    return claims


def _parse_claim(text: str, names: Sequence[str], measure: str) -> ArmClaim:
    """Return the claim that `ARM 1.3x OTHER` means.

    Raises UsageError if the text has another form, or names no arm or the same arm twice.
    """
    match = _CLAIM.fullmatch(text.strip())
    bound = 0.0
    if match:
        # The pattern also matches texts that are no number, such as 1.2.3.
        with suppress(ValueError):
            bound = float(match["bound"])
    if match is None or not 0 < bound < _MOST_BOUND:
        raise UsageError(
            "--claim takes 'ARM 1.3x OTHER' (ARM is at least 1.3 times faster than OTHER), not"
            f" {show(text, 60)}"
        )
    for name in (match["arm"], match["other"]):
        if name not in names:
            unknown = f"{show(name, 40)}{did_you_mean(name, names)}"
            raise UsageError(f"--claim {show(text, 60)}: no arm is named {unknown}")
    if match["arm"] == match["other"]:
        raise UsageError(
            f"--claim {show(text, 60)}: both arms are the same; name two different arms"
        )
    return _make_claim(match["arm"], match["other"], bound, measure)


def _make_claim(arm: str, base: str, bound: float, measure: str) -> ArmClaim:
    """Return the claim that `arm` beats `base` by the factor `bound`, in time or in `measure`."""
    return ArmClaim(
        text=f"{arm} {_describe_bound(bound, measure)} {base}",
        key=f"{arm}-{bound:g}x-{base}",
        over=base,
        under=arm,
        bound=bound,
    )


def _describe_bound(bound: float, measure: str) -> str:
    """Return what a claim says about an arm, compared with another arm.

    A bound below 1 allows the arm to be worse by that factor.
    """
    if bound < 1:
        quantity = f"much {measure}" if measure else "long"
        return f"takes at most {1 / bound:.3g} times as {quantity} as"
    if measure:
        if bound == 1:
            return f"has less {measure} than"
        return f"has at least {bound:g} times less {measure} than"
    if bound == 1:
        return "is faster than"
    return f"is at least {bound:g} times faster than"


def shared_outputs(arms: Sequence[CommandArm], words: Sequence[str]) -> list[str]:
    """Return the options through which the arms may overwrite each other's files.

    These are options for an output that have the same value in all arms.
    """
    outputs_of_arms = [_find_outputs(command_of(arm, words)) for arm in arms]
    shared = []
    for option, value in outputs_of_arms[0].items():
        if all(outputs.get(option) == value for outputs in outputs_of_arms):
            shared.append(f"{option} {value}")
    return shared


def _find_outputs(words: Sequence[str]) -> dict[str, str]:
    """Return the options of a command for its outputs, with their values."""
    outputs: dict[str, str] = {}
    next_words = [*words[1:], ""]
    for word, next_word in zip(words, next_words, strict=True):
        option, has_value, value = word.partition("=")
        if not has_value:
            value = next_word
        if _WRITES.fullmatch(option) and value and not value.startswith("-"):
            outputs[option] = value
    return outputs
