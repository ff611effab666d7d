"""A trainer that needs no torch: it marks steps whose times are made up, as its treatments demand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TRAINER = '''"""Marks made-up steps, as the watcher marks those of torch, and obeys the variables of tune."""
import json, math, os, random, sys, time

from _tuilab_treat import FACTS, STEPS, TREATMENTS
from _tuilab_watch import layout
from _tuilab_watch.ring import Ring

plan = json.loads(open(sys.argv[1]).read())
treatments = [word for word in os.environ.get(TREATMENTS, "").split(",") if word]
last_step = int(os.environ.get(STEPS, "0"))
for path in plan.get("writes", []):
    with open(path, "a") as file:
        file.write("x")

ring = Ring(os.environ["TUILAB_WATCH"])
ring.text(layout.HELLO, json.dumps({"pid": os.getpid(), "torch": "2.99", "python": "3.99"}))
ring.text(layout.NAME, "Adam\\noptimizer 1", 1)
if os.environ.get(FACTS):
    for part, items in plan["facts"].items():
        for index, facts in enumerate(items):
            report = {"part": part, "index": index, "facts": facts}
            ring.text(layout.SCRIPT_FACTS, json.dumps(report))

step_ms = plan.get("step_ms", 10.0)
for treatment in treatments:
    effect = plan["effects"].get(treatment, {})
    report = {"treatment": treatment, "did": f"did {treatment}"}
    report.update(effect.get("report", {}))
    ring.text(layout.TREATED, json.dumps(report))
    step_ms *= effect.get("times", 1.0)
    if effect.get("hangs"):
        time.sleep(1000)
    if effect.get("prints"):
        print(effect["prints"], file=sys.stderr)
    if "code" in effect:
        sys.exit(effect["code"])
if plan.get("ends_with"):
    sys.exit(plan["ends_with"])

lot = random.Random(os.getpid())
chance = math.exp(lot.gauss(0, plan.get("luck", 0.005)))
learned = random.Random(1)
shift = sum(plan["effects"].get(each, {}).get("shift", 0.0) for each in treatments)
now = time.monotonic_ns()
for step in range(min(last_step or 10**9, plan.get("steps", 60))):
    took = int(step_ms * chance * 1e6 * (3 if step < 2 else 1))
    ring.mark(layout.WAITED, now, now + took // 5)
    root = 1 / (1 + step) + learned.random() / 20 + (shift if step > 2 else 0.0)
    ring.mark(layout.WENT_BACK, now + took // 4, now + took // 2, root, 0, 0, 1)
    ring.mark(layout.STEPPED, now + took // 2, now + took * 9 // 10, 0.0, 0, 1)
    now += took
'''

OPTIMIZER = {
    "kind": "Adam",
    "tensors": 400,
    "device": "cpu",
    "takes_fused": True,
    "takes_foreach": True,
}
ROOT = {"kind": "Net", "dtype": "float32", "device": "cuda", "convolutions": 8, "attentions": 2}
# A GPU of this capability computes TF32.
SETTINGS = {"has_cuda": True, "capability": "9.0", "matmul_precision": "highest", "torch": "2.99.0"}
FACTS = {"optimizers": [OPTIMIZER], "roots": [ROOT], "settings": [SETTINGS]}


def write_trainer(folder: Path, effects: Mapping[str, Mapping[str, Any]], **plan: Any) -> list[str]:
    """Write the trainer, and return the words after `python` that run it.

    `effects` has, by treatment: `times`, the factor of a step; `shift`, what it adds to the loss;
    `report`, what it reports; `hangs`, `prints` and `code`, how its process ends.
    """
    script = folder / "train.py"
    script.write_text(TRAINER)
    document = {"facts": FACTS, **plan, "effects": effects}
    (folder / "plan.json").write_text(json.dumps(document))
    return [str(script), "plan.json"]
