"""What was measured for a claim about two arms, gathered from the summary: all that a verdict may look at."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Evidence:
    """Log ratios by process (one process a repeat), in the order of the repeats, and what the controls saw.

    Every list holds one value a round: the log of how many times longer the upper arm took than the lower one.
    """

    rounds: list[list[float]]  # the two arms of the claim
    same: list[list[float]] = field(default_factory=list)  # control: an arm against itself
    delayed: list[list[float]] = field(default_factory=list)  # control: an arm with a known delay against itself
    delay: float = 0.05  # that delay, as a share of a step
    disturbed_share: float = 0.0  # of the blocks, by the sensors alone
    observer_share: float = 0.0  # of a step, spent on recording
    difference: str = ""  # how the two arms differ in what they computed
    failed_repeats: int = 0  # repeats that ended before they had measured this
