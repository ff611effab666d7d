"""What is known of the runs in a folder, as far as somebody has looked: at once their names, then what happened in them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

from tuilab.runs.beside.baseline import TAG
from tuilab.runs.filters import Filter, values_of, words_of
from tuilab.runs.listing.entry import Entry, from_name, may_change
from tuilab.runs.notes import Notes

_PORTION = 200  # runs that are read at a time, at most
_NO_NOTES = Notes()


class KnownRuns:
    """Entries by the name of the run's folder, the newest first."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.notes: Mapping[str, Notes] = {}  # of those that have any
        self.is_listed = False
        self._unread: dict[str, None] = {}
        self._sizes: dict[str, int] = {}
        self._words: dict[str, str] = {}  # what a filter looks at, of entries that were read

    def take_list(self, runs: Sequence[str], remembered: Mapping[str, Entry], notes: Mapping[str, Notes]) -> None:
        """Take in which runs there are."""
        self.is_listed = True
        known = {**remembered, **self.entries}
        self.entries = {run: known.get(run) or from_name(run) for run in runs}
        self._unread = {run: None for run, entry in self.entries.items() if not entry.is_read}
        self._sizes = {run: entry.bytes_total for run, entry in self.entries.items() if entry.bytes_total is not None}
        for run in {*self.notes, *notes}:
            self._words.pop(run, None)
        self.notes = notes

    def take(self, entries: Iterable[Entry]) -> set[str]:
        """Take in what was learnt of some runs; return those of which it is something else than before."""
        changed = [entry for entry in entries if entry.run in self.entries and entry != self.entries[entry.run]]
        for entry in changed:
            self.entries[entry.run] = entry
            self._words.pop(entry.run, None)
            self._unread.pop(entry.run, None)
            self._sizes.pop(entry.run, None)
            if entry.bytes_total is not None:
                self._sizes[entry.run] = entry.bytes_total
        return {entry.run for entry in changed}

    def to_read(self, first: Iterable[str], seen: Sequence[str]) -> list[str]:
        """Return the runs to be read next: some that were asked for, those that are seen, then the others."""
        return list(dict.fromkeys([*first, *(run for run in seen if run in self._unread), *islice(self._unread, _PORTION)]))

    def going_on(self, now_s: float) -> list[str]:
        """Return the runs that may be otherwise when they are looked at again."""
        return [entry.run for entry in self.entries.values() if may_change(entry, now_s)]

    def wanted(self, wanted: Filter) -> list[str]:
        """Return the runs that a filter leaves."""
        return [
            run
            for run, entry in self.entries.items()
            if wanted.matches(entry, self.notes_of(run), partial(self._words_of, run))
        ]

    @property
    def values(self) -> Mapping[str, Sequence[str]]:
        """What the runs have of that which a filter may ask for, by its keys."""
        return {**values_of(self.entries.values()), "tag": self.tags}

    @property
    def tags(self) -> list[str]:
        """The tags that runs have."""
        return sorted({tag for notes in self.notes.values() for tag in notes.tags})

    def notes_of(self, run: str) -> Notes:
        """Return what people wrote about a run."""
        return self.notes.get(run, _NO_NOTES)

    @property
    def unread(self) -> int:
        """How many runs nobody has looked at yet."""
        return len(self._unread)

    @property
    def bytes_known(self) -> int:
        """The bytes of the runs on disk, of those that were looked at."""
        return sum(self._sizes.values())

    @property
    def sized(self) -> int:
        """Of how many runs the bytes are known."""
        return len(self._sizes)

    def to_compare(self, marked: Sequence[str], chosen: str) -> list[str]:
        """Return the marked runs, a single one with the chosen; else a run and the one of its scenario to hold it against."""
        runs = list(dict.fromkeys([*marked, *([chosen] if len(marked) == 1 and chosen else [])]))
        if len(runs) > 1:
            return runs
        run = next(iter(runs), chosen)
        other = self.other_of_scenario(run) if run in self.entries else ""
        return [other, run] if other else []

    def other_of_scenario(self, run: str) -> str:
        """Return the baseline of a run's scenario, else its newest other run; nothing when there is none."""
        scenario = self.entries[run].scenario
        others = [one for one, entry in self.entries.items() if entry.scenario == scenario and one != run]
        return next((one for one in others if TAG in self.notes_of(one).tags), next(iter(others), ""))

    def _words_of(self, run: str) -> str:
        found = self._words.get(run, "")
        if not found:
            entry = self.entries[run]
            found = words_of(entry, self.notes_of(run))
            if entry.is_read:
                self._words[run] = found
        return found
