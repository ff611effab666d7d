"""The documents as tests read them: pages, their blocks, the commands in these, and links.

A block of `sh` is a session: a test types its commands, one after another. A block of `console` shows what was typed after `$`
and what came of it once; the commands of the tutorial, and of the guide to scenarios, also form one session each. tests/fleet
types the blocks that need a Ray cluster. `.ci/run` types the indented commands, or a list gives the reason why nobody does.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import CHECKOUT

MANUAL = sorted((CHECKOUT / "docs").rglob("*.md"))
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *MANUAL]
LANGUAGES = {"sh", "console", "text", "python", "toml"}
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    number: int  # in its page, from 1
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{Path(self.page).stem}-{self.number}"

    def commands(self) -> list[str]:
        """Return what is typed, without the comments."""
        lines = self.text.splitlines()
        typed = (
            lines
            if self.language == "sh"
            else [line[2:] for line in lines if line.startswith("$ ")]
        )
        return [without_comment(line) for line in typed if line.strip()]

    @property
    def needs_cluster(self) -> bool:
        """Whether a command of it runs on a Ray cluster."""
        return any("--engine ray" in command for command in self.commands())


def blocks() -> list[Block]:
    """Return the fenced blocks of all pages."""
    return [block for page in PAGES for block in blocks_of(page)]


def blocks_of(page: Path) -> Iterator[Block]:
    for number, (indent, language, text) in enumerate(_FENCE.findall(page.read_text()), 1):
        yield Block(page.name, number, language, re.sub(f"(?m)^{indent}", "", text))


def joined(page: str) -> Block:
    """Return the `sh` blocks of a page as one session, for a page whose blocks build on those before them."""
    found = [
        block
        for block in blocks()
        if block.page == page and block.language == "sh" and not block.needs_cluster
    ]
    return Block(page, 0, "sh", "".join(block.text for block in found))


def sessions_on_a_cluster() -> list[Block]:
    """Return the blocks of commands that need a Ray cluster."""
    return [
        block for block in blocks() if block.language in ("sh", "console") and block.needs_cluster
    ]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def indented(page: Path) -> list[str]:
    """Return the commands that stand indented, as the set-up of the README does: below an empty line, and in no list."""
    return re.findall(r"(?<=\n\n)    (\S.*)", prose(page))


def links(page: Path) -> list[str]:
    """Return where a page points to in this checkout: files, with the heading behind # if there is one."""
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """Return what the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def lines_of_tuilab(page: Path) -> list[str]:
    """Return every command line of tuilab that a page shows: in blocks, indented and in the text."""
    in_blocks = [
        command
        for block in blocks_of(page)
        if block.language in ("sh", "console")
        for command in block.commands()
    ]
    in_text = re.findall(r"`([^`\n]+)`", prose(page))
    parts = [
        part
        for line in [*in_blocks, *indented(page), *in_text]
        for part in re.split(r"\||&&|;|\$\(", line)
    ]
    return [
        found[1]
        for part in parts
        if (found := re.match(r"\s*(?:\w+=\S+ )?(?:\.venv/bin/)?(tuilab(?: .*)?)$", part.strip()))
    ]


def without_comment(line: str) -> str:
    """Return a line of a shell without the comment behind it."""
    return re.sub(r"\s+# .*$", "", line).strip()


def words(line: str) -> list[str]:
    """Return the words of a command line; what is left open in it (`[NAME...]`, `...`) are words like others."""
    return shlex.split(line)


def python_file(page: Path) -> str:
    """Return the Python blocks of a page as one file, as a reader of a guide writes them."""
    return "\n".join(block.text for block in blocks_of(page) if block.language == "python")


def whole(page: Path) -> Block:
    """Return all `console` commands of a page as one session, as a reader of a tutorial types them."""
    commands = [
        command
        for block in blocks_of(page)
        if block.language == "console"
        for command in block.commands()
    ]
    return Block(page.name, 0, "sh", "".join(f"{command}\n" for command in commands))
