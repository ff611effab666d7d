"""Apply the treatments of `tuilab tune` to the training in this process, from outside the script.

The watcher calls `begin` of `process.py` before it hooks into torch, so that it times the treated
training. Nothing here may ever raise into the script, except what torch raises because of a
treatment. tuilab imports these names as well.
"""

from __future__ import annotations

TREATMENTS = "TUILAB_TREAT"  # the treatments, for example "workers=2,fused"
STEPS = "TUILAB_TREAT_STEPS"  # the process ends after so many steps of an optimizer
FACTS = "TUILAB_TREAT_FACTS"  # "1": report the facts about the training
# A treatment of the model is applied after so many steps: by then its root modules are known.
FIRST_TREATED_STEP = 3
