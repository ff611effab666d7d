"""The command lines that do the same as the screens, ready to be pasted into a shell."""

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
    """Return the command that runs a draft.

    Without a draft, return the command that runs the shown scenarios of a topic; `is_whole` if they
    are all of it. If the file of the scenario has an error, return the command that reports it. If
    a draft has a wrong value, which its form shows, return a command for help.
    """
    if draft is None:
        return _topic_line(shown, root, folders, is_whole=is_whole)
    try:
        if draft.command:
            return own_form.run_line(draft.text, root)
        if draft.scenario.error:
            return line(check_words(draft.scenario.path))
        return line(run_words(draft, root, folders))
    except TuilabError:
        if draft.command:
            return line(["tuilab", "exec", "--help"])
        return line(["tuilab", "run", draft.scenario.id, "--help"])


def _topic_line(
    shown: Sequence[Scenario], root: Path, folders: Sequence[str], *, is_whole: bool
) -> str:
    """Return the command that runs the shown scenarios of a topic.

    Commands of the user cannot be run together: for them, return the command that lists runs. If
    the folders of scenarios cannot be read, return a command for help.
    """
    if shown and isinstance(shown[0], OwnCommand):
        return line(["tuilab", "runs", *root_option(root)])
    try:
        return line(topic_words(shown, root, folders, is_whole=is_whole))
    except TuilabError:
        return line(["tuilab", "run", shown[0].topic, "--help"])


def run_words(draft: Draft, root: Path, folders: Sequence[str] = ()) -> list[str]:
    """Return the words of the command that runs a draft.

    Raise UsageError if the draft has a wrong value.
    """
    if draft.command:
        return own_form.run_words(draft.text, root)
    params = {param.name: param for param in draft.scenario.params}
    words = ["tuilab", "run", _name(draft.scenario, folders)]
    for name, value in draft.given.items():
        words += _option(params[name], value)
    if draft.is_quick:
        words.append("--quick")
    if draft.repeats:
        words += ["--repeat", str(draft.repeats)]
    if draft.budget_s:
        words += ["--budget", draft.text(BUDGET).strip()]
    if draft.timeout_s:
        words += ["--timeout", f"{draft.timeout_s:g}"]
    return words + _folder_options(draft.scenario.path, root, folders)


def topic_words(
    shown: Sequence[Scenario], root: Path, folders: Sequence[str], *, is_whole: bool
) -> list[str]:
    """Return the words of the command that runs a topic, or the shown scenarios of it.

    Scenarios are named one by one if some are hidden, or if one is in none of the folders.
    Scenarios whose files have an error are left out then.
    """
    topic = shown[0].topic
    options = _folder_options(shown[0].path, root, folders)
    names = [_name(scenario, folders) for scenario in shown if not scenario.error]
    has_files = any(name.endswith(".py") for name in names)
    if names and (not is_whole or has_files):
        return ["tuilab", "run", *names, *options]
    # Without `--`, such a topic would be taken for an option.
    if topic.startswith("-"):
        return ["tuilab", "run", *options, "--", topic]
    return ["tuilab", "run", topic, *options]


def check_words(path: str) -> list[str]:
    """Return the words of the command that reports what is wrong with a scenario file."""
    return ["tuilab", "check", path]


def _name(scenario: Scenario, folders: Sequence[str]) -> str:
    """Return the id of a scenario; its path if its file is in no folder of the catalogue."""
    # A folder may have been deleted since the screens were opened.
    existing = [folder for folder in folders if os.path.isdir(folder)]
    for folder in catalog.scenario_dirs(existing):
        if scenario.path.startswith(os.path.join(folder, "")):
            return scenario.id
    return scenario.path


def _option(param: Param, value: Value) -> list[str]:
    """Return the words that set a parameter."""
    if isinstance(value, bool):
        return option_words(param.name, value)
    return option_words(param.name, spelt(param, value))


def _folder_options(path: str, root: Path, folders: Sequence[str]) -> list[str]:
    """Return the options for the folders of a scenario and of the runs, without usual folders."""
    options = []
    for folder in folders:
        if path.startswith(os.path.realpath(folder) + os.sep):
            options += ["--scenarios", os.fspath(folder)]
    return [*options, *root_option(root)]
