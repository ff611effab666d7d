"""Spell the commands that show what a tuning has left open."""

from tuilab.record.events import TreatmentPlanned
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import Outcome
from tuilab.record.verdicts import Verdict
from tuilab.runs import command_line

USUAL_METRIC = "val_loss"  # if the script logged no metric of a validation
_OF_VALIDATION = ("val", "eval", "test")
_JUDGES = ("loss", "acc", "perplexity", "ppl", "error", "score")
_VARIABLE = "TUILAB_TREAT"
_LONGEST_NAME = 40  # characters of an arm of `tuilab ab`


def next_command(planned: TreatmentPlanned, outcome: str | None, summary: RunSummary) -> str:
    """Return the command that shows what is open about a treatment; empty if nothing is."""
    if outcome == Outcome.LEARNING_NOT_SHOWN:
        return learning_line(planned, summary)
    if outcome == Verdict.INCONCLUSIVE and summary.run:
        return command_line.retune_line(summary.run, [planned.name])
    return ""


def learning_line(planned: TreatmentPlanned, summary: RunSummary) -> str:
    """Return the command that compares what the whole training learns with and without it."""
    run = summary.run
    if run is None or not run.command:
        return ""
    words = ["tuilab", "ab", "--measure", metric_of(summary), "--different-learning"]
    name = planned.arm.replace(" ", "-")[:_LONGEST_NAME]
    words += ["--arm", "base", "--arm", f"{name}: {_define_arm(planned)}"]
    return command_line.in_folder(run, [*words, "--headless", "--", *run.command])


def _define_arm(planned: TreatmentPlanned) -> str:
    """Return the definition of an arm that applies a treatment: its variables and its prefix."""
    words = []
    if planned.treatments:
        words.append(f"{_VARIABLE}={','.join(planned.treatments)}")
    for name, value in planned.env.items():
        words.append(f"{name}={value}")
    return command_line.line([*words, *planned.prefix])


def metric_of(summary: RunSummary) -> str:
    """Return the logged metric that is likely to show how well a training has learned.

    It is a metric of a validation. Without one, it is a usual name that the user has to replace.
    """
    for series in summary.series.values():
        name = series.name.rpartition(" (")[0] or series.name
        lower = name.lower()
        is_of_validation = any(word in lower for word in _OF_VALIDATION)
        if is_of_validation and any(word in lower for word in _JUDGES):
            return name
    return USUAL_METRIC
