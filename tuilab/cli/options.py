"""Options that several verbs share."""

from typing import TYPE_CHECKING, Any

import click

from tuilab import places
from tuilab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCENARIOS = click.Option(
    ["--scenarios"],
    multiple=True,
    type=click.Path(),
    metavar="DIR",
    help="A folder with scenarios of your own; may be repeated.",
)
ROOT = click.Option(
    ["--root"], type=click.Path(), metavar="DIR", help="The folder of runs (else TUILAB_ROOT, else your state folder)."
)
ROOTS = click.Option(
    ["--root", "roots"],
    type=click.Path(),
    multiple=True,
    metavar="DIR",
    help="A folder of runs; may be repeated for several boxes (else TUILAB_ROOT, else your state folder).",
)
FPS = click.Option(
    ["--fps"],
    type=click.FloatRange(0.1, 30),
    default=2.0,
    show_default=True,
    help="How often the screens draw what is new, in pictures a second.",
)
FOLDERS: list[click.Parameter] = [SCENARIOS, ROOT]


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, from `90`, `90s`, `2m` or `1.5h`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from tuilab.params import parse_duration  # `tuilab list` needs these options, but no parameters

        try:
            return parse_duration(str(value))
        except UsageError as problem:
            self.fail(str(problem), param, ctx)


def root(given: str | None) -> "Path":
    """Return the folder of runs that was asked for."""
    from pathlib import Path  # `tuilab list` needs these options, but no paths

    return Path(given or places.runs_folder())


def roots(given: "Sequence[str]") -> "list[Path]":
    """Return the folders of runs that were asked for, each once."""
    return list(dict.fromkeys(root(one) for one in given)) or [root(None)]


def complete_scenario(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer topics and scenarios to the shell."""
    from click.shell_completion import CompletionItem

    from tuilab import catalog

    listed = catalog.load([])
    names = {"all": "every scenario", **{s.topic: "a topic" for s in listed}, **{s.id: s.title for s in listed}}
    return [CompletionItem(name, help=text) for name, text in names.items() if name.startswith(incomplete)]


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest runs to the shell."""
    from click.shell_completion import CompletionItem

    from tuilab import store

    given = ctx.params.get("roots") or [one for one in [ctx.params.get("root")] if one]
    runs = sorted((run for folder in roots(given) for run in store.list_runs(folder)), key=lambda run: run.name, reverse=True)[
        :50
    ]
    names = ["last", *(store.short_id(run.name) for run in runs)]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
