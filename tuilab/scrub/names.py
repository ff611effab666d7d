"""Which variables, fields, headers and options are called like something that nobody else should see."""

import re
from itertools import pairwise

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PARTS = re.compile(r"PASSW|PASSPHRASE|SECRET|CREDENTIAL|APIKEY|WEBHOOK|COOKIE|HTPASS")
_ENDS = re.compile(r".(?:PASS|PWD|KEY|TOKEN|AUTH|CREDS?|DSN|JWT)\Z")  # of words run together: PGPASS, AUTHKEY
_CERTAIN = frozenset({"CRED", "CREDS", "DSN", "JWT", "OAUTH", "PAT", "PSK", "CONNSTR", "AUTHORIZATION"})
_DOUBTFUL = frozenset(
    {"AUTH", "CONN", "KEY", "KEYS", "LOGIN", "OTP", "PASS", "PIN", "SIGNATURE", "PW", "PWD", "SAS", "TOKEN", "TOKENS"}
)
_QUALIFIERS = frozenset(  # what makes a token or a key one that opens a door: a model has tokens and keys, too
    {"ACCESS", "ACCOUNT", "API", "AUTH", "BEARER", "BOT", "DEPLOY", "ENCRYPTION", "GITHUB", "GITLAB", "HF", "LICENSE", "MASTER"}
    | {"OAUTH", "PRIVATE", "REFRESH", "SECURITY", "SESSION", "SHARED", "SIGNING", "SLACK", "SSH", "SUBSCRIPTION", "WANDB"}
)
_FRIENDS = frozenset({"BYPASS", "COMPASS", "HOTKEY", "MONKEY", "OLDPWD", "PWD", "SURPASS", "TURKEY", "UNPASS"})
_ABOUT = frozenset({"ERROR", "EXCEPTION", "WARNING"})  # what a traceback calls KeyError
_PLACES = ("FILE", "PATH", "DIR", "SOCK", "HOME", "FOLDER", "ROOT")


def is_secret(name: str) -> bool:
    """Say whether something is called like a secret; rather one too many."""
    words = _words(name)
    return not _is_friend(name, words) and (_is_certain(words) or any(map(_is_doubtful, words)))


def is_certain(name: str) -> bool:
    """Say whether whatever has this name is a secret: a lone `token`, `key` or `pass` may be a word about models."""
    words = _words(name)
    if _is_friend(name, words):
        return False
    is_qualified = any(before in _QUALIFIERS and _is_doubtful(word) for before, word in pairwise(words))
    return is_qualified or _is_certain(words)


def is_variable(name: str) -> bool:
    """Say whether a name is written like one of the environment: DB_PASS."""
    return name.isupper() and "_" in name


def is_place(name: str) -> bool:
    """Say whether a name tells where something lies, which is not what it says: SSH_AUTH_SOCK, NETRC_PASS_FILE."""
    return name.upper().endswith(_PLACES)


def _words(name: str) -> list[str]:
    return [word.upper() for word in _WORD.findall(name[:200])]


def _is_friend(name: str, words: list[str]) -> bool:
    return name.upper() in _FRIENDS or bool(words and words[-1] in _ABOUT)


def _is_certain(words: list[str]) -> bool:
    return any(word in _CERTAIN or _PARTS.search(word) for word in words)


def _is_doubtful(word: str) -> bool:
    return word in _DOUBTFUL or (word not in _FRIENDS and _ENDS.search(word) is not None)
