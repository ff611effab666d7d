"""Parse each style sheet once for all apps of a session: parsing took 5 % of a test of a screen."""

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
    """Return the rules of a sheet with the colours of a theme, as Textual's `parse` does.

    All apps share the rules: Textual does not change a rule that it has parsed.
    """
    theme = tuple((name, *tokens) for name, tokens in variable_tokens.items())
    key = (scope, css, read_from, theme, *more.items())
    if key not in _PARSED:
        _PARSED[key] = [*parse(scope, css, read_from, variable_tokens=variable_tokens, **more)]
    return _PARSED[key]
