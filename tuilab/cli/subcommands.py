"""Define `tuilab` for click. The module of a subcommand is loaded only when it is used."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from tuilab import __version__
from tuilab.cli import front_page, options
from tuilab.cli.front_page import VERBS
from tuilab.errors import ExitCode, UsageError
from tuilab.text.display import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# The modules of subcommands that do not have the name of the subcommand.
_MODULES = {
    "exec": "commands.exec",
    "ab": "commands.ab",
    "tune": "commands.tune",
    "export": "sharing.export",
    "import": "sharing.import_",
    "verify": "sharing.verify",
    "check": "authors.check",
    "new": "authors.new",
}


class Subcommands(click.Group):
    """A group that suggests a subcommand if it does not know the typed one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return what click returns; raise UsageError with a suggestion for an unknown name."""
        name = args[0]
        is_option = name.startswith("-")
        if not (is_option or ctx.resilient_parsing) and self.get_command(ctx, name) is None:
            suggestion = did_you_mean(name, self.list_commands(ctx))
            raise click.UsageError(f"no subcommand {name}{suggestion}", ctx)
        return super().resolve_command(ctx, args)


class _LazySubcommands(Subcommands):
    """A group that knows the names of its subcommands, and loads their modules late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS]  # not list(VERBS): within this package, `list` may be the module

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a subcommand, whose options then refuse empty values; None for an unknown name."""
        if cmd_name not in VERBS:
            return None
        module = _MODULES.get(cmd_name, cmd_name)
        command: click.Command = import_module(f"tuilab.cli.verbs.{module}").command
        options.refuse_empty_options(command)
        return command

    def get_help(self, ctx: click.Context) -> str:
        return front_page.page()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Offer the subcommands without loading them; if none starts so, offer the options."""
        from click.shell_completion import CompletionItem  # only completion needs it

        items = []
        for name, summary in VERBS.items():
            if name.startswith(incomplete):
                items.append(CompletionItem(name, help=summary))
        return items or click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=_LazySubcommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    subcommand_metavar="[SUBCOMMAND] [ARGS]...",
    params=[options.READ_ONLY, options.LANG],
)
@click.version_option(__version__, message="tuilab %(version)s")
@click.option("--scenarios", multiple=True, metavar="DIR", help=front_page.SCENARIOS)
@click.option("--root", metavar="DIR", help=front_page.ROOT)
@click.option("--fps", type=options.Number(0.1, 30), metavar="NUMBER", help=front_page.FPS)
@click.pass_context
def tuilab(
    ctx: click.Context,
    scenarios: tuple[str, ...],
    root: str | None,
    fps: float | None,
    read_only: bool,
) -> None:
    """A lab in the terminal: check the folklore of PyTorch training on your own machine.

    Without a subcommand, the screens open. Start with: tuilab run stability --headless
    """
    if ctx.invoked_subcommand is None:
        ctx.exit(_open_screens(scenarios, root, fps, is_read_only=read_only))
    if read_only:
        raise UsageError(
            "--read-only works only with the screens: tuilab --read-only, "
            "or tuilab attach RUN --read-only"
        )
    if scenarios or root is not None:
        raise UsageError(
            "--scenarios and --root belong after the subcommand: "
            f"tuilab {ctx.invoked_subcommand} --root DIR ..."
        )


options.refuse_empty_options(tuilab)


def _open_screens(
    scenarios: tuple[str, ...], root: str | None, fps: float | None, *, is_read_only: bool
) -> int:
    """Open the screens and return their exit code; raise UsageError if that is impossible."""
    from tuilab import tui

    reason = tui.why_not()
    if reason:
        from tuilab.runs.command_line import hint

        step = hint(options.root_path(root), "run", "stability", "--headless")
        raise UsageError(
            f"cannot open the screens: {reason}; print results instead, for example {step}, "
            "or see `tuilab --help`"
        )
    from tuilab import config

    folder = options.root_path(root)
    return tui.start(folder, scenarios, fps=fps or config.fps(), is_read_only=is_read_only)


def run() -> int:
    """Run the subcommand of the command line, and return its exit code.

    A mistake on the command line is a UsageError that names the help of the subcommand.
    """
    try:
        return int(tuilab.main(prog_name="tuilab", standalone_mode=False) or 0)
    except click.ClickException as problem:
        context = getattr(problem, "ctx", None)
        command = context.command_path if context else _command_path(sys.argv[1:])
        reason = _describe(problem)
        step = " See" if reason.endswith("?") else "; see"
        raise UsageError(f"{reason}{step} `{command} --help`") from problem
    except click.Abort:
        return ExitCode.INTERRUPTED


def _command_path(words: Sequence[str]) -> str:
    """Return the subcommand of a command line as its user typed it: `tuilab run`."""
    if not words or words[0] not in VERBS:
        return "tuilab"
    return f"tuilab {words[0]}"


def _describe(problem: click.ClickException) -> str:
    """Return a mistake on the command line, like all errors without a capital and a full stop."""
    if isinstance(problem, click.NoSuchOption):
        similar = " or ".join(problem.possibilities or ())
        if not similar:
            return f"no option {problem.option_name}"
        return f"no option {problem.option_name}; did you mean {similar}?"
    param = problem.param if isinstance(problem, click.BadParameter) else None
    if isinstance(problem, click.MissingParameter) and param:
        name = param.get_error_hint(problem.ctx).strip("'")
        return f"missing {param.param_type_name} {name}"
    sentence = problem.message.removesuffix(".")
    sentence = sentence[:1].lower() + sentence[1:]
    if isinstance(param, click.Option):
        return f"{param.opts[0]}: {sentence}"
    return sentence
