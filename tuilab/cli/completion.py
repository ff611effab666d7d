"""Complete words of the command line when tab is pressed: scenarios, runs, tags, files and folders.

No offered word contains anything that a terminal or the shell would obey. The words behind `--` are
the user's own command: each shell completes those itself, without asking tuilab.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

# Every subcommand imports this module, and few runs of it complete anything. So the functions
# import what they need.
if TYPE_CHECKING:
    from pathlib import Path

_WITH_COMMAND = ("exec", "ab", "tune", "sweep")  # subcommands that take a command behind --
_ALTERNATIVES = "|".join(_WITH_COMMAND)

_BASH = f"""
    local at begun=${{COMP_WORDS[COMP_CWORD]}}
    for ((at = 2; at < COMP_CWORD; at++)); do
        if [[ ${{COMP_WORDS[at]}} == -- && ${{COMP_WORDS[1]}} == @({_ALTERNATIVES}) ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
                return
            fi
            compopt -o default
            [[ $at == $((COMP_CWORD - 1)) && $begun != */* ]] && \
mapfile -t COMPREPLY < <(compgen -c -- "$begun")
            return 0
        fi
    done
"""
_ZSH = f"""
    local at=${{words[(ie)--]}}
    if (( at < CURRENT )) && [[ ${{words[2]}} == ({_ALTERNATIVES}) ]]; then
        shift $at words
        (( CURRENT -= at ))
        _normal
        return
    fi
"""
_FISH = f"""
    set -l words (commandline -cpo);
    if contains -- -- $words; and contains -- "$words[2]" {" ".join(_WITH_COMMAND)};
        complete -C (commandline -cp | string replace -r '^.*?\\s--\\s+' '');
        return;
    end;
"""
_OWN_PARTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
# The start of the function of click that asks tuilab: in bash and zsh, and in fish.
_FUNCTION_STARTS = (
    "%(complete_func)s() {\n",
    "function %(complete_func)s;\n",
)

_MOST_RUNS = 50  # that are offered
_SAFE_IN_BASH = "_@%+=:,./~-"  # besides letters and digits


# ---- the shells


def add_own_part(template: str, shell: str) -> str:
    """Return click's script for a shell with the part that completes a command behind `--`."""
    own_part = _OWN_PARTS[shell].lstrip("\n")
    for start in _FUNCTION_STARTS:
        template = template.replace(start, start + own_part, 1)
    return template


def guard_shells() -> None:
    """Replace click's completion of every shell by a guarded one.

    It offers only words that neither a terminal nor the shell would obey.
    """
    from click import shell_completion

    for shell_class in (
        shell_completion.BashComplete,
        shell_completion.ZshComplete,
        shell_completion.FishComplete,
    ):
        shell_completion.add_completion_class(_make_guarded(shell_class), shell_class.name)


def _make_guarded(shell_class: type[Any]) -> type[Any]:
    """Return click's completion of a shell, without unsafe words and with our own part."""
    from tuilab.text.display import show

    class GuardedCompletion(shell_class):  # type: ignore[misc]
        source_template = add_own_part(shell_class.source_template, shell_class.name)

        def get_completions(self, args: list[str], incomplete: str) -> list[Any]:
            """Return the safe items, with helps that a terminal can show."""
            items = []
            for item in super().get_completions(args, incomplete):
                if _is_safe(item, shell_class.name):
                    item.help = show(item.help, 200) if item.help else None
                    items.append(item)
            return items

    return GuardedCompletion


def _is_safe(item: Any, shell: str) -> bool:
    """Return whether a shell can show a word and put it on the command line.

    bash puts a word on the line without quotes, so that blanks and `$(...)` would be executed. An
    item that is not plain is safe: the shell itself offers the names of files and folders then.
    """
    if item.type != "plain":
        return True
    word = str(item.value)
    if shell != "bash":
        return word.isprintable()
    has_safe_characters = all(
        character.isalnum() or character in _SAFE_IN_BASH for character in word
    )
    return bool(word) and word[0] != "~" and word.isprintable() and has_safe_characters


# ---- files and folders


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Let the shell offer files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Let the shell offer folders."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def _is_path(incomplete: str) -> bool:
    """Return whether the typed word is a path and not a name."""
    return incomplete.startswith((".", "/", "~")) or os.sep in incomplete


# ---- scenarios and claims


def scenarios(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer topics and scenarios; if the typed word is a path, offer files."""
    if _is_path(incomplete):
        return files(ctx, param, incomplete)
    from tuilab.catalogue import catalog

    listed = catalog.load(ctx.params.get("scenarios") or [])
    words = {"all": "every scenario"}
    for scenario in listed:
        words[scenario.topic] = "a topic"
    for scenario in listed:
        words[scenario.id] = scenario.title
    return _make_items(words, incomplete)


def claims(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the keys of the claims of `--scenario`, which may be a topic, or of all scenarios."""
    from tuilab.catalogue import catalog

    name = ctx.params.get("scenario")
    texts: dict[str, str] = {}
    has_scenario = False
    for scenario in catalog.load([]):
        if not name or name in (scenario.id, scenario.topic):
            has_scenario = True
            texts |= {claim.key: claim.text for claim in scenario.claims}
    if not has_scenario:
        texts = _read_recorded_claims(ctx, name)
    texts.pop("", None)  # claims without a key
    return _make_items(texts, incomplete)


def _read_recorded_claims(ctx: click.Context, name: str | None) -> dict[str, str]:
    """Return the claims by key of a scenario of the user's own, as it was in its newest run.

    Empty if none of the newest runs is of this scenario.
    """
    from tuilab.catalogue.source import read_recorded
    from tuilab.runs.run_name import RunName

    for run_dir in _newest_runs(ctx):
        if RunName(run_dir.name).scenario == name:
            scenario, _ = read_recorded(run_dir / "scenario.py", "", name or "")
            return {claim.key: claim.text for claim in scenario.claims}
    return {}


# ---- runs

_LATEST = {"last": "the newest run", "last~1": "the second newest run"}


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest runs."""
    return _offer_runs(ctx, incomplete, _LATEST)


def runs_or_all(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest runs, and `all`."""
    words = {"all": "the newest successful run of every scenario", **_LATEST}
    return _offer_runs(ctx, incomplete, words)


def runs_or_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer runs; if the typed word is a path, or no run starts with it, offer folders of runs."""
    items = [] if _is_path(incomplete) else runs(ctx, param, incomplete)
    return items or folders(ctx, param, incomplete)


def unfinished_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest runs that are running or queued."""
    return _offer_runs(ctx, incomplete, {}, is_running=True)


def finished_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest finished runs."""
    return _offer_runs(ctx, incomplete, {}, is_running=False)


def _offer_runs(
    ctx: click.Context, incomplete: str, words: dict[str, str], *, is_running: bool | None = None
) -> list[Any]:
    """Offer `words`, and the newest runs that the command line does not name yet.

    With `is_running`, only runs that are unfinished (True) or finished (False) are offered, and the
    record of each run is read. Without it, names are enough.
    """
    from click.shell_completion import CompletionItem

    from tuilab.runs.index import Index
    from tuilab.runs.run_name import RunName

    named = set()
    for value in ctx.params.values():
        if isinstance(value, list | tuple):
            named |= set(value)
    items = _make_items(words, incomplete)
    indexes: dict[str, Index] = {}
    for run_dir in _newest_runs(ctx):
        name = RunName(run_dir.name)
        if not name.id.startswith(incomplete) or name.id in named:
            continue
        index = indexes.setdefault(str(run_dir.parent), Index(run_dir.parent))
        if is_running is None or index.entry(run_dir.name).is_running is is_running:
            about = f"{name.scenario or name.text}, {name.started}"
            items.append(CompletionItem(name.id, help=about))
    return items


def _newest_runs(ctx: click.Context) -> "Sequence[Path]":
    """Return the newest runs in the folders that the command line names, or in the usual one."""
    from tuilab.cli import options
    from tuilab.runs import store

    roots = ctx.params.get("roots")
    if not roots:
        # The subcommands of `queue` take --root, and so does `queue` before them.
        root_before = ctx.parent.params.get("root") if ctx.parent else None
        root = ctx.params.get("root") or root_before
        roots = [root] if root else []
    return store.newest(options.root_paths(roots))[:_MOST_RUNS]


# ---- sweeps


def sweeps(ctx: click.Context, param: click.Parameter | None, incomplete: str) -> list[Any]:
    """Offer the sweeps of the newest runs."""
    from tuilab.runs.index import Index

    indexes: dict[str, Index] = {}
    words = {"sweep-last": "the newest sweep"}
    for run_dir in _newest_runs(ctx):
        index = indexes.setdefault(str(run_dir.parent), Index(run_dir.parent))
        entry = index.entry(run_dir.name)
        if entry.sweep:
            words[entry.sweep] = entry.name
    return _make_items(words, incomplete)


def runs_or_sweeps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    return runs(ctx, param, incomplete) + _sweeps_if_typed(ctx, incomplete)


def runs_or_all_or_sweeps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    return runs_or_all(ctx, param, incomplete) + _sweeps_if_typed(ctx, incomplete)


def unfinished_runs_or_sweeps(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[Any]:
    return unfinished_runs(ctx, param, incomplete) + _sweeps_if_typed(ctx, incomplete)


def _sweeps_if_typed(ctx: click.Context, incomplete: str) -> list[Any]:
    """Offer sweeps if the typed word starts like one: only then are the runs read for them."""
    if not incomplete or not "sweep-".startswith(incomplete[:6]):
        return []
    return sweeps(ctx, None, incomplete)


# ---- tags


def tag_option(name: str, help: str) -> click.Option:
    """Return an option that takes tags."""
    return click.Option(
        [name, f"{name[2:]}s"], multiple=True, metavar="WORD", help=help, shell_complete=_tags
    )


def _tags(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the tags of the newest runs."""
    from tuilab.runs import notes

    tags: set[str] = set()
    for run_dir in _newest_runs(ctx):
        tags |= set(notes.read(run_dir).tags)
    return _make_items(dict.fromkeys(sorted(tags)), incomplete)


def _make_items(words: Mapping[str, str | None], incomplete: str) -> list[Any]:
    """Return the words that start with the typed word, each with its help."""
    from click.shell_completion import CompletionItem

    items = []
    for word, text in words.items():
        if word.startswith(incomplete):
            items.append(CompletionItem(word, help=text))
    return items
