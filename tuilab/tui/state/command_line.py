"""The command lines that do what the screens do, ready to be pasted into a shell."""

import os
from collections.abc import Sequence
from pathlib import Path

from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Param, Scenario, Value
from tuilab.errors import TuilabError
from tuilab.runs.command_line import line as line
from tuilab.runs.command_line import option_words, root_option
from tuilab.tui.state.draft import BUDGET, Draft, spelt
from tuilab.tui.state.own import own_form
from tuilab.tui.state.own.own_commands import OwnCommand


def chosen_line(
    draft: Draft | None,
    shown: Sequence[Scenario],
    root: Path,
    folders: Sequence[str],
    *,
    is_whole: bool,
) -> str:
    """Return the command that runs a draft; without one, what is shown of a topic, which may be all of it."""
    try:
        if draft is None and shown and isinstance(shown[0], OwnCommand):
            return line(["tuilab", "runs", *root_option(root)])
        if draft and draft.command:
            return own_form.run_line(draft.text, root)
        if draft is None:
            return line(topic_words(shown, root, folders, is_whole=is_whole))
        if draft.scenario.error:
            return line(check_words(draft.scenario.path))
        return line(run_words(draft, root, folders))
    except TuilabError:  # the form tells what is wrong
        if draft and draft.command:
            return line(["tuilab", "exec", "--help"])
        return line(["tuilab", "run", draft.scenario.id if draft else shown[0].topic, "--help"])


def run_words(draft: Draft, root: Path, folders: Sequence[str] = ()) -> list[str]:
    """Return the words of the command that runs a draft; UsageError when it cannot be run as it is."""
    if draft.command:
        return own_form.run_words(draft.text, root)
    words = ["tuilab", "run", _name(draft.scenario, folders)]
    params = {param.name: param for param in draft.scenario.params}
    words += [word for name, value in draft.given.items() for word in _option(params[name], value)]
    words += ["--quick"] if draft.is_quick else []
    words += ["--repeat", str(draft.repeats)] if draft.repeats else []
    words += ["--budget", draft.text(BUDGET).strip()] if draft.budget_s else []
    words += ["--timeout", f"{draft.timeout_s:g}"] if draft.timeout_s else []
    return words + _folders(draft.scenario.path, root, folders)


def topic_words(
    shown: Sequence[Scenario], root: Path, folders: Sequence[str], *, is_whole: bool
) -> list[str]:
    """Return the words of the command that runs a topic, or what is shown of it."""
    topic, options = shown[0].topic, _folders(shown[0].path, root, folders)
    names = [_name(one, folders) for one in shown if not one.error]
    if names and (not is_whole or any(name.endswith(".py") for name in names)):
        return ["tuilab", "run", *names, *options]
    return (
        ["tuilab", "run", *options, "--", topic]
        if topic.startswith("-")
        else ["tuilab", "run", topic, *options]
    )


def check_words(path: str) -> list[str]:
    """Return the words of the command that tells what is wrong with a scenario file."""
    return ["tuilab", "check", path]


def _name(scenario: Scenario, folders: Sequence[str]) -> str:
    """Return what a scenario is called on the command line: its file where that lies in no folder of the catalogue."""
    there = [
        folder for folder in folders if os.path.isdir(folder)
    ]  # one may have gone since the screens were opened
    homes = [os.path.join(folder, "") for folder in catalog.scenario_dirs(there)]
    return scenario.id if any(scenario.path.startswith(home) for home in homes) else scenario.path


def _option(param: Param, value: Value) -> list[str]:
    return option_words(param.name, value if isinstance(value, bool) else spelt(param, value))


def _folders(path: str, root: Path, folders: Sequence[str]) -> list[str]:
    """Return the options that say where scenario and runs are, where that is not the usual place."""
    homes = [folder for folder in folders if path.startswith(os.path.realpath(folder) + os.sep)]
    words = [word for folder in homes for word in ("--scenarios", os.fspath(folder))]
    return [*words, *root_option(root)]
