"""Plan the treatments of precision: bfloat16 autocast and TF32."""

from tuilab.commands.tune.planning.candidate import (
    Answer,
    ApplicableTreatment,
    Situation,
    already_set,
    not_applicable,
)
from tuilab.commands.tune.planning.change import Edit, StatementEdit
from tuilab.commands.tune.script_facts import RootFacts
from tuilab.text.display import join, show

NO_ROOT = "the script called no module with gradients"
# The shares of computing that stay at best: the peak rate of float32 over that of the other dtype,
# of the data sheets of NVIDIA (A100: 19.5, 156 and 312 TFLOP/s; H100: 67, 495 and 990).
_BF16_STAYS_ON_GPU = 1 / 16
_TF32_STAYS = 1 / 8
# The same for instructions of CPUs: multiplications a cycle of float32 over those of bfloat16.
_BF16_STAYS = {"amx_bf16": 1 / 16, "bf16": 1 / 4, "avx512_bf16": 1 / 2}
_LEAST_CAPABILITY = (8, 0)  # of GPUs with units for bfloat16 and TF32
_HALVES = ("float16", "bfloat16")
_LEAST_TORCH = (2, 9)  # with `fp32_precision`


def plan_bf16(situation: Situation) -> Answer:
    """Plan autocast to bfloat16 in the forward of each root module."""
    roots = situation.facts.roots
    if not roots:
        return not_applicable(NO_ROOT)
    in_half = [root for root in roots if root.dtype in _HALVES or root.is_autocast]
    if len(in_half) == len(roots):
        return already_set(_describe_halves(in_half))
    in_float32 = [root for root in roots if root not in in_half and root.dtype == "float32"]
    if not in_float32:
        return not_applicable("autocast changes only float32, and no parameter is float32")
    if situation.has_gpu:
        capability = situation.capability
        if capability is not None and capability < _LEAST_CAPABILITY:
            return not_applicable(_describe_old_gpu(situation, "bfloat16"))
        stays = _BF16_STAYS_ON_GPU
    else:
        instructions = situation.machine.bf16_instructions
        if instructions is not None and not instructions:
            return not_applicable(
                "the CPU has neither amx_bf16 nor avx512_bf16,"
                " so it would first convert each number of bfloat16"
            )
        known = instructions or list(_BF16_STAYS)
        stays = min(_BF16_STAYS.get(name, 1.0) for name in known)
    device = "cuda" if situation.has_gpu else "cpu"
    return [
        ApplicableTreatment(
            gain=situation.gain_of_computing(stays),
            change=f'with torch.autocast("{device}", dtype=torch.bfloat16): around the forward,'
            " and .float() for its result",
        )
    ]


def _describe_halves(roots: list[RootFacts]) -> str:
    """Return why no root module needs autocast."""
    dtypes = set()
    for root in roots:
        dtypes.add(root.dtype if root.dtype in _HALVES else root.autocast_dtype)
    return f"the forward computes in {join(sorted(filter(None, dtypes))) or 'a dtype of autocast'}"


def _describe_old_gpu(situation: Situation, dtype: str) -> str:
    capability = show(situation.facts.settings.capability, 20)
    return f"the GPU has capability {capability}; units for {dtype} need 8.0"


def plan_tf32(situation: Situation) -> Answer:
    """Plan matrix products of float32 numbers in TF32."""
    settings = situation.facts.settings
    roots = situation.facts.roots
    if not situation.has_gpu:
        return not_applicable("TF32 needs a GPU, and the script uses none")
    capability = situation.capability
    if capability is not None and capability < _LEAST_CAPABILITY:
        return not_applicable(_describe_old_gpu(situation, "TF32"))
    if settings.matmul_precision not in ("", "highest"):
        precision = show(settings.matmul_precision, 20)
        return already_set(f"the precision of float32 matrix products is {precision}")
    if not roots:
        return not_applicable(NO_ROOT)
    in_float32 = [root for root in roots if root.dtype == "float32" and not root.is_autocast]
    if not in_float32:
        return not_applicable("no forward computes matrix products in float32")
    change = 'torch.backends.cuda.matmul.fp32_precision = "tf32"'
    if _is_before(settings.torch, _LEAST_TORCH):
        change = "torch.backends.cuda.matmul.allow_tf32 = True"
    edits: list[Edit] = []
    # A script that mentions the other way to say it may say it later.
    source = situation.sources.get(situation.script)
    if source and "set_float32_matmul_precision" not in source.text:
        edits.append(StatementEdit(file=situation.script, statement=change))
    return [
        ApplicableTreatment(
            gain=situation.gain_of_computing(_TF32_STAYS), change=change, edits=edits
        )
    ]


def _is_before(version: str, least: tuple[int, int]) -> bool:
    """Return whether a version such as 2.13.0+cpu is older; an unknown one is not."""
    major, _, remainder = version.partition(".")
    minor, _, _ = remainder.partition(".")
    if len(major) > 4 or len(minor) > 4 or not (major.isdecimal() and minor.isdecimal()):
        return False
    return (int(major), int(minor)) < least
