"""What the exact claims of a lesson measure on a CPU, by key: the whole lesson runs in this process, with --quick."""

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from tests.lessons import claimed, source_of
from tuilab.record.exact_claims import holds
from tuilab.record.plain_value import is_equal

BOUNDED = ...  # near enough that its claim holds: its last digits are another library's
EXACT: dict[str, dict[str, Any]] = {
    "where-nan": {
        "value": [0, 2],
        "gradient": [nan, 0.25],
        "inside": [[0, 2], [0, 0.25]],
        "too-late": [nan, nan, inf, inf],
        "selected": [0, 0.25],
        "others": [nan, nan],
        "overflow": [[[100], [nan]], [[100], [1]]],
        "norm": [[nan, nan], [0, 0]],
        "one-row": [True, 16],
        "anomaly": True,
    },
    "dtype-ranges": {
        "bits": [[8, 23], [5, 10], [8, 7]],
        "eps": [2**-23, 2**-10, 2**-7],
        "largest": [2**128 - 2**104, 65_504, 2**128 - 2**120],
        "normal": [2**-126, 2**-14, 2**-126],
        "smallest": [2**-149, 2**-24, 2**-133],
        "counting": [16_777_216, 2048, 256],
        "patterns": [2046, 254],
        "rounding": [2**-11, 2**-8],
        "seventy": [inf, 70_144],
        "overflow": [inf, 2.0**128 * (1 - 2**-9 - 2**-24)],
    },
    "accumulate-lowp": {
        "float16": [32, 2798],
        "bfloat16": [4, 350],
        "float32": 100.0029525756836,
        "sum": [100, 100],
        "wide": 100.0213623046875,
        "update": [1, 1],
        "master": 0.8999834060668945,
        "ones": [4096, 2048],
        "cancel": [0, nan],
        "error": BOUNDED,
        "mean": [inf, 1],
        "switches": [True, True, False],
    },
    "bf16-vs-fp16": {
        "fit-bf16": [1.609375, 78],
        "fit-f16": [1.951171875, 289],
        "master": BOUNDED,
        "up": [2**-11, 2**-8],
        "down": [2**-12, 2**-9],
        "random": BOUNDED,
        "nearest": [1, 1],
        "overflow": [[65_504, inf], [65_536, 65_536]],
        "squares": BOUNDED,
        "adam": [-inf, 1],
    },
    "fp8": {
        "e4m3": [254, 2, 0, 448],
        "e5m2": [248, 6, 2, 57_344],
        "counting": [16, 8],
        "too-large": [False, 1024, inf],
        "unscaled": [1, 1],
        "scaled": BOUNDED,
        "spread": BOUNDED,
        "backward": 0,
        "outlier": BOUNDED,
        "per-row": BOUNDED,
        "no-sum": ["NotImplementedError", "NotImplementedError"],
        "wide": BOUNDED,
        "mixed": BOUNDED,
        "few-bits": BOUNDED,
        "promoted": BOUNDED,
    },
    "tf32": {
        "default": [True, False],
        "product": BOUNDED,
        "cut-off": BOUNDED,
        "float32": BOUNDED,
        "bfloat16": BOUNDED,
        "split": BOUNDED,
        "whole": [True, 2050],
        "range": BOUNDED,
        "distance": BOUNDED,
        "distance-f32": BOUNDED,
        "inherits": ["tf32", "ieee"],
        "mixed": "RuntimeError",
        "together": [True, False],
    },
    "rope-bf16": {
        "rows": [769, 3073],
        "neighbours": BOUNDED,
        "drift": BOUNDED,
        "float32": BOUNDED,
        "cosine": BOUNDED,
        "cast-after": BOUNDED,
        "buffer": BOUNDED,
        "relative": BOUNDED,
        "autocast": ["torch.bfloat16", "torch.float32"],
    },
    "bf16-decay": {
        "same-run": 0,
        "gradients": BOUNDED,
        "f32-run": BOUNDED,
        "fused-run": BOUNDED,
        "moved": 0,
        "float32": BOUNDED,
        "fused": 0,
        "rare": BOUNDED,
        "too-often": 1,
        "limit": BOUNDED,
        "every": BOUNDED,
        "average": 1,
    },
    "batch-invariance": {
        "differs": BOUNDED,
        "small": BOUNDED,
        "close": "AssertionError",
        "deterministic": BOUNDED,
        "repeat": 0,
        "others": 0,
        "padded": 0,
        "whole": 0,
        "chaos": BOUNDED,
        "token": BOUNDED,
        "padded-steps": 0,
    },
    "rl-logprobs": {
        "ratio": BOUNDED,
        "bf16": BOUNDED,
        "clip-bf16": BOUNDED,
        "clip-f16": 0,
        "length": BOUNDED,
        "head": BOUNDED,
        "float32": BOUNDED,
        "recomputed": 0,
        "massive": [0, 1],
    },
    "tar-vs-files": {
        "opens": [400, 1],
        "same": True,
        "bytes": [1_853_440, 1_600_000],
        "kept": [400, 0],
        "by-name": 400,
        "name-error": "NameError",
        "folder": [True, "AttributeError"],
    },
    "non-blocking": {"no-op": [0, True], "in-turn": 0, "beside": BOUNDED},
    "double-softmax": {
        "thousand": 5.9095,
        "floor": [[0.3133, 1.4612], [0, 0, 0]],
        "formula": BOUNDED,
        "first-gradient": BOUNDED,
        "confident-mistake": [1.41, True],
        "trained-loss": [True, True],
        "accuracy": BOUNDED,
        "same-answer": True,
    },
    "adam-decay": {
        "adamw": BOUNDED,
        "sgd": BOUNDED,
        "adam-small": BOUNDED,
        "adam-middle": BOUNDED,
        "adam-large": BOUNDED,
        "l2-sgd": BOUNDED,
        "l2-adam": BOUNDED,
    },
    "eval-mode": {
        "rows-differ": 64,
        "eval-same": True,
        "alone": BOUNDED,
        "not-alone": BOUNDED,
        "moved": [True, False],
        "leak": BOUNDED,
        "one-row": "ValueError",
        "records": True,
    },
    "best-weights": {
        "alias": True,
        "best-kept": 0,
        "shallow": [0, 0],
        "deep": 100,
        "restored": [True, True],
        "worse": BOUNDED,
        "saved-view": BOUNDED,
        "saved-clone": BOUNDED,
    },
    "default-init": {
        "variance": BOUNDED,
        "default": BOUNDED,
        "xavier": BOUNDED,
        "he": BOUNDED,
        "gradient": BOUNDED,
        "learns": BOUNDED,
        "stuck": BOUNDED,
        "norm": BOUNDED,
    },
    "leaky-loss": {
        "nodes": 506,
        "detached": [0, 0],
        "grows": 10,
        "kept": 50,
        "backward-frees": [0, 506],
        "no-grad": 0,
        "same-value": True,
    },
    "detach-hidden": {
        "refused": "RuntimeError",
        "in-place": True,
        "growing": 1210 / 34,
        "linear": [24],
        "constant": 0,
        "trains": "",
        "same-values": True,
    },
    "accum-tokens": {
        "means": BOUNDED,
        "tokens": BOUNDED,
        "rescaled": BOUNDED,
        "counts": BOUNDED,
        "equal": BOUNDED,
        "padded": BOUNDED,
        "empty": [nan, 0.0],
        "masked": [0.0, nan],
        "trained": BOUNDED,
    },
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", EXACT)
def test_a_lesson_measures_the_values_that_it_promises(tmp_path: Path, lesson: str) -> None:
    claims = claimed(tmp_path, source_of(lesson))

    found = {key: claim.got.value for key, claim in claims.items()}
    assert [key for key, claim in claims.items() if not holds(claim)] == []
    assert found.keys() == EXACT[lesson].keys()
    assert [
        key
        for key, value in EXACT[lesson].items()
        if value is not BOUNDED and not is_equal(found[key], value, 0.0)
    ] == []
