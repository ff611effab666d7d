"""What is private in a run, taken out of it before it is handed on: into a report, or an archive.

Secrets go from every text of a record, wherever it stands; numbers, and the names of kinds and streams, stay. Equal texts stay
equal, so that what belongs together still does. A record whose parts no longer fit each other is left out, and said to be.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from tuilab.catalogue.scenario import Scenario
from tuilab.record.events import Logged, OutputCaptured
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.origin.taken_out import SOURCE
from tuilab.record.secrets import name_of, without, without_places
from tuilab.scrub import scrubber
from tuilab.scrub.source import clean_source
from tuilab.text.display import GONE, join, plural, show

_SOURCE = "scenario.py"
_PLACES = {  # what people call the records in which secrets stand
    "run_started": "parameters and command",
    "run_described": "parameters and command",
    "worker_started": "environment",
    "environment_recorded": "environment",
    "scenario_failed": "failure",
    "state_changed": "failure",
    "text_shown": "texts",
    "logged": "names of values",
    "claim_measured": "claims",
    "notes.jsonl": "notes",
    "stdout.log": "output",
    "stderr.log": "output",
    _SOURCE: SOURCE,
}


class Private:
    """Takes out what is private, and counts where it stood."""

    def __init__(self) -> None:
        self.places: Counter[str] = Counter()
        self._scrub = scrubber(keeps_numbers=True)
        self._printed: dict[
            str, list[tuple[int, int]]
        ] = {}  # by log: where secrets stand that this shell does not know
        self._plain: set[tuple[str, ...]] = (
            set()
        )  # arms and names of logged values that hold nothing private

    def of(self, value: Any, place: str) -> Any:
        """Return plain data, as from a file of that name, without what is private."""
        cleaned = self._scrub(value)
        if more := str(cleaned).count(GONE) - str(value).count(GONE):
            self.places[_PLACES.get(place, show(place, 40).replace("_", " "))] += more
        return cleaned

    def source(self, text: str) -> str:
        """Return a source without what is private: Python that still parses, or a text of another kind."""
        cleaned = clean_source(text, self._scrub)
        if cleaned is None:
            return str(self.of(text, _SOURCE))
        if more := cleaned.count(GONE) - text.count(GONE):
            self.places[_PLACES[_SOURCE]] += more
        return cleaned

    def word(self, text: str) -> str:
        """Return a word as it stands in the records that `item` returns."""
        clean: str = self._scrub(text)
        return clean

    def scenario(self, scenario: Scenario) -> Scenario:
        """Return what a source says of itself without what is private, which is counted where it stands in the source."""
        params = [
            param._replace(default=self._scrub({param.name: param.default})[param.name])
            for param in scenario.params
        ]
        plain = msgspec.to_builtins(scenario._replace(params=tuple(params)))
        return msgspec.convert(self._scrub(plain), Scenario)

    def item(self, item: Item) -> Item:
        """Return a record without what is private: itself where nothing is."""
        if isinstance(item, Logged) and self._is_plain(item):
            return item
        if isinstance(item, Corrupt | Gap):
            return item
        if isinstance(item, OutputCaptured) and item.secrets:
            self._printed[f"{item.stream}.log"] = item.secrets
            item = msgspec.structs.replace(item, secrets=[])
        cleaned: Item = without(item, partial(self.of, place=name_of(item)))
        return cleaned

    def printed(self, data: bytes, log: str) -> bytes:
        """Return a log without the secrets that its run knew; `item` has to have seen the records of the run."""
        places = self._printed.get(log, [])
        cleaned = without_places(data, places)
        if places:
            self.places[_PLACES[log]] += cleaned.count(GONE.encode()) - data.count(GONE.encode())
        return cleaned

    def _is_plain(self, item: Logged) -> bool:
        names = (item.a, *item.v)
        if names not in self._plain and self._scrub([*names]) == [*names]:
            self._plain.add(names)
        return names in self._plain


def words_of(places: Mapping[str, int]) -> str:
    """Return what was taken out, in words; nothing where nothing was."""
    if not places:
        return ""
    count = sum(places.values())
    looks = "it looks like a secret" if count == 1 else "they look like secrets"
    where = join([f"{many} in {place}" for place, many in places.items()])
    return f"{plural(count, 'word')} taken out, for {looks}: {where}"


def words_of_packed(places: Mapping[str, int]) -> str:
    """Return what an archive has not, in words."""
    return words_of(places) or "the home folder in its source was replaced by ~"
