"""The order in which the arms of a race take turns: drawn at random, and drawn again from the seed that stands in the record.

Those that take turns are numbered: the arms as `race_started.arms` names them, then the controls `same` and `delayed`. Two
rounds are a cycle: an order that was drawn, and its mirror. Drift that goes one way cancels within a cycle. A cycle begins
with a block that is not timed, of the arm that comes first. So two of the 2n blocks of a cycle follow their own arm: the first
one, and the first of the mirror. The other blocks follow each other arm equally often, over all cycles and processes. What an
arm leaves to whoever comes next therefore falls on all arms alike, and what differs from cycle to cycle is noise, which an
interval shows.
"""

from hashlib import sha256

CYCLE = 2  # rounds
BEFORE = -1  # the pair that stands for what happens before the first round


def order(seed: int, pair: int, count: int) -> list[int]:
    """Return who takes which turn in the first round of a pair; the second one has them the other way round."""
    # sorted by digests, and so the same in every version of every library
    return sorted(
        range(count), key=lambda number: sha256(f"{seed} {pair} {number}".encode()).digest()
    )


def order_of_round(seed: int, turn: int, count: int) -> list[int]:
    """Return who takes which turn in a round; rounds count from 0, those of the warm-up too."""
    pair, is_mirrored = divmod(turn, CYCLE)
    found = order(seed, pair, count)
    return found[::-1] if is_mirrored else found
