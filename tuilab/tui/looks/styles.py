"""What the roles of a drawing look like in each theme.

Not in a style sheet: every chart would match its rules again for every role whenever it is mounted, which took longer than
drawing it. Colours of arms are told apart by every kind of colour vision (after Okabe and Ito), and never carry meaning alone.
"""

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color

from tuilab.drawings.picture import ARMS, ROLES, TONES

_ON_DARK = dict(
    zip(ARMS, ("#6ab7f5", "#f0a040", "#3fc9a0", "#e391c8", "#efe25a", "#ff7d55"), strict=True)
)
_ON_LIGHT = dict(
    zip(ARMS, ("#0062b8", "#a85800", "#007a5c", "#a8327e", "#746800", "#c23a10"), strict=True)
)
_OWN_ON_DARK = dict(zip(ARMS, ("cyan", "yellow", "green", "magenta", "blue", "red"), strict=True))
_OWN_ON_LIGHT = dict(zip(ARMS, ("blue", "magenta", "green", "cyan", "red", "yellow"), strict=True))
_TONES = dict(
    zip(
        TONES,
        ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"),
        strict=True,
    )
)
_SHADES = {
    "axis": 0.35,
    "band": 0.3,
    "grid": 0.2,
    "label": 0.68,
    "muted": 0.68,
    "other": 0.45,
    "raw": 0.3,
}  # of the foreground
_NAMED = {"bad": "text-error", "cursor": "text-accent", "guide": "text-warning"}  # by the theme
_BOLD = frozenset({"bad", "cursor", "title"})


def looks_on(background: Color, variables: Mapping[str, str], *, is_dark: bool) -> dict[str, Style]:
    """Return the style of each role on a background, in a theme of our own."""
    foreground = Color.parse(variables["foreground"])
    colours = {
        role: Color.parse(spec)
        for role, spec in {**(_ON_DARK if is_dark else _ON_LIGHT), **_TONES}.items()
    }
    colours |= {role: background.blend(foreground, share) for role, share in _SHADES.items()}
    colours |= {role: Color.parse(variables[name]) for role, name in _NAMED.items()}
    return {
        role: Style(color=colours.get(role, foreground).rich_color, bold=role in _BOLD or None)
        for role in ROLES
    }


def own_looks(*, is_dark: bool) -> dict[str, Style]:
    """Return the style of each role in the terminal's own colours."""
    colours = {**(_OWN_ON_DARK if is_dark else _OWN_ON_LIGHT), **_TONES, "bad": "red"}
    colours["guide"] = "yellow" if is_dark else "magenta"
    return {
        role: Style(
            color=colours.get(role, "default"),
            bold=role in _BOLD or None,
            dim=role in _SHADES or None,
        )
        for role in ROLES
    }
