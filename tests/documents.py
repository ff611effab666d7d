"""Read the documents: pages, their blocks, the commands in the blocks, and links.

A block of `sh` is a session: a test types its commands, one after another. A block of `console`
shows commands after `$` and what they once printed. The commands of the tutorial, and of the guide
to scenarios, also form one session each. tests/fleet types the blocks that need a Ray cluster.
`.ci/run` types the indented commands, or a list gives the reason why nobody does.
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
# A command, after variables of its own and the folder of the environment.
_TUILAB_LINE = re.compile(r"\s*(?:\w+=\S+ )?(?:\.venv/bin/)?(tuilab(?: .*)?)$")
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
        if self.language != "sh":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return [without_comment(line) for line in lines if line.strip()]

    @property
    def has_commands(self) -> bool:
        return self.language in ("sh", "console")

    @property
    def needs_cluster(self) -> bool:
        """Whether a command of it runs on a Ray cluster."""
        return any("--engine ray" in command for command in self.commands())


def blocks() -> list[Block]:
    """Return the fenced blocks of all pages."""
    every: list[Block] = []
    for page in PAGES:
        every += blocks_of(page)
    return every


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for number, (indent, language, text) in enumerate(_FENCE.findall(page.read_text()), 1):
        yield Block(page.name, number, language, re.sub(f"(?m)^{indent}", "", text))


def joined(page: str) -> Block:
    """Return the `sh` blocks of a page as one session: each block builds on those before it."""
    texts = []
    for block in blocks():
        if block.page == page and block.language == "sh" and not block.needs_cluster:
            texts.append(block.text)
    return Block(page, 0, "sh", "".join(texts))


def sessions_on_a_cluster() -> list[Block]:
    """Return the blocks of commands that need a Ray cluster."""
    return [block for block in blocks() if block.has_commands and block.needs_cluster]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def indented(page: Path) -> list[str]:
    """Return the indented commands that stand below an empty line, and not in a list."""
    return re.findall(r"(?<=\n\n)    (\S.*)", prose(page))


def links(page: Path) -> list[str]:
    """Return the links of a page to files of this checkout, with the heading behind # if any."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in targets if "://" not in target]


def anchors(page: Path) -> set[str]:
    """Return the names of the headings of a page in links."""
    names = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        letters = re.sub(r"[^\w\- ]", "", heading.lower())
        names.add(letters.replace(" ", "-"))
    return names


def lines_of_tuilab(page: Path) -> list[str]:
    """Return every command line of tuilab that a page shows: in blocks, indented and in the text."""
    shown = [*_commands_in_blocks(page), *indented(page)]
    shown += re.findall(r"`([^`\n]+)`", prose(page))
    lines = []
    for line in shown:
        for command in re.split(r"\||&&|;|\$\(", line):
            if match := _TUILAB_LINE.match(command.strip()):
                lines.append(match[1])
    return lines


def _commands_in_blocks(page: Path) -> list[str]:
    commands = []
    for block in blocks_of(page):
        if block.has_commands:
            commands += block.commands()
    return commands


def without_comment(line: str) -> str:
    """Return a line of a shell without the comment behind it."""
    return re.sub(r"\s+# .*$", "", line).strip()


def words(line: str) -> list[str]:
    """Return the words of a command line. Placeholders such as `[NAME...]` are words as well."""
    return shlex.split(line)


def python_file(page: Path) -> str:
    """Return the Python blocks of a page as one file, as a reader of a guide writes them."""
    return "\n".join(block.text for block in blocks_of(page) if block.language == "python")


def whole(page: Path) -> Block:
    """Return all `console` commands of a page as one session, as the reader of a tutorial types."""
    lines = []
    for block in blocks_of(page):
        if block.language == "console":
            lines += [f"{command}\n" for command in block.commands()]
    return Block(page.name, 0, "sh", "".join(lines))
