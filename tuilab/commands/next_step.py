"""What to look at next, in a sentence: the part of a step that most could be gained of, as far as it was measured."""

from collections.abc import Mapping

from tuilab.commands.parts import BACKWARD, DATA, FORWARD, OPTIMIZER, REST, WITH_FORWARD

LEAST = 20  # steps: a loader with workers brings batches in bursts, so that the mean of few says little
_WAITING = 10  # percent: without any waits a step is then 1.1 times as fast, which a race of a few processes can still tell
_BESIDE = 20  # percent: of what has to be done some stays, so that twice as much is asked for
_LONGER = 3  # times: a forward by itself is mostly shorter than its backward, and hardly ever that much longer
_COMPUTING = 50  # percent: then most of a step is what a GPU or other numbers would make faster

_ADVICE = {
    DATA: (_WAITING, "more workers of the DataLoader, or less work for an item; `tuilab run loader-workers` has when they pay"),
    OPTIMIZER: (_BESIDE, "an optimizer with fused=True; `tuilab run fuse-optimizer` has what that brings here"),
    REST: (
        _BESIDE,
        "what the loop does beside: logging, metrics, callbacks, checkpoints, validation, batches of no DataLoader",
    ),
}
_COMPUTE = "what computes; `tuilab ab` races it as it is against bfloat16, or against torch.compile"


def next_step(shares: Mapping[str, float], steps: int, *, is_alone: bool = True) -> str:
    """Return the sentence; nothing where too little was measured, or no part stands out.

    The backward of one of several ranks computes, exchanges gradients and waits for the others: of what, nobody measured.
    """
    if steps < LEAST:
        return ""
    beside = {part: shares[part] for part, (least, _) in _ADVICE.items() if shares.get(part, 0) >= least}
    if beside:
        part = max(beside, key=lambda one: beside[one])
        return f"to look at: {part}, {beside[part]:.0f} %: {_ADVICE[part][1]}"
    both, backward = shares.get(WITH_FORWARD, 0), shares.get(BACKWARD, 0)
    if BACKWARD in shares and both >= max(_COMPUTING, _LONGER * backward):
        longer = f"{BACKWARD}, mostly longer than a forward, is {backward:.0f} %"
        return f"to look at: {WITH_FORWARD}, {both:.0f} %, as {longer}: {_ADVICE[REST][1]}"
    computing = shares.get(FORWARD, 0) + shares.get(BACKWARD, 0)
    if computing < _COMPUTING or not is_alone:
        return ""
    names = f"{FORWARD} and {BACKWARD}" if FORWARD in shares else BACKWARD
    return f"to look at: {names}, {computing:.0f} %: {_COMPUTE}"
