"""Answers what is asked most often before anything is loaded that parses words: that takes longer than the answer."""

import os

from tuilab import __version__, language, places
from tuilab.cli import front_page


def answer(argv: list[str]) -> bool:
    """Print the answer, and say whether this was such a question."""
    if argv in (["--help"], ["-h"]):
        print(front_page.page())
    elif argv == ["--version"]:
        print(f"tuilab {__version__}")
    elif argv == ["list"] and not os.environ.get("TUILAB_LANG") and language.chosen() == language.ENGLISH:
        from tuilab.catalogue import catalog
        from tuilab.cli import listing

        listing.tell(*catalog.listed())
    elif argv == ["runs"]:
        from tuilab import places
        from tuilab.cli import run_list

        print(run_list.newest(places.runs_folder().rstrip("/") or "/"))
    elif not argv and "_TUILAB_COMPLETE" in os.environ:
        from tuilab.cli import offers

        return offers.answer()
    else:
        return False
    return True


def screens(argv: list[str]) -> int | None:
    """Open the screens where nothing more is said, and return the exit code; None where there are words, or no terminal."""
    if argv or os.environ.get("TUILAB_LANG"):
        return None
    from tuilab import config, tui

    if tui.why_not():
        return None
    from pathlib import Path

    return tui.start(Path(places.runs_folder()), fps=config.fps())
