"""The one memory of past runs: what is known of the runs in a folder, kept in a file beside them.

It is never the truth, and may be deleted at any time: what it does not hold is read from the runs, and a file of no use is made
again. A tuilab that keeps it in another form has a file of its own, so that neither makes it again and again. Its first line is
the last verdict on each scenario, so that `tuilab list` has it without loading anything slow; the second is an entry for every
run that is over.
"""

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property

from tuilab.files import Unusable, json_as, read_small, replace, sealed, unsealed
from tuilab.runs.last_verdicts import FINAL, Said, by_scenario, needed, runs_in, said_of, spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from tuilab.runs.ledger import Entry
    from tuilab.runs.past_runs import PastRun

_FORMAT = 7  # another number for each other form, and for each other field of an entry
FILE = f".ledger-{_FORMAT}.json"
_LIMIT = 64 * 1024 * 1024


class LedgerCache:
    """One for a folder of runs; the screens share theirs, and several threads ask it: each of its steps is one of a dict."""

    def __init__(self, root: str | os.PathLike[str], *, is_kept: bool = True) -> None:
        self.root = os.fspath(root)
        self._is_kept = is_kept  # else nothing is ever written down
        self._past: dict[str, PastRun] = {}  # of the runs that a lesson tells of
        self.has_news = False  # something was learnt that is worth keeping, and is not kept

    @cached_property
    def _known(self) -> "dict[str, Entry]":
        """By name, of the runs that were looked at; two threads that ask first may each read the file, and one is forgotten."""
        return self._read()[1]

    def entry(self, run_dir: "Path") -> "Entry":
        """Return a line about a run: as it is known where nothing more can happen to it, else as it is now."""
        from tuilab.runs import ledger

        found = self._known.get(run_dir.name)
        return self.look(run_dir) if found is None or ledger.may_change(found, time.time()) else found

    def known(self, run: str) -> "Entry | None":
        """Return a line about a run that is over, if somebody has looked."""
        found = self._known.get(run)
        return found if found and found.is_over else None

    def look(self, run_dir: "Path") -> "Entry":
        """Return a line about a run as it is now."""
        from tuilab.runs import ledger

        found = ledger.read(run_dir)
        if found.is_over and found != self._known.get(found.run):
            self.has_news = True
        self._known[found.run] = found
        return found

    def look_around(self, runs: "Iterable[Path]", patience_s: float) -> None:
        """Look at runs that nobody has looked at, for a little while: what is kept makes the next list complete."""
        until = time.monotonic() + patience_s
        for run_dir in runs:
            if time.monotonic() > until:
                return
            if run_dir.name not in self._known:
                self.look(run_dir)

    def past(self, run_dir: "Path") -> "PastRun":
        """Return a run as a lesson tells of it: as it is known once it is over, else as it is now."""
        from tuilab.runs import ledger, past_runs

        found = self._past.get(run_dir.name)
        if found is None:
            found = past_runs.look(run_dir)
            if not (found.is_going_on or ledger.is_newborn(run_dir.name)):
                self._past[run_dir.name] = found
        return found

    def over(self) -> "dict[str, Entry]":
        """Return what is known of the runs that are over, by name."""
        return {entry.run: entry for entry in list(self._known.values()) if entry.is_over}

    def size(self, runs: Iterable[str]) -> tuple[int, bool]:
        """Return the bytes of runs on disk, as far as they were looked at, and whether all were."""
        found = [self._known.get(run) for run in runs]
        known = [entry.bytes_total for entry in found if entry is not None and entry.bytes_total is not None]
        return sum(known), len(known) == len(found)

    def last_verdicts(self) -> dict[str, str]:
        """Return, by scenario, the worst verdict of the run that speaks for it, or that it failed or runs."""
        return {scenario: said.verdict for scenario, said in self.last_said().items()}

    def last_said(self) -> dict[str, Said]:
        """Return, by scenario, its last verdict, and what was otherwise in that run than usual."""
        kept = self._read_verdicts()
        of_each = {
            scenario: needed(runs, lambda run: kept.get(run) or self._said(run))
            for scenario, runs in by_scenario(runs_in(self.root)).items()
        }
        if missing := {run for runs in of_each.values() for run in runs} - kept.keys():
            if not missing.isdisjoint(self._settled()):
                self.has_news = True
            self.keep()
        return {scenario: spoken(runs) for scenario, runs in of_each.items()}

    def keep(self) -> bool:
        """Write down what was learnt, and say whether that was anything; where it cannot be kept, the next one looks again."""
        has_news, self.has_news = self.has_news and self._is_kept, False
        if has_news:
            with suppress(OSError):
                self._write()
        return has_news

    def _settled(self) -> "dict[str, Entry]":
        """Return those to which nothing more can happen; what cannot be read may be readable for another tuilab."""
        from tuilab.runs import ledger

        now = time.time()
        known = list(self._known.values())
        return {one.run: one for one in known if one.is_over or (one.is_lost and not ledger.may_change(one, now))}

    def _said(self, run: str) -> Said:
        from pathlib import Path

        return said_of(self.entry(Path(self.root, run)))

    def _read_verdicts(self) -> dict[str, Said]:
        """Return the first line of the file: by run, what is said by those that are needed; of a file of no use nothing."""
        with suppress(Unusable):
            return read_small(f"{self.root}/{FILE}", _decode, _LIMIT)[0]
        return {}

    def _read(self) -> "tuple[dict[str, Said], dict[str, Entry]]":
        """Return both lines of the file, the second as the runs that are over, by name; of a file of no use nothing."""
        from tuilab.runs.ledger import Entry

        def decode(data: bytes) -> tuple[dict[str, Said], dict[str, Entry]]:
            verdicts, entries = _decode(data)
            return verdicts, {entry.run: entry for entry in json_as(list[Entry])(entries) if entry.is_over}

        with suppress(Unusable):
            return read_small(f"{self.root}/{FILE}", decode, _LIMIT)
        return {}, {}

    def _write(self) -> None:
        """Replace the file by what it holds, which others learnt, and what is known here, of the runs that are there."""
        import msgspec

        runs = runs_in(self.root)
        verdicts, entries = self._read()
        entries |= self.over()
        kept = [entries[run] for run in runs if run in entries]
        verdicts |= {run: said_of(entry) for run, entry in (entries | self._settled()).items()}
        verdicts = {run: said for some in by_scenario(runs).values() for run, said in needed(some, verdicts.get).items()}
        head = {"verdicts": verdicts}
        replace(f"{self.root}/{FILE}", sealed(json.dumps(head).encode() + b"\n" + msgspec.json.encode(kept)))


def _decode(data: bytes) -> tuple[dict[str, Said], bytes]:
    """Return the verdicts by run, and the entries as they are written."""
    first, _, entries = unsealed(data).partition(b"\n")
    head = json.loads(first)
    verdicts = head.get("verdicts") if isinstance(head, dict) else None
    if not isinstance(verdicts, dict) or not all(map(_is_said, verdicts.values())):
        raise ValueError("it holds no verdicts")
    return {run: Said(*said) for run, said in verdicts.items()}, entries


def _is_said(said: object) -> bool:
    return isinstance(said, list) and len(said) == 2 and all(isinstance(word, str) for word in said) and said[0] in FINAL
