"""The order in which the arms of a race take turns: drawn at random, and drawn again from the seed that stands in the record.

Those that take turns are numbered: the arms as `race_started.arms` names them, then the controls `same` and `delayed`. Two
rounds are a cycle: an order that was drawn, and its mirror. Drift that goes one way cancels within a cycle. What the first
slot has, or whoever comes after a certain neighbour, falls on another arm in each cycle and in each process: it is noise,
which an interval sees, and no bias that all processes share.
"""

from hashlib import sha256

CYCLE = 2  # rounds
BEFORE = -1  # the pair that stands for what happens before the first round


def order(seed: int, pair: int, count: int) -> list[int]:
    """Return who takes which turn in the first round of a pair; the second one has them the other way round."""
    # sorted by digests, and so the same in every version of every library
    return sorted(range(count), key=lambda number: sha256(f"{seed} {pair} {number}".encode()).digest())


def order_of_round(seed: int, turn: int, count: int) -> list[int]:
    """Return who takes which turn in a round; rounds count from 0, those of the warm-up too."""
    pair, is_mirrored = divmod(turn, CYCLE)
    found = order(seed, pair, count)
    return found[::-1] if is_mirrored else found
