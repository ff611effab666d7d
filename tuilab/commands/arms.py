"""Parse the arms of a command, and the claims about them, as the user writes them.

The user writes an arm as `NAME: [VARIABLE=VALUE...] [PREFIX...] [-- WORDS...]`.
"""

import re
import shlex
from collections.abc import Sequence

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


def parse(texts: Sequence[str]) -> list[CommandArm]:
    """Return the arms.

    If the user names only one arm, and it changes the command, the unchanged command comes first.
    """
    arms = [_arm(text) for text in texts]
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
            if arm.name == earlier.name:
                raise UsageError(f"two arms are named {show(arm.name)}; give each arm its own name")
            if (arm.env, arm.prefix, arm.words) == (earlier.env, earlier.prefix, earlier.words):
                raise UsageError(
                    f"{show(earlier.name)} and {show(arm.name)} are the same command; change or"
                    " drop one of them"
                )
    return arms


def is_plain(arm: CommandArm) -> bool:
    """Say whether an arm is the unchanged command."""
    return not (arm.env or arm.prefix or arm.words)


def _arm(text: str) -> CommandArm:
    name, _, definition = text.partition(":")
    if not _NAME.fullmatch(name := name.strip()):
        raise UsageError(
            f"--arm takes NAME, or 'NAME: VARIABLE=VALUE PREFIX -- WORDS', not {show(text, 60)}"
        )
    try:
        words_before, words_behind = _parts(shlex.split(definition))
    except ValueError as problem:
        raise UsageError(f"--arm {show(name)}: {problem}; close the quotation") from problem
    count = next(
        (index for index, word in enumerate(words_before) if not _VARIABLE.match(word)),
        len(words_before),
    )
    if words_before[count:] and words_before[count].startswith("-"):
        words = show(shlex.join(words_before[count:]), 40)
        raise UsageError(
            f"--arm {show(name)}: {words} would come before the command; "
            f"to add it after the command, write '{show(name)}: -- {words}'"
        )
    env = {}
    for word in words_before[:count]:
        variable, _, value = word.partition("=")
        env[variable] = value
    return CommandArm(name=name, env=env, prefix=words_before[count:], words=words_behind)


def _parts(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words before the first -- and the words after it."""
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end + 1 :]


def command_of(arm: CommandArm, words: Sequence[str]) -> list[str]:
    """Return the whole command of an arm."""
    return [*arm.prefix, *words, *arm.words]


def parse_claims(
    texts: Sequence[str], arms: Sequence[CommandArm], measure: str = ""
) -> list[ArmClaim]:
    """Return the claims.

    Without any texts, claim that each arm is faster than the first. If there is a `measure`, claim
    that each arm has less of it than the first.
    """
    if not texts:
        return [_claim(arm.name, arms[0].name, 1.0, measure) for arm in arms[1:]]
    names = [arm.name for arm in arms]
    claims = [_parse_claim(text, names, measure) for text in texts]
    if len({claim.key for claim in claims}) < len(claims):
        raise UsageError("a claim is given twice; drop one of them")
    return claims


def _parse_claim(text: str, names: Sequence[str], measure: str) -> ArmClaim:
    match = _CLAIM.fullmatch(text.strip())
    try:
        bound = float(match["bound"]) if match else 0.0
    except ValueError:
        bound = 0.0
    if match is None or not 0 < bound < 1e6:
        raise UsageError(
            "--claim takes 'ARM 1.3x OTHER' (ARM is at least 1.3 times faster than OTHER), not"
            f" {show(text, 60)}"
        )
    for name in (match["arm"], match["other"]):
        if name not in names:
            raise UsageError(
                f"--claim {show(text, 60)}: no arm is named"
                f" {show(name, 40)}{did_you_mean(name, names)}"
            )
    if match["arm"] == match["other"]:
        raise UsageError(
            f"--claim {show(text, 60)}: both arms are the same; name two different arms"
        )
    return _claim(match["arm"], match["other"], bound, measure)


def _claim(arm: str, base: str, bound: float, measure: str) -> ArmClaim:
    return ArmClaim(
        text=f"{arm} {_how(bound, measure)} {base}",
        key=f"{arm}-{bound:g}x-{base}",
        over=base,
        under=arm,
        bound=bound,
    )


def _how(bound: float, measure: str) -> str:
    """Return what a claim says about an arm, compared with another arm.

    A bound below 1 allows the arm to be worse by that factor.
    """
    if bound < 1:
        return (
            f"takes at most {1 / bound:.3g} times as {f'much {measure}' if measure else 'long'} as"
        )
    if measure:
        return (
            f"has less {measure} than"
            if bound == 1
            else f"has at least {bound:g} times less {measure} than"
        )
    return "is faster than" if bound == 1 else f"is at least {bound:g} times faster than"


def shared_outputs(arms: Sequence[CommandArm], words: Sequence[str]) -> list[str]:
    """Return the options through which the arms may overwrite each other's files.

    These are options for an output that have the same value in all arms.
    """
    outputs_of_arms = [_outputs(command_of(arm, words)) for arm in arms]
    return [
        f"{option} {value}"
        for option, value in outputs_of_arms[0].items()
        if all(outputs.get(option) == value for outputs in outputs_of_arms)
    ]


def _outputs(words: Sequence[str]) -> dict[str, str]:
    outputs = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, is_given, value = word.partition("=")
        value = value if is_given else following
        if _WRITES.fullmatch(option) and value and not value.startswith("-"):
            outputs[option] = value
    return outputs
