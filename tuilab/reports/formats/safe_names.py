"""Write names into files for programs: in full, safe to show, and never two names as one."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from tuilab.reports.reported_run import ReportedRun
from tuilab.text.display import show

_DIGEST_LENGTH = 10
_ENDS_IN_DIGEST = re.compile(rf"[#-][0-9a-f]{{{_DIGEST_LENGTH}}}\Z")


def safe_name(name: str) -> str:
    """Return a name as one safe line, however long. If it had to be changed, a digest follows.

    Spaces at the ends and repeated spaces count as a change, because tools drop them.
    """
    shown = show(name, len(name) + 1)
    return add_digest(" ".join(shown.split()), name, " #")


def add_digest(shown: str, name: str, mark: str) -> str:
    """Return `shown`, followed by a mark and the digest of the name unless it is the name.

    A name that looks as if it ended in a digest gets one as well.
    """
    if shown == name and not _ENDS_IN_DIGEST.search(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{shown}{mark}{digest[:_DIGEST_LENGTH]}".strip()


def distinct_names(subjects: Sequence[ReportedRun]) -> list[str]:
    """Return a name for each run of a file: its scenario.

    Several runs of one scenario have their id as well, and copies of a run are numbered.
    """
    runs_of_name = Counter(subject.name for subject in subjects)
    copies = Counter[str]()
    names = []
    for subject in subjects:
        name = subject.name
        if runs_of_name[name] > 1:
            name = f"{name} {subject.id}"
        copies[name] += 1
        if copies[name] > 1:
            name = f"{name} ({copies[name]})"
        names.append(name)
    return names
