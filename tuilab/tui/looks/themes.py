"""The themes: dark, light, one for red-green colour blindness, and the terminal's own colours."""

from textual.theme import Theme

_DARK = Theme(
    name="tuilab-dark",
    primary="#7aa2f7",
    secondary="#7dcfff",
    accent="#e0af68",
    foreground="#c8d0e8",
    background="#11131c",
    surface="#171a26",
    panel="#202434",
    success="#9ece6a",
    warning="#e0af68",
    error="#f7768e",
    dark=True,
    variables={
        "text-muted": "#8d95b0",
        "border": "#3b4261",
        "border-blurred": "#2c3148",
        "block-cursor-text-style": "none",
    },
)
_LIGHT = Theme(
    name="tuilab-light",
    primary="#2456b8",
    secondary="#0b6e8a",
    accent="#8a5a00",
    foreground="#1d2433",
    background="#fafafa",
    surface="#f1f2f5",
    panel="#e4e7ee",
    success="#2c6e1f",
    warning="#8a5a00",
    error="#b3213c",
    dark=False,
    variables={
        "text-muted": "#59617a",
        "border": "#a8b0c4",
        "border-blurred": "#cfd5e2",
        "block-cursor-text-style": "none",
    },
)
_COLOUR_BLIND = Theme(  # after Okabe and Ito: blue and orange, never red against green
    name="tuilab-colour-blind",
    primary="#56b4e9",
    secondary="#f0e442",
    accent="#e69f00",
    foreground="#d8dce6",
    background="#101216",
    surface="#171a20",
    panel="#22262e",
    success="#56b4e9",
    warning="#f0e442",
    error="#e69f00",
    dark=True,
    variables={
        "text-muted": "#9aa1b0",
        "border": "#4a5160",
        "border-blurred": "#333945",
        "block-cursor-text-style": "none",
    },
)
OURS = (_DARK, _LIGHT, _COLOUR_BLIND)
_ANSI = ("ansi-dark", "ansi-light")  # with the terminal's own colours
NAMES = (*(theme.name for theme in OURS), *_ANSI)
