"""The sentences about what a report cannot show: what went wrong, was lost, or was not measured."""

from itertools import chain

from tuilab.record.finding_words import unmeasured
from tuilab.record.origin.taken_out import taken_out
from tuilab.reports.notices import as_sentence, damage_of, ending_of
from tuilab.reports.reported_run import ReportedRun
from tuilab.runs.redaction import describe_packed_redactions, describe_redactions
from tuilab.text.display import plural, show


def gaps(subject: ReportedRun) -> list[str]:
    """Return a sentence for each thing that is missing in a run, the gravest first."""
    clauses = list(subject.result.notices)
    ending = ending_of(subject.summary, subject.state)
    if ending:
        clauses.insert(0, ending)
    return [
        *map(as_sentence, clauses),
        *subject.reading_gaps,
        *_list_unmeasured(subject),
        *_list_removed(subject),
    ]


def damage(subject: ReportedRun) -> list[str]:
    """Return a sentence for each way in which the recorded data is incomplete.

    Reports for programs have these sentences as well.
    """
    if not (subject.summary.damage.is_any or subject.reading_gaps):
        return []
    return [*map(as_sentence, damage_of(subject.summary)), *subject.reading_gaps]


def _list_unmeasured(subject: ReportedRun) -> list[str]:
    """Return what was not measured, how many blocks were disturbed, and what the source lacks."""
    summary = subject.summary
    sentences = []
    for name, why in unmeasured(summary):
        sentences.append(f"Not measured: {name} ({why}).")
    blocks = []
    for block in chain.from_iterable(summary.blocks.values()):
        if not (block.is_warmup or block.is_rerun):
            blocks.append(block)
    disturbed = sum(block.is_disturbed for block in blocks)
    if disturbed:
        count = f"{disturbed} of {plural(len(blocks), 'timed block')}"
        sentences.append(f"{count} were disturbed, according to the sensors.")
    if subject.source_note:
        sentences.append(f"Source: {subject.source_note}.")
    return sentences


def _list_removed(subject: ReportedRun) -> list[str]:
    """Return what was removed as private: before the run was packed, and for this report."""
    sentences = []
    packed = taken_out(subject.run_dir)
    if packed is not None:
        digest = f"the digest was {show(packed.digest, 40)}"
        sentences.append(
            f"Before this run was packed: {describe_packed_redactions(packed.places)}; {digest}."
        )
    removed = ""
    if subject.private:
        removed = describe_redactions(subject.private.places)
    if removed:
        sentences.append(as_sentence(f"{removed}; --keep-private keeps them"))
    return sentences
