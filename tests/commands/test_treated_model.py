"""Treatments of the model: they begin after the third step, around the modules that the training calls."""

import pytest

from tests.commands.treated_script import Treat

pytestmark = pytest.mark.real_torch
NET = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.ConvTranspose2d(8, 8, 3, padding=1)
        self.head = torch.nn.Linear(512, 1)
        self.seen = []
    def forward(self, image, *, scale=1):
        inner = self.second(self.first(image).relu())
        self.seen.append((inner.dtype, image.stride()[1], inner.stride()[1]))
        return {"out": self.head(inner.flatten(1)) * scale, "inner": (inner, [inner])}
torch.manual_seed(0)
model = Net()
images, targets = torch.randn(16, 3, 8, 8), torch.randn(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
def steps(count):
    for _ in range(count):
        optimizer.zero_grad()
        found = model(images, scale=2)
        (found["out"] - targets).pow(2).mean().backward()
        optimizer.step()
    return found
"""
IN_BFLOAT16 = "torch.autocast('cpu', torch.bfloat16) around Net.forward"


def test_bf16_begins_after_three_steps_and_results_are_float32(treat: Treat) -> None:
    treated = treat(
        "bf16",
        NET + "found = steps(5)\n"
        "print([str(dtype)[6:] for dtype, *_ in model.seen])\n"
        "print(found['out'].dtype, found['inner'][0].dtype, found['inner'][1][0].dtype)\n"
        "print(torch.is_autocast_enabled('cpu'), model.first.weight.dtype)\n",
    )
    plain = treat("", NET + "steps(5)")

    assert treated.printed == [
        "['float32', 'float32', 'float32', 'bfloat16', 'bfloat16']",
        "torch.float32 torch.float32 torch.float32",
        "False torch.float32",
    ]
    assert treated.did("bf16") == [IN_BFLOAT16]
    assert treated.losses[:3] == plain.losses[:3] and treated.losses[3] != plain.losses[3]
    assert treated.losses == pytest.approx(plain.losses, rel=0.02)


def test_weights_in_bf16_are_those_of_the_last_step(treat: Treat) -> None:
    """With the global switch, weights would be cast once and never again, and no loss would fall."""
    treated = treat("bf16", NET + "steps(60)")

    assert len(treated.losses) == 60 and treated.losses[-1] < 0.1 * treated.losses[4]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            "forward = model.forward\n"
            "def cast(*args, **more):\n"
            "    with torch.autocast('cpu', torch.bfloat16): return forward(*args, **more)\n"
            "model.forward = cast\n",
            "",
        ),
        (
            "model = model.bfloat16(); images = images.bfloat16()\n",
            "Net computes in torch.bfloat16",
        ),
    ],
)
def test_training_in_bf16_is_already_set(treat: Treat, change: str, why: str) -> None:
    treated = treat("bf16", NET + change + "steps(5)")

    assert treated.is_set("bf16") and treated.did("bf16") == []
    assert treated.why("bf16") == [why or "autocast is on in Net, with bfloat16"]


def test_both_roots_of_two_models_are_treated_and_no_inner_module(treat: Treat) -> None:
    treated = treat(
        "bf16",
        """
        other = net()
        optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (model, other)]
        x = torch.randn(4, 4)
        for _ in range(4):
            for one, optimizer in zip((model, other), optimizers):
                one(x).sum().backward(); optimizer.step()
            model[0](x)  # a module of a root
        print([type(one.forward).__name__ for one in (model, other, model[0])])
        with torch.no_grad(): frozen = net()(x)
        """,
    )

    assert treated.printed == ["['TreatedForward', 'TreatedForward', 'method']"]
    assert sum(report.count for report in treated.reports) == 2


def test_recomputed_module_of_a_checkpoint_is_no_root(treat: Treat) -> None:
    treated = treat(
        "bf16",
        """
        from torch.utils.checkpoint import checkpoint
        class Saving(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 4)
            def forward(self, x): return checkpoint(self.inner, x, use_reentrant=False)
        model = Saving()
        optimizer = sgd()
        for _ in range(5): model(torch.ones(2, 4)).sum().backward(); optimizer.step()
        print(type(model.forward).__name__, type(model.inner.forward).__name__)
        """,
    )

    assert treated.printed == ["TreatedForward method"]


def test_copies_and_files_of_a_treated_model_are_plain(treat: Treat) -> None:
    treated = treat(
        "bf16",
        NET + "steps(5)\n"
        "import copy, io\n"
        "twin = copy.deepcopy(model)\n"
        "print(twin.forward.__self__ is twin, twin.first.weight is model.first.weight)\n"
        "file = io.BytesIO(); torch.save(model, file); file.seek(0)\n"
        "loaded = torch.load(file, weights_only=False)\n"
        "print(loaded.forward.__self__ is loaded, loaded(images)['out'].dtype)\n"
        "print(sorted(model.state_dict()) == sorted(twin.state_dict()))\n"
        "import inspect; print(list(inspect.signature(model.forward).parameters))\n",
    )

    assert treated.printed == [
        "True False",
        "True torch.float32",
        "True",
        "['image', 'scale']",
    ]


def test_channels_last_changes_weights_inputs_and_states(treat: Treat) -> None:
    script = NET + (
        "steps(5)\n"
        "print([strides for _, *strides in model.seen[2:4]])\n"
        "weight = model.first.weight\n"
        "state = optimizer.state[weight]['momentum_buffer']\n"
        "print(weight.stride()[1], state.stride()[1], len(optimizer.param_groups[0]['params']))\n"
    )
    plain = treat("", script)
    treated = treat("channels-last", script)

    assert plain.printed == ["[[64, 64], [64, 64]]", "9 9 6"]
    assert treated.printed == ["[[64, 64], [1, 1]]", "1 1 6"]
    assert treated.did("channels-last") == [
        "Net.to(memory_format=torch.channels_last): 2 convolutions"
    ]
    assert treated.losses == pytest.approx(plain.losses, rel=1e-4)


def test_channels_last_needs_convolutions_in_another_format(treat: Treat) -> None:
    without = treat("channels-last", "train(DataLoader(data, 16), sgd())")
    already = treat("channels-last", NET + "model.to(memory_format=torch.channels_last)\nsteps(5)")

    assert without.why("channels-last") == ["Sequential has no Conv2d and no ConvTranspose2d"]
    assert already.is_set("channels-last")


def test_training_without_modules_has_no_root(treat: Treat) -> None:
    treated = treat(
        "bf16,compile",
        """
        weight = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(4): (weight - 1).pow(2).sum().backward(); optimizer.step()
        """,
    )

    why = ["no module was called with gradients in the first steps"]
    assert treated.why("bf16") == treated.why("compile") == why


def test_few_steps_are_not_treated(treat: Treat) -> None:
    treated = treat("bf16,gc-freeze", NET + "steps(2)")

    why = ["the script made fewer than 3 steps"]
    assert treated.why("bf16") == treated.why("gc-freeze") == why


def test_frozen_garbage_is_collected_no_more(treat: Treat) -> None:
    script = (
        "import gc; before = gc.get_freeze_count()\n"
        "train(DataLoader(data, 16), sgd())\n"
        "print(gc.isenabled(), gc.get_freeze_count() > before)\n"
    )
    plain = treat("", script)
    treated = treat("gc-freeze", script)

    assert (plain.printed, treated.printed) == (["True False"], ["False True"])
    assert treated.losses == plain.losses
    (did,) = treated.did("gc-freeze")
    assert did.startswith("gc.freeze() with ")


def test_collector_that_the_script_switched_off_is_already_set(treat: Treat) -> None:
    treated = treat("gc-freeze", "import gc; gc.disable()\ntrain(DataLoader(data, 16), sgd())")

    assert treated.is_set("gc-freeze")


def test_two_treatments_of_one_root_are_both_applied(treat: Treat) -> None:
    treated = treat(
        "bf16,channels-last",
        NET + "steps(5)\nprint([(str(dtype)[6:], *rest) for dtype, *rest in model.seen[2:4]])",
    )

    assert treated.printed == ["[('float32', 64, 64), ('bfloat16', 1, 1)]"]
