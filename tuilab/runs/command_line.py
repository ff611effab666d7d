"""Spell command lines that can be pasted into a shell: those that repeat a run, and hints."""

import os
import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tuilab.defaults import MAX_REPEATS
from tuilab.errors import TuilabError
from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict
from tuilab.storage import places
from tuilab.text.display import GONE, show

if TYPE_CHECKING:
    from tuilab.record.events import RunStarted, Scalar
    from tuilab.record.summary import RunSummary

PathLike = str | os.PathLike[str]

_FOLDER_OPTION = "--scenarios"
_ARM_OPTION = "--arm"
_COMMAND_VERBS = ("exec", "ab", "tune")  # subcommands that run a command of the user's
_SHOWING = {"--headless", "--detach", "--beside", "--json", "--jsonl", "--quiet", "--strict"}
_SHOWING_WITH_VALUE = {"--report", "--fps", "--root"}
_PLANNED = {"--repeat", "--budget", "--timeout"}
_PLANNED_OF_TUNE = {"--budget", "--only", "--timeout"}


# ---- repeating a run


def rerun_line(run: "RunStarted", repeats: int) -> str:
    """Return the command line that repeats a run, wherever it is pasted."""
    return in_folder(run, rerun_words(run, repeats))


def in_folder(run: "RunStarted", words: Sequence[str]) -> str:
    """Return a command line that first changes to the folder in which a user's command ran."""
    if run.folder:
        return f"cd {line([run.folder])} && {line(words)}"
    return line(words)


def deciding_line(summary: "RunSummary", root: PathLike | None = None) -> str:
    """Return the command line of a run that probably decides the inconclusive claims of a run.

    It is a run that is not quick, or one with as many repeats as the claims need. Empty if no such
    run is known, for example because the machine was too busy or the run failed. With a folder of
    runs, the new run is recorded there.
    """
    run = summary.run
    if run is None or summary.state != RunState.SUCCEEDED or run.sweep:
        return ""
    if any(GONE in word for word in run.argv):
        return ""
    from tuilab.record.tuning.stages import tunes_script

    if tunes_script(run):
        return retune_line(run, _list_inconclusive(summary), root)
    claims = [claim for claim in summary.claims.values() if claim.outcome == Verdict.INCONCLUSIVE]
    needed = []  # repeats, for each claim of which it is known
    for claim in claims:
        if claim.verdict and claim.verdict.more_repeats:
            needed.append(claim.verdict.units + claim.verdict.more_repeats)
    repeats = max((count for count in needed if 0 < count <= MAX_REPEATS), default=0)
    is_quick = run.quick and "--quick" in run.argv
    if not repeats and not (is_quick and claims):
        return ""
    root_words = root_option(root) if root else []
    if run.command:
        words = [*verb_of(run, _PLANNED), "--repeat", str(repeats), *root_words]
        return in_folder(run, [*words, "--headless", "--", *run.command])
    return line(rerun_words(_without_limits(run), repeats) + root_words)


def _list_inconclusive(summary: "RunSummary") -> list[str]:
    """Return the names of the treatments of a tuning that are inconclusive, each once.

    A treatment is a change to a training. One that is faster needs no further tuning, but a
    comparison of what the script learns.
    """
    from tuilab.record.tuning.outcomes import outcome_of

    names = []
    for arm, planned in summary.tuning.treatments.items():
        if outcome_of(arm, summary).outcome == Verdict.INCONCLUSIVE:
            names.append(planned.name)
    return list(dict.fromkeys(names))


def retune_line(run: "RunStarted", names: Sequence[str], root: PathLike | None = None) -> str:
    """Return the command line that tunes again with these treatments only, in twice the budget.

    Empty if the run has no budget, or if no treatments are named.
    """
    if not names or not run.budget_s:
        return ""
    words = verb_of(run, _PLANNED_OF_TUNE)
    words += ["--budget", f"{2 * run.budget_s:g}s", "--only", ",".join(names)]
    if root:
        words += root_option(root)
    return in_folder(run, [*words, "--", *run.command])


def _without_limits(run: "RunStarted") -> "RunStarted":
    """Return a run as it would be without --quick, --budget and --timeout.

    A quick run has smaller sizes that the user did not type. They are left out.
    """
    from msgspec.structs import replace

    from tuilab.catalogue.params import option_of

    changed = list(run.changed)
    if run.quick:
        typed = {word.partition("=")[0] for word in run.argv}
        changed = []
        for name in run.changed:
            option = option_of(name)
            if option in typed or f"--no-{option[2:]}" in typed:
                changed.append(name)
    return replace(run, quick=False, budget_s=None, looks=[], timeout_s=None, changed=changed)


def why_not_again(run: "RunStarted") -> str:
    """Return why the command line of a run does not repeat it as it is; empty if it does."""
    words = list(run.command)
    if not run.command:
        words = [value for value in changes(run).values() if isinstance(value, str)]
    if any(GONE in word for word in words):
        return f"the command contains a secret, which tuilab does not store: replace {GONE} with it"
    return ""


def rerun_words(run: "RunStarted", repeats: int) -> list[str]:
    """Return the words of the command that repeats a run: its changed parameters and its plan.

    A run of a user's command is repeated by its own words. `--repeat` is left out if the repeats
    followed from interim looks at the verdicts.
    """
    from tuilab.record.tuning.stages import tunes_script

    if tunes_script(run):  # without --headless: a tuning asks before it starts the script often
        return [*verb_of(run), "--", *run.command]
    if run.command:
        return [*verb_of(run), "--headless", "--", *run.command]
    # imported here: `tuilab runs` shows commands, but no parameters
    from tuilab.catalogue.params import spell

    words = ["tuilab", "run", file_of(run) or run.scenario]
    for name, value in changes(run).items():
        if isinstance(value, bool):
            words += option_words(name, value)
        else:
            words += option_words(name, spell(value))
    if run.quick:
        words.append("--quick")
    if run.budget_s:
        words += ["--budget", f"{run.budget_s:g}s"]
    if repeats > 1 and not run.looks:
        words += ["--repeat", str(repeats)]
    if run.timeout_s:
        words += ["--timeout", f"{run.timeout_s:g}"]
    for folder in _values_of(run.argv, _FOLDER_OPTION):
        words += [_FOLDER_OPTION, folder]
    words += _cluster_options(run)
    words.append("--headless")
    return words


def _cluster_options(run: "RunStarted") -> list[str]:
    """Return the options that place a run on a node of a cluster, or its ranks on as many nodes.

    There are none for a run outside of a cluster.
    """
    if not run.node:
        return []
    words = ["--engine", "ray"]
    argv = run.sweep.argv if run.sweep else run.argv
    for option in ("--address", "--gpus"):
        values = _values_of(argv, option)
        if values:
            words += [option, values[-1]]
    if run.nodes:
        words += ["--nnodes", str(len(run.nodes))]
    return words


def option_words(name: str, value: bool | str) -> list[str]:
    """Return the words that give a parameter a value.

    A text that begins with a dash is joined to the option, or it would be read as an option.
    """
    from tuilab.catalogue.params import option_of

    option = option_of(name)
    if isinstance(value, bool):
        return [option if value else f"--no-{option[2:]}"]
    if value.startswith("-"):
        return [f"{option}={value}"]
    return [option, value]


# ---- spelling


def line(words: Sequence[str]) -> str:
    """Return words as a shell reads them; a home folder that is written `~` stays `~`."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word == "~":
        return word
    if word.startswith("~/") and word != "~/":
        return f"~/{shlex.quote(word[2:])}"
    return shlex.quote(word)


def short(words: Sequence[str]) -> str:
    """Return a command for a list: without the folder of its program."""
    if not words:
        return ""
    program, *arguments = words
    return line([os.path.basename(program) or program, *arguments])


def root_option(root: PathLike) -> list[str]:
    """Return the option with which a command finds the runs; empty for the usual folder."""
    try:
        is_usual = os.path.abspath(root) == os.path.abspath(places.runs_folder())
    except TuilabError:
        is_usual = False
    if is_usual:
        return []
    return ["--root", str(root)]


def hint(root: PathLike | Sequence[PathLike], *words: str) -> str:
    """Return a command of tuilab to show to users, with the options that find its runs."""
    if isinstance(root, str | os.PathLike):
        roots = [root]
    else:
        roots = list(dict.fromkeys(root))
    options = []
    if len(roots) == 1:
        options = root_option(roots[0])
    else:
        for folder in roots:
            options += ["--root", str(folder)]
    return show(line(["tuilab", *words, *options]))


# ---- what was typed


def changes(run: "RunStarted") -> "dict[str, Scalar]":
    """Return the parameters that differ from the scenario's defaults."""
    return {name: run.params[name] for name in run.changed if name in run.params}


def file_of(run: "RunStarted") -> str:
    """Return the scenario file that the command line named; empty if it named a scenario."""
    for word in run.argv:
        if word.rpartition("/")[2] == f"{run.scenario}.py":
            return word
    return ""


def verb_of(run: "RunStarted", left_out: Collection[str] = ()) -> list[str]:
    """Return `tuilab`, the subcommand that ran a command of the user's, and its options.

    Options about the display are left out, and those named in `left_out`, each with its value.
    Without a subcommand in the record, `exec` is assumed.
    """
    positions = [position for position, word in enumerate(run.argv) if word in _COMMAND_VERBS]
    if not positions:
        return ["tuilab", _COMMAND_VERBS[0]]
    position = positions[0]
    options = run.argv[position + 1 : len(run.argv) - len(run.command)]
    words = ["tuilab", run.argv[position]]
    is_left_out = False  # the next word is the value of an option that was left out
    for word in options:
        if is_left_out:
            is_left_out = False
            continue
        name = word.partition("=")[0]
        if name in _SHOWING_WITH_VALUE or name in left_out:
            is_left_out = "=" not in word
        elif word not in _SHOWING and word != "--":
            words.append(word)
    return words


def arms_of(run: "RunStarted") -> list[str]:
    """Return the arms of a comparison of commands as they were typed; empty for another run."""
    if not run.command:
        return []
    arms = []
    for arm in _values_of(verb_of(run), _ARM_OPTION):
        if ":" in arm:
            arms.append(arm)
        else:
            arms.append(f"{arm}: as it is")
    return arms


def _values_of(words: Sequence[str], option: str) -> list[str]:
    """Return the values that a command line gives an option, in order."""
    values = []
    previous = ""
    for word in words:
        if word.startswith(f"{option}="):
            values.append(word.partition("=")[2])
        elif previous == option:
            values.append(word)
        previous = word
    return values
