"""Remove private data from a run before it is shared in a report or an archive.

Secrets are removed from every text of a record. Numbers stay, and the names of kinds and streams.
Equal texts stay equal, so that related records still fit each other. A record whose parts no longer
fit each other is left out, and this is reported.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tuilab.catalogue.imports import SOURCE_LIMIT
from tuilab.catalogue.scenario import Scenario
from tuilab.record.events import Logged, OutputCaptured
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.origin.taken_out import SOURCE
from tuilab.record.secrets import name_of, without, without_places
from tuilab.scrub import scrubber, scrubber_of
from tuilab.scrub.named_values import named_texts
from tuilab.scrub.source import clean_source
from tuilab.storage.files import read_regular
from tuilab.text.display import GONE, join, plural, show

_SOURCE = "scenario.py"
_PLACES = {  # names, for users, of the kinds of records and the files that may have secrets
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


def secrets_of_source(run_dir: Path) -> set[str]:
    """Return the secrets that the source of a run has by name; empty if it cannot be read.

    The source says by a name what they are. What the run printed may have them without a name.
    """
    try:
        source = read_regular(run_dir / _SOURCE, SOURCE_LIMIT)
    except OSError:
        return set()
    return named_texts(source.decode(errors="replace"))


class Redactor:
    """Removes private data and some known secrets, and counts by place how much it removed."""

    def __init__(self, secrets: Collection[str] = ()) -> None:
        self.places: Counter[str] = Counter()
        self._scrub = scrubber(keeps_numbers=True)
        if secrets:
            remove_secrets = scrubber_of(secrets)
            remove_others = self._scrub
            self._scrub = lambda value: remove_others(remove_secrets(value))
        # By log: the places of secrets that only the run knew, from its records.
        self._printed: dict[str, list[tuple[int, int]]] = {}
        # Arm and names of logged values that contain nothing private.
        self._plain: set[tuple[str, ...]] = set()

    def of(self, value: Any, place: str) -> Any:
        """Return plain data without its private parts; `place` is its kind of record or file."""
        cleaned = self._scrub(value)
        removed = str(cleaned).count(GONE) - str(value).count(GONE)
        if removed:
            name = _PLACES.get(place, show(place, 40).replace("_", " "))
            self.places[name] += removed
        return cleaned

    def source(self, text: str) -> str:
        """Return a source without its private parts.

        Python still parses. Any other text is treated as plain data.
        """
        cleaned = clean_source(text, self._scrub)
        if cleaned is None:
            return str(self.of(text, _SOURCE))
        removed = cleaned.count(GONE) - text.count(GONE)
        if removed:
            self.places[_PLACES[_SOURCE]] += removed
        return cleaned

    def word(self, text: str) -> str:
        """Return a word as it is in the records that `item` returns."""
        cleaned: str = self._scrub(text)
        return cleaned

    def scenario(self, scenario: Scenario) -> Scenario:
        """Return the description of a scenario without its private parts.

        They are not counted here, but in the source from which the description was read.
        """
        params = []
        for param in scenario.params:
            cleaned = self._scrub({param.name: param.default})
            params.append(param._replace(default=cleaned[param.name]))
        plain = msgspec.to_builtins(scenario._replace(params=tuple(params)))
        return msgspec.convert(self._scrub(plain), Scenario)

    def item(self, item: Item) -> Item:
        """Return a record without its private parts; the record itself if it has none."""
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
        """Return a log without the secrets that its run knew.

        `item` has to be called for all records of the run first.
        """
        places = self._printed.get(log, [])
        cleaned = without_places(data, places)
        if places:
            mark = GONE.encode()
            self.places[_PLACES[log]] += cleaned.count(mark) - data.count(mark)
        return cleaned

    def _is_plain(self, item: Logged) -> bool:
        """Return whether the arm and the names of logged values are free of private data.

        The answer is remembered, because a run may log a million records with the same names.
        """
        names = (item.a, *item.v)
        if names in self._plain:
            return True
        if self._scrub(list(names)) != list(names):
            return False
        self._plain.add(names)
        return True


def describe_redactions(places: Mapping[str, int]) -> str:
    """Return how many words were removed, why and where; empty if none were."""
    if not places:
        return ""
    count = sum(places.values())
    reason = "it looks like a secret" if count == 1 else "they look like secrets"
    where = join([f"{removed} in {place}" for place, removed in places.items()])
    return f"{plural(count, 'word')} taken out, for {reason}: {where}"


def describe_packed_redactions(places: Mapping[str, int]) -> str:
    """Return what was removed from a run when it was packed into an archive."""
    return describe_redactions(places) or "the home folder in its source was replaced by ~"
