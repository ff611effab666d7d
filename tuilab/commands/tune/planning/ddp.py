"""Plan the treatments of DistributedDataParallel (DDP)."""

from tuilab.commands.step_parts import BACKWARD, REST
from tuilab.commands.tune.planning.candidate import (
    Answer,
    ApplicableTreatment,
    Situation,
    already_set,
    not_applicable,
)
from tuilab.commands.tune.planning.change import CallEdit, Edit
from tuilab.commands.tune.planning.possible_gain import PossibleGain
from tuilab.commands.tune.script_facts import DdpFacts

_CALLEE = "DistributedDataParallel"
POSITIONAL = 7  # arguments before bucket_cap_mb
_NO_DDP = "the script does not use DistributedDataParallel"
# The shares of backward that stay at best. A bucket is copied to gradients in about the time of a
# pass over the gradients, and backward computes them in at least as much. Searching the graph and
# the exchange of gradients can take most of a backward, but not the whole of it.
_VIEW_STAYS = 0.5
_STATIC_STAYS = 0.1
_BUCKET_STAYS = 0.1
_USUAL_BUCKET_MB = 25.0  # of torch
_MOST_BUCKET_MB = 1000
_MORE = 4  # times as large, or as small
_BYTES = {"float64": 8, "float16": 2, "bfloat16": 2}  # others have 4


def plan_view(situation: Situation) -> Answer:
    """Plan gradients that are views of the buckets, which saves a copy."""
    modules = situation.facts.ddp
    if not modules:
        return not_applicable(_NO_DDP)
    others = [module for module in modules if not module.has_bucket_view]
    if not others:
        return already_set("DDP has gradient_as_bucket_view=True")
    keyword = "gradient_as_bucket_view"
    return [
        ApplicableTreatment(
            gain=_gain(situation, _VIEW_STAYS),
            change=f"DistributedDataParallel(..., {keyword}=True)",
            edits=_edits(others, keyword, "True"),
        )
    ]


def plan_static(situation: Situation) -> Answer:
    """Plan the promise that each step uses the same parameters, which saves searching the graph."""
    modules = situation.facts.ddp
    if not modules:
        return not_applicable(_NO_DDP)
    others = [module for module in modules if not module.is_static]
    if not others:
        return already_set("DDP has static_graph=True")
    return [
        ApplicableTreatment(
            gain=_gain(situation, _STATIC_STAYS),
            change="DistributedDataParallel(..., static_graph=True)",
            edits=_edits(others, "static_graph", "True"),
        )
    ]


def plan_bucket(situation: Situation) -> Answer:
    """Plan larger buckets, or smaller ones if all gradients fit into one bucket.

    Fewer exchanges cost less. But a single exchange begins only at the end of backward.
    """
    modules = situation.facts.ddp
    if not modules:
        return not_applicable(_NO_DDP)
    present_mb = max(module.bucket_mb for module in modules)
    if not 0 < present_mb < _MOST_BUCKET_MB:
        present_mb = _USUAL_BUCKET_MB
    gradients_mb = _gradients_mb(situation)
    if gradients_mb > present_mb:
        bucket_mb = max(1, min(round(_MORE * present_mb), _MOST_BUCKET_MB))
    elif gradients_mb >= _MORE:
        bucket_mb = round(gradients_mb / _MORE)
    else:
        return not_applicable(f"the gradients have {gradients_mb:.1f} MiB, too few for buckets")
    return [
        ApplicableTreatment(
            value=str(bucket_mb),
            title=f"DDP with buckets of {bucket_mb} MiB",
            gain=_gain(situation, _BUCKET_STAYS),
            change=f"DistributedDataParallel(..., bucket_cap_mb={bucket_mb})",
            edits=_edits(modules, "bucket_cap_mb", str(bucket_mb)),
        )
    ]


def _gradients_mb(situation: Situation) -> float:
    """Return the size of the gradients of the largest root module in MiB."""
    sizes = [0.0]
    for root in situation.facts.roots:
        sizes.append(root.numbers * _BYTES.get(root.dtype, 4) / 2**20)
    return max(sizes)


def _gain(situation: Situation, stays: float) -> PossibleGain:
    """Return the possible gain if only a share of backward stays. It includes the exchange."""
    if BACKWARD in situation.steps.lacks:
        subject = "the rest of a step, which includes backward, takes"
        return situation.gain_without({REST: stays}, subject)
    subject = "backward, which includes the exchange of gradients, takes"
    return situation.gain_without({BACKWARD: stays}, subject)


def _edits(modules: list[DdpFacts], keyword: str, value: str) -> list[Edit]:
    """Return the edits that set a keyword of all these modules."""
    edits: list[Edit] = []
    for module in modules:
        edit = CallEdit(
            place=module,
            callee=_CALLEE,
            keywords={keyword: value},
            most_positional=POSITIONAL,
        )
        edits.append(edit)
    return edits
