"""Options that several verbs share."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from tuilab import places
from tuilab.cli import front_page
from tuilab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # a generic class in the newest versions only


class Number(click.FloatRange):
    """A number in a range; nan is in none, though it is beyond neither end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (number := super().convert(value, param, ctx)) != number:
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


SCENARIOS = click.Option(
    ["--scenarios"],
    multiple=True,
    type=click.Path(),
    metavar="DIR",
    help=front_page.SCENARIOS,
)
ROOT = click.Option(
    ["--root"],
    type=click.Path(),
    metavar="DIR",
    help=front_page.ROOT,
)
ROOTS = click.Option(
    ["--root", "roots"],
    type=click.Path(),
    multiple=True,
    metavar="DIR",
    help=f"{front_page.ROOT} May be repeated, for the runs of several machines.",
)
FPS = click.Option(
    ["--fps"],
    type=Number(0.1, 30),
    metavar="NUMBER",
    default=lambda: _fps(),
    help=front_page.FPS,
)


READ_ONLY = click.Option(
    ["--read-only"],
    is_flag=True,
    help=front_page.READ_ONLY,
)


def _choose_language(ctx: click.Context, param: click.Parameter, given: str | None) -> None:
    """Have lessons shown in a language."""
    if given is not None and not ctx.resilient_parsing:
        os.environ["TUILAB_LANG"] = given


LANG = click.Option(
    ["--lang"],
    callback=_choose_language,
    expose_value=False,
    envvar="TUILAB_LANG",
    metavar="CODE",
    help=front_page.LANG,
)
ENGINE: list[click.Option] = [
    click.Option(
        ["--engine"],
        type=click.Choice(("local", "ray")),
        help="Run on this machine (local) or on the nodes of a Ray cluster (default: local).",
    ),
    click.Option(
        ["--address"],
        metavar="HOST:PORT",
        help="With Ray: address of the cluster (default: RAY_ADDRESS, else the cluster of this machine).",
    ),
    click.Option(["--per-node"], is_flag=True, help="With Ray: run on every node."),
    click.Option(
        ["--count"], type=click.IntRange(1, 10_000), metavar="N", help="With Ray: run on N nodes (default: on one free node)."
    ),
    click.Option(
        ["--nnodes"], type=click.IntRange(2, 64), metavar="N", help="With Ray: divide the ranks of one run over N nodes."
    ),
    click.Option(["--gpus"], type=Number(0, 1000), metavar="N", help="With Ray: give a run N GPUs of its node (default: all)."),
]
_WHERE = ["per_node", "count", "nnodes"]
_OF_RAY = ["address", *_WHERE, "gpus"]


def is_afar(given: "Mapping[str, Any]") -> bool:
    """Say whether runs are to happen on the nodes of a cluster; what is for that alone is refused here."""
    if given["engine"] == "ray":
        gpus = given["gpus"] or 0
        if gpus != round(gpus, 4) or (gpus > 1 and gpus % 1):
            raise UsageError(f"--gpus {gpus:g} is not possible with Ray; use a whole number, or a share below 1 such as 0.5")
        if given["per_node"] and given["count"]:
            raise UsageError("--per-node runs on every node, --count on some nodes; use only one of them")
        if given["nnodes"] and (given["per_node"] or given["count"]):
            other = "--per-node" if given["per_node"] else "--count"
            raise UsageError(f"--nnodes divides one run over nodes, {other} starts a run on each node; use only one of them")
        return True
    if odd := next((name for name in _OF_RAY if given[name] is not None and given[name] is not False), ""):
        raise UsageError(
            f"--{odd.replace('_', '-')} works only with --engine ray; add --engine ray or drop --{odd.replace('_', '-')}"
        )
    return False


def go_on_where_begun(given: "dict[str, Any]", begun: "Mapping[str, Any]") -> None:
    """Have what goes on happen where it was begun, unless the words say otherwise; what is not given again is as it was."""
    if begun["engine"] == "ray" and given["engine"] != "local":
        if not given["engine"]:
            click.echo(
                "tuilab: continuing with --engine ray, as the sweep was started; --engine local runs the rest here", err=True
            )
        kept = ["engine", "address", "gpus"]
        if not any(given[name] for name in _WHERE):
            kept += _WHERE
        given |= {name: begun[name] for name in kept if given[name] is None or given[name] is False}


def check_detached(where: "Path", given: "Mapping[str, Any]", reported: str = "last") -> None:
    """Refuse what waits for the end of a run, or follows it, where nobody does; `reported` is what a report is of then."""
    from tuilab.runs.command_line import hint

    if given["report"]:
        step = hint(where, "report", reported, "-o", "FILE")
        raise UsageError(
            f"--report needs the end of the run, and --detach does not wait for it; drop --report, and later run: {step}"
        )
    if given.get("as_jsonl"):
        step = hint(where, "attach", "last", "--jsonl")
        raise UsageError(f"--jsonl follows the run, and --detach does not; drop --jsonl, and then run: {step}")


def has_chart(*, plot: bool = False, quiet: bool) -> bool:
    """Say whether the result is printed with its chart: in a terminal that is not to be quiet, and where that was asked for."""
    return plot or (sys.stdout.isatty() and not quiet)


def refuse_without_effect(option: str, others: "Mapping[str, object]") -> None:
    """Refuse an option that was given beside one of others with which it does nothing."""
    if other := next((name for name, value in others.items() if value), ""):
        raise UsageError(f"{option} has no effect with {other}; drop one of them")


def refuse_both_json(*, as_json: bool, as_jsonl: bool) -> None:
    """Refuse two options that both decide what stdout holds."""
    if as_json and as_jsonl:
        raise UsageError("--json prints one document at the end, --jsonl every record as it is written; use only one of them")


def refuse_beside(given: "Mapping[str, Any]") -> None:
    """Refuse to start beside whatever runs what is followed here, and so in no queue."""
    if given["beside"] and not given["detach"]:
        raise UsageError("--beside works only with --detach; add --detach or drop --beside")


def check_report(target: str | None) -> None:
    """Say of a report that is wanted at the end, before anything runs, what can be known to fail then."""
    if target:
        from tuilab.reports.files import check_target, tell_lack

        tell_lack(check_target(target))


AS_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print the result as one JSON document.")
KEEP_PRIVATE = click.Option(
    ["--keep-private"],
    is_flag=True,
    help="Keep everything, even text that looks like a secret (default: such text is removed).",
)
FOLDERS: list[click.Parameter] = [SCENARIOS, ROOT]


def _fps() -> float:
    from tuilab import config  # only what opens screens needs it

    return config.fps()


class _Given(ParamType):
    """A value that is not empty: `--root "$DIR"` without a DIR means neither this folder nor the usual one."""

    def __init__(self, inner: ParamType) -> None:
        self.inner = inner
        self.name = inner.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if param is not None:
            refuse_empty(param.opts[-1], value)
        return self.inner.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        return self.inner.shell_complete(ctx, param, incomplete)


def take_no_empty_words(command: click.Command) -> None:
    """Have the options of a verb that take a text or a path refuse an empty one; what reads an argument knows better words."""
    for param in command.params:
        if isinstance(param, click.Option) and isinstance(param.type, click.types.StringParamType | click.Path):
            param.type = _Given(param.type)


def refuse_empty(name: str, value: Any) -> None:
    if isinstance(value, str) and not value.strip():
        raise UsageError(f"{name} is empty; give it a value, or drop it")


def print_document(schema: str, **fields: object) -> None:
    """Print what a verb has to say to a program."""
    from tuilab.record.encoding import for_programs

    click.echo(for_programs({"schema": schema, **fields}))


class Duration(ParamType):
    """Seconds, from `90`, `90s`, `2m` or `1.5h`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from tuilab.catalogue.params import parse_duration  # `tuilab list` needs these options, but no parameters

        try:
            return parse_duration(str(value))
        except UsageError as problem:
            self.fail(str(problem), param, ctx)


class Prediction(ParamType):
    """The number that somebody expects: no words, no unit."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from tuilab.catalogue.params import parse_prediction  # as above

        try:
            return parse_prediction(str(value))
        except UsageError as problem:
            self.fail(str(problem), param, ctx)


class Age(ParamType):
    """Seconds, from `90s`, `30m`, `12h`, `30d` or `2w`."""

    name = "age"
    _FACTORS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number, factor = str(value)[:-1], self._FACTORS.get(str(value)[-1:], 0)
        if not factor or not number.isascii() or not number.replace(".", "", 1).isdigit() or len(number) > 6:
            self.fail(f"'{str(value)[:60]}' is not an age; use for example 12h, 30d or 2w", param, ctx)
        return float(number) * factor


class Since(ParamType):
    """A moment in seconds since 1970, from an age or a day such as `2026-11-21` (UTC), `today` or `yesterday`."""

    name = "since"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        import time

        from tuilab.runs.filters import TIMES, moment

        now_s = time.time()
        found = moment(str(value), now_s)
        if found is None:
            self.fail(f"'{str(value)[:60]}' is not a time; use {TIMES}", param, ctx)
        return found


def root(given: str | None) -> "Path":
    """Return the folder of runs that was asked for."""
    from pathlib import Path  # `tuilab list` needs these options, but no paths

    return Path(given or places.runs_folder())


def roots(given: "Sequence[str]") -> "list[Path]":
    """Return the folders of runs that were asked for, each once."""
    from pathlib import Path

    return [Path(folder) for folder in root_names(given)]


def root_names(given: "Sequence[str]") -> list[str]:
    """Return the same as text: `tuilab runs` needs no paths."""
    folders = list(given) or [places.runs_folder()]
    return list(dict.fromkeys(folder.rstrip(os.sep) or os.sep for folder in folders))
