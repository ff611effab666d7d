"""Check this machine for anything that disturbs, slows or ends a run, and show how to fix it.

Without --all, tuilab prints warnings and failures, and a summary of all checks. With --all, it
prints every check, and the facts about the machine. A check takes 3 s at most. A check that hangs
or crashes is n/a, with the reason. Most checks run at the same time.

\b
Exit codes:
  0  every check passed or does not apply
  1  there are warnings
  2  a check failed, or an option is wrong
  3  with --gpu: no GPU can be used
"""

import os
import shutil
import sys
from pathlib import Path

import click

from tuilab import __version__, config
from tuilab.catalogue.params import is_gpu
from tuilab.cli import options
from tuilab.doctor.answer_text import counts, exit_code, problems, render, render_facts
from tuilab.doctor.ask_all import PendingAnswers, ask_all, document
from tuilab.drawings.glyphs import style_of
from tuilab.errors import UsageError
from tuilab.record.encoding import for_programs
from tuilab.text.display import show


@click.command(
    help=__doc__,
    params=[
        options.AS_JSON,
        click.Option(
            ["--all", "is_all"],
            is_flag=True,
            help="Print the facts about the machine and every check, passed ones included.",
        ),
        click.Option(
            ["--bundle"],
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Write a .json or .tar.gz for an issue: all checks, versions, the last failures. "
            "Secrets are removed.",
        ),
        click.Option(
            ["--gpu"],
            is_flag=False,
            flag_value="cuda",
            metavar="[cuda:N]",
            help="Measure one GPU instead, for about 10 s "
            "(default: the GPU with the most free memory).",
        ),
        options.ROOT,
    ],
)
def command(
    as_json: bool, is_all: bool, bundle: Path | None, gpu: str | None, root: str | None
) -> int:
    if bundle is not None and not bundle.name.endswith((".json", ".tar.gz", ".tgz")):
        raise UsageError(
            f"--bundle cannot write {show(bundle.name, 100)}; use the extension .json or .tar.gz"
        )
    if root:
        os.environ["TUILAB_ROOT"] = os.path.abspath(root)  # for the processes that run the checks
    if gpu is None:
        answers = ask_all(has_facts=as_json or is_all or bundle is not None)
    else:
        answers = _ask_gpu(gpu)
    if not as_json:
        _print_answers(answers, is_all=is_all or gpu is not None)
    code = exit_code(answers.found())
    if as_json:
        click.echo(for_programs(document(answers, code, __version__)))
    if bundle is not None:
        from tuilab.doctor import bundle as bundles

        bundles.write(bundle, document(answers, code, __version__))
        click.echo(
            f"wrote {show(bundle)}; read it before you share it: "
            "it names this machine and its packages",
            err=True,
        )
    return code


def _ask_gpu(gpu: str) -> PendingAnswers:
    """Start the checks of one GPU, and return answers that are still to come.

    The checks take long, so a user at a terminal gets a message. Raises UsageError if `gpu` is no
    GPU.
    """
    from tuilab.doctor.gpu_page import ask_about

    if gpu != "cuda" and not is_gpu(gpu):
        hint = config.hint_by_name(gpu) or "; `tuilab doctor --all` lists the GPUs"
        raise UsageError(
            f'--gpu takes cuda or cuda:N, for example cuda:1, not "{show(gpu, 60)}"{hint}'
        )
    if sys.stderr.isatty():
        click.echo(f"measuring {gpu}: about 10 s", err=True)
    return ask_about(gpu)


def _print_answers(answers: PendingAnswers, *, is_all: bool) -> None:
    """Print each group of checks as soon as it and those before it are answered.

    Without `is_all`, only warnings and failures are printed.
    """
    style = style_of(sys.stdout)
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    name_width = max(len(name) for name in answers.names)
    if is_all:
        facts = render_facts(answers.facts.result(), style, width)
        click.echo(style.fit(facts), color=True)
    for group in answers.groups.values():
        shown = group.result() if is_all else problems(group.result())
        if not shown:
            continue
        if is_all:
            click.echo()
        click.echo(style.fit(render(shown, style, width, name_width)), color=True)
    if is_all:
        click.echo(f"\n{counts(answers.found())}")
    else:
        click.echo(f"{counts(answers.found())} (details: tuilab doctor --all)")
