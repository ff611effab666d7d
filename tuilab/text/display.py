"""Make text that a run printed or named safe to display.

Everything that comes from outside goes through `show` or `show_lines` before it reaches a
terminal: scenario output, names, params, exception texts, GPU names, paths.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import zip_longest

GONE = "(removed)"  # in the place of a secret

# C0 without tab and newline, DEL, C1, bidi controls, line and paragraph separators, surrogates,
# BOM: none of them is printable. `re` is loaded, and compiles the patterns, on first use:
# `tuilab list` needs none.
_UNSAFE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb]"
)
_BREAKS = "[\t\n]+"
_PLAIN_TERM_PREFIXES = ("linux", "vt", "ansi", "cons25")
_PLAIN_TERM = r"(linux|vt\d+|ansi|cons25)(-.*)?"
_MONOCHROME_TERM = r"dumb|vt(?!525)\d+(-.*)?|.*-m(ono)?"
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")  # values that Python itself may have set
NAME_LIMIT = 100_000  # characters; no name in a record is longer, so it is shown whole


def show_lines(text: str) -> str:
    """Return a text without characters that could control a terminal; line breaks and tabs stay."""
    if text.isprintable():
        return text
    import re

    return re.sub(_UNSAFE, "\ufffd", text.replace("\r\n", "\n"))


def show(text: object, limit: int = 1000) -> str:
    """Return `text` as one safe line of at most `limit` characters."""
    line = _one_line(str(text)[: limit + 1])
    if len(line) <= limit:
        return line
    return line[: limit - 1] + "…"


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    import re

    return re.sub(_BREAKS, " ", show_lines(text))


def shorten(text: object, limit: int) -> str:
    """Return `text` as one safe line of at most `limit` characters, cut in the middle.

    Names often differ only at their ends.
    """
    line = _one_line(str(text))
    if len(line) <= limit:
        return line
    tail = limit // 2
    return f"{line[: limit - 1 - tail]}…{line[len(line) - tail :]}"


def distinct_labels(names: Iterable[str], limit: int) -> dict[str, str]:
    """Return a different label for each name, each with about `limit` characters.

    Labels are cut in the middle. Equal ones begin near the first difference of their names
    instead; if they are still equal, they get numbers.
    """
    labels = {name: shorten(name, limit) for name in names}
    for group in _groups_with_equal_labels(labels):
        start = max(_first_difference(group) - limit // 4, 0)
        for name in group:
            if len(name) > limit:
                labels[name] = "…" + shorten(name[start:], limit - 1)
    for group in _groups_with_equal_labels(labels):
        for number, name in enumerate(group[1:], 2):
            labels[name] += f" ({number})"
    return labels


def _groups_with_equal_labels(labels: Mapping[str, str]) -> list[list[str]]:
    names_of_label: dict[str, list[str]] = {}
    for name, label in labels.items():
        names_of_label.setdefault(label, []).append(name)
    return [names for names in names_of_label.values() if len(names) > 1]


def _first_difference(names: Sequence[str]) -> int:
    """Return the first position at which several names differ; 0 if they are equal."""
    for position, characters in enumerate(zip_longest(*names)):
        if len(set(characters)) > 1:
            return position
    return 0


def clip(text: str, limit: int) -> str:
    """Return a text; if it is too long, its beginning and how many more characters there are."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… {len(text) - limit} characters more"


def is_utf8_terminal() -> bool:
    """Return whether the terminal shows more than ASCII.

    `sys.stdout.encoding` does not say so: Python's own UTF-8 mode hides it.
    """
    return not why_ascii()


def why_ascii() -> str:
    """Return why the terminal shows only ASCII; empty if it shows more."""
    term = os.environ.get("TERM", "")
    if term.startswith(_PLAIN_TERM_PREFIXES) and _is_like(_PLAIN_TERM, term):
        return f"TERM={term} has no glyphs for more"
    locale = os.environ.get("LC_ALL") or _initial_ctype() or os.environ.get("LANG") or ""
    if "utf-8" in locale.lower() or "utf8" in locale.lower():
        return ""
    return f"the locale ({locale or 'not set'}) is not UTF-8"


def has_colour() -> bool:
    """Return whether the terminal probably shows colours, and the user wants them."""
    return not os.environ.get("NO_COLOR") and not is_monochrome(os.environ.get("TERM", ""))


def is_monochrome(term: str) -> bool:
    """Return whether a kind of terminal has no colours."""
    return _is_like(_MONOCHROME_TERM, term)


def _is_like(pattern: str, term: str) -> bool:
    import re

    return re.fullmatch(pattern, term) is not None


def _initial_ctype() -> str:
    """Return LC_CTYPE as it was when this process began.

    In a C locale Python sets it by itself (PEP 538).
    """
    current = os.environ.get("LC_CTYPE", "")
    if current in _COERCED and not os.environ.get("LC_ALL"):
        return _read_initial_ctype()
    return current


@cache
def _read_initial_ctype() -> str:
    """Return LC_CTYPE from the environment with which this process began; empty if it had none.

    Where /proc cannot be read, it is the value of now.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return os.environ.get("LC_CTYPE", "")
    for variable in variables:
        if variable.startswith(b"LC_CTYPE="):
            return variable.removeprefix(b"LC_CTYPE=").decode(errors="replace")
    return ""


def brief(value: float) -> str:
    """Return a number in three digits, without an exponent if that is as short."""
    if 1e3 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.3g}"


def brief_beside(bound: float, value: float) -> str:
    """Return a number in three digits, or in more if three would show it as equal to a bound.

    With at most nine digits, the number may still be shown as equal.
    """
    shortest = brief(value)
    if float(shortest) != bound:
        return shortest
    for digits in range(4, 10):
        text = f"{value:.{digits}g}"
        if float(text) != bound:
            return text
    return shortest


def interval_words(
    estimate: float, low: float | None, high: float | None, bound: float | None = None
) -> str:
    """Return an estimate with its interval, as `1.9 [1.8, 2]`; a claim may set a bound for it."""
    return f"{brief(estimate)} [{_interval_end(low, bound)}, {_interval_end(high, bound)}]"


def _interval_end(value: float | None, bound: float | None) -> str:
    if value is None:
        return "n/a"
    if bound is None:
        return brief(value)
    return brief_beside(bound, value)


def percent(share: float) -> str:
    """Return a share in percent, in two digits."""
    if abs(share) < 0.1:
        return f"{100 * share:.2g} %"
    return f"{100 * share:.0f} %"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return `1 run`, `2 runs`."""
    if count != 1:
        noun = nouns or f"{noun}s"
    return f"{count} {noun}"


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: a similar word, or the few choices.

    Empty if no word is similar and there are no choices, or too many to list.
    """
    from difflib import get_close_matches  # imported here: only an unknown word needs it

    words = list(choices)
    close_words = get_close_matches(word[:100], words, n=1)
    if close_words:
        return f"; did you mean {show(close_words[0])}?"
    if 0 < len(words) <= 12:
        return f"; there are {join(words)}"
    return ""


def join(words: Iterable[object]) -> str:
    """Return words as a list in a sentence."""
    return ", ".join(show(word, 60) for word in words)


def join_first(words: Sequence[object], most: int, count: int = 0) -> str:
    """Return the first words as a list in a sentence, and how many more there are.

    `count` is the number of all, if only some are known by name.
    """
    text = join(words[:most])
    left_out = max(count, len(words)) - min(most, len(words))
    if left_out:
        text += f" and {left_out} more"
    return text
