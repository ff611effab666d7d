"""`tuilab.log` of a script's own."""

import subprocess
import sys

import pytest

from tests.commands.watched_script import LoggedValue, Watch

QUIET = """
import sys, tuilab
tuilab.log(1, loss=0.5)
print(sorted(name for name in sys.modules if name.startswith(("torch", "tuilab"))))
"""


def test_outside_of_the_lab_logging_does_nothing_and_loads_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("['tuilab']\n", "")


@pytest.mark.real_torch
def test_what_a_script_logs_by_itself_is_told_with_its_step(watch: Watch) -> None:
    seen = watch("""
        import tuilab
        tuilab.log(3, loss=torch.tensor(0.25), acc=1, words="none", many=torch.ones(2), step=9)
        tuilab.log(3.5, **{"train/loss": 0.125})
        tuilab.log(4)
    """)

    told = [(3, "loss", 0.25), (3, "acc", 1.0), (3, "step", 9.0), (3.5, "train/loss", 0.125)]
    assert seen.told == [LoggedValue(*one, "tuilab.log") for one in told]


@pytest.mark.real_torch
def test_logging_before_torch_is_loaded_does_not_keep_steps_from_being_seen(watch: Watch) -> None:
    seen = watch("""
        import tuilab, _tuilab_watch
        _tuilab_watch._watcher = None
        tuilab.log(0, loss=0.5); _tuilab_watch.begin()
        o = sgd(); loss().backward(); o.step()
    """)

    assert [told.value for told in seen.told] == [0.5]
    assert seen.kinds.endswith("step")
