"""Plan the treatments that choose other kernels: cuDNN, memory format, attention."""

from tuilab.commands.tune.planning.candidate import (
    Answer,
    ApplicableTreatment,
    Situation,
    already_set,
    not_applicable,
)
from tuilab.commands.tune.planning.change import Edit, StatementEdit
from tuilab.commands.tune.planning.precision import NO_ROOT

# The shares of computing that stay at best. No kernel is known that gains more by the choice of an
# algorithm, by the format of its input, or by not writing the scores of attention to memory.
_ALGORITHM_STAYS = 0.1
_FORMAT_STAYS = 0.2
_ATTENTION_STAYS = 0.1
_HALVES = ("float16", "bfloat16")
_NO_CONVOLUTION = "the modules have no two-dimensional convolutions"
BACKENDS = {
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}
_MEMORY = {"math": "more: a score for each query and key"}


def plan_cudnn_benchmark(situation: Situation) -> Answer:
    """Plan that cuDNN tries its algorithms, and takes the fastest one for each shape."""
    settings = situation.facts.settings
    if not situation.has_gpu:
        return not_applicable("cuDNN needs a GPU, and the script uses none")
    if settings.cudnn_benchmark:
        return already_set("the script sets torch.backends.cudnn.benchmark")
    if settings.is_deterministic:
        return not_applicable(
            "the script asks for deterministic algorithms, and each process may choose others"
        )
    if not _has_convolutions(situation):
        return not_applicable(_NO_CONVOLUTION)
    change = "torch.backends.cudnn.benchmark = True"
    edits: list[Edit] = [StatementEdit(file=situation.script, statement=change)]
    gain = situation.gain_of_computing(_ALGORITHM_STAYS)
    return [ApplicableTreatment(gain=gain, change=change, edits=edits)]


def plan_channels_last(situation: Situation) -> Answer:
    """Plan root modules and images whose channels lie side by side in memory."""
    roots = situation.facts.roots
    if not roots:
        return not_applicable(NO_ROOT)
    if not _has_convolutions(situation):
        return not_applicable(_NO_CONVOLUTION)
    if all(root.are_channels_last for root in roots if root.convolutions):
        return already_set("the convolutions have channels_last weights")
    return [
        ApplicableTreatment(
            gain=situation.gain_of_computing(_FORMAT_STAYS),
            change="model.to(memory_format=torch.channels_last),"
            " and images.to(memory_format=torch.channels_last)",
        )
    ]


def _has_convolutions(situation: Situation) -> bool:
    return any(root.convolutions for root in situation.facts.roots)


def plan_attention(situation: Situation) -> Answer:
    """Plan the back ends of scaled_dot_product_attention that could serve the dtype.

    On a CPU, torch prefers flash, so only math is another one. On a GPU, the preference depends on
    the GPU, the dtype and the shape. Flash and cuDNN need 16 bits.
    """
    roots = [root for root in situation.facts.roots if root.attentions]
    if not roots:
        return not_applicable("the script does not call scaled_dot_product_attention")
    is_half = any(
        root.dtype in _HALVES or (root.is_autocast and root.autocast_dtype in ("", *_HALVES))
        for root in roots
    )
    backends = ["math"]
    if situation.has_gpu and is_half:
        backends = ["flash", "efficient", "cudnn"]
    elif situation.has_gpu:
        backends = ["efficient", "math"]
    candidates: Answer = []
    for backend in backends:
        candidate = ApplicableTreatment(
            value=backend,
            title=f"{backend} attention",
            gain=situation.gain_of_computing(_ATTENTION_STAYS),
            change=f"with sdpa_kernel(SDPBackend.{BACKENDS[backend]}): around the step",
            memory=_MEMORY.get(backend, ""),
        )
        candidates.append(candidate)
    return candidates
