"""Which variables, fields, headers and options are called like something that nobody else should see."""

import re
from functools import lru_cache
from itertools import pairwise

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PARTS = re.compile(r"PASSW|PASSPHRASE|PASSCODE|SECRET|CREDENTIAL|APIKEY|WEBHOOK|COOKIE|HTPASS")
_ENDS = re.compile(
    r".(?:PASS|PWD|KEY|TOKEN|AUTH|CREDS?|DSN|JWT)\Z"
)  # of words run together: PGPASS, AUTHKEY
_CERTAIN = frozenset(
    {
        "BEARER",
        "CRED",
        "CREDS",
        "DSN",
        "JWT",
        "OAUTH",
        "PAT",
        "PFX",
        "PSK",
        "CONNSTR",
        "AUTHORIZATION",
    }
)
_DOUBTFUL = frozenset(
    {
        "AUTH",
        "CONN",
        "KEY",
        "KEYS",
        "LOGIN",
        "OTP",
        "PASS",
        "PIN",
        "SIGNATURE",
        "PW",
        "PWD",
        "SAS",
        "TOKEN",
        "TOKENS",
    }
)
_QUALIFIERS = frozenset(  # what makes a token or a key one that opens a door: a model has tokens and keys, too
    {
        "ACCESS",
        "ACCOUNT",
        "API",
        "AUTH",
        "BEARER",
        "BOT",
        "DEPLOY",
        "ENCRYPTION",
        "GITHUB",
        "GITLAB",
        "HF",
        "LICENSE",
        "MASTER",
    }
    | {
        "OAUTH",
        "PRIVATE",
        "REFRESH",
        "SECURITY",
        "SESSION",
        "SHARED",
        "SIGNING",
        "SLACK",
        "SSH",
        "SUBSCRIPTION",
        "WANDB",
    }
)
_PAIRS = frozenset(  # a code alone is one of errors, and a certificate is public: its key is told by name or form
    {
        (word, "CODE")
        for word in (
            "ACCESS",
            "AUTH",
            "MFA",
            "OTP",
            "PASS",
            "PIN",
            "RECOVERY",
            "SECURITY",
            "VERIFICATION",
        )
    }
    | {("PRIVATE", "CERT"), ("PRIVATE", "CERTIFICATE")}
)
_COUNTED = frozenset({"KEYS", "TOKENS"})
_TYPED = frozenset(
    {"CODE", "CRED", "CREDS", "LOGIN", "OTP", "PASS", "PASSCODE", "PIN", "PSK", "PW", "PWD"}
)
_TYPED_PARTS = re.compile(r"PASSW|PASSPHRASE|PASSCODE|SECRET|CREDENTIAL|HTPASS|.(?:PASS|PWD)\Z")
_FRIENDS = frozenset(
    {"BYPASS", "COMPASS", "HOTKEY", "MONKEY", "OLDPWD", "PWD", "SURPASS", "TURKEY", "UNPASS"}
)
_ABOUT = frozenset(  # what is said about a key or a password and is none: KeyError, password_length, key_name, token_type
    {
        "ERROR",
        "EXCEPTION",
        "WARNING",
        "LENGTH",
        "LEN",
        "COUNT",
        "SIZE",
        "NAME",
        "NAMES",
        "TYPE",
        "TYPES",
    }
)
_KEYS = frozenset({"KEY", "KEYS"})
_OF_MODELS = _KEYS | {"TOKEN", "TOKENS"}
_MODEL_WORDS = (
    frozenset(  # in front of a token of a vocabulary, or a key of a batch, a table or a schedule
        {
            "ADDED",
            "AUDIO",
            "BATCH",
            "BEGIN",
            "BLANK",
            "BOS",
            "BOUNDARY",
            "CACHE",
            "CAPTION",
            "CHAT",
            "CHECKPOINT",
        }
        | {
            "CLASS",
            "CLS",
            "COLUMN",
            "DATA",
            "DATASET",
            "DECODER",
            "DICT",
            "ENCODER",
            "END",
            "EOS",
            "EOT",
            "EXTRA",
        }
        | {
            "FEATURE",
            "FIELD",
            "FILL",
            "FIM",
            "FORCED",
            "FOREIGN",
            "GROUP",
            "IMAGE",
            "IMG",
            "INDEX",
            "INPUT",
            "JSON",
        }
        | {
            "LABEL",
            "LABELS",
            "LOOKUP",
            "LOSS",
            "LR",
            "MASK",
            "METRIC",
            "METRICS",
            "MIDDLE",
            "MONITOR",
            "NESTED",
        }
        | {
            "NEWLINE",
            "OPTIMIZER",
            "OUTPUT",
            "PAD",
            "PADDING",
            "PARTITION",
            "PLACEHOLDER",
            "POSITION",
            "PREFIX",
        }
        | {
            "PRIMARY",
            "PROMPT",
            "QUERY",
            "ROW",
            "SAMPLE",
            "SCHEDULE",
            "SCHEDULER",
            "SCORE",
            "SEP",
            "SEQ",
            "SEQUENCE",
        }
        | {
            "SHARD",
            "SORT",
            "SOT",
            "SPACE",
            "SPECIAL",
            "SRC",
            "START",
            "STATE",
            "STOP",
            "SUFFIX",
            "TARGET",
            "TEXT",
        }
        | {"TGT", "UNK", "VALUE", "VIDEO", "VOCAB", "WEIGHT", "WEIGHTS", "WORD"}
    )
)
_KNOWN = 4096  # a log says the same few names over and over
_PLACES = ("FILE", "PATH", "DIR", "SOCK", "HOME", "FOLDER", "ROOT")


@lru_cache(_KNOWN)
def is_secret(name: str) -> bool:
    """Say whether something is called like a secret; rather one too many."""
    words = _words(name)
    return not _is_friend(name, words) and (_is_certain(words) or any(map(_is_doubtful, words)))


@lru_cache(_KNOWN)
def is_certain(name: str) -> bool:
    """Say whether whatever has this name is a secret: a lone `token`, `key` or `pass` may be a word about models."""
    words = _words(name)
    if _is_friend(name, words):
        return False
    is_qualified = any(
        before in _QUALIFIERS and _is_doubtful(word) for before, word in pairwise(words)
    )
    return is_qualified or _is_certain(words)


@lru_cache(_KNOWN)
def is_counted(name: str) -> bool:
    """Say whether a name is that of tokens or keys of a model, and of nothing that is doubtful besides: max_tokens."""
    doubtful = {word for word in _words(name) if _is_doubtful(word)}
    return bool(doubtful) and doubtful <= _COUNTED and not is_certain(name)


@lru_cache(_KNOWN)
def may_be_of_model(name: str) -> bool:
    """Say whether a name may be that of a token or a key of a model or of data: it says of no door, and of no password."""
    doubtful = {word for word in _words(name) if _is_doubtful(word)}
    if not doubtful or is_certain(name):
        return False
    return doubtful <= (
        _KEYS if is_variable(name) else _OF_MODELS
    )  # a variable with `TOKEN` mostly opens a door


@lru_cache(_KNOWN)
def is_of_model(name: str) -> bool:
    """Say whether a name says which token or key of a model or of data it is: pad_token, lr-key, LR_KEY, special_tokens.

    A `key` that says no more counts, too: tools that ask for a secret name the door, as `--api-key` does.
    """
    if not may_be_of_model(name):
        return False
    words = _words(name)
    return words in (["KEY"], ["KEYS"]) or not _MODEL_WORDS.isdisjoint(words)


@lru_cache(_KNOWN)
def is_token(name: str) -> bool:
    """Say whether a name ends with `token`, and does not say that it is one of a model: token, raw_token."""
    return _words(name)[-1:] == ["TOKEN"] and not is_of_model(name)


@lru_cache(_KNOWN)
def is_typed(name: str) -> bool:
    """Say whether what has this name is made up by people, who also take digits: a password or a PIN, and no token."""
    return any(word in _TYPED or _TYPED_PARTS.search(word) for word in _words(name))


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
    return any(word in _CERTAIN or _PARTS.search(word) for word in words) or not _PAIRS.isdisjoint(
        pairwise(words)
    )


def _is_doubtful(word: str) -> bool:
    return word in _DOUBTFUL or (word not in _FRIENDS and _ENDS.search(word) is not None)
