"""Style sheets that are parsed once for all apps of a session of tests: it was a twentieth of what a test of a screen takes."""

from typing import Any

from textual.css.model import RuleSet
from textual.css.parse import parse

_PARSED: dict[tuple[object, ...], list[RuleSet]] = {}


def parse_once(
    scope: str,
    css: str,
    read_from: tuple[str, str],
    *,
    variable_tokens: dict[str, list[Any]],
    **more: Any,
) -> list[RuleSet]:
    """Return what Textual's `parse` gives for a sheet with the colours of a theme; nothing changes a rule that was parsed."""
    theme = tuple((name, *tokens) for name, tokens in variable_tokens.items())
    key = (scope, css, read_from, theme, *more.items())
    if key not in _PARSED:
        _PARSED[key] = [*parse(scope, css, read_from, variable_tokens=variable_tokens, **more)]
    return _PARSED[key]
