"""Names in files for programs: whole, safe to show, and never two that become one."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from tuilab.reports.reported_run import ReportedRun
from tuilab.text.display import show

_DIGITS = 10
_MARKED = re.compile(
    rf"[#-][0-9a-f]{{{_DIGITS}}}\Z"
)  # what a name ends in that was not written as it is


def whole(name: str) -> str:
    """Return a name as one safe line, however long; one that cannot be shown as it is ends in a digest of it.

    Spaces at its ends, and several in a row, are what tools drop.
    """
    return marked(" ".join(show(name, len(name) + 1).split()), name, " #")


def marked(shown: str, name: str, mark: str) -> str:
    """Return how a name is written: as it is shown where that is all of it, otherwise with a digest of it behind a mark."""
    if shown == name and not _MARKED.search(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{shown}{mark}{digest}".strip()


def names_of(subjects: Sequence[ReportedRun]) -> list[str]:
    """Return what each run is called in one file: its scenario, of several runs of one its id, too, and of copies a number."""
    often = Counter(subject.name for subject in subjects)
    names = [
        subject.name if often[subject.name] == 1 else f"{subject.name} {subject.id}"
        for subject in subjects
    ]
    return [
        f"{name} ({names[:at].count(name) + 1})" if name in names[:at] else name
        for at, name in enumerate(names)
    ]
