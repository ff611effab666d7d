"""The first part of a tuning: watch the script once, and plan which treatments to try."""

import math
import os
from collections.abc import Sequence

import msgspec

from tuilab.commands.ab.step_time import most_steps
from tuilab.commands.make_order import script_of
from tuilab.commands.run_command import was_stopped
from tuilab.commands.start_command import CannotStart
from tuilab.commands.step_parts import lacking, shares_of
from tuilab.commands.tune import files, limits
from tuilab.commands.tune.planning.candidate import Situation
from tuilab.commands.tune.planning.machine import read_machine
from tuilab.commands.tune.planning.measured_steps import measure
from tuilab.commands.tune.planning.plan import plan
from tuilab.commands.tune.planning.sources import read_sources
from tuilab.commands.tune.screening import screen
from tuilab.commands.tune.session import TuningSession
from tuilab.commands.tune.trial import Trial
from tuilab.engine.messages import CommandArm, WorkerResult
from tuilab.judging.intervals import DISTURBED_SD, UNKNOWN_SD
from tuilab.record import events
from tuilab.record.tuning.outcomes import Outcome
from tuilab.record.tuning.stages import SCREENING, WATCHING
from tuilab.text.display import join_first, plural, show
from tuilab.text.words import clock

_MOST_NAMED = 3  # files in a sentence
_MOST_RECORDED = 100  # files in a record


def study(session: TuningSession) -> tuple[WorkerResult, int]:
    """Watch the script, plan, and screen the treatments; return the result and the exit code.

    An error in the result ends the tuning: then the script cannot be tuned.
    """
    before = files.list_files(session.command.folder, session.run_dir.parent)
    session.enter(WATCHING)
    try:
        watched = _watch(session)
    except CannotStart as problem:
        return WorkerResult(error=str(problem)), problem.code
    if was_stopped():
        return WorkerResult(), 0
    problem_of_script = _describe_unusable(session, watched)
    if problem_of_script:
        return WorkerResult(error=problem_of_script), abs(watched.ended.code) or 1
    refusal = _describe_changes(session, _changes_since(session, before))
    if refusal:
        return WorkerResult(error=refusal), 1

    watched.ended.watched.record_contention()
    session.enter(SCREENING)
    steps = _choose_steps(session, watched)
    base = session.run(
        CommandArm(name=limits.BASE),
        steps=steps,
        limit_s=session.limit_s(watched.ended.elapsed_s),
    )
    if was_stopped():
        return WorkerResult(), 0
    # This process may get further than the first one, and do something else.
    changes = _changes_since(session, before)
    refusal = _describe_changes(session, changes)
    if refusal or base.outcome:
        error = refusal or _describe_failed_base(base, changes)
        return WorkerResult(error=error), abs(base.ended.code) or 1
    planned = [_in_own_folder(session, each) for each in _plan(session, watched)]
    for treatment in planned:
        session.journal.append(treatment)
        session.record_end_of(treatment, treatment.outcome, treatment.why)
    session.journal.append(_describe_plan(watched, base, steps, changes))
    return WorkerResult(enough=screen(session, planned, base, steps, _process_sd(watched))), 0


def _changes_since(session: TuningSession, before: files.Listing) -> files.FileChanges:
    """Return what has happened to the files since a listing."""
    now = files.list_files(session.command.folder, session.run_dir.parent)
    return files.changes_between(before, now)


def _describe_failed_base(base: Trial, changes: files.FileChanges) -> str:
    """Return why the unchanged script failed after it had been watched."""
    words = f"the unchanged script failed when it was started again: {base.why}"
    if changes.deleted:
        words += f"; it had deleted {_name_files(changes.deleted)} before"
    return words


def _in_own_folder(
    session: TuningSession, planned: events.TreatmentPlanned
) -> events.TreatmentPlanned:
    """Return a treatment whose file is that of the user, although the script runs in a copy."""
    if session.order.is_in_copy and planned.file.startswith(f"{session.copy}/"):
        path = os.path.relpath(planned.file, session.copy)
        return msgspec.structs.replace(planned, file=os.path.join(session.folder, path))
    return planned


def _process_sd(watched: Trial) -> float:
    """Return the standard deviation between processes, which is larger on a busy machine."""
    return DISTURBED_SD if watched.ended.watched.is_starved_by_others() else UNKNOWN_SD


# ---- the script as it is


def _watch(session: TuningSession) -> Trial:
    """Run the unchanged script once, and have it report the facts that the plan needs."""
    budget_s = session.order.budget_s
    limit_s = max(limits.WATCH_SHARE * budget_s, limits.LEAST_WATCH_S)
    return session.run(
        CommandArm(name=limits.BASE),
        steps=session.order.steps or limits.WATCHED_STEPS,
        limit_s=limit_s,
        label=limits.WATCH,
        wants_facts=True,
    )


def _describe_unusable(session: TuningSession, watched: Trial) -> str:
    """Return why the script cannot be tuned, or an empty string."""
    steps = most_steps(watched.ended)
    if watched.outcome == Outcome.OVER_TIME:
        if watched.steady is not None and steps >= limits.LEAST_STEPS:
            return ""
        return (
            f"the script made {plural(steps, 'step')} in {clock(watched.ended.elapsed_s)}, and a"
            f" tuning needs {limits.LEAST_STEPS}; raise --budget, or give the script less work"
        )
    if watched.ended.code:
        return f"the script failed while it was watched: {watched.why}; first make it run by itself"
    if watched.outcome and not steps:
        return (
            f"{watched.why}; a tuning needs a script that trains with an optimizer of torch.optim"
        )
    if steps < limits.LEAST_STEPS:
        return (
            f"the script made {plural(steps, 'step')}, and a tuning needs {limits.LEAST_STEPS};"
            " let it train longer"
        )
    return ""


def _describe_changes(session: TuningSession, changes: files.FileChanges) -> str:
    """Return why the script must not run again, or an empty string.

    A script that changes or deletes files may lose something each time it runs.
    """
    if session.order.may_change_files or session.order.is_in_copy:
        return ""
    clauses = []
    for verb, paths in (("changed", changes.changed), ("deleted", changes.deleted)):
        if paths:
            clauses.append(f"{verb} {_name_files(paths)}")
    if not clauses:
        return ""
    return (
        f"the script {' and '.join(clauses)}, so it is not started again; add --in-copy to run it"
        " in a copy of its folder, or --yes if that does not matter"
    )


def _name_files(paths: Sequence[str]) -> str:
    """Return how many files there are, and the names of the first ones."""
    names = [show(path, 60) for path in paths[:_MOST_NAMED]]
    return f"{plural(len(paths), 'file')} ({join_first(names, _MOST_NAMED, len(paths))})"


def _choose_steps(session: TuningSession, watched: Trial) -> int:
    """Return how many steps each process makes.

    A script that ended by itself makes no more steps than it has.
    """
    assert watched.lane is not None and watched.step_s is not None
    if session.order.steps:
        return session.order.steps
    least, most = limits.STEP_LIMITS
    steps = math.ceil(limits.MEASURED_S / watched.step_s)
    steps = min(max(steps, least), most)
    has_ended_itself = watched.lane.count < limits.WATCHED_STEPS
    if has_ended_itself:
        steps = min(steps, watched.lane.count)
    return steps


# ---- the plan


def _plan(session: TuningSession, watched: Trial) -> list[events.TreatmentPlanned]:
    """Return the treatments in the order in which they are tried."""
    assert watched.lane is not None
    script = script_of(session.command.words, session.command.folder)
    script_path = str(script) if script else ""
    facts = watched.ended.watched.script_facts()
    compiled = watched.lane.process.compiled.graphs
    situation = Situation(
        facts=facts,
        steps=measure(watched.lane.steps, watched.lane.last),
        machine=read_machine(),
        environ=os.environ,
        script=script_path,
        sources=read_sources(facts, script_path, session.command.folder),
        recompilations=sum(1 for graph in compiled if graph.reason),
        process_sd=_process_sd(watched),
    )
    return plan(situation, session.order.only)


def _describe_plan(
    watched: Trial, base: Trial, steps: int, changes: files.FileChanges
) -> events.TuningPlanned:
    """Return the record that completes the plan."""
    assert watched.lane is not None and base.step_s is not None
    written = [*changes.written, *changes.changed]
    return events.TuningPlanned(
        steps=steps,
        step_s=base.step_s,
        process_s=base.ended.elapsed_s,
        parts=shares_of(watched.lane.last, lacking(watched.lane.steps)),
        disabled=base.ended.watched.switched_off(),
        written=[show(path, 200) for path in written[:_MOST_RECORDED]],
    )
