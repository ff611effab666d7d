"""The one memory of past runs: what is known of the runs in a folder, kept in a file beside them.

It is never the truth, and may be deleted at any time: what it does not hold is read from the runs, and a file of no use is made
again. A tuilab that keeps it in another form has a file of its own, so that neither makes it again and again.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from tuilab.runs.last_verdicts import Said, by_scenario, needed, runs_in, said_of, spoken
from tuilab.runs.listing import ledger_file

if TYPE_CHECKING:
    from pathlib import Path

    from tuilab.runs.listing.entry import Entry
    from tuilab.runs.listing.ledger_file import Rows
    from tuilab.runs.past_runs import PastRun


class LedgerCache:
    """One for a folder of runs; the screens share theirs, and several threads ask it: each of its steps is one of a dict."""

    def __init__(self, root: str | os.PathLike[str], *, is_kept: bool = True) -> None:
        self.root = os.fspath(root)
        self._is_kept = is_kept  # else nothing is ever written down
        self._known: dict[str, Entry] = {}  # by name, of the runs that were asked for
        self._past: dict[str, PastRun] = {}  # of the runs that a lesson tells of
        self.has_news = False  # something was learnt that is worth keeping, and is not kept

    @cached_property
    def _kept(self) -> "Rows":
        """What the file holds; two threads that ask first may each read it, and one is forgotten."""
        return ledger_file.read_rows(self.root)

    def _find(self, run: str) -> "Entry | None":
        """Return a line about a run that was looked at, now or by whoever kept it."""
        found = self._known.get(run) or self._kept.entry(run)
        if found is not None:
            self._known.setdefault(run, found)
        return found

    def entry(self, run_dir: "Path") -> "Entry":
        """Return a line about a run: as it is known where nothing more can happen to it, else as it is now."""
        from tuilab.runs.listing.entry import may_change

        found = self._find(run_dir.name)
        return self.look(run_dir) if found is None or may_change(found, time.time()) else found

    def known(self, run: str) -> "Entry | None":
        """Return a line about a run that is over, if somebody has looked."""
        found = self._find(run)
        return found if found and found.is_over else None

    def named(self, run: str) -> "Entry":
        """Return the same about a run of this folder, by its name."""
        from tuilab.runs.listing.entry import may_change

        found = self._find(run)
        return self._look_at(run) if found is None or may_change(found, time.time()) else found

    def look(self, run_dir: str | os.PathLike[str]) -> "Entry":
        """Return a line about a run as it is now."""
        from tuilab.runs import ledger

        found = ledger.read(run_dir)
        if found.is_over and found != self._find(found.run):
            self.has_news = True
        self._known[found.run] = found
        return found

    def look_around(self, runs: Iterable[str], patience_s: float) -> None:
        """Look at runs that nobody has looked at, for a little while: what is kept makes the next list complete."""
        until = time.monotonic() + patience_s
        for run in runs:
            if run not in self._known and run not in self._kept.places:
                if time.monotonic() > until:
                    return
                self._look_at(run)

    def past(self, run_dir: "Path") -> "PastRun":
        """Return a run as a lesson tells of it: as it is known once it is over, else as it is now."""
        from tuilab.runs import past_runs
        from tuilab.runs.listing.entry import is_newborn

        found = self._past.get(run_dir.name)
        if found is None:
            found = past_runs.look(run_dir)
            if not (found.is_going_on or is_newborn(run_dir.name)):
                self._past[run_dir.name] = found
        return found

    def over(self) -> "dict[str, Entry]":
        """Return what is known of the runs that are over, by name."""
        return {run: found for run in [*self._kept.places, *self._known] if (found := self.known(run))}

    def size(self, runs: Iterable[str]) -> tuple[int, bool]:
        """Return the bytes of runs on disk, as far as they were looked at, and whether all were."""
        found = [self._known[run].bytes_total if run in self._known else self._kept.sizes.get(run) for run in runs]
        known = [size for size in found if size is not None]
        return sum(known), len(known) == len(found)

    def last_verdicts(self) -> dict[str, str]:
        """Return, by scenario, the worst verdict of the run that speaks for it, or that it failed or runs."""
        return {scenario: said.verdict for scenario, said in self.last_said().items()}

    def last_said(self) -> dict[str, Said]:
        """Return, by scenario, its last verdict, and what was otherwise in that run than usual."""
        kept = ledger_file.read_verdicts(self.root)
        of_each = {
            scenario: needed(runs, lambda run: kept.get(run) or said_of(self.named(run)))
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

    def _look_at(self, run: str) -> "Entry":
        return self.look(os.path.join(self.root, run))

    def _settled(self) -> "dict[str, Entry]":
        """Return those to which nothing more can happen; what cannot be read may be readable for another tuilab."""
        from tuilab.runs.listing.entry import may_change

        now = time.time()
        known = list(self._known.values())
        return {one.run: one for one in known if one.is_over or (one.is_lost and not may_change(one, now))}

    def _write(self) -> None:
        """Replace the file by what it holds, which others learnt, and what is known here, of the runs that are there."""
        verdicts, kept, settled = ledger_file.read_verdicts(self.root), ledger_file.read_rows(self.root), self._settled()

        def said(run: str) -> Said | None:
            if run in settled:
                return said_of(settled[run])
            return verdicts.get(run) or (said_of(found) if (found := kept.entry(run)) else None)

        runs = runs_in(self.root)
        spoken_for = {run: one for some in by_scenario(runs).values() for run, one in needed(some, said).items()}
        over = {run: (ledger_file.row_of(one), one.bytes_total) for run, one in settled.items() if one.is_over}
        rows = {run: over.get(run) or (kept.row(run), kept.sizes[run]) for run in runs if run in over or run in kept.places}
        ledger_file.write(self.root, spoken_for, rows)
