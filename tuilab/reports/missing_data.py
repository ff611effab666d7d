"""What a report cannot show: what went wrong, what was lost, what was not measured. Nobody should have to guess."""

from tuilab.record.finding_words import unmeasured
from tuilab.record.origin.taken_out import taken_out
from tuilab.reports.notices import as_sentence, damage_of, ending_of
from tuilab.reports.reported_run import ReportedRun
from tuilab.runs.redaction import describe_packed_redactions, describe_redactions
from tuilab.text.display import plural, show


def gaps(subject: ReportedRun) -> list[str]:
    """Return a sentence for each thing that is missing in a run, the gravest first."""
    ending = ending_of(subject.summary, subject.state)
    clauses = [ending] if ending else []
    clauses += subject.result.notices
    return [
        *map(as_sentence, clauses),
        *subject.reading_gaps,
        *_unmeasured(subject),
        *_taken_out(subject),
    ]


def damage(subject: ReportedRun) -> list[str]:
    """Return a sentence for each way in which the recorded data is incomplete; files for programs have them as well."""
    if not (subject.summary.damage.is_any or subject.reading_gaps):
        return []
    return [*map(as_sentence, damage_of(subject.summary)), *subject.reading_gaps]


def _unmeasured(subject: ReportedRun) -> list[str]:
    summary = subject.summary
    sentences = [f"Not measured: {what} ({why})." for what, why in unmeasured(summary)]
    blocks = [
        block
        for arm in summary.blocks.values()
        for block in arm
        if not (block.is_warmup or block.is_rerun)
    ]
    disturbed = sum(block.is_disturbed for block in blocks)
    if disturbed:
        sentences.append(
            f"{disturbed} of {plural(len(blocks), 'timed block')} were disturbed, according to the sensors."
        )
    if subject.source_note:
        sentences.append(f"Source: {subject.source_note}.")
    return sentences


def _taken_out(subject: ReportedRun) -> list[str]:
    sentences = []
    earlier = taken_out(subject.run_dir)
    if earlier is not None:
        digest = f"the digest was {show(earlier.digest, 40)}"
        sentences.append(
            f"Before this run was packed: {describe_packed_redactions(earlier.places)}; {digest}."
        )
    removed = describe_redactions(subject.private.places) if subject.private else ""
    if removed:
        sentences.append(as_sentence(f"{removed}; --keep-private keeps them"))
    return sentences
