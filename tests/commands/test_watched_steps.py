"""What is seen of the ways in which scripts step."""

from pathlib import Path

import pytest

from tests.commands.watched_script import KINDS, Watch, run_unwatched
from tuilab.commands.marks import MarksFolder
from tuilab.commands.process_tree import ProcessTree
from tuilab.commands.steps import BACKWARDS, Steps
from tuilab.commands.why_no_steps import why_unseen

pytestmark = pytest.mark.real_torch


def test_a_step_is_one_mark_with_the_value_it_went_backward_from(watch: Watch) -> None:
    seen = watch("""
        o = sgd()
        for _ in range(3):
            l = loss(); print(repr(l.item())); l.backward(); o.step(); o.zero_grad()
    """)

    assert seen.kinds == "back step back step back step"
    assert seen.optimizers == ["SGD 1"] * 3
    assert seen.roots == [float(line) for line in seen.done.stdout.split()]


def test_steps_alone_are_watched_on_request(watch: Watch) -> None:
    seen = watch("o = sgd(); loss().backward(); o.step()", how="steps")

    assert seen.kinds == "step"


def test_a_step_that_calls_that_of_its_class_is_one_step(watch: Watch) -> None:
    seen = watch("""
        class Own(torch.optim.SGD):
            @torch.optim.Optimizer.profile_hook_step
            def step(self, closure=None): super().step(closure); return super().step(closure)
        o = Own(model.parameters(), lr=0.1)
        for _ in range(3): loss().backward(); o.step()
    """)

    assert seen.kinds == "back step back step back step"


def test_an_optimizer_that_steps_others_is_one_step(watch: Watch) -> None:
    seen = watch("""
        class Both(torch.optim.Optimizer):
            def __init__(self, *inner): self.inner = inner; super().__init__(model.parameters(), {})
            def step(self, closure=None): [one.step() for one in self.inner]
        o = Both(sgd(), sgd())
        for _ in range(2): loss().backward(); o.step()
    """)

    assert seen.optimizers == ["Both 1"] * 2


def test_a_step_that_raises_is_none_and_the_next_ones_are_seen(watch: Watch) -> None:
    seen = watch("""
        class Own(torch.optim.SGD):
            def step(self, closure=None):
                if fails: raise ValueError
                super().step(closure)
        o = Own(model.parameters(), lr=0.1)
        for fails in (False, True, True, False, False):
            loss().backward()
            try: o.step()
            except ValueError: pass
    """)

    assert seen.kinds == "back step back back back step back step"


def test_threads_step_side_by_side(watch: Watch) -> None:
    """Both are within their steps at the same time."""
    seen = watch("""
        import threading
        meet = threading.Barrier(2, timeout=30)
        class Own(torch.optim.SGD):
            def step(self, closure=None): meet.wait(); super().step(closure); meet.wait()
        def train():
            one = torch.nn.Linear(4, 1); o = Own(one.parameters(), lr=0.1)
            for _ in range(5): o.step()
        threads = [threading.Thread(target=train) for _ in range(2)]
        [one.start() for one in threads]; [one.join() for one in threads]
    """)

    assert sorted(seen.optimizers) == ["Own 1"] * 5 + ["Own 2"] * 5


@pytest.mark.parametrize("fused", [False, True])
def test_what_gradscaler_leaves_out_is_told(watch: Watch, fused: bool) -> None:
    seen = watch(f"""
        o = torch.optim.SGD(model.parameters(), lr=0.1, fused={fused})
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for step in range(5):
            l = loss() * (float("inf") if step == 2 else 1.0); print(repr(l.item()))
            scaler.scale(l).backward(); scaler.step(o); scaler.update(); o.zero_grad()
    """)

    assert seen.kinds == "back step back step back skip back step back step"
    assert seen.roots == [
        float(line) for line in seen.done.stdout.split()
    ]  # and not as it was scaled


def test_what_is_scaled_carries_nothing_of_the_watcher(watch: Watch) -> None:
    seen = watch("""
        import copy, io, pickle
        o, scaler = sgd(), torch.amp.GradScaler("cpu")
        scaled = scaler.scale(loss())
        scaled.backward(); scaler.step(o); scaler.update()
        file = io.BytesIO()
        torch.save([scaled, o, o.state_dict(), model, scaler.state_dict()], file)
        names = [name for one in (scaled, o, model, scaler) for name in vars(one)]
        print(b"tuilab" in file.getvalue() + pickle.dumps([copy.deepcopy(o), scaler]), [n for n in names if "tuilab" in n])
    """)

    assert (seen.done.stdout, seen.kinds) == ("False []\n", "back step")


@pytest.mark.slow
def test_modes_and_classes_of_tensors_hear_of_nothing_that_the_script_does_not_do(
    watch: Watch, tmp_path: Path
) -> None:
    script = """
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        heard = []
        def hear(function, given, more):
            heard.append(getattr(function, "__name__", "") or str(function))
            return function(*given, **(more or {}))
        class Functions(TorchFunctionMode):
            def __torch_function__(self, function, types, given=(), more=None): return hear(function, given, more)
        class Operators(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, given=(), more=None): return hear(function, given, more)
        class Own(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, given=(), more=None):
                heard.append(function.__name__)
                return super().__torch_function__(function, types, given, more or {})
        o, scaler = torch.optim.Adam(model.parameters(), fused=True), torch.amp.GradScaler("cpu")
        def train(x):
            loss().backward(); o.step()
            scaler.scale(loss()).backward(); scaler.step(o); scaler.update()
            scaler.scale(model(x).mean()).backward()
        for mode in (Functions(), Operators()):
            with mode: train(torch.ones(8, 4))
        train(torch.ones(8, 4).as_subclass(Own))
        print(heard)
    """
    watched, alone = watch(script), run_unwatched(tmp_path, script)

    assert watched.done.stdout == alone.stdout
    assert len(watched.roots) == 8  # of 9: one is of a class of its own


def test_a_function_that_torchscript_compiles_goes_backward_as_ever(watch: Watch) -> None:
    seen = watch("""
        @torch.jit.script
        def back(x):
            torch.autograd.backward([x.sum()])
            return x
        print(back(torch.ones(2, requires_grad=True)).grad)
    """)

    assert seen.done.stdout == "tensor([1., 1.])\n"


def test_lbfgs_is_one_step_of_many_backwards(watch: Watch) -> None:
    seen = watch("""
        o = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3, tolerance_grad=0, tolerance_change=0)
        def closure(): o.zero_grad(); l = loss(); l.backward(); return l
        for _ in range(3): o.step(closure)
    """)

    assert seen.kinds == "back back back step back back back step back back back step"
    assert [step.backwards for step in seen.steps] == [3, 3, 3]
    assert all(
        step.backward_ns + step.optimizer_ns <= (step.took_ns or step.ended) for step in seen.steps
    )


def test_a_gan_steps_as_often_as_its_rarest_optimizer(watch: Watch) -> None:
    seen = watch("""
        other = torch.nn.Linear(4, 1); d, g = torch.optim.Adam(other.parameters()), sgd()
        for _ in range(4):
            for _ in range(2): other(torch.ones(2, 4)).mean().backward(); d.step()
            loss().backward(); g.step()
    """)

    assert seen.optimizers[:3] == ["Adam 1", "Adam 1", "SGD 2"]
    assert [(step.optimized, step.backwards, len(step.roots)) for step in seen.steps] == [
        (3, 3, 2)
    ] * 4


def test_two_losses_of_two_optimizers_are_two_curves(watch: Watch) -> None:
    seen = watch("""
        other = torch.nn.Linear(4, 1); a, b = sgd(), sgd(other)
        for _ in range(3):
            first, second = loss(), other(torch.ones(2, 4)).mean()
            first.backward(); second.backward(); a.step(); b.step()
    """)

    assert [
        sorted(step.roots) == sorted({mark.name for mark in seen.marks if mark.name})
        for step in seen.steps
    ] == [True] * 3


def test_of_a_step_with_a_closure_the_optimizer_has_what_comes_behind_the_backward(
    watch: Watch,
) -> None:
    seen = watch("""
        o = sgd()
        def closure(): o.zero_grad(); l = loss(); l.backward(); return l
        for _ in range(3): o.step(closure)
    """)

    marks = [mark for mark in seen.marks if mark.kind in KINDS]
    pairs = zip(marks[::2], marks[1::2], strict=True)
    assert [step.optimizer_ns for step in seen.steps] == [
        step.ended - back.ended for back, step in pairs
    ]
    assert all((step.rest_ns or 0) > 0 for step in seen.steps[1:])


def test_roots_of_an_accumulation_are_summed(watch: Watch) -> None:
    seen = watch("""
        o = sgd()
        for _ in range(3):
            for _ in range(4): (loss() / 4).backward()
            o.step(); o.zero_grad()
    """)

    assert [step.backwards for step in seen.steps] == [4, 4, 4]
    assert [[*step.roots.values()] for step in seen.steps] == [
        [pytest.approx(sum(seen.roots[at : at + 4]))] for at in (0, 4, 8)
    ]


def test_a_dozen_optimizers_in_the_backward_are_one_step(watch: Watch) -> None:
    seen = watch("""
        model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(6)))
        for p in model.parameters():
            own = torch.optim.SGD([p], lr=0.01)
            p.register_post_accumulate_grad_hook(lambda p, own=own: own.step() or own.zero_grad())
        for _ in range(4): loss().backward()
    """)
    steps = Steps()

    found = steps.take(seen.marks) + steps.finish()
    assert steps.ends_with == BACKWARDS
    assert [(step.optimized, step.backwards, len(step.roots)) for step in found] == [(12, 1, 1)] * 4
    assert all(
        step.backward_ns + step.optimizer_ns <= (step.took_ns or step.ended) for step in found
    )


def test_a_fold_that_begins_with_an_optimizer_of_its_own_goes_on_with_the_steps(
    watch: Watch,
) -> None:
    """The number of one that is gone is taken over, also where its id is used again; one that is kept is not waited for."""
    seen = watch("""
        def fold():
            o = sgd()
            for _ in range(4): loss().backward(); o.step()
            return o
        fold(); fold(); kept = [fold()]; kept += [fold()]
        for _ in range(40): loss().backward(); kept[1].step()
    """)

    assert seen.optimizers == ["SGD 1"] * 12 + ["SGD 2"] * 44
    assert len(seen.steps) == 56


def test_a_reentrant_checkpoint_is_part_of_its_backward(watch: Watch) -> None:
    seen = watch("""
        from torch.utils.checkpoint import checkpoint
        o = sgd(); x = torch.ones(8, 4, requires_grad=True)
        for _ in range(2): checkpoint(model, x, use_reentrant=True).pow(2).mean().backward(); o.step()
    """)

    assert seen.kinds == "back step back step"


def test_where_only_grad_is_asked_for_steps_are_told_without_roots(watch: Watch) -> None:
    seen = watch("""
        o = sgd()
        for _ in range(3):
            for p, g in zip(model.parameters(), torch.autograd.grad(loss(), [*model.parameters()])): p.grad = g
            o.step()
    """)

    assert (seen.kinds, seen.roots) == ("step step step", [])


def test_a_root_that_is_no_number_is_a_backward_without_a_value(watch: Watch) -> None:
    seen = watch("""
        o = sgd(); y = model(torch.ones(8, 4))
        y.backward(torch.ones_like(y)); o.step()
        torch.autograd.backward([loss(), loss()]); o.step()
        torch.autograd.backward(tensors=[loss()]); o.step()
        try: model(torch.ones(8, 4)).backward()
        except RuntimeError: pass
        z = torch.ones(1, dtype=torch.complex64, requires_grad=True); (z * 2).backward(torch.ones(1, dtype=torch.complex64))
    """)

    assert seen.kinds == "back step back step back step back"
    assert len(seen.roots) == 1


def test_a_script_that_patches_the_same_places_has_its_way(watch: Watch) -> None:
    seen = watch("""
        calls = []
        before = torch.autograd.backward
        def own(*given, **more): calls.append("own"); return before(*given, **more)
        torch.autograd.backward = own
        step = torch.optim.SGD.step
        torch.optim.SGD.step = lambda self, closure=None: (calls.append("step"), step(self, closure))[1]
        o = sgd()
        for _ in range(2): loss().backward(); o.step()
        print(calls)
    """)

    assert seen.kinds == "back step back step"
    assert seen.done.stdout == "['own', 'step', 'own', 'step']\n"


def test_what_is_computed_in_is_told_coarsest_first(watch: Watch) -> None:
    seen = watch("""
        o = sgd()
        with torch.autocast("cpu", dtype=torch.bfloat16): l = loss()
        l.float().backward(); o.step()
    """)

    assert seen.processes[0].hello["dtype"] == "bfloat16"
    assert seen.kinds == "back step"


def test_autocast_that_is_switched_off_hides_no_later_autocast(watch: Watch) -> None:
    seen = watch("""
        o = sgd()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False): l = loss()
        with torch.autocast("cpu", dtype=torch.bfloat16): l = loss()
        l.float().backward(); o.step()
    """)

    assert seen.processes[0].hello["dtype"] == "bfloat16"


@pytest.mark.parametrize(
    ("optimizer", "takes_fused", "is_fused"),
    [
        ("AdamW(model.parameters())", True, False),
        ("AdamW(model.parameters(), fused=True)", True, True),
        ("SGD([{'params': [model.bias], 'fused': True}, {'params': [model.weight]}])", True, False),
        ("RMSprop(model.parameters())", False, False),
        ("LBFGS(model.parameters())", False, False),
        ("Adam([model.weight.clone()], differentiable=True)", False, False),
    ],
)
def test_optimizer_is_reported_once_with_its_use_of_fused(
    watch: Watch, optimizer: str, takes_fused: bool, is_fused: bool
) -> None:
    seen = watch(f"""
        for _ in range(2):
            o = torch.optim.{optimizer}
            for _ in range(2):
                loss().backward()
                with torch.no_grad(): o.step(lambda: torch.ones(()))
    """)

    (process,) = seen.processes
    class_name = optimizer.partition("(")[0]
    facts = {"class": class_name, "takes_fused": takes_fused, "is_fused": is_fused}
    assert process.hello["optimizers"] == [facts]
    assert process.hello["has_compiled"] is False
    assert process.trouble == ""


def test_optimizer_with_sparse_gradients_cannot_be_fused(watch: Watch) -> None:
    seen = watch("""
        table = torch.nn.Embedding(4, 2, sparse=True)
        o = sgd(table)
        table(torch.tensor([1])).sum().backward(); o.step()
    """)

    (facts,) = seen.processes[0].hello["optimizers"]
    assert facts["takes_fused"] is False


def test_compiled_model_is_reported(watch: Watch) -> None:
    seen = watch("""
        o = sgd()
        model = torch.compile(model, backend="eager")
        loss().backward(); o.step()
    """)

    assert seen.processes[0].hello["has_compiled"] is True


def test_steps_after_hooks_of_the_backward_are_seen_in_torch(watch: Watch) -> None:
    seen = watch("""
        o = sgd()
        hook = model.weight.register_post_accumulate_grad_hook(lambda p: o.step() or o.zero_grad())
        for _ in range(5): loss().backward()
        hook.remove()
        for _ in range(40):
            for p in model.parameters(): p.grad = torch.ones_like(p)
            o.step()
    """)

    assert [step.optimized for step in seen.steps] == [1] * 45


SECOND_NS = 1_000_000_000
LONG_FIRST_STEP = """
    o = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=30, tolerance_grad=0, tolerance_change=0)
    evaluations = []
    def closure():
        evaluations.append(1)
        if len(evaluations) == 7: {end}
        o.zero_grad(); l = loss(); l.backward(); return l
    for _ in range(2): o.step(closure)
"""


def test_first_step_that_does_not_end_is_told_as_that(watch: Watch, tmp_path: Path) -> None:
    seen = watch(LONG_FIRST_STEP.format(end="os._exit(0)"))
    steps, marks = Steps(), MarksFolder(tmp_path)
    marks.processes = {process.pid: process for process in seen.processes}

    assert steps.take(seen.marks) + steps.finish() == []
    why = why_unseen(marks, ProcessTree(0), [steps])
    assert (
        why
        == "the first step of an optimizer started, but did not end; seen: 6 backwards, 0 batches from DataLoaders"
    )


def test_backward_within_a_long_first_step_ends_no_step(watch: Watch) -> None:
    """The first step of LBFGS takes longer than one waits for optimizers, and ends all the same."""
    seen = watch(LONG_FIRST_STEP.format(end="pass"))
    steps, found = Steps(), []
    for at, mark in enumerate(seen.marks):
        found += steps.take([mark._replace(began=at * SECOND_NS, ended=at * SECOND_NS)])
    found += steps.finish()

    assert (
        seen.kinds.split().index("step") > 10
    )  # seconds, after which no optimizer is waited for that has not begun
    assert [step.optimized for step in found] == [1, 1]
    assert steps.ends_with != BACKWARDS
