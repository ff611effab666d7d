"""The styles of the roles of a drawing in each theme.

A role is what a piece of a drawing is, such as an axis or the line of an arm; an arm is one of the
variants that are compared.

The styles are not in a style sheet: every chart would match its rules again for every role whenever
it is mounted, which took longer than drawing it. The colours of arms can be told apart with every
kind of colour vision (after Okabe and Ito), and never carry meaning alone.
"""

from collections.abc import Mapping, Sequence

from rich.style import Style
from textual.color import Color

from tuilab.drawings.picture import ARMS, ROLES, TONES

_ARMS_ON_DARK = ("#6ab7f5", "#f0a040", "#3fc9a0", "#e391c8", "#efe25a", "#ff7d55")
_ARMS_ON_LIGHT = ("#0062b8", "#a85800", "#007a5c", "#a8327e", "#746800", "#c23a10")
_ANSI_ARMS_ON_DARK = ("cyan", "yellow", "green", "magenta", "blue", "red")
_ANSI_ARMS_ON_LIGHT = ("blue", "magenta", "green", "cyan", "red", "yellow")
_TONE_COLOURS = (
    "#440154",
    "#46327e",
    "#365c8d",
    "#277f8e",
    "#1fa187",
    "#4ac16d",
    "#a0da39",
    "#fde725",
)
# Shares of the foreground, blended into the background.
_SHADES = {
    "axis": 0.35,
    "band": 0.3,
    "grid": 0.2,
    "label": 0.68,
    "muted": 0.68,
    "other": 0.45,
    "raw": 0.3,
}
_THEME_VARIABLES = {"bad": "text-error", "cursor": "text-accent", "guide": "text-warning"}
_BOLD = frozenset({"bad", "cursor", "title"})


def theme_styles(
    background: Color, variables: Mapping[str, str], *, is_dark: bool
) -> dict[str, Style]:
    """Return the style of each role on a background, in one of our themes."""
    foreground = Color.parse(variables["foreground"])
    arm_colours = _ARMS_ON_DARK if is_dark else _ARMS_ON_LIGHT
    colours = {}
    for role, spec in _arm_and_tone_colours(arm_colours).items():
        colours[role] = Color.parse(spec)
    for role, share in _SHADES.items():
        colours[role] = background.blend(foreground, share)
    for role, name in _THEME_VARIABLES.items():
        colours[role] = Color.parse(variables[name])
    styles = {}
    for role in ROLES:
        colour = colours.get(role, foreground).rich_color
        bold = role in _BOLD or None  # None leaves the attribute as it is
        styles[role] = Style(color=colour, bold=bold)
    return styles


def ansi_styles(*, is_dark: bool) -> dict[str, Style]:
    """Return the style of each role in the terminal's own colours."""
    arm_colours = _ANSI_ARMS_ON_DARK if is_dark else _ANSI_ARMS_ON_LIGHT
    colours = _arm_and_tone_colours(arm_colours)
    colours["bad"] = "red"
    colours["guide"] = "yellow" if is_dark else "magenta"
    styles = {}
    for role in ROLES:
        colour = colours.get(role, "default")
        bold = role in _BOLD or None  # None leaves the attribute as it is
        dim = role in _SHADES or None
        styles[role] = Style(color=colour, bold=bold, dim=dim)
    return styles


def _arm_and_tone_colours(arm_colours: Sequence[str]) -> dict[str, str]:
    """Return the colours of arms and tones by role."""
    colours = dict(zip(ARMS, arm_colours, strict=True))
    colours.update(zip(TONES, _TONE_COLOURS, strict=True))
    return colours
