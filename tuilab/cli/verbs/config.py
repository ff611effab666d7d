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

_ACTIONS = ["print", "path", "validate"]


@click.command(
    help=__doc__,
    params=[
        click.Argument(["what"], type=click.Choice(_ACTIONS), default="print"),
        options.AS_JSON,
    ],
)
def command(what: str, as_json: bool) -> None:
    if as_json and what != "print":
        raise UsageError(f"--json works only with `tuilab config print`, not with {what}; drop it")
    if what == "path":
        click.echo(show(places.config_file()))
    elif what == "validate":
        click.echo(_validate())
    elif as_json:
        _print_settings_as_json()
    else:
        click.echo(_settings_as_toml())


def _print_settings_as_json() -> None:
    """Print each setting with its value and where that comes from."""
    path = str(places.config_file())
    settings = {}
    for key, value in config.effective(os.environ).items():
        settings[key] = {"value": json.loads(_to_toml(key, value)), "origin": value.origin}
    options.print_document(
        "tuilab.config/1", path=path, is_there=os.path.exists(path), settings=settings
    )


def _settings_as_toml() -> str:
    """Return the settings as a config file, with the origin of each value as a comment."""
    path = places.config_file()
    note = "" if os.path.exists(path) else " (no such file)"
    lines = [f"# {show(path)}{note}"]
    values = config.effective(os.environ)
    rows = {key: f"{key} = {_to_toml(key, value)}" for key, value in values.items()}
    width = max(len(row) for row in rows.values())
    for key, value in values.items():
        lines.append(f"{rows[key].ljust(width)}  # {value.origin}")
    return "\n".join(lines)


def _validate() -> str:
    path = show(places.config_file())
    if not os.path.lexists(places.config_file()):
        return f"there is no {path}: all settings have their defaults"
    return f"{path} is valid: {plural(len(config.checked()), 'setting')}"


def _to_toml(key: str, value: ConfigValue) -> str:
    """Return the value of a setting as it would be in the config file, which is JSON as well."""
    is_from_variable = value.origin == SETTINGS[key].variable
    if key == "fps":
        return str(config.fps() if is_from_variable else float(value.text or config.FPS))
    if key == "device":
        device = config.device() if is_from_variable else value.text
        return json.dumps(device or config.DEVICE)
    if key == "scenarios":
        folders = [folder for folder in value.text.split(os.pathsep) if folder]
        return show(json.dumps(folders, ensure_ascii=False))
    return show(json.dumps(value.text or places.runs_folder(), ensure_ascii=False))
