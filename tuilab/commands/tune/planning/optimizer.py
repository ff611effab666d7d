"""Plan the treatments of optimizers and of zero_grad."""

from tuilab.commands.step_parts import BACKWARD, OPTIMIZER, REST
from tuilab.commands.tune.planning.candidate import (
    Answer,
    ApplicableTreatment,
    Situation,
    already_set,
    not_applicable,
)
from tuilab.commands.tune.planning.change import CallEdit, Edit, ZeroGradEdit
from tuilab.commands.tune.planning.possible_gain import PossibleGain
from tuilab.commands.tune.script_facts import OptimizerFacts
from tuilab.text.display import join

# The share of an optimizer step that stays at best. A step has to read and write each parameter
# once. For hundreds of small tensors, calling operators takes more than 10 times as long as that.
_STAYS = 0.05
# torch has fused steps for these types of device (`_get_fused_kernels_supported_devices`).
FUSED_DEVICES = ("cuda", "cpu", "mps", "xpu", "hpu", "mtia")
# torch chooses foreach by itself on these (`_default_to_fused_or_foreach`).
FOREACH_DEVICES = ("cuda", "xpu", "mtia")
# Filling with zeros writes each gradient, and backward then reads two numbers and writes one to add
# to it. Computing a gradient writes each number once. So at least this share of backward stays.
_BACKWARD_STAYS = 0.25
POSITIONAL = 5  # arguments before foreach or fused, in each optimizer of torch
_NO_OPTIMIZER = "no optimizer of torch made a step"


def plan_fused(situation: Situation) -> Answer:
    """Plan optimizers that update all tensors with one operator."""
    optimizers = situation.facts.optimizers
    if not optimizers:
        return not_applicable(_NO_OPTIMIZER)
    unfused = [optimizer for optimizer in optimizers if not optimizer.is_fused]
    if not unfused:
        return already_set(f"{_names(optimizers)} is fused")
    able = []
    for optimizer in unfused:
        if optimizer.takes_fused and optimizer.device in ("", *FUSED_DEVICES):
            able.append(optimizer)
    if not able:
        return not_applicable(f"torch cannot run {_names(unfused)} with fused=True")
    return [
        ApplicableTreatment(
            gain=_gain(situation),
            change=f"{_names(able)}(..., fused=True)",
            edits=_edits(able, "fused", excludes=("foreach",)),
        )
    ]


def plan_foreach(situation: Situation) -> Answer:
    """Plan optimizers that update all tensors with one call for each operation."""
    optimizers = situation.facts.optimizers
    if not optimizers:
        return not_applicable(_NO_OPTIMIZER)
    plain = [item for item in optimizers if not item.is_fused and not item.is_foreach]
    if not plain:
        return already_set(f"{_names(optimizers)} is fused or uses foreach")
    able = [optimizer for optimizer in plain if optimizer.takes_foreach]
    if not able:
        return not_applicable(f"torch cannot run {_names(plain)} with foreach=True")
    slow = [optimizer for optimizer in able if optimizer.device not in FOREACH_DEVICES]
    if not slow:
        return already_set("torch uses foreach on this device, unless foreach=False is passed")
    return [
        ApplicableTreatment(
            gain=_gain(situation),
            change=f"{_names(slow)}(..., foreach=True)",
            edits=_edits(slow, "foreach", excludes=("fused",)),
        )
    ]


def plan_set_to_none(situation: Situation) -> Answer:
    """Plan to give gradients back instead of filling them with zeros."""
    optimizers = situation.facts.optimizers
    if not optimizers:
        return not_applicable(_NO_OPTIMIZER)
    if not any(optimizer.fills_with_zeros for optimizer in optimizers):
        return already_set("the script does not pass set_to_none=False to zero_grad")
    # A parameter that gets no gradient drops out of the optimizer step if it has no zeros either.
    stays = {REST: 0.0, OPTIMIZER: 0.0}
    subject = "optimizer and rest, which include zero_grad, take"
    if BACKWARD not in situation.steps.lacks:
        stays[BACKWARD] = _BACKWARD_STAYS
        subject = "backward, optimizer and rest, which include work on zeros, take"
    edits: list[Edit] = []
    if situation.script:
        edits.append(ZeroGradEdit(file=situation.script))
    return [
        ApplicableTreatment(
            gain=situation.gain_without(stays, subject),
            change="optimizer.zero_grad(set_to_none=True), which is the default",
            edits=edits,
        )
    ]


def _gain(situation: Situation) -> PossibleGain:
    return situation.gain_without({OPTIMIZER: _STAYS}, "the optimizer takes")


def _names(optimizers: list[OptimizerFacts]) -> str:
    """Return the classes of optimizers as a list in a sentence."""
    return join(dict.fromkeys(optimizer.kind or "the optimizer" for optimizer in optimizers))


def _edits(optimizers: list[OptimizerFacts], keyword: str, excludes: tuple[str, ...]) -> list[Edit]:
    """Return the edits that set a keyword of all these optimizers to True."""
    edits: list[Edit] = []
    for optimizer in optimizers:
        edit = CallEdit(
            place=optimizer,
            callee=optimizer.kind,
            keywords={keyword: "True"},
            most_positional=POSITIONAL,
            excludes=excludes,
        )
        edits.append(edit)
    return edits
