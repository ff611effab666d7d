"""Statistics as pure functions of lists of numbers."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev


def t_interval(values: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Return the mean and the ends of its two-sided Student interval; infinite ends for fewer than two values."""
    center = fmean(values)
    if len(values) < 2:
        return center, -math.inf, math.inf
    half = t_quantile((1 + confidence) / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return center, center - half, center + half


def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution."""
    from scipy.special import stdtrit  # slow to load; only a verdict about times needs it

    return float(stdtrit(freedom, probability))
