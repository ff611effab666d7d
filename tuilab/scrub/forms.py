"""Remove secrets that can be recognised by their form.

They are tokens of well-known services, private keys, and words that look random.
"""

import re
from functools import cache
from itertools import pairwise

from tuilab.text.display import GONE

_TOKENS = (  # whole words
    r"gh[opsur]_[A-Za-z0-9]{16,}",
    r"github_pat_\w{16,}",
    r"gl[a-z]{2,5}-[\w-]{16,}",
    r"hf_[A-Za-z0-9]{16,}",
    r"(?=[\w-]{0,200}\d)sk-[\w-]{16,}",
    r"[prs]k_(?:live|test)_\w{10,}",
    r"xox[a-z](?:\.xox[a-z])?-[\w-]{8,}",
    r"xapp-[\w-]{16,}",
    r"A[KS]IA[A-Z0-9]{12,}",
    r"AIza[\w-]{30,}",
    r"ya29\.[\w-]{16,}",
    r"eyJ[\w-]{8,2000}(?:\.[\w-]+)+",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[\w-]{30,}",
    r"nvapi-[\w-]{16,}",
    r"dckr_pat_[\w-]{16,}",
    r"r8_[A-Za-z0-9]{30,}",
    r"gsk_[A-Za-z0-9]{30,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    r"\d{8,10}:[\w-]{35}(?![\w-])",
)
_PARTS_OF_ADDRESSES = (  # and of headers
    # user and password, also with a slash in the password
    r"(?<=://)(?=[^/\s@\"':]{0,200}:(?!\d+/))[^\s\"'<>]{1,2000}(?=@)",
    r"(?<=://)[^/\s@\"']{1,2000}(?=@)",
    r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[^\s\"'<>]+",
    r"(?<=/api/webhooks/)[^\s\"'<>]+",
    r"(?<=webhook\.office\.com/)[^\s\"'<>]+",
    r"(?<=Bearer )[\w.~+/=-]{8,}",
    r"(?<=bearer )(?=\S*\d)[\w.~+/=-]{8,}",
    r"(?<=[?&;])(?i:(?:[\w-]{0,40}-)?(?:sig|signature|credential))=[^\s\"'&<>]{8,}",
)
_WANDB = r"(?i)(?P<before>\b(?:wandb|api[ _-]?key)\b[^\n]{0,60}?)\b[0-9a-f]{40}\b"
_PEM = (
    r"-----BEGIN[^-\n]{0,60}PRIVATE KEY[^-\n]{0,20}-----"
    r"(?:(?s:.){0,16384}?-----END[^-\n]{0,80}-----|[\w+/=\s\\:,-]*)"
)
_IMAGE = r"data:image/[\w.+-]{1,40};base64,[\w+/=]*"
_LONG_WORD = r"(?<![\w+/=.~-])[\w+/=.~-]{20,}+"


def remove_forms(text: str) -> str:
    """Return a text without secrets that have the form of a token, a login or a private key."""
    text = _compiled(_PEM).sub(GONE, text)
    text = _compiled(f"\\b(?:{'|'.join(_TOKENS)})").sub(GONE, text)
    text = _compiled("|".join(_PARTS_OF_ADDRESSES)).sub(GONE, text)
    return _compiled(_WANDB).sub(rf"\g<before>{GONE}", text)


def remove_random_words(text: str) -> str:
    """Return a text without long words that look random.

    Digests, ids, names in code and pictures stay.
    """
    return _compiled(f"{_IMAGE}|{_LONG_WORD}").sub(_without_random_word, text)


def _without_random_word(match: re.Match[str]) -> str:
    if is_random(match[0]):
        return GONE
    return match[0]


def is_random(word: str) -> bool:
    """Return whether a word has a long part in which letters and digits alternate as in a password.

    A digest or a UUID has no capitals next to small letters. The case of a name in code changes
    only where a word begins.
    """
    # our pictures, mangled names of C++, and hexadecimal numbers
    if word.startswith(("data:image/", "_Z", "__Z", "0x")):
        return False
    if word.startswith("/"):  # a path
        separators = r"[/_.~=-]+"
    else:  # a slash also occurs in base64; a digest may be a part of a path
        separators = r"[_.~=-]+|/(?=[a-z]+/)|(?<![^/])[0-9a-f]{32,64}(?![^/])"
    for part in re.split(separators, word):
        if _is_mixed(part, 20, 0.35) and _share_of_words(part) < 0.6:
            return True
    return False


def is_opaque(value: str) -> bool:
    """Return whether a token or key looks like a secret, and not like one of a model."""
    if _is_mixed(value, 8, 0.3):
        return True
    return len(value) >= 16 and _changes(value) >= 4 and not value.startswith("0x")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _is_mixed(word: str, min_length: int, min_share: float) -> bool:
    """Return whether a word has capitals, small letters and digits, which often take turns.

    They must do so at least at this share of the places where they can.
    """
    if len(word) < min_length:
        return False
    kinds = {_kind(character) for character in word if character.isalnum()}
    return len(kinds) == 3 and _changes(word) >= min_share * (len(word) - 1)


def _share_of_words(name: str) -> float:
    """Return the share of the characters of a name in code that are in words: KeyValueCache."""
    words = re.findall(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}", name)
    return sum(map(len, words)) / len(name)


def _changes(word: str) -> int:
    """Return how often capitals, small letters and digits take turns."""
    kinds = [_kind(character) for character in word if character.isalnum()]
    return sum(kind != next_kind for kind, next_kind in pairwise(kinds))


def _kind(character: str) -> str:
    if character.isdigit():
        return "digit"
    return "capital" if character.isupper() else "small"
