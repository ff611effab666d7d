"""`--device`, an option of every scenario that asks the lab for a device and has no parameter for it."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.engine import look, newest
from tuilab.catalogue import source
from tuilab.catalogue.check import check
from tuilab.catalogue.params import DEVICE

Tuilab = Callable[..., "CompletedProcess[str]"]

LESSON = '''"""Where it runs.

## Predict
How many devices are there?

## Look for
- [one] there is one device

## Try next
`--device cpu`: the same.

## Source
None.
"""

from tuilab import Lab


def body(lab):
    return str(lab.device())


def run(
    lab: Lab,
    rows: int = 5,  # how many{more}
) -> None:
    lab.log(0, rows=rows)
    lab.claim("one", [str({device}), lab.arm("apart", body)()], equals=["cpu", "cpu"], answers=2)
'''


def write(folder: Path, device: str = "lab.device()", more: str = "") -> Path:
    path = folder / "where.py"
    path.write_text(LESSON.format(device=device, more=more))
    return path


OWN = '\n    device: str = "cpu",  # mine'


@pytest.mark.parametrize(
    ("device", "more"),
    [("lab.device()", ""), ('"cpu"', ""), ("lab.device(device)", OWN)],
    ids=["in run", "in an arm", "of its own"],
)
def test_who_asks_for_a_device_has_the_option(tmp_path: Path, device: str, more: str) -> None:
    found = source.read(write(tmp_path, device, more))

    assert [param.name for param in found.params] == ["rows", "device"]
    assert (found.params[1] == DEVICE) == (not more)
    assert check(found) == []


def test_who_names_the_device_has_no_option(tmp_path: Path) -> None:
    path = write(tmp_path, 'lab.device("cpu")')
    path.write_text(path.read_text().replace("lab.device()", 'lab.device("cpu")'))

    assert [param.name for param in source.read(path).params] == ["rows"]


def test_it_stands_in_the_form_and_the_help_and_is_recorded(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = str(write(tmp_path))

    shown, helped = tuilab("show", path).stdout, tuilab("run", path, "--help").stdout
    wrong = tuilab("run", path, "--device", "gpu", "--headless")
    assert "--device" in shown
    assert "where the tensors live; one of auto, cpu, cuda, cuda:N" in " ".join(helped.split())
    assert 'device: "gpu" is not one of auto, cpu, cuda, cuda:N (default auto)' in wrong.stderr


def test_it_is_recorded_and_run_is_not_given_it(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(
        path.read_text().replace(
            '[str(lab.device()), lab.arm("apart", body)()]', "[*map(str, ('cpu', 'cpu'))]"
        )
    )

    done = tuilab("run", str(path), "--headless", "--quiet", "--device", "cpu")

    summary = look(newest(root) or root).summary
    assert done.returncode == 0, done.stdout
    assert summary.run is not None
    assert (summary.run.params, summary.run.changed) == ({"rows": 5, "device": "cpu"}, ["device"])


@pytest.mark.slow
@pytest.mark.real_torch
def test_the_scenario_and_its_arms_get_the_device_that_is_set(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    done = tuilab(
        "run", str(write(tmp_path)), "--headless", "--quiet", env={"TUILAB_DEVICE": "cpu"}
    )

    summary = look(newest(root) or root).summary
    assert done.returncode == 0, done.stdout
    assert summary.environment["device"]["wanted"] == "cpu"
