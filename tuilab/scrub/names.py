"""Decide by its name whether a variable, field, header or option holds a secret."""

import re
from functools import lru_cache
from itertools import pairwise

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PARTS = re.compile(r"PASSW|PASSPHRASE|PASSCODE|SECRET|CREDENTIAL|APIKEY|WEBHOOK|COOKIE|HTPASS")
# The ends of words that are written as one: PGPASS, AUTHKEY.
_ENDS = re.compile(r".(?:PASS|PWD|KEY|TOKEN|AUTH|CREDS?|DSN|JWT)\Z")
_CERTAIN = frozenset({
    "AUTHORIZATION", "BEARER", "CONNSTR", "CRED", "CREDS", "DSN", "JWT", "OAUTH", "PAT", "PFX",
    "PSK",
})  # fmt: skip
_DOUBTFUL = frozenset({
    "AUTH", "CONN", "KEY", "KEYS", "LOGIN", "OTP", "PASS", "PIN", "PW", "PWD", "SAS", "SIGNATURE",
    "TOKEN", "TOKENS",
})  # fmt: skip
# A token or a key after one of these words gives access to something. A model also has tokens and
# keys.
_QUALIFIERS = frozenset({
    "ACCESS", "ACCOUNT", "API", "AUTH", "BEARER", "BOT", "DEPLOY", "ENCRYPTION", "GITHUB",
    "GITLAB", "HF", "LICENSE", "MASTER", "OAUTH", "PRIVATE", "REFRESH", "SECURITY", "SESSION",
    "SHARED", "SIGNING", "SLACK", "SSH", "SUBSCRIPTION", "WANDB",
})  # fmt: skip
# `code` alone is an error code. A certificate is public, and a key has a name or form of its own.
_PAIRS = frozenset({
    ("ACCESS", "CODE"), ("AUTH", "CODE"), ("MFA", "CODE"), ("OTP", "CODE"), ("PASS", "CODE"),
    ("PIN", "CODE"), ("RECOVERY", "CODE"), ("SECURITY", "CODE"), ("VERIFICATION", "CODE"),
    ("PRIVATE", "CERT"), ("PRIVATE", "CERTIFICATE"),
})  # fmt: skip
_COUNTED = frozenset({"KEYS", "TOKENS"})
_TYPED = frozenset({
    "CODE", "CRED", "CREDS", "LOGIN", "OTP", "PASS", "PASSCODE", "PIN", "PSK", "PW", "PWD",
})  # fmt: skip
_TYPED_PARTS = re.compile(r"PASSW|PASSPHRASE|PASSCODE|SECRET|CREDENTIAL|HTPASS|.(?:PASS|PWD)\Z")
# Words that end like the name of a secret, but name none.
_HARMLESS = frozenset({
    "BYPASS", "COMPASS", "HOTKEY", "MONKEY", "OLDPWD", "PWD", "SURPASS", "TURKEY", "UNPASS",
})  # fmt: skip
# A name that ends with one of these describes a secret and is none: KeyError, password_length.
_DESCRIPTIONS = frozenset({
    "COUNT", "ERROR", "EXCEPTION", "LEN", "LENGTH", "NAME", "NAMES", "SIZE", "TYPE", "TYPES",
    "WARNING",
})  # fmt: skip
_KEYS = frozenset({"KEY", "KEYS"})
_KEYS_AND_TOKENS = _KEYS | {"TOKEN", "TOKENS"}
# Words before a token of a vocabulary, or before a key of a batch, a table or a schedule.
_MODEL_WORDS = frozenset({
    "ADDED", "AUDIO", "BATCH", "BEGIN", "BLANK", "BOS", "BOUNDARY", "CACHE", "CAPTION", "CHAT",
    "CHECKPOINT", "CLASS", "CLS", "COLUMN", "DATA", "DATASET", "DECODER", "DICT", "ENCODER", "END",
    "EOS", "EOT", "EXTRA", "FEATURE", "FIELD", "FILL", "FIM", "FORCED", "FOREIGN", "GROUP",
    "IMAGE", "IMG", "INDEX", "INPUT", "JSON", "LABEL", "LABELS", "LOOKUP", "LOSS", "LR", "MASK",
    "METRIC", "METRICS", "MIDDLE", "MONITOR", "NESTED", "NEWLINE", "OPTIMIZER", "OUTPUT", "PAD",
    "PADDING", "PARTITION", "PLACEHOLDER", "POSITION", "PREFIX", "PRIMARY", "PROMPT", "QUERY",
    "ROW", "SAMPLE", "SCHEDULE", "SCHEDULER", "SCORE", "SEP", "SEQ", "SEQUENCE", "SHARD", "SORT",
    "SOT", "SPACE", "SPECIAL", "SRC", "START", "STATE", "STOP", "SUFFIX", "TARGET", "TEXT", "TGT",
    "UNK", "VALUE", "VIDEO", "VOCAB", "WEIGHT", "WEIGHTS", "WORD",
})  # fmt: skip
_CACHED_NAMES = 4096  # a log repeats the same few names
_PLACES = ("FILE", "PATH", "DIR", "SOCK", "HOME", "FOLDER", "ROOT")


@lru_cache(_CACHED_NAMES)
def is_secret(name: str) -> bool:
    """Return whether a name may be that of a secret; in doubt it is."""
    words = _words(name)
    if _is_harmless(name, words):
        return False
    return _is_certain(words) or any(map(_is_doubtful, words))


@lru_cache(_CACHED_NAMES)
def is_certain(name: str) -> bool:
    """Return whether a name is certainly that of a secret.

    `token`, `key` and `pass` alone are not certain: they may be words about models.
    """
    words = _words(name)
    if _is_harmless(name, words):
        return False
    for qualifier, word in pairwise(words):
        if qualifier in _QUALIFIERS and _is_doubtful(word):
            return True
    return _is_certain(words)


@lru_cache(_CACHED_NAMES)
def is_counted(name: str) -> bool:
    """Return whether a name counts the tokens or keys of a model, such as max_tokens."""
    doubtful = _doubtful_words(name)
    return bool(doubtful) and doubtful <= _COUNTED and not is_certain(name)


@lru_cache(_CACHED_NAMES)
def may_name_model_data(name: str) -> bool:
    """Return whether a name may be that of a token or a key of a model or of data.

    It is not if it is certainly that of a secret, such as a password.
    """
    doubtful = _doubtful_words(name)
    if not doubtful or is_certain(name):
        return False
    if is_variable(name):  # an environment variable with TOKEN mostly gives access to something
        return doubtful <= _KEYS
    return doubtful <= _KEYS_AND_TOKENS


@lru_cache(_CACHED_NAMES)
def is_of_model(name: str) -> bool:
    """Return whether a name names a token or key of a model or of data: pad_token, lr-key, LR_KEY.

    A `key` alone is one: tools that ask for a secret also name the service, as in `--api-key`.
    """
    if not may_name_model_data(name):
        return False
    words = _words(name)
    return words in (["KEY"], ["KEYS"]) or not _MODEL_WORDS.isdisjoint(words)


@lru_cache(_CACHED_NAMES)
def is_token(name: str) -> bool:
    """Return whether a name ends with `token` and is not one of a model: token, raw_token."""
    return _words(name)[-1:] == ["TOKEN"] and not is_of_model(name)


@lru_cache(_CACHED_NAMES)
def is_typed(name: str) -> bool:
    """Return whether people choose the value themselves: that of a password or PIN, not a token.

    They also choose short numbers.
    """
    return any(word in _TYPED or _TYPED_PARTS.search(word) for word in _words(name))


def is_variable(name: str) -> bool:
    """Return whether a name is written like that of an environment variable: DB_PASS."""
    return name.isupper() and "_" in name


def is_place(name: str) -> bool:
    """Return whether a name is that of a path to something: SSH_AUTH_SOCK, NETRC_PASS_FILE."""
    return name.upper().endswith(_PLACES)


def _words(name: str) -> list[str]:
    return [word.upper() for word in _WORD.findall(name[:200])]


def _doubtful_words(name: str) -> set[str]:
    return {word for word in _words(name) if _is_doubtful(word)}


def _is_harmless(name: str, words: list[str]) -> bool:
    if name.upper() in _HARMLESS:
        return True
    return bool(words) and words[-1] in _DESCRIPTIONS


def _is_certain(words: list[str]) -> bool:
    if any(word in _CERTAIN or _PARTS.search(word) for word in words):
        return True
    return not _PAIRS.isdisjoint(pairwise(words))


def _is_doubtful(word: str) -> bool:
    if word in _DOUBTFUL:
        return True
    return word not in _HARMLESS and _ENDS.search(word) is not None
