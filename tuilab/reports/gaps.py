"""What a report cannot show: what went wrong, what was lost, what was not measured. Nobody should have to guess."""

from tuilab.record.origin.taken_out import taken_out
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.told import alert_words, device_notices, dropped_words, gpu_errors, leftover_words, lost_words, unmeasured
from tuilab.reports.subject import Subject
from tuilab.runs.private import words_of, words_of_packed
from tuilab.text import plural, show


def gaps(subject: Subject) -> list[str]:
    """Return a sentence for each thing that is missing in a run, the gravest first."""
    summary = subject.summary
    return [
        *_device(summary),
        *_ending(summary, subject.state),
        *_record(summary),
        *subject.reading_gaps,
        *_unmeasured(summary, subject),
        *_taken_out(subject),
    ]


def _device(summary: RunSummary) -> list[str]:
    return [f"{words[:1].upper()}{words[1:]}." for words in device_notices(summary)]


def _ending(summary: RunSummary, state: str) -> list[str]:
    found = []
    if summary.run and summary.run.retry_of:
        found.append(f"This is a second attempt: {show(summary.run.retry_of, 80)} was lost with its node.")
    if state == RunState.LOST:
        found.append(f"The run is lost: {lost_words(summary)}.")
    elif not summary.is_over:
        found.append(f"The run has not ended ({show(state)}): the report shows what was recorded when it was written.")
    elif state != RunState.SUCCEEDED:
        found.append(f"The run did not succeed ({show(state)}){f': {show(summary.reason)}' if summary.reason else ''}.")
    if summary.box_lacks:
        found.append(f"Not testable on this machine: {show(summary.box_lacks)}.")
    if summary.leftovers:
        words = leftover_words(summary)
        found.append(f"{words[:1].upper()}{words[1:]}.")
    return found + [f"During the run: {words}." for words in (*gpu_errors(summary), *map(alert_words, summary.alerts))]


def damage(subject: Subject) -> list[str]:
    """Return a sentence for each way in which the recorded data is incomplete; files for programs have them as well."""
    return [*_damage(subject.summary), *subject.reading_gaps] if subject.summary.damage.is_any or subject.reading_gaps else []


def _damage(summary: RunSummary) -> list[str]:
    damage = summary.damage
    counts = {
        plural(damage.corrupt_count, "line"): "corrupt and left out",
        plural(damage.missing_count, "record"): "missing from the journal",
        plural(damage.lost_count, "measured record"): "not written: the disk refused them, or a GPU had not computed them",
        plural(damage.unknown_count, "record"): "of a kind that this version of tuilab does not know",
    }
    return [f"{count}: {what}." for count, what in counts.items() if not count.startswith("0 ")]


def _record(summary: RunSummary) -> list[str]:
    return _damage(summary) + [f"{words}." for words in dropped_words(summary).values()]


def _unmeasured(summary: RunSummary, subject: Subject) -> list[str]:
    found = [f"Not measured: {what} ({why})." for what, why in unmeasured(summary)]
    first = [b for blocks in summary.blocks.values() for b in blocks if not (b.is_warmup or b.is_rerun)]
    if disturbed := sum(block.is_disturbed for block in first):
        found.append(f"{disturbed} of {plural(len(first), 'timed block')} were disturbed, according to the sensors.")
    if subject.source_note:
        found.append(f"Source: {subject.source_note}.")
    return found


def _taken_out(subject: Subject) -> list[str]:
    found = []
    if (earlier := taken_out(subject.run_dir)) is not None:
        digest = f"the digest was {show(earlier.digest, 40)}"
        found.append(f"Before this run was packed: {words_of_packed(earlier.places)}; {digest}.")
    if subject.private and (words := words_of(subject.private.places)):
        found.append(f"{words[:1].upper()}{words[1:]}; --keep-private keeps them.")
    return found
