"""Short texts that a scenario shows."""

from tuilab.lab.given import words
from tuilab.record.events import TextShown

_LIMIT = 8_000  # characters


def text_shown(text: str, title: str) -> TextShown:
    """Return the record of a text; of a long one its beginning, and how much is missing."""
    text = words("text", text)
    if len(text) > _LIMIT:
        text = text[:_LIMIT] + f"\n… {len(text) - _LIMIT} characters more"
    return TextShown(text=text, title=title)
