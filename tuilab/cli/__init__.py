"""The command line: one file per verb, loaded when it is asked for, and the one place where errors are caught.

It is the last room and may import all others, late: `tuilab --help` loads next to nothing.
"""

import contextlib
import io
import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from tuilab import __version__, places, text
from tuilab.cli import options
from tuilab.errors import MEANINGS, ExitCode, TuilabError, UsageError

# Verb -> its line in `tuilab --help`; a verb's file is loaded only when it is used.
VERBS = {
    "list": "The scenarios by topic, with the last verdict on this box.",
    "show": "A scenario's lesson, parameters, claims and source.",
    "learn": "The next lesson, and how near your predictions came.",
    "run": "Run a scenario, a topic or all.",
    "exec": "Run a command of yours, such as a training script, and watch how it trains.",
    "ab": "Race ways to run a command against each other, in fresh processes.",
    "runs": "The runs on this box, newest first.",
    "compare": "Runs, or the runs of two boxes, side by side.",
    "attach": "Show a run on the screens, or follow it to its end and print its result.",
    "replay": "Play a run again, as the screens would have shown it.",
    "note": "Write a note about a run, or tag it.",
    "queue": "The runs that wait for their turn: list, move, cancel, pause.",
    "stop": "Stop a run.",
    "rm": "Delete runs.",
    "export": "Pack a run into one file.",
    "import": "Unpack runs that were packed, here or on another box.",
    "verify": "Check that a run's record is whole.",
    "doctor": "Look at this box: what will disturb, slow or end a run here.",
    "report": "What runs found, as a file: HTML, Markdown, JSON, CSV, JUnit and more.",
    "advise": "The settings that follow from what was measured on this box.",
    "calibrate": "Measure how far verdicts about time can be trusted on this box.",
    "config": "What is set, and who says so.",
    "check": "Tell a scenario's author what is missing.",
    "new": "Write a new scenario from a template.",
}

_MODULES = {
    "export": "handing_on.export",
    "import": "handing_on.import_",
    "verify": "handing_on.verify",
    "check": "authors.check",
    "new": "authors.new",
}  # where they are not called as the verb is


class _Verbs(click.Group):
    """A group that knows its verbs' names and loads their files late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS]  # `list` is a verb's module here, once that is loaded

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = _MODULES.get(cmd_name, cmd_name)
        command: click.Command = import_module(f"tuilab.cli.verbs.{module}").command
        options.take_no_empty_words(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*VERBS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), when) for code, when in MEANINGS.items()])


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    params=[options.READ_ONLY, options.LANG],
)
@click.version_option(__version__, message="tuilab %(version)s")
@click.option("--scenarios", multiple=True, metavar="DIR", help="For the screens: a folder with scenarios of your own.")
@click.option("--root", metavar="DIR", help="For the screens: the folder of runs.")
@click.option("--fps", type=options.Number(0.1, 30), help="How often the screens draw.  [default: 2.0]")
@click.pass_context
def tuilab(ctx: click.Context, scenarios: tuple[str, ...], root: str | None, fps: float | None, read_only: bool) -> None:
    """A lab in the terminal: checks the folklore of PyTorch training on your own box.

    Without a command it opens the screens. Start with: tuilab run stability --headless
    """
    if ctx.invoked_subcommand is None:
        ctx.exit(_open_screens(scenarios, root, fps, is_read_only=read_only))
    elif read_only:
        raise UsageError("--read-only is for the screens: tuilab --read-only, tuilab attach RUN --read-only")
    elif scenarios or root is not None:
        raise UsageError(f"--scenarios and --root belong after the command: tuilab {ctx.invoked_subcommand} --root DIR ...")


options.take_no_empty_words(tuilab)


def _open_screens(scenarios: tuple[str, ...], root: str | None, fps: float | None, *, is_read_only: bool) -> int:
    from tuilab import tui

    if why := tui.why_not():
        from tuilab.runs.command_line import hint

        step = hint(options.root(root), "run", "stability", "--headless")
        raise UsageError(f"{why}, so no screens open here; {step} prints results, tuilab --help the rest")
    from tuilab import config
    from tuilab.catalogue import catalog

    options.tell_language(lambda: catalog.load(scenarios))
    return tui.start(options.root(root), scenarios, fps=fps or config.fps(), is_read_only=is_read_only)


def main() -> NoReturn:
    """Run the command line; every error that a sentence explains ends here."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        if not os.environ.get("HOME"):
            os.environ.pop("HOME", None)  # as others have it: Python takes an empty one for the root of the disk
        if "_TUILAB_COMPLETE" in os.environ:
            import_module("tuilab.cli.completion").guard()
        _configure(sys.argv[1:])
        code = tuilab.main(prog_name="tuilab", standalone_mode=False)
        sys.stdout.flush()
    except TuilabError as problem:
        _say(f"tuilab: {problem}")
        code = problem.exit_code
    except click.ClickException as problem:
        context = getattr(problem, "ctx", None)
        command = context.command_path if context else "tuilab"
        _say(f"tuilab: {problem.format_message().removesuffix('.')}; `{command} --help` tells what it takes")
        code = ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        code = ExitCode.DONE
    except OSError as problem:
        if problem.filename is not None or problem.errno is None:
            raise
        _say(f"tuilab: cannot write the result: {problem.strerror}")
        code = ExitCode.CANNOT_RECORD
    user_data = sys.modules.get("tuilab.user_data")  # loaded by who reads such a file
    for complaint in user_data.complaints() if user_data else ():
        _say(f"tuilab: {complaint}")
    _leave(int(code or 0))


def _configure(argv: list[str]) -> None:
    """Take over what the user's file sets; commands that help with a file that is wrong go on without it."""
    if argv[:1] == ["config"]:
        return  # which tells who sets what
    is_helping = (
        not {"-h", "--help", "--version"}.isdisjoint(argv) or argv[:1] == ["doctor"] or "_TUILAB_COMPLETE" in os.environ
    )
    try:
        where = places.config_file()
    except TuilabError:
        return  # there is no home
    if os.path.lexists(where):
        from tuilab import config

        (config.apply_or_pass if is_helping else config.apply)()


def _open_standard_streams() -> None:
    """Fill closed descriptors 0-2, so that no file of ours gets their number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        stream = {1: "stdout", 2: "stderr"}.get(fd)
        if stream and getattr(sys, stream) is None:
            setattr(sys, stream, os.fdopen(fd, "w", closefd=False))
    os.close(fd)


def _say(sentence: str) -> None:
    try:
        print(text.show(sentence, 2000), file=sys.stderr, flush=True)
    except OSError:
        return  # nobody listens


def _leave(code: int) -> NoReturn:
    """Exit at once: taking the interpreter down in order costs as much as `--help` itself, and nothing of ours needs it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a pipe that was closed early
            stream.flush()
    os._exit(code)
