"""Decide the exit code of a run: which code its verdicts give, and which code several runs give.

`tuilab.errors` lists all codes with their meanings. `tuilab exec` is different: it ends with the
code of its command (`exit_code_of_command` in `tuilab/cli/verbs/commands/exec.py`).
"""

from collections.abc import Collection

from tuilab.errors import ExitCode
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict

_NO_VERDICT = ""  # of a claim that was not judged
_WORST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.CANNOT_RECORD,
    ExitCode.FAILED,
    ExitCode.REFUTED,
    ExitCode.USAGE,
)


def exit_code_of_run(summary: RunSummary, state: str, *, is_strict: bool = False) -> ExitCode:
    """Return the exit code of one run that ended in `state`.

    With `is_strict`, a claim that is INCONCLUSIVE or not judged counts as contradicted. A treatment
    of a tuning that is not faster contradicts nobody: it was only tried.
    """
    if state != RunState.SUCCEEDED:
        return ExitCode.FAILED
    if summary.tuning.plan is not None:
        return ExitCode.DONE
    claims = summary.claims.values()
    if any(claim.is_contradicted for claim in claims):
        return ExitCode.REFUTED
    verdicts: set[str] = set()
    for claim in claims:
        verdicts.add(claim.verdict.verdict if claim.verdict else _NO_VERDICT)
    if is_strict and verdicts & {Verdict.INCONCLUSIVE, _NO_VERDICT}:
        return ExitCode.REFUTED
    if summary.box_lacks and verdicts <= {Verdict.NOT_TESTABLE, _NO_VERDICT}:
        return ExitCode.BOX_LACKS
    return ExitCode.DONE


def exit_code_of_runs(codes: Collection[ExitCode]) -> ExitCode:
    """Return the one exit code of several runs, which is the worst of `codes`.

    BOX_LACKS counts only if every run has it. Without runs the code is DONE.
    """
    for code in _WORST_FIRST:
        if code in codes:
            return code
    if set(codes) == {ExitCode.BOX_LACKS}:
        return ExitCode.BOX_LACKS
    return ExitCode.DONE
