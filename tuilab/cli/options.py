"""Options that several verbs share."""

import os
import sys
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from tuilab.cli import front_page
from tuilab.defaults import REPEATS
from tuilab.engine import engines
from tuilab.errors import UsageError
from tuilab.storage import places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tuilab.engine.engines import Engine

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # a generic class in the newest versions only


class Number(click.FloatRange):
    """A number in a range; nan is in none, though it is beyond neither end."""

    name = "number"  # click names it in its errors

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (number := super().convert(value, param, ctx)) != number:
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class Whole(click.IntRange):
    """A whole number in a range."""

    name = "whole number"  # click names it in its errors


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


def engine_options(*, has_several: bool = True) -> list[click.Option]:
    """Return `--engine` and the options of each engine, with or without those that start a run on several machines."""
    places = [f"{engine.WHERE} ({name})" for name, engine in engines.remote()]
    found = [
        click.Option(
            ["--engine"],
            type=click.Choice(tuple(engines.ENGINES)),
            help=f"Run on this machine ({engines.LOCAL}) or {' or '.join(places)} (default: {engines.LOCAL}).",
        )
    ]
    for _, engine in engines.remote():
        for option in engine.OPTIONS:
            if has_several or option.name not in engine.SEVERAL:
                found.append(option)
    return found


def remote_engine(given: "Mapping[str, Any]") -> "Engine | None":
    """Return the engine that is to carry out the runs, or None for this machine; refuse the options of other engines."""
    wanted = engines.load(given["engine"] or engines.LOCAL)
    for name, engine in engines.remote():
        for option in engine.OPTIONS:
            if engine is not wanted and _is_given(given, option):
                flag = option.opts[0]
                raise UsageError(
                    f"{flag} works only with --engine {name}; add --engine {name} or drop {flag}"
                )
    if wanted:
        wanted.check(given)
    return wanted


def _is_given(given: "Mapping[str, Any]", option: click.Option) -> bool:
    value = given.get(option.name or "")
    return value is not None and value is not False


def continue_on_engine(given: "dict[str, Any]", begun: "Mapping[str, Any]") -> None:
    """Continue a sweep on the engine that it was started on, with its options, unless other ones are given."""
    name = begun["engine"] or engines.LOCAL
    engine = engines.load(name)
    if engine is None or given["engine"] not in (None, name):
        return
    if not given["engine"]:
        click.echo(
            f"tuilab: continuing with --engine {name}, as the sweep was started; --engine {engines.LOCAL} runs the rest here",
            err=True,
        )
    given["engine"] = name
    for option in engine.OPTIONS:
        if option.name in given and not _is_given(given, option):
            given[option.name] = begun[option.name]


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
        raise UsageError(
            f"--jsonl follows the run, and --detach does not; drop --jsonl, and then run: {step}"
        )


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
        raise UsageError(
            "--json prints one document at the end, --jsonl every record as it is written; use only one of them"
        )


def refuse_beside(given: "Mapping[str, Any]") -> None:
    """Refuse to start beside whatever runs what is followed here, and so in no queue."""
    if given["beside"] and not given["detach"]:
        raise UsageError("--beside works only with --detach; add --detach or drop --beside")


def check_report(target: str | None) -> None:
    """Say of a report that is wanted at the end, before anything runs, what can be known to fail then."""
    if target:
        from tuilab.reports.write_report import check_target, tell_lack

        tell_lack(check_target(target))


AS_JSON = click.Option(
    ["--json", "as_json"], is_flag=True, help="Print the result as one JSON document."
)
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

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        return self.inner.shell_complete(ctx, param, incomplete)


def take_no_empty_words(command: click.Command) -> None:
    """Have the options of a verb that take a text or a path refuse an empty one; what reads an argument knows better words."""
    for param in command.params:
        if isinstance(param, click.Option) and isinstance(
            param.type, click.types.StringParamType | click.Path
        ):
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

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from tuilab.catalogue.params import (
            parse_duration,
        )  # `tuilab list` needs these options, but no parameters

        try:
            return parse_duration(str(value))
        except UsageError as problem:
            self.fail(str(problem), param, ctx)


class PredictionType(ParamType):
    """The number that somebody expects: no words, no unit."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from tuilab.catalogue.params import parse_prediction  # as above

        try:
            return parse_prediction(str(value))
        except UsageError as problem:
            self.fail(str(problem), param, ctx)


class Age(ParamType):
    """Seconds, from `90s`, `30m`, `12h`, `30d` or `2w`."""

    name = "age"
    _FACTORS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number, factor = str(value)[:-1], self._FACTORS.get(str(value)[-1:], 0)
        if (
            not factor
            or not number.isascii()
            or not number.replace(".", "", 1).isdigit()
            or len(number) > 6
        ):
            self.fail(
                f"'{str(value)[:60]}' is not an age; use for example 12h, 30d or 2w", param, ctx
            )
        return float(number) * factor


class Since(ParamType):
    """A moment in seconds since 1970, from an age or a day such as `2026-11-21` (UTC), `today` or `yesterday`."""

    name = "since"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        import time

        from tuilab.runs.filters import TIMES, moment

        now_s = time.time()
        found = moment(str(value), now_s)
        if found is None:
            self.fail(f"'{str(value)[:60]}' is not a time; use {TIMES}", param, ctx)
        return found


# Options that several of `run`, `sweep`, `exec`, `ab` and `attach` have, with the help of most of them.
_SHARED = (
    click.Option(
        ["--name"],
        metavar="NAME",
        help="Name of the run (default: the name of the script, module or program).",
    ),
    click.Option(["--headless"], is_flag=True, help="Do not open the screens; print the result."),
    click.Option(
        ["--detach"], is_flag=True, help="Start the run, print its id and return at once."
    ),
    click.Option(
        ["--beside"], is_flag=True, help="With --detach: start immediately instead of queueing."
    ),
    click.Option(
        ["--json", "as_json"],
        is_flag=True,
        help="Print the result as one JSON document. Implies --headless.",
    ),
    click.Option(
        ["--jsonl", "as_jsonl"],
        is_flag=True,
        help="Print every record as one line of JSON, as it is written. Implies --headless.",
    ),
    click.Option(["--quick"], is_flag=True, help="Use smaller sizes, for an answer in seconds."),
    click.Option(
        ["--repeat"],
        type=Whole(1, 1000),
        metavar="N",
        help=f"Run in N fresh processes (default: {REPEATS} for claims about time, 1 otherwise and with --quick).",
    ),
    click.Option(
        ["--budget"],
        type=Duration(),
        help="Repeat until the claims are decided or this time is over, for example 10m.",
    ),
    click.Option(
        ["--timeout"],
        type=Duration(),
        help="Stop the run after this time: 90s, 2m, 1.5h; a number alone is seconds (default: no limit).",
    ),
    click.Option(
        ["--metric", "metrics"],
        multiple=True,
        metavar="NAME=PATTERN",
        help="Read a metric from the output, for example 'acc=acc ([0-9.]+)'; may be repeated.",
    ),
    click.Option(
        ["--step-of"],
        metavar="OPTIMIZER",
        help="Optimizer whose step ends a training step, for example AdamW or 'optimizer 2' "
        "(default: the one that steps least often).",
    ),
    click.Option(
        ["--strict"],
        is_flag=True,
        help="Exit with 1 also if a claim is INCONCLUSIVE or not judged.",
    ),
    click.Option(
        ["--report"],
        type=click.Path(readable=False),
        metavar="FILE",
        help="Write a report at the end, even if the run failed; the extension of FILE sets the format. Implies --headless.",
    ),
    click.Option(
        ["--quiet"], is_flag=True, help="Print no progress and no chart. Implies --headless."
    ),
)
_BY_FLAG = {option.opts[0]: option for option in _SHARED}


def shared(flag: str, help: str = "") -> click.Option:
    """Return an option that several of `run`, `sweep`, `exec`, `ab` and `attach` have; `help` replaces its usual help."""
    option = copy(_BY_FLAG[flag])
    option.help = help or option.help
    return option


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
