"""Draws the order in which the arms of a race take turns, again at any time from the recorded seed.

The participants are numbered: the arms as `race_started.arms` names them, then the controls `same`
and `delayed`. Two rounds are a cycle: an order that was drawn, and its mirror. Drift in one
direction cancels within a cycle. A cycle begins with a block that is not timed, of the arm that
comes first. So two of the 2n blocks of a cycle follow their own arm: the first one, and the first
of the mirror. The other blocks follow each other arm equally often, over all cycles and processes.
So the effects that an arm leaves to the next one affect all arms alike. Differences from cycle to
cycle are noise, which an interval shows.
"""

from hashlib import sha256

CYCLE = 2  # rounds
BEFORE = -1  # number of a pair: the order in which arms are made before the first round


def order(seed: int, pair: int, count: int) -> list[int]:
    """Return the participants in the order of the first round of a pair; the second mirrors it."""

    def digest(number: int) -> bytes:
        # so that the order is the same in every version of every library
        return sha256(f"{seed} {pair} {number}".encode()).digest()

    return sorted(range(count), key=digest)


def order_of_round(seed: int, turn: int, count: int) -> list[int]:
    """Return the participants in the order of a round; rounds count from 0, with the warm-up."""
    pair, is_mirrored = divmod(turn, CYCLE)
    numbers = order(seed, pair, count)
    return numbers[::-1] if is_mirrored else numbers
