"""What secrets look like, whoever printed them: tokens of well-known services, keys, words drawn by lot."""

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
_AFTER = (  # whatever follows
    r"(?<=://)(?=[^/\s@\"':]{0,200}:(?!\d+/))[^\s\"'<>]{1,2000}(?=@)",  # who logs in, also with a slash in the password
    r"(?<=://)[^/\s@\"']{1,2000}(?=@)",
    r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[^\s\"'<>]+",
    r"(?<=/api/webhooks/)[^\s\"'<>]+",
    r"(?<=webhook\.office\.com/)[^\s\"'<>]+",
    r"(?<=Bearer )[\w.~+/=-]{8,}",
    r"(?<=bearer )(?=\S*\d)[\w.~+/=-]{8,}",
    r"(?<=[?&;])(?i:(?:[\w-]{0,40}-)?(?:sig|signature|credential))=[^\s\"'&<>]{8,}",
)
_WANDB = r"(?i)(?P<before>\b(?:wandb|api[ _-]?key)\b[^\n]{0,60}?)\b[0-9a-f]{40}\b"
_PEM = r"-----BEGIN[^-\n]{0,60}PRIVATE KEY[^-\n]{0,20}-----(?:(?s:.){0,16384}?-----END[^-\n]{0,80}-----|[\w+/=\s\\:,-]*)"
_IMAGE = r"data:image/[\w.+-]{1,40};base64,[\w+/=]*"
_WORD = r"(?<![\w+/=.~-])[\w+/=.~-]{20,}+"


def remove_forms(text: str) -> str:
    """Return a text without what is a secret by its form."""
    text = _compiled(_PEM).sub(GONE, text)
    text = _compiled(f"\\b(?:{'|'.join(_TOKENS)})").sub(GONE, text)
    text = _compiled("|".join(_AFTER)).sub(GONE, text)
    return _compiled(_WANDB).sub(rf"\g<before>{GONE}", text)


def remove_random_words(text: str) -> str:
    """Return a text without long words that look drawn by lot; digests, ids, names in code and pictures stay."""
    return _compiled(f"{_IMAGE}|{_WORD}").sub(
        lambda found: GONE if is_random(found[0]) else found[0], text
    )


def is_random(word: str) -> bool:
    """Say whether a word has a long stretch in which capitals, small letters and digits follow each other as by chance.

    A digest or a uuid has no capitals beside small letters; a name in code changes its case where a word begins.
    """
    if word.startswith(
        ("data:image/", "_Z", "__Z", "0x")
    ):  # our pictures; names as a C++ compiler writes them; numbers
        return False
    is_path = word.startswith("/")
    parts = re.split(
        r"[/_.~=-]+" if is_path else r"[_.~=-]+|/(?=[a-z]+/)|(?<![^/])[0-9a-f]{32,64}(?![^/])", word
    )
    return any(_is_drawn(part, 20, 0.35) and _share_of_words(part) < 0.6 for part in parts)


def is_opaque(value: str) -> bool:
    """Say whether what is called a token or a key looks like one that opens a door, and not like one of a model."""
    return _is_drawn(value, 8, 0.3) or (
        len(value) >= 16 and _changes(value) >= 4 and not value.startswith("0x")
    )


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _is_drawn(word: str, shortest: int, share: float) -> bool:
    if len(word) < shortest or len({_kind(char) for char in word if char.isalnum()}) < 3:
        return False
    return _changes(word) >= share * (len(word) - 1)


def _share_of_words(name: str) -> float:
    """Return how much of a name in code is words: KeyValueCache."""
    return sum(map(len, re.findall(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}", name))) / len(name)


def _changes(word: str) -> int:
    """Return how often capitals, small letters and digits take turns."""
    kinds = [_kind(char) for char in word if char.isalnum()]
    return sum(one != other for one, other in pairwise(kinds))


def _kind(char: str) -> str:
    return "digit" if char.isdigit() else "capital" if char.isupper() else "small"
