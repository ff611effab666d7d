"""Warnings of functions that the watcher wraps name the same places, and are filtered in the same way, as without it."""

import pytest

from tests.commands.watched_script import Unwatched, Watch

pytestmark = pytest.mark.real_torch

# Every function below warns of its caller by itself; the watcher wraps each of them.
CALLS = """
import logging, types, warnings
from torch.utils.data import DataLoader, IterableDataset

class Short(IterableDataset):
    def __len__(self): return 1
    def __iter__(self): return iter(range(3))

class SummaryWriter:
    def add_scalar(self, name, value, step): warnings.warn("add_scalar", stacklevel=2)

class Strategy:
    lightning_module = None
    def training_step(self):
        warnings.warn("training_step", stacklevel=2)
        return loss()

def let_in(module, kind):
    sys.modules[module] = types.ModuleType(module)
    setattr(sys.modules[module], kind.__name__, kind)

let_in("tensorboardX.writer", SummaryWriter)
let_in("lightning.pytorch.strategies.strategy", Strategy)
o = sgd()
for _ in range(3): loss().backward(); o.step()

def use_scaler(): torch.cuda.amp.GradScaler()
def use_loader():
    loader = DataLoader(Short())
    len(loader)
    for _ in loader: pass
def go_backward(): torch.autograd.backward(loss(), grad_variables=torch.ones(()))
def use_writer(): SummaryWriter().add_scalar("a", 1.0, 0)
def go_forward(): Strategy().training_step()
CALLS = use_scaler, use_loader, go_backward, use_writer, go_forward
"""


def test_warning_of_a_wrapped_function_names_the_place_it_names_unwatched(
    watch: Watch, unwatched: Unwatched
) -> None:
    script = f"""{CALLS}
for call in CALLS:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    print(call.__name__, [(one.filename, one.lineno) for one in found])
"""
    seen, alone = watch(script), unwatched(script)

    assert seen.done.stdout == alone.stdout
    assert alone.stdout.count("script.py") >= 5


def test_filter_by_module_applies_to_a_wrapped_function(watch: Watch, unwatched: Unwatched) -> None:
    script = f"""{CALLS}
warnings.simplefilter("ignore")
warnings.filterwarnings("error", module=r"__main__|torch\\.cuda")
for call in CALLS:
    try: call()
    except Warning as problem: print(call.__name__, type(problem).__name__)
    else: print(call.__name__, "passes")
"""
    seen, alone = watch(script), unwatched(script)

    assert seen.done.stdout == alone.stdout
    assert "passes" not in alone.stdout


def test_warnings_skip_each_function_that_the_watcher_makes(watch: Watch) -> None:
    """All that the watcher put somewhere is looked at, so that a wrapper that is added later is, too."""
    seen = watch(f"""{CALLS}
import gc, _tuilab_watch.importlib_bootstrap as hiding
of_functions = [one.__code__ for one in gc.get_objects() if isinstance(one, types.FunctionType)]
ours = [code for code in of_functions if "_tuilab_watch" in code.co_filename]
print(len(ours) > 100, [code for code in ours if not ("importlib" in code.co_filename and "_bootstrap" in code.co_filename)])
""")

    assert seen.done.stdout == "True []\n"


def test_traceback_through_a_wrapper_shows_its_source(watch: Watch) -> None:
    seen = watch("torch.ones(1).backward()", fails=True)

    assert (
        "return backward(tensors" in seen.done.stderr
        or "result = backward(tensors" in seen.done.stderr
    )
