"""What a shell offers when tab is pressed: scenarios, runs, tags, files and folders; nothing that a terminal would obey.

What stands behind `--` is the user's own command: there each shell completes by itself, without asking tuilab.
"""

import os
from collections.abc import Iterable
from itertools import islice
from typing import Any

import click

_VERBS = ("exec", "ab", "sweep")  # that take one

_BASH = f"""
    local at begun=${{COMP_WORDS[COMP_CWORD]}}
    for ((at = 2; at < COMP_CWORD; at++)); do
        if [[ ${{COMP_WORDS[at]}} == -- && ${{COMP_WORDS[1]}} == @({"|".join(_VERBS)}) ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
                return
            fi
            compopt -o default
            [[ $at == $((COMP_CWORD - 1)) && $begun != */* ]] && mapfile -t COMPREPLY < <(compgen -c -- "$begun")
            return 0
        fi
    done
"""
_ZSH = f"""
    local at=${{words[(ie)--]}}
    if (( at < CURRENT )) && [[ ${{words[2]}} == ({"|".join(_VERBS)}) ]]; then
        shift $at words
        (( CURRENT -= at ))
        _normal
        return
    fi
"""
_FISH = f"""
    set -l words (commandline -cpo);
    if contains -- -- $words; and contains -- "$words[2]" {" ".join(_VERBS)};
        complete -C (commandline -cp | string replace -r '^.*?\\s--\\s+' '');
        return;
    end;
"""
_OF = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_BEGINS = (
    "%(complete_func)s() {\n",
    "function %(complete_func)s;\n",
)  # the function of click's that asks us


_MOST = 50  # runs
_SAFE_IN_BASH = "_@%+=:,./~-"  # besides letters and digits


def with_own(template: str, shell: str) -> str:
    """Return click's function for a shell, with what that does by itself before it asks."""
    for begin in _BEGINS:
        template = template.replace(begin, begin + _OF[shell].lstrip("\n"), 1)
    return template


def guard() -> None:
    """Have every shell be offered words without what a terminal, or the shell, would obey, wherever they come from."""
    from click import shell_completion as click_has

    for kind in (click_has.BashComplete, click_has.ZshComplete, click_has.FishComplete):
        click_has.add_completion_class(_guarded(kind), kind.name)


def _guarded(kind: type[Any]) -> type[Any]:
    from tuilab.text.display import show

    class Guarded(kind):  # type: ignore[misc]
        source_template = with_own(kind.source_template, kind.name)

        def get_completions(self, args: list[str], incomplete: str) -> list[Any]:
            items = [
                item
                for item in super().get_completions(args, incomplete)
                if _is_offered(item, kind.name)
            ]
            for item in items:
                item.help = show(item.help, 200) if item.help else None
            return items

    return Guarded


def _is_offered(item: Any, shell: str) -> bool:
    """Return whether a shell can show a word and put it on the line; it knows the names of files and folders itself.

    bash puts a word on the line without quotes: blanks and `$(...)` would be executed.
    """
    if item.type != "plain":
        return True
    word = str(item.value)
    if shell != "bash":
        return word.isprintable()
    is_safe = all(character.isalnum() or character in _SAFE_IN_BASH for character in word)
    return bool(word) and word[0] != "~" and word.isprintable() and is_safe


def _is_path(incomplete: str) -> bool:
    """Return whether the word that is typed is a path, not a name."""
    return incomplete.startswith((".", "/", "~")) or os.sep in incomplete


def scenarios(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer topics and scenarios; where a path is begun, files."""
    from click.shell_completion import CompletionItem

    if _is_path(incomplete):
        return files(ctx, param, incomplete)
    from tuilab.catalogue import (
        catalog,
    )  # imported here: every subcommand imports this module, and most need no scenario

    names = {"all": "every scenario"}
    found = catalog.load(ctx.params.get("scenarios") or [])
    names |= {scenario.topic: "a topic" for scenario in found}
    names |= {scenario.id: scenario.title for scenario in found}
    return [
        CompletionItem(name, help=text)
        for name, text in names.items()
        if name.startswith(incomplete)
    ]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Have the shell offer files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest runs."""
    return _offer(ctx, incomplete, {"last": "the newest run", "last~1": "the second newest run"})


def runs_and_all(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest runs, and the one of every scenario that speaks for it."""
    more = {
        "all": "the newest successful run of every scenario",
        "last": "the newest run",
        "last~1": "the second newest run",
    }
    return _offer(ctx, incomplete, more)


def runs_and_all_or_sweeps(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[Any]:
    return [*runs_and_all(ctx, param, incomplete), *_sweeps_begun(ctx, incomplete)]


def runs_or_sweeps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    return [*runs(ctx, param, incomplete), *_sweeps_begun(ctx, incomplete)]


def sweeps(ctx: click.Context, param: click.Parameter | None, incomplete: str) -> list[Any]:
    """Offer the sweeps that the newest runs are of."""
    from click.shell_completion import CompletionItem

    from tuilab.runs.index import Index

    indexes: dict[str, Index] = {}
    found = {"sweep-last": "the newest sweep"}
    for run_dir in _newest(ctx):
        entry = indexes.setdefault(str(run_dir.parent), Index(run_dir.parent)).entry(run_dir.name)
        found |= {entry.sweep: entry.name} if entry.sweep else {}
    return [
        CompletionItem(name, help=about)
        for name, about in found.items()
        if name.startswith(incomplete)
    ]


def _sweeps_begun(ctx: click.Context, incomplete: str) -> list[Any]:
    """Offer sweeps where the name of one is begun: for others nothing is read of the runs."""
    begun = incomplete and "sweep-".startswith(incomplete[:6])
    return sweeps(ctx, None, incomplete) if begun else []


def going_on(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the runs that go on, or wait."""
    return _offer(ctx, incomplete, {}, is_running=True)


def going_on_or_sweeps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    return [*going_on(ctx, param, incomplete), *_sweeps_begun(ctx, incomplete)]


def over(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest runs that are over."""
    return _offer(ctx, incomplete, {}, is_running=False)


def runs_or_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer runs; where a path is begun, or no run begins so, folders of runs."""
    found = [] if _is_path(incomplete) else runs(ctx, param, incomplete)
    return found or folders(ctx, param, incomplete)


def tag_option(name: str, what: str) -> click.Option:
    """Return an option that takes tags."""
    return click.Option(
        [name, f"{name[2:]}s"], multiple=True, metavar="WORD", help=what, shell_complete=_tags
    )


def _tags(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the tags that the newest runs have."""
    from click.shell_completion import CompletionItem

    from tuilab.runs import notes

    found = (tag for run_dir in _newest(ctx) for tag in notes.read(run_dir).tags)
    return [
        CompletionItem(tag) for tag in sorted({tag for tag in found if tag.startswith(incomplete)})
    ]


def claims(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the keys of the claims of a scenario, or of all."""
    from click.shell_completion import CompletionItem

    from tuilab.catalogue import catalog
    from tuilab.catalogue.source import read_recorded
    from tuilab.runs.run_name import RunName

    wanted = ctx.params.get("scenario")
    listed = [one for one in catalog.load([]) if not wanted or wanted in (one.id, one.topic)]
    if not listed:  # one of the user's own, as it was when it last ran
        runs = (run for run in _newest(ctx) if RunName(run.name).scenario == wanted)
        listed = [
            read_recorded(run / "scenario.py", "", wanted or "")[0] for run in islice(runs, 1)
        ]
    keys = {claim.key: claim.text for one in listed for claim in one.claims}
    return [
        CompletionItem(key, help=text)
        for key, text in keys.items()
        if key and key.startswith(incomplete)
    ]


def _offer(
    ctx: click.Context, incomplete: str, more: dict[str, str], *, is_running: bool | None = None
) -> list[Any]:
    """Offer the newest runs, or those of them that go on, or that do not: only for these anything is read but names."""
    from click.shell_completion import CompletionItem

    from tuilab.runs.index import Index
    from tuilab.runs.run_name import RunName

    given = {
        word for value in ctx.params.values() if isinstance(value, list | tuple) for word in value
    }
    items = [CompletionItem(name, help=about) for name, about in more.items()]
    indexes: dict[str, Index] = {}
    for run_dir in _newest(ctx):
        name = RunName(run_dir.name)
        if not name.id.startswith(incomplete) or name.id in given:
            continue
        index = indexes.setdefault(str(run_dir.parent), Index(run_dir.parent))
        if is_running is None or index.entry(run_dir.name).is_running is is_running:
            items.append(
                CompletionItem(name.id, help=f"{name.scenario or name.text}, {name.started}")
            )
    return [item for item in items if item.value.startswith(incomplete)]


def _newest(ctx: click.Context) -> Iterable[Any]:
    from tuilab.cli import options
    from tuilab.runs import store

    before = (
        ctx.parent.params.get("root") if ctx.parent else None
    )  # of `queue`, before its commands
    given = ctx.params.get("roots") or [one for one in [ctx.params.get("root") or before] if one]
    return store.newest(options.roots(given))[:_MOST]
