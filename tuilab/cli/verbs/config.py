"""Show the settings and where each value comes from.

\b
  print      print the settings and where each value comes from (default)
  path       print the path of the config file
  validate   check the config file for mistakes

The config file is TOML: tuilab/config.toml in XDG_CONFIG_HOME (usually ~/.config). A value comes
from the first of these that sets it: an option on the command line, a variable that is not empty,
the config file, the default.

\b
  Key        Variable          Value
  root       TUILAB_ROOT       the folder of runs
  scenarios  TUILAB_SCENARIOS  folders with your own scenarios
  fps        TUILAB_FPS        times a second that the screens are redrawn
  device     TUILAB_DEVICE     auto, cpu, cuda or a GPU such as cuda:3, for
                               scenarios that have a --device
"""

import json
import os

import click

from tuilab import config
from tuilab.cli import options
from tuilab.config import SETTINGS, ConfigValue
from tuilab.errors import UsageError
from tuilab.storage import places
from tuilab.text.display import plural, show


@click.command(
    help=__doc__,
    params=[
        click.Argument(["what"], type=click.Choice(["print", "path", "validate"]), default="print"),
        options.AS_JSON,
    ],
)
def command(what: str, as_json: bool) -> None:
    if what == "print" and as_json:
        path = str(places.config_file())
        settings = {
            key: {"value": json.loads(_toml(key, value)), "origin": value.origin}
            for key, value in config.effective(os.environ).items()
        }
        options.print_document(
            "tuilab.config/1", path=path, is_there=os.path.exists(path), settings=settings
        )
    elif as_json:
        raise UsageError(f"--json works only with `tuilab config print`, not with {what}; drop it")
    elif what == "path":
        click.echo(show(places.config_file()))
    elif what == "validate":
        click.echo(_validate())
    else:
        is_there = "" if os.path.exists(places.config_file()) else " (no such file)"
        found = config.effective(os.environ)
        rows = [f"{key} = {_toml(key, value)}" for key, value in found.items()]
        width = max(map(len, rows))
        origins = [value.origin for value in found.values()]
        lines = [
            f"{row.ljust(width)}  # {origin}" for row, origin in zip(rows, origins, strict=True)
        ]
        click.echo("\n".join([f"# {show(places.config_file())}{is_there}", *lines]))


def _validate() -> str:
    where = show(places.config_file())
    if not os.path.lexists(places.config_file()):
        return f"there is no {where}: all settings have their defaults"
    return f"{where} is valid: {plural(len(config.checked()), 'setting')}"


def _toml(key: str, value: ConfigValue) -> str:
    """Return a setting as the file would have it."""
    if key == "fps":
        return str(
            config.fps()
            if value.origin == SETTINGS[key].variable
            else float(value.text or config.FPS)
        )
    if key == "device":
        return json.dumps(
            (config.device() if value.origin == SETTINGS[key].variable else value.text)
            or config.DEVICE
        )
    if key == "scenarios":
        return show(
            json.dumps([part for part in value.text.split(os.pathsep) if part], ensure_ascii=False)
        )
    return show(json.dumps(value.text or places.runs_folder(), ensure_ascii=False))
