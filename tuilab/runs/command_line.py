"""The command line that makes a recorded run again, ready to be pasted into a shell."""

import os
import shlex
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

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
_COMMAND_VERBS = ("exec", "ab")  # that run commands of the user's
_SHOWING = {"--headless", "--detach", "--beside", "--json", "--jsonl", "--quiet", "--strict"}
_SHOWING_WITH_VALUE = {"--report", "--fps", "--root"}
_PLANNED = {"--repeat", "--budget", "--timeout"}
_MOST_REPEATS = 1000


def rerun_line(run: "RunStarted", repeats: int) -> str:
    """Return the line that makes a run again, wherever it is pasted: a command of the user's wants its folder."""
    return _where_it_ran(run, rerun_words(run, repeats))


def _where_it_ran(run: "RunStarted", words: Sequence[str]) -> str:
    return f"cd {line([run.folder])} && {line(words)}" if run.folder else line(words)


def deciding_line(summary: "RunSummary", root: PathLike | None = None) -> str:
    """Return the line of a run that likely decides what this one left open: a whole one, or one of as many repeats as it needs.

    Nothing where none is known to, as where the box was too busy or the run failed. With a folder of runs the line finds it.
    """
    run, left = (
        summary.run,
        [
            claim.verdict
            for claim in summary.claims.values()
            if claim.outcome == Verdict.INCONCLUSIVE
        ],
    )
    needed = [
        verdict.units + verdict.more_repeats for verdict in left if verdict and verdict.more_repeats
    ]
    repeats = max((count for count in needed if count <= _MOST_REPEATS), default=0)
    if (
        run is None
        or summary.state != RunState.SUCCEEDED
        or run.sweep
        or any(GONE in word for word in run.argv)
    ):
        return ""
    if not (repeats or (run.quick and left and "--quick" in run.argv)):
        return ""
    where = root_option(root) if root else []
    if run.command:
        words = [
            *verb_of(run, _PLANNED),
            "--repeat",
            str(repeats),
            *where,
            "--headless",
            "--",
            *run.command,
        ]
        return _where_it_ran(run, words)
    return line([*rerun_words(_whole(run), repeats), *where])


def _whole(run: "RunStarted") -> "RunStarted":
    """Return a run as it would be with all the time that it takes, and without smaller sizes, which nobody typed."""
    from msgspec.structs import replace

    from tuilab.catalogue.params import option_of

    typed = {word.partition("=")[0] for word in run.argv}
    kept = [
        name
        for name in run.changed
        if not run.quick or typed & {option_of(name), f"--no-{option_of(name)[2:]}"}
    ]
    return replace(run, quick=False, budget_s=None, looks=[], timeout_s=None, changed=kept)


def why_not_again(run: "RunStarted") -> str:
    """Return why the line that makes a run again does not do so as it stands; nothing where it does."""
    values = (
        [] if run.command else [value for value in changes(run).values() if isinstance(value, str)]
    )
    has_gone = any(GONE in word for word in [*run.command, *values])
    return (
        f"the command contains a secret, which tuilab does not store: replace {GONE} with it"
        if has_gone
        else ""
    )


def rerun_words(run: "RunStarted", repeats: int) -> list[str]:
    """Return the words of the command that runs a scenario as it ran: what differs from its defaults, and its repeats."""
    if run.command:
        return [*verb_of(run), "--headless", "--", *run.command]
    from tuilab.catalogue.params import spell  # `tuilab runs` tells commands, but no parameters

    words = ["tuilab", "run", file_of(run) or run.scenario]
    for name, value in changes(run).items():
        words += option_words(name, value if isinstance(value, bool) else spell(value))
    words += ["--quick"] if run.quick else []
    words += ["--budget", f"{run.budget_s:g}s"] if run.budget_s else []
    words += ["--repeat", str(repeats)] if repeats > 1 and not run.looks else []
    words += ["--timeout", f"{run.timeout_s:g}"] if run.timeout_s else []
    words += [
        word for folder in _given(run.argv, _FOLDER_OPTION) for word in (_FOLDER_OPTION, folder)
    ]
    return [*words, *_cluster_options(run), "--headless"]


def _cluster_options(run: "RunStarted") -> list[str]:
    """Return what has a run carried out on a node of a cluster, or its ranks divided over as many as they were."""
    if not run.node:
        return []
    words, argv = ["--engine", "ray"], run.sweep.argv if run.sweep else run.argv
    for option in ("--address", "--gpus"):
        words += [word for value in _given(argv, option)[-1:] for word in (option, value)]
    return [*words, *(["--nnodes", str(len(run.nodes))] if run.nodes else [])]


def option_words(name: str, value: bool | str) -> list[str]:
    """Return the words that give a parameter a value; a text that begins with a dash is no option of its own."""
    from tuilab.catalogue.params import option_of

    word = option_of(name)
    if isinstance(value, bool):
        return [word if value else f"--no-{word[2:]}"]
    return [f"{word}={value}"] if value.startswith("-") else [word, value]


def line(words: Sequence[str]) -> str:
    """Return words as a shell takes them; a home that is written `~` stays one."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if word == "~":
        return word
    return f"~/{shlex.quote(word[2:])}" if word[:2] == "~/" and word[2:] else shlex.quote(word)


def short(words: Sequence[str]) -> str:
    """Return a command as a list has room for it: without the folder of its program."""
    return line([os.path.basename(words[0]) or words[0], *words[1:]]) if words else ""


def root_option(root: PathLike) -> list[str]:
    """Return the option that a command needs to find the runs; none where it finds them by itself."""
    try:
        is_usual = os.path.abspath(root) == os.path.abspath(places.runs_folder())
    except TuilabError:
        is_usual = False
    return [] if is_usual else ["--root", str(root)]


def hint(root: PathLike | Sequence[PathLike], *words: str) -> str:
    """Return a command of tuilab as it is told to people: it finds the runs that it is about, wherever they are."""
    roots = [root] if isinstance(root, str | os.PathLike) else [*dict.fromkeys(root)]
    where = (
        root_option(roots[0])
        if len(roots) == 1
        else [word for one in roots for word in ("--root", str(one))]
    )
    return show(line(["tuilab", *words, *where]))


def changes(run: "RunStarted") -> "dict[str, Scalar]":
    """Return the parameters that differ from the scenario's defaults."""
    return {name: run.params[name] for name in run.changed if name in run.params}


def file_of(run: "RunStarted") -> str:
    """Return the file that was named on the command line, when the run was made from one."""
    return next((word for word in run.argv if word.rpartition("/")[2] == f"{run.scenario}.py"), "")


def verb_of(run: "RunStarted", but: Collection[str] = ()) -> list[str]:
    """Return how a command of the user's was run: the verb, and its options but for these and those about what is shown."""
    verb = next((word for word in run.argv if word in _COMMAND_VERBS), "")
    options = iter(
        run.argv[run.argv.index(verb) + 1 : len(run.argv) - len(run.command)] if verb else []
    )
    kept = []
    for word in options:
        name = word.partition("=")[0]
        if name in _SHOWING_WITH_VALUE or name in but:
            if "=" not in word:
                next(options, None)
        elif word not in _SHOWING and word != "--":
            kept.append(word)
    return ["tuilab", verb or _COMMAND_VERBS[0], *kept]


def arms_of(run: "RunStarted") -> list[str]:
    """Return what each arm of a race of commands is, as it was written; nothing of another run."""
    given = _given(verb_of(run), _ARM_OPTION) if run.command else []
    return [arm if ":" in arm else f"{arm}: as it is" for arm in given]


def _given(words: Sequence[str], option: str) -> list[str]:
    """Return what an option was given on a command line, in order."""
    return [
        word.partition("=")[2] if word.startswith(f"{option}=") else word
        for before, word in pairwise(["", *words])
        if before == option or word.startswith(f"{option}=")
    ]
