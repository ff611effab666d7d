"""What is to be read can be read: text has a contrast of at least 4.5 to its ground (WCAG AA), in each theme of ours."""

from pathlib import Path

import pytest
from rich.style import Style

from tests.tui.pictures import recorded
from tests.tui.screens import opened, shown
from tests.tui.test_pages import PAGES
from tuilab.tui.looks.themes import OURS
from tuilab.tui.terminal.textual_parts import rendered

LEAST = 4.5
SHOWN = {
    "lab": "Scenarios",
    "history": "took",
    "run": "Output",
    "compare": "Environment",
    "box": "cores",
}

FEW_WORDS = {"queue", "calibrate"}  # a page that says little where nothing waits, or was measured


def luminance(colour: tuple[int, int, int]) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    parts = [
        part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in colour
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(style: Style) -> float:
    """Return the contrast of a style's colour to its ground."""
    assert style.color and style.bgcolor and style.color.triplet and style.bgcolor.triplet
    dark, light = sorted(
        luminance(colour.triplet) for colour in (style.color, style.bgcolor) if colour.triplet
    )
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [theme.name for theme in OURS])
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.first(6)
async def test_text_can_be_read_in_every_theme(
    root: Path, monkeypatch: pytest.MonkeyPatch, theme: str, page: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name in ("tour", "two-repeats"):
        recorded(name, root)
    async with opened(root, *PAGES[page], size=(120, 40), theme=theme) as pilot:
        await shown(pilot, SHOWN.get(page, ""))
        parts = [
            part
            for line in rendered(pilot.app.screen)
            for part in line
            if any(map(str.isalnum, part.text))
        ]

    assert len(parts) > (10 if page in FEW_WORDS else 20)
    assert [
        (part.text, round(contrast(part.style), 2))
        for part in parts
        if part.style and contrast(part.style) < LEAST
    ] == []
