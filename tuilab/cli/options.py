"""Define the options that several subcommands share, their types and their checks.

A function that refuses something raises UsageError.
"""

import os
import sys
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from tuilab.cli import front_page
from tuilab.defaults import MAX_REPEATS, REPEATS
from tuilab.engine import engines
from tuilab.errors import UsageError
from tuilab.storage import places
from tuilab.text.display import show

# Every subcommand imports this module. What few of them need is imported within functions, so that
# `tuilab list` and `tuilab runs` start quickly.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tuilab.engine.engines import Engine

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # it is a generic class in the newest versions of click only


# ---- types of values


class Number(click.FloatRange):
    """A number in a range; nan is in none, although it is beyond neither end."""

    name = "number"  # click names it in its errors

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class WholeNumber(click.IntRange):
    """A whole number in a range."""

    name = "whole number"  # click names it in its errors


class Duration(ParamType):
    """Seconds, from `90`, `90s`, `2m` or `1.5h`."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from tuilab.catalogue.params import parse_duration

        try:
            return parse_duration(str(value))
        except UsageError as problem:
            self.fail(str(problem), param, ctx)


class PredictionType(ParamType):
    """The number that the user predicts, without words or a unit."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from tuilab.catalogue.params import parse_prediction

        try:
            return parse_prediction(str(value))
        except UsageError as problem:
            self.fail(str(problem), param, ctx)


class Age(ParamType):
    """Seconds, from `90s`, `30m`, `12h`, `30d` or `2w`."""

    name = "age"
    _SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text = str(value)
        number = text[:-1]
        unit_s = self._SECONDS.get(text[-1:])
        is_number = number.isascii() and number.replace(".", "", 1).isdigit() and len(number) <= 6
        if unit_s is None or not is_number:
            self.fail(f"'{text[:60]}' is not an age; use for example 12h, 30d or 2w", param, ctx)
        return float(number) * unit_s


class Since(ParamType):
    """A moment in seconds since 1970.

    It comes from an age, or from a day such as `2026-11-21` (UTC), `today` or `yesterday`.
    """

    name = "since"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        import time

        from tuilab.runs.filters import TIMES, moment

        now_s = time.time()
        since_s = moment(str(value), now_s)
        if since_s is None:
            self.fail(f"'{str(value)[:60]}' is not a time; use {TIMES}", param, ctx)
        return since_s


class _NonEmpty(ParamType):
    """A value that is not empty.

    `--root "$DIR"` with an unset DIR means neither this folder nor the usual one.
    """

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


def refuse_empty_options(command: click.Command) -> None:
    """Make the options of a subcommand that take a text or a path refuse an empty one.

    The code that reads an argument refuses an empty one itself, in better words.
    """
    for param in command.params:
        if isinstance(param, click.Option) and isinstance(
            param.type, click.types.StringParamType | click.Path
        ):
            param.type = _NonEmpty(param.type)


def refuse_empty(name: str, value: Any) -> None:
    """Refuse a text that is empty or blank; `name` is the option or argument that has it."""
    if isinstance(value, str) and not value.strip():
        raise UsageError(f"{name} is empty; give it a value, or drop it")


# ---- options of most subcommands


def _read_fps() -> float:
    from tuilab import config  # imported here: only subcommands that open the screens need it

    return config.fps()


def _choose_language(ctx: click.Context, param: click.Parameter, language: str | None) -> None:
    """Set the language in which lessons are shown."""
    if language is not None and not ctx.resilient_parsing:
        os.environ["TUILAB_LANG"] = language


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
FOLDERS: list[click.Parameter] = [SCENARIOS, ROOT]
FPS = click.Option(
    ["--fps"],
    type=Number(0.1, 30),
    metavar="NUMBER",
    default=_read_fps,
    help=front_page.FPS,
)
READ_ONLY = click.Option(
    ["--read-only"],
    is_flag=True,
    help=front_page.READ_ONLY,
)
LANG = click.Option(
    ["--lang"],
    callback=_choose_language,
    expose_value=False,
    envvar="TUILAB_LANG",
    metavar="CODE",
    help=front_page.LANG,
)
AS_JSON = click.Option(
    ["--json", "as_json"], is_flag=True, help="Print the result as one JSON document."
)
KEEP_PRIVATE = click.Option(
    ["--keep-private"],
    is_flag=True,
    help="Keep everything, even text that looks like a secret (default: such text is removed).",
)


# ---- options of `run`, `sweep`, `exec`, `ab` and `attach`

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
        type=WholeNumber(1, MAX_REPEATS),
        metavar="N",
        help=f"Run in N fresh processes (default: {REPEATS} for claims about time, 1 otherwise "
        "and with --quick).",
    ),
    click.Option(
        ["--budget"],
        type=Duration(),
        help="Repeat until the claims are decided or this time is over, for example 10m.",
    ),
    click.Option(
        ["--timeout"],
        type=Duration(),
        help="Stop the run after this time: 90s, 2m, 1.5h; a number alone is seconds "
        "(default: no limit).",
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
        help="Write a report at the end, even if the run failed; the extension of FILE sets "
        "the format. Implies --headless.",
    ),
    click.Option(
        ["--quiet"], is_flag=True, help="Print no progress and no chart. Implies --headless."
    ),
)
_BY_FLAG = {option.opts[0]: option for option in _SHARED}


def shared(flag: str, help: str = "") -> click.Option:
    """Return an option that several subcommands have; `help` replaces its usual help."""
    option = copy(_BY_FLAG[flag])
    option.help = help or option.help
    return option


# ---- engines on other machines


def engine_options(*, has_several: bool = True) -> list[click.Option]:
    """Return `--engine` and the options of each engine.

    Without `has_several`, options that start a run on several machines are left out.
    """
    remote_places = [f"{engine.WHERE} ({name})" for name, engine in engines.remote()]
    places_words = " or ".join(remote_places)
    options = [
        click.Option(
            ["--engine"],
            type=click.Choice(tuple(engines.ENGINES)),
            help=f"Run on this machine ({engines.LOCAL}) or {places_words} "
            f"(default: {engines.LOCAL}).",
        )
    ]
    for _, engine in engines.remote():
        for option in engine.OPTIONS:
            if has_several or option.name not in engine.SEVERAL:
                options.append(option)
    return options


def remote_engine(arguments: "Mapping[str, Any]") -> "Engine | None":
    """Return the engine that runs the orders, or None for this machine.

    Options of other engines are refused, and options of this engine that cannot be combined.
    """
    chosen_engine = engines.load(arguments["engine"] or engines.LOCAL)
    for name, engine in engines.remote():
        for option in engine.OPTIONS:
            if engine is not chosen_engine and _is_set(arguments, option):
                flag = option.opts[0]
                raise UsageError(
                    f"{flag} works only with --engine {name}; add --engine {name} or drop {flag}"
                )
    if chosen_engine:
        chosen_engine.check(arguments)
    return chosen_engine


def _is_set(arguments: "Mapping[str, Any]", option: click.Option) -> bool:
    value = arguments.get(option.name or "")
    return value is not None and value is not False


def continue_on_engine(
    arguments: "dict[str, Any]", original_arguments: "Mapping[str, Any]"
) -> None:
    """Set the engine and its options that a sweep was started with, unless others are given.

    `arguments` is changed. If the engine was not given, a line on stderr says so.
    """
    name = original_arguments["engine"] or engines.LOCAL
    engine = engines.load(name)
    if engine is None or arguments["engine"] not in (None, name):
        return
    if not arguments["engine"]:
        click.echo(
            f"tuilab: continuing with --engine {name}, as the sweep was started; "
            f"--engine {engines.LOCAL} runs the rest here",
            err=True,
        )
    arguments["engine"] = name
    for option in engine.OPTIONS:
        if option.name in arguments and not _is_set(arguments, option):
            arguments[option.name] = original_arguments[option.name]


# ---- checks of combinations


def check_detached(
    root: "Path", arguments: "Mapping[str, Any]", reported_run: str = "last"
) -> None:
    """Refuse options that follow a run or wait for its end, as --detach does neither.

    `reported_run` is the name of the run in the command that writes the report later.
    """
    from tuilab.runs.command_line import hint

    if arguments["report"]:
        step = hint(root, "report", reported_run, "-o", "FILE")
        raise UsageError(
            "--report needs the end of the run, and --detach does not wait for it; "
            f"drop --report, and later run: {step}"
        )
    if arguments.get("as_jsonl"):
        step = hint(root, "attach", "last", "--jsonl")
        raise UsageError(
            f"--jsonl follows the run, and --detach does not; drop --jsonl, and then run: {step}"
        )


def refuse_without_effect(option: str, conflicts: "Mapping[str, object]") -> None:
    """Refuse an option that does nothing together with another option.

    `conflicts` has the values of such options by flag; a true value means that it is set.
    """
    for flag, value in conflicts.items():
        if value:
            raise UsageError(f"{option} has no effect with {flag}; drop one of them")


def refuse_both_json(*, as_json: bool, as_jsonl: bool) -> None:
    """Refuse two options that both decide what stdout holds."""
    if as_json and as_jsonl:
        raise UsageError(
            "--json prints one document at the end, --jsonl every record as it is written; "
            "use only one of them"
        )


def refuse_beside(arguments: "Mapping[str, Any]") -> None:
    """Refuse --beside for a run that is followed here: such a run never waits in the queue."""
    if arguments["beside"] and not arguments["detach"]:
        raise UsageError("--beside works only with --detach; add --detach or drop --beside")


def check_report(target: str | None) -> None:
    """Refuse a report that cannot be written at the end, before anything runs."""
    if target:
        from tuilab.reports.write_report import check_target, tell_lack

        tell_lack(check_target(target))


# ---- values that options lead to


def has_chart(*, plot: bool = False, quiet: bool) -> bool:
    """Return whether a result is printed with its chart: with --plot, or on a terminal."""
    return plot or (sys.stdout.isatty() and not quiet)


def can_open_screens(instead: str = "result") -> bool:
    """Return whether the screens can be opened; if not, print why, and what is printed instead."""
    from tuilab import tui

    reason = tui.why_not()
    if reason:
        print(
            f"tuilab: {reason}; printing the {instead} instead (same as --headless)",
            file=sys.stderr,
        )
    return not reason


def root_path(root: str | None) -> "Path":
    """Return the folder of runs that `--root` names, or the usual one."""
    from pathlib import Path

    return Path(root_name(root))


def root_name(root: str | None) -> str:
    """Return the same as a text: `tuilab list` needs no paths. Raise UsageError for a file."""
    folder = root or places.runs_folder()
    if os.path.exists(folder) and not os.path.isdir(folder):
        step = "name another with --root DIR or TUILAB_ROOT"
        raise UsageError(f"cannot read the folder of runs {show(folder)}: Not a directory; {step}")
    return folder


def root_paths(roots: "Sequence[str]") -> "list[Path]":
    """Return the folders of runs that `--root` names, each once, or the usual one."""
    from pathlib import Path

    return [Path(folder) for folder in root_names(roots)]


def root_names(roots: "Sequence[str]") -> list[str]:
    """Return the same as texts: `tuilab runs` needs no paths."""
    folders = list(roots) or [places.runs_folder()]
    return list(dict.fromkeys(folder.rstrip(os.sep) or os.sep for folder in folders))


def print_document(schema: str, **fields: object) -> None:
    """Print a JSON document for a program."""
    from tuilab.record.encoding import for_programs

    click.echo(for_programs({"schema": schema, **fields}))
