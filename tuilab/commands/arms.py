"""The arms of a command, as the user writes them: `NAME: [VARIABLE=VALUE...] [PREFIX...] [-- WORDS...]`; and their claims."""

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


def parse(given: Sequence[str]) -> list[CommandArm]:
    """Return the arms; the command as it is comes first where only other ways to run it are named."""
    arms = [_arm(text) for text in given]
    if len(arms) == 1 and not is_plain(arms[0]):
        arms = [CommandArm(name=BASE), *arms]
    if len(arms) < 2:
        raise UsageError(
            "name at least two arms, for example --arm base --arm 'threads8: OMP_NUM_THREADS=8'"
        )
    if len(arms) > _MOST:
        raise UsageError(f"{len(arms)} arms are too many; use at most {_MOST}")
    for at, arm in enumerate(arms):
        for other in arms[:at]:
            if arm.name == other.name:
                raise UsageError(f"two arms are named {show(arm.name)}; give each arm its own name")
            if (arm.env, arm.prefix, arm.words) == (other.env, other.prefix, other.words):
                raise UsageError(
                    f"{show(other.name)} and {show(arm.name)} are the same command; change or drop one of them"
                )
    return arms


def is_plain(arm: CommandArm) -> bool:
    """Say whether an arm is the command as it is."""
    return not (arm.env or arm.prefix or arm.words)


def _arm(text: str) -> CommandArm:
    name, _, rest = text.partition(":")
    if not _NAME.fullmatch(name := name.strip()):
        raise UsageError(
            f"--arm takes NAME, or 'NAME: VARIABLE=VALUE PREFIX -- WORDS', not {show(text, 60)}"
        )
    try:
        before, behind = _parts(shlex.split(rest))
    except ValueError as problem:
        raise UsageError(f"--arm {show(name)}: {problem}; close the quotation") from problem
    count = next((at for at, word in enumerate(before) if not _VARIABLE.match(word)), len(before))
    if before[count:] and before[count].startswith("-"):
        words = show(shlex.join(before[count:]), 40)
        raise UsageError(
            f"--arm {show(name)}: {words} would come before the command; "
            f"to add it after the command, write '{show(name)}: -- {words}'"
        )
    env = {
        variable: value for variable, _, value in (word.partition("=") for word in before[:count])
    }
    return CommandArm(name=name, env=env, prefix=before[count:], words=behind)


def _parts(words: list[str]) -> tuple[list[str], list[str]]:
    """Return what stands before the first -- and what stands behind it."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def command_of(arm: CommandArm, words: Sequence[str]) -> list[str]:
    """Return the whole command of an arm."""
    return [*arm.prefix, *words, *arm.words]


def parse_claims(
    given: Sequence[str], arms: Sequence[CommandArm], measure: str = ""
) -> list[ArmClaim]:
    """Return the claims; without any, that each arm is faster than the first, or has less of what is measured."""
    if not given:
        return [_claim(arm.name, arms[0].name, 1.0, measure) for arm in arms[1:]]
    claims = [_parse_claim(text, [arm.name for arm in arms], measure) for text in given]
    if len({claim.key for claim in claims}) < len(claims):
        raise UsageError("a claim is given twice; drop one of them")
    return claims


def _parse_claim(text: str, names: Sequence[str], measure: str) -> ArmClaim:
    found = _CLAIM.fullmatch(text.strip())
    try:
        bound = float(found["bound"]) if found else 0.0
    except ValueError:
        bound = 0.0
    if found is None or not 0 < bound < 1e6:
        raise UsageError(
            f"--claim takes 'ARM 1.3x OTHER' (ARM is at least 1.3 times faster than OTHER), not {show(text, 60)}"
        )
    for name in (found["arm"], found["other"]):
        if name not in names:
            raise UsageError(
                f"--claim {show(text, 60)}: no arm is named {show(name, 40)}{did_you_mean(name, names)}"
            )
    if found["arm"] == found["other"]:
        raise UsageError(
            f"--claim {show(text, 60)}: both arms are the same; name two different arms"
        )
    return _claim(found["arm"], found["other"], bound, measure)


def _claim(arm: str, other: str, bound: float, measure: str) -> ArmClaim:
    return ArmClaim(
        text=f"{arm} {_how(bound, measure)} {other}",
        key=f"{arm}-{bound:g}x-{other}",
        over=other,
        under=arm,
        bound=bound,
    )


def _how(bound: float, measure: str) -> str:
    """Return what is claimed of one arm beside another; a bound below 1 allows it to be so much worse."""
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
    """Return the options of which all arms have the same value, and by which they may write over what the others wrote."""
    every = [_outputs(command_of(arm, words)) for arm in arms]
    return [
        f"{option} {value}"
        for option, value in every[0].items()
        if all(one.get(option) == value for one in every)
    ]


def _outputs(words: Sequence[str]) -> dict[str, str]:
    found = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, is_given, value = word.partition("=")
        value = value if is_given else following
        if _WRITES.fullmatch(option) and value and not value.startswith("-"):
            found[option] = value
    return found
