"""Takes secrets out of what a user hands on: values of variables that are called like one, credentials, the home folder."""

import os
import re
from collections.abc import Mapping
from typing import Any

GONE = "(removed)"
_NAMES = re.compile(r"TOKEN|KEY|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|AUTH|DSN", re.I)  # rather one too many
_URL = re.compile(r"(?<=://)[^/\s@\"']+(?=@)")
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)(?P<is>['\"]?\s*[=:]\s*['\"]?)(?P<value>[^\s'\",;&]+)")
_OPTION = re.compile(r"(?P<is>--?(?P<name>[A-Za-z][\w-]*)[= ])(?P<value>[^\s'\"-][^\s'\"]*)")
_SHAPES = re.compile(  # what tokens of well-known services look like, wherever they stand
    r"\b(?:hf_|ghp_|gho_|ghs_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|ASIA|eyJ[\w-]+\.)[\w.-]{8,}|(?<=Bearer )[\w.~+/=-]{8,}"
)
_SHORTEST = 6  # a secret of fewer characters is found everywhere


def is_secret(name: str) -> bool:
    """Say whether a variable or a field is called like something that nobody else should see."""
    return _NAMES.search(name) is not None


def scrub(value: Any, environ: Mapping[str, str] | None = None) -> Any:
    """Return plain data without secrets; the values of this process's secret variables are removed wherever they stand."""
    known = os.environ if environ is None else environ
    secrets = sorted(
        {text for name, text in known.items() if is_secret(name) and len(text) >= _SHORTEST}, key=len, reverse=True
    )
    home = known.get("HOME", "").rstrip("/")
    return _scrub(value, secrets, home if len(home) > 1 else "")


def _scrub(value: Any, secrets: list[str], home: str) -> Any:
    if isinstance(value, dict):
        return {
            _text(str(name), secrets, home): GONE if is_secret(str(name)) and inner else _scrub(inner, secrets, home)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return _list([_scrub(inner, secrets, home) for inner in value])
    return _text(value, secrets, home) if isinstance(value, str) else value


def _list(words: list[Any]) -> list[Any]:
    """Remove the word after an option that is called like a secret: a command line comes as a list."""
    return [GONE if at and _is_secret_option(words[at - 1]) else word for at, word in enumerate(words)]


def _is_secret_option(word: Any) -> bool:
    return isinstance(word, str) and word.startswith("-") and "=" not in word and is_secret(word.lstrip("-").replace("-", "_"))


def _text(text: str, secrets: list[str], home: str) -> str:
    for secret in secrets:
        text = text.replace(secret, GONE)
    text = _SHAPES.sub(GONE, _URL.sub(GONE, text))
    text = _ASSIGNED.sub(_assigned, _OPTION.sub(_assigned_option, text))
    return re.sub(rf"{re.escape(home)}(?=/|$|\W)", "~", text) if home else text


def _assigned(found: re.Match[str]) -> str:
    return f"{found['name']}{found['is']}{GONE}" if is_secret(found["name"]) else found[0]


def _assigned_option(found: re.Match[str]) -> str:
    return f"{found['is']}{GONE}" if is_secret(found["name"].replace("-", "_")) else found[0]
