"""One page of results on a GPU: tests note their numbers, and the last test writes the page."""

from collections.abc import Mapping


class Page:
    """Numbers by section, in the order in which they were noted."""

    def __init__(self) -> None:
        self._sections: dict[str, dict[str, str]] = {}

    def note(self, section: str, name: str, value: object) -> None:
        """Note a value."""
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        self._sections.setdefault(section, {})[name] = text

    def text(self, title: str) -> str:
        """Return the page as Markdown."""
        parts = [f"# {title}"]
        for name, rows in self._sections.items():
            parts.append(_section(name, rows))
        return "\n\n".join(parts) + "\n"


def _section(name: str, rows: Mapping[str, str]) -> str:
    width = max(map(len, rows), default=0)
    lines = [f"## {name}", ""]
    for row, value in rows.items():
        lines.append(f"    {row.ljust(width)}  {value}")
    return "\n".join(lines)
