"""How many records each stream holds, counted when everybody who wrote one is gone: a stream that is cut later is told from a
worker or sampler that was killed.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tuilab.record.events import StreamsCounted
from tuilab.record.journal.lines import last_number

_TOGETHER = 500  # streams that one record tells of


def stream_counts(journal: Path) -> Iterator[StreamsCounted]:
    """Yield the counts of all streams but the supervisor's, which goes on; what cannot be read is left out."""
    counts = {}
    with suppress(OSError):
        for path in sorted(journal.glob("*.jsonl")):
            with suppress(OSError):
                counts[path.stem] = last_number(path) + 1
    names = [name for name in counts if name != "supervisor"]
    for at in range(0, len(names), _TOGETHER):
        yield StreamsCounted(records={name: counts[name] for name in names[at : at + _TOGETHER]})
