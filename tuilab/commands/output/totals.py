"""Find the printed total, such as that of `step 10/200`, that shows how far a command is.

A total is identified by its number, and the number before it rises. If a total begins again with
each epoch, and the number of epochs is printed as well, its steps are counted through all epochs.
If not, the progress names the round, or the epoch if the line of the total names one. Any other
total may begin again: that is known only in its second round.

Dates, versions and scores are not progress. Their numbers do not rise one by one, or a word before
them says what they are.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

_TOTAL = re.compile(rb"(?<![\w.,/:-])(\d{1,12}) ?(?:/| of ) ?(\d{1,12})(?![\w./-]|[:,]\w)")
# An epoch without the number of epochs.
_EPOCH = re.compile(rb"epoch\W{0,4}(\d{1,6})\b(?! ?(?:/| of ) ?\d)", re.IGNORECASE)
_WORD = re.compile(rb"\w+")
_SCORES = re.compile(
    rb"acc|correct|score|top|right|passed|failed|hit|match|precision|recall", re.IGNORECASE
)
_LEAST_RISES = {"epochs": 2, "steps": 3}  # how many rising numbers a total needs to count, by unit
_OVER_AFTER = 5  # a total that is not printed any more is over after this many rises of others
# A share of the total. If the number falls to this share or below, the total begins again. If it
# falls to a larger number, the total does not count progress.
_AGAIN = 0.2
_MOST = 64  # totals that are remembered


class CommandProgress(NamedTuple):
    """The progress of a command."""

    done: int
    total: int
    unit: str


@dataclass(eq=False)
class _Track:
    unit: str
    total: int
    done: int
    rises: int = 1
    restarts: int = 0
    is_count: bool = True
    least: int = 0  # the number when the total was seen first
    seen_after: int = 0  # restarts of all totals until this one was seen last
    rises_after: int = 0  # rises of all totals until then
    # The next three fields are numbers in the sequence of all totals that were seen: when this one
    # was seen last, when it was seen first, and when it rose last.
    seen_at: int = 0
    began_at: int = 0
    rose_at: int = 0
    epoch: int | None = None  # the epoch that its line names
    outlasts_epochs: bool = False  # whether it keeps rising from one epoch to the next

    @property
    def counted(self) -> str:
        """The unit, followed by the epoch or the round if there are several."""
        if self.epoch is not None and not self.outlasts_epochs:
            return f"{self.unit}, epoch {self.epoch}"
        if self.restarts:
            return f"{self.unit}, round {self.restarts + 1}"
        return self.unit


class Totals:
    """Takes printed lines in their order, and returns the progress of the command."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[str, int], _Track] = {}
        self._chosen: _Track | None = None
        # Of all totals:
        self._restarts = 0
        self._rises = 0
        self._count = 0  # how often one was seen

    def take(self, line: bytes) -> None:
        """Note every total of a line."""
        for match in _TOTAL.finditer(line):
            done = int(match[1])
            total = int(match[2])
            begin = match.start()
            if total <= 1 or done > total or _SCORES.search(_text_before(line, begin)):
                continue
            epoch_match = _EPOCH.search(line, 0, begin)
            epoch = int(epoch_match[1]) if epoch_match else None
            self._note(_unit_of(line, begin), done, total, epoch)

    def progress(self) -> CommandProgress | None:
        """Return the progress by the best total; None if there is no total."""
        self._choose()
        track = self._chosen
        if track is None:
            return None
        progress = self._count_through_epochs(track)
        if progress is not None:
            return progress
        return CommandProgress(track.done, track.total, track.counted)

    def _count_through_epochs(self, track: _Track) -> CommandProgress | None:
        """Return the progress through the steps of all epochs; None if they cannot be counted.

        In the first epoch that is seen, return the progress by its steps, and name the epoch.
        """
        epochs = self._find_epochs()
        if epochs is None:
            return None
        steps = self._find_steps_of(epochs)
        if steps is None:
            return None
        if epochs.rises == 1:  # the steps may be those of all epochs
            unit = f"steps, epoch {epochs.done}/{epochs.total}"
            return CommandProgress(steps.done, steps.total, unit)
        is_other_total = track not in (epochs, steps) and not track.restarts
        if is_other_total:
            return None
        # The next epoch may have begun, while none of its steps was printed yet.
        is_full = steps.done > (1 - _AGAIN) * steps.total
        is_next_begun = steps.restarts == epochs.rises - 2 and steps.seen_at < epochs.rose_at
        if is_full and is_next_begun:
            steps_done = 0
        elif steps.restarts > 0 and steps.restarts == epochs.rises - 1:
            steps_done = steps.done
        else:
            return None
        earlier_epochs = epochs.done - min(epochs.least, 1)
        done = earlier_epochs * steps.total + steps_done
        return CommandProgress(done, epochs.total * steps.total, "steps")

    def _find_epochs(self) -> _Track | None:
        """Return the total of epochs that was seen last; None if there is none."""
        begun_tracks = [track for track in self._tracks.values() if _is_begun(track)]
        return max(begun_tracks, key=lambda track: track.seen_at, default=None)

    def _find_steps_of(self, epochs: _Track) -> _Track | None:
        """Return the total that counts the steps of an epoch; None if there is none.

        If there are several, return the first in the epoch: it counts the steps of the training.
        """
        for track in self._tracks.values():
            counts_steps = track.unit == "steps" and _counts_progress(track)
            if counts_steps and track.seen_at > epochs.began_at and self._is_alive(track):
                return track
        return None

    def _note(self, unit: str, done: int, total: int, epoch: int | None) -> None:
        """Note that a total was printed: it rises, begins again, or turns out to be no progress.

        `epoch` is the epoch that its line names, or None. The total that was not seen for longest
        is forgotten if there are too many.
        """
        key = (unit, total)
        if key not in self._tracks and len(self._tracks) >= _MOST:
            oldest = min(self._tracks, key=lambda name: self._tracks[name].seen_after)
            del self._tracks[oldest]
        self._count += 1
        if key not in self._tracks:
            self._tracks[key] = _Track(unit, total, done, least=done, began_at=self._count)
        track = self._tracks[key]
        track.seen_at = self._count
        if epoch != track.epoch and track.rises > 1 and done > track.done:
            track.outlasts_epochs = True
        track.epoch = epoch
        if done > track.done:
            track.rises += 1
            track.rose_at = self._count
            self._rises += 1
        elif done < track.done and done <= _AGAIN * total:
            track.restarts += 1
            self._restarts += 1
        elif done < track.done:
            track.is_count = False
        track.done = done
        track.seen_after = self._restarts
        track.rises_after = self._rises

    def _choose(self) -> None:
        """Keep the chosen total until it begins again or is over; then choose another one.

        Totals that never began again come first. Of these, unfinished ones come first. Of the rest,
        the total that rose most often is chosen. If no total counts, the chosen one stays.
        """
        counting = [track for track in self._tracks.values() if _counts_progress(track)]
        alive = [track for track in counting if self._is_alive(track)]
        whole = [track for track in alive if not track.restarts]
        if self._chosen in whole and not self._is_over(self._chosen, whole):
            return
        unfinished = [track for track in whole if track.done < track.total]
        repeating = [track for track in alive if track.restarts]
        candidates = unfinished or whole or repeating
        if candidates:
            self._chosen = max(candidates, key=lambda track: track.rises)

    def _is_over(self, track: _Track, whole: list[_Track]) -> bool:
        """Return whether other totals, which never began again, keep rising without this one."""
        if track.done < track.total and self._rises - track.rises_after <= _OVER_AFTER:
            return False
        for other in whole:
            if other.done < other.total and other.rises_after > track.rises_after:
                return True
        return False

    def _is_alive(self, track: _Track) -> bool:
        """Return whether a total was seen since others began again.

        The total that an epoch begins with was seen since. The total of a download was not.
        """
        return self._restarts - track.seen_after <= 1 + track.restarts


def _counts_progress(track: _Track) -> bool:
    """Return whether a total rises as progress does, and has risen often enough to count."""
    return track.is_count and track.rises >= min(_LEAST_RISES[track.unit], track.total)


def _is_begun(track: _Track) -> bool:
    """Return whether a total counts epochs.

    If it begins with the first epoch, it counts at once, else from the second epoch that is seen.
    """
    if track.unit != "epochs" or not track.is_count or track.restarts:
        return False
    return track.rises > 1 or track.least <= 1


def _text_before(line: bytes, end: int) -> bytes:
    return line[max(end - 24, 0) : end]


def _unit_of(line: bytes, begin: int) -> str:
    """Return the unit of the total that begins there, by the word before it."""
    words = _WORD.findall(_text_before(line, begin))
    if words and words[-1].lower() in (b"epoch", b"epochs", b"ep"):
        return "epochs"
    return "steps"
