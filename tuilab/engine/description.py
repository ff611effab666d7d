"""The description of a run, in as many records as it takes: a line holds so much, a scenario may have a thousand claims."""

from collections.abc import Iterator
from typing import Any

from tuilab.engine import messages
from tuilab.record.events import Event, RunDescribed, RunStarted
from tuilab.text import clip

_PORTION = 40 * 1024  # bytes of a record, beside what is always short
_LONG = ("params", "changed", "claims", "claim_keys", "argv", "command")
_TITLE_LIMIT = 1000  # characters
_WORD_LIMIT = 5000  # of a word of the command line: more than a path has


def first_records(started: RunStarted) -> list[Event]:
    """Return the first record of a run, and those that hold what does not fit it."""
    started.title = clip(started.title, _TITLE_LIMIT)
    started.argv = [clip(word, _WORD_LIMIT) for word in started.argv]
    started.command = [clip(word, _WORD_LIMIT) for word in started.command]
    first, *others = list(_portions(started)) or [RunDescribed()]
    for name in _LONG:
        setattr(started, name, getattr(first, name))
    return [started, *others]


def _portions(started: RunStarted) -> Iterator[RunDescribed]:
    """Yield the parameters, claims and words in portions that fit a record."""
    portion, size = RunDescribed(), 0
    for entry in _entries(started):
        length = len(messages.pack(entry))  # or less: other characters than ASCII are spelled longer here
        if size and size + length > _PORTION:
            yield portion
            portion, size = RunDescribed(), 0
        size += length
        for name, value in entry.items():
            part = getattr(portion, name)
            if isinstance(part, dict):
                part |= value
            else:
                part.append(value)
    if size:
        yield portion


def _entries(started: RunStarted) -> Iterator[dict[str, Any]]:
    """Yield what stands together in a record: a claim comes with its key."""
    yield from ({"params": {name: value}} for name, value in started.params.items())
    yield from ({"changed": name} for name in started.changed)
    keys = [{"claim_keys": key} for key in started.claim_keys] or [{} for _ in started.claims]
    yield from ({"claims": text, **key} for text, key in zip(started.claims, keys, strict=True))
    yield from ({"argv": word} for word in started.argv)
    yield from ({"command": word} for word in started.command)
