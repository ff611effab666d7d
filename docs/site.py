"""Lays out the pages of the site, so that a site builder finds them.

    python docs/site.py           links every page and its pictures into .pages/
    mkdocs build --strict         builds the site from .pages/ into site/; `zensical build` does the same

Pages link to each other across the whole repository, for example from `docs/index.md` to `../README.md`. A code host
follows such links. A site builder reads one folder, which cannot be the root of the repository. So `.pages/` repeats the
layout of the repository, with a symbolic link for each file of the site. Every link between pages is then valid on both
sides, and no page is changed.
"""

import shutil
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
# The files of the site: all pages, and what they show or link to. Zensical follows links to files, but not to folders.
PATTERNS = [
    "*.md",
    "docs/**/*.md",
    "docs/**/*.svg",
    "docs/**/*.png",
    "docs/assets/*",
    "examples/*",
    "benchmarks/**/*.md",
]


def lay_out(folder: Path) -> None:
    """Replace the folder by one that has a link for each file of the site."""
    shutil.rmtree(folder, ignore_errors=True)
    for pattern in PATTERNS:
        for path in CHECKOUT.glob(pattern):
            link = folder / path.relative_to(CHECKOUT)
            if path.is_file() and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / ".pages")
