"""One page of what was seen on a GPU: tests note their numbers, and the last one writes them down."""

from collections.abc import Mapping


class Page:
    """Numbers by section, in the order in which they were noted."""

    def __init__(self) -> None:
        self._sections: dict[str, dict[str, str]] = {}

    def note(self, section: str, name: str, value: object) -> None:
        self._sections.setdefault(section, {})[name] = (
            f"{value:.4g}" if isinstance(value, float) else str(value)
        )

    def text(self, title: str) -> str:
        """Return the page as Markdown."""
        parts = [f"# {title}", *(_section(name, rows) for name, rows in self._sections.items())]
        return "\n\n".join(parts) + "\n"


def _section(name: str, rows: Mapping[str, str]) -> str:
    width = max(map(len, rows), default=0)
    return "\n".join(
        [f"## {name}", "", *(f"    {row.ljust(width)}  {value}" for row, value in rows.items())]
    )
