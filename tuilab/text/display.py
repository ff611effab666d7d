"""Makes text that a run printed or named safe to display.

Everything that came from outside (scenario output, names, params, exception texts, GPU names, paths) goes through `show`
or `show_lines` before it reaches a terminal.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import zip_longest

GONE = "(removed)"  # stands where a secret stood

# C0 but tab and newline, DEL, C1, bidi controls, line and paragraph separators, surrogates, BOM: none of them is printable.
# `re` is loaded, and compiles these, where they are needed first; `tuilab list` needs none.
_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
_BREAKS = "[\t\n]+"
_PLAIN_TERMS = "linux", "vt", "ansi", "cons25"  # as they begin
_PLAIN_TERM = r"(linux|vt\d+|ansi|cons25)(-.*)?"
_MONOCHROME_TERM = r"dumb|vt(?!525)\d+(-.*)?|.*-m(ono)?"
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
NAME_LIMIT = 100_000  # characters: a name is shown whole, because no record has that many


def show_lines(text: str) -> str:
    """Return `text` with every character that could steer a terminal replaced; line breaks and tabs stay."""
    if text.isprintable():
        return text
    import re

    return re.sub(_UNSAFE, "\ufffd", text.replace("\r\n", "\n"))


def show(text: object, limit: int = 1000) -> str:
    """Return `text` as one safe line of at most `limit` characters."""
    line = _one_line(str(text)[: limit + 1])
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    import re

    return re.sub(_BREAKS, " ", show_lines(text))


def shorten(text: object, limit: int) -> str:
    """Return `text` as one safe line of at most `limit` characters, cut in the middle: names differ at their ends."""
    line = _one_line(str(text))
    tail = limit // 2
    return line if len(line) <= limit else f"{line[: limit - 1 - tail]}…{line[len(line) - tail :]}"


def told_apart(names: Iterable[str], limit: int) -> dict[str, str]:
    """Return names as people read them, each in about `limit` characters, and no two of them alike.

    Where names cut in the middle look alike, they begin near their first difference; those still alike are counted.
    """
    shown = {name: shorten(name, limit) for name in names}
    for same in _alike(shown):
        start = next(at for at, found in enumerate(zip_longest(*same)) if len(set(found)) > 1)
        for name in same:
            if len(name) > limit:
                shown[name] = "…" + shorten(name[max(start - limit // 4, 0) :], limit - 1)
    for same in _alike(shown):
        for at, name in enumerate(same[1:], 2):
            shown[name] += f" ({at})"
    return shown


def _alike(shown: Mapping[str, str]) -> list[list[str]]:
    """Return the groups of names that are shown alike."""
    groups: dict[str, list[str]] = {}
    for name, words in shown.items():
        groups.setdefault(words, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def clip(text: str, limit: int) -> str:
    """Return a text, of a long one the first characters and how many more there are."""
    return text if len(text) <= limit else f"{text[:limit]}… {len(text) - limit} characters more"


def is_utf8_terminal() -> bool:
    """Say whether the terminal shows more than ASCII; Python's own UTF-8 mode hides that from `sys.stdout.encoding`."""
    return not why_ascii()


def why_ascii() -> str:
    """Return why nothing but ASCII is to be shown; nothing where more may be."""
    term = os.environ.get("TERM", "")
    if term.startswith(_PLAIN_TERMS) and _is_like(_PLAIN_TERM, term):
        return f"TERM={term} has no glyphs for more"
    locale = os.environ.get("LC_ALL") or _own_ctype() or os.environ.get("LANG") or ""
    if "utf-8" in locale.lower() or "utf8" in locale.lower():
        return ""
    return f"the locale ({locale or 'not set'}) is not UTF-8"


def has_colour() -> bool:
    """Say whether a terminal shows colours, as far as the environment tells, and the user wants them."""
    return not os.environ.get("NO_COLOR") and not is_monochrome(os.environ.get("TERM", ""))


def is_monochrome(term: str) -> bool:
    """Say whether a kind of terminal has no colours."""
    return _is_like(_MONOCHROME_TERM, term)


def _is_like(pattern: str, term: str) -> bool:
    import re

    return re.fullmatch(pattern, term) is not None


def _own_ctype() -> str:
    """Return LC_CTYPE as it was when this process began: in a C locale Python sets it by itself (PEP 538)."""
    found = os.environ.get("LC_CTYPE", "")
    return _first_ctype() if found in _COERCED and not os.environ.get("LC_ALL") else found


@cache
def _first_ctype() -> str:
    try:
        with open("/proc/self/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return os.environ.get("LC_CTYPE", "")
    return next(
        (
            one.partition(b"=")[2].decode(errors="replace")
            for one in variables
            if one.startswith(b"LC_CTYPE=")
        ),
        "",
    )


def brief(value: float) -> str:
    """Return a number in three digits, and without an exponent where its digits are as short."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def brief_beside(bound: float, value: float) -> str:
    """Return a number in three digits, or in as many as it takes to show on which side of a bound it lies."""
    spelled = [brief(value), *(f"{value:.{digits}g}" for digits in range(4, 10))]
    return next((words for words in spelled if float(words) != bound), spelled[0])


def interval_words(
    estimate: float, low: float | None, high: float | None, bound: float | None = None
) -> str:
    """Return an estimate with its interval, as `1.9 [1.8, 2]`; `bound` is what a claim sets for it."""
    ends = []
    for end in (low, high):
        if end is None:
            ends.append("n/a")
        else:
            ends.append(brief(end) if bound is None else brief_beside(bound, end))
    return f"{brief(estimate)} [{ends[0]}, {ends[1]}]"


def percent(share: float) -> str:
    """Return a share in percent, in two digits."""
    return f"{100 * share:.2g} %" if abs(share) < 0.1 else f"{100 * share:.0f} %"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return `1 run`, `2 runs`."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: what it may have meant, or what there is."""
    from difflib import get_close_matches

    words = list(known)
    if close := get_close_matches(word[:100], words, n=1):
        return f"; did you mean {show(close[0])}?"
    return f"; there are {join(words)}" if 0 < len(words) <= 12 else ""


def join(words: Iterable[object]) -> str:
    """Return words as a list in a sentence."""
    return ", ".join(show(word, 60) for word in words)


def join_first(words: Sequence[object], most: int, count: int = 0) -> str:
    """Return the first words as a list in a sentence, and how many more there are; `count` are more than are known by name."""
    more = max(count, len(words)) - min(most, len(words))
    return join(words[:most]) + (f" and {more} more" if more else "")
