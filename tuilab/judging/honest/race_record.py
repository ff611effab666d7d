"""Whether what a stream says of its races agrees with itself: claims declared before, and blocks as they were announced.

Of a race that was ended in the middle the last round is not whole, and nothing else.
"""

from collections import defaultdict

from tuilab.record.events import BlockTimed, ClaimDeclared, RaceFinished, RaceStarted
from tuilab.record.order import order_of_round
from tuilab.text import join, show

Slot = tuple[str, str]  # arm, control
Told = ClaimDeclared | RaceStarted | BlockTimed | RaceFinished


class RaceRecord:
    """Takes such records of one stream in their order; `wrong` has a sentence for each thing that does not agree."""

    def __init__(self) -> None:
        self.declared: list[ClaimDeclared] = []
        self.wrong: list[str] = []
        self._raced: set[str] = set()
        self._race: _Race | None = None

    def take(self, event: Told) -> None:
        match event:
            case ClaimDeclared():
                self.declared.append(event)
                if self._raced & {event.over, event.under}:
                    self.wrong.append(f"“{show(event.text)}” is declared after its arms raced")
            case RaceStarted():
                self.end()
                self._raced |= set(event.arms)
                self._race = _Race(event, self.wrong)
            case RaceFinished():
                self.end(is_whole=True)
            case BlockTimed():
                self._take_block(event)

    def end(self, *, is_whole: bool = False) -> None:
        """Note that a race has finished, or that nothing more comes of it."""
        if self._race is not None:
            self._race.close_round(is_whole=is_whole)
        self._race = None

    def _take_block(self, block: BlockTimed) -> None:
        if self._race is None or block.arm not in self._race.started.loops:
            sentence = f"a block of {show(block.arm)}, which does not race then"
            self.wrong += [sentence] if sentence not in self.wrong else []
        else:
            self._race.take(block)


class _Race:
    """One race, of which a round at a time is kept."""

    def __init__(self, started: RaceStarted, wrong: list[str]) -> None:
        self.started = started
        self._wrong = wrong
        self._slots: set[Slot] = set()  # of the first round; every other one has the same
        self._number = -1
        self._blocks: defaultdict[Slot, list[BlockTimed]] = defaultdict(list)
        self._has_counted = False  # some round is no warm-up
        self._told: set[str] = set()  # arms of which it was said that their loops are others
        self._t = started.t  # when the block before had ended
        self._is_odd = False  # that it is out of order was said

    def take(self, block: BlockTimed) -> None:
        if block.round != self._number:
            self.close_round(is_whole=True)
            if block.round != self._number + 1:
                self._wrong.append(f"after round {self._number} of {self._name()} comes round {block.round}")
            self._number = block.round
        if block.loops != self.started.loops[block.arm] and block.arm not in self._told:
            self._told.add(block.arm)
            self._wrong.append(f"{show(block.arm)} has blocks of other loops than the race announced")
        self._blocks[block.arm, block.control].append(block)
        self._check_time(block)

    def close_round(self, *, is_whole: bool) -> None:
        if not self._blocks:
            return
        self._check_slots(is_whole)
        self._check_order()
        self._check_warmup()
        for (arm, control), blocks in self._blocks.items():
            is_rerun = [block.is_rerun for block in blocks]
            if is_rerun != [False] and not (is_rerun == [False, True] and blocks[0].is_disturbed):
                what = f"the control of {show(arm)}" if control else show(arm)
                self._wrong.append(f"{what} has several blocks in round {self._number} of {self._name()}")
        self._blocks.clear()

    def _check_slots(self, is_whole: bool) -> None:
        """Compare the arms and controls of a round with those of the first; the last may be cut short, and only lack some."""
        found = set(self._blocks)
        self._slots = self._slots or {(arm, "") for arm in self.started.arms} | found
        if found - self._slots or (is_whole and self._slots - found):
            odd = join(sorted(f"{arm} {control}".strip() for arm, control in found ^ self._slots))
            self._wrong.append(f"round {self._number} of {self._name()} has not the blocks of the others: {odd}")

    def _check_time(self, block: BlockTimed) -> None:
        """A block lies between the end of the one before it and its own; arms in processes of their own, which tell their times
        themselves, race without a seed.
        """
        if self.started.seed is not None and block.wall_ns > block.t - self._t:
            sentence = f"blocks of {show(block.arm)} take longer than there was time for them"
            self._wrong += [sentence] if sentence not in self._wrong else []
        self._t = block.t

    def _check_order(self) -> None:
        """A whole round is in the order that the seed gives; in older records arms take turns without one."""
        seed, arms, base = self.started.seed, self.started.arms, self.started.base
        names = [*((arm, "") for arm in arms), *((base, control) for control in ("same", "delayed"))]
        names = [name for name in names if name in self._slots]
        if seed is None or self._is_odd or set(self._blocks) != set(names):
            return
        drawn = {names[number]: place for place, number in enumerate(order_of_round(seed, self._number, len(names)))}
        if [*self._blocks] != [*drawn] or any(one.slot != drawn[name] for name, some in self._blocks.items() for one in some):
            self._is_odd = True
            self._wrong.append(f"round {self._number} of {self._name()} is not in the order that was drawn")

    def _check_warmup(self) -> None:
        """Rounds are warm-up as a whole, and none is after one that counts."""
        marks = {block.is_warmup for blocks in self._blocks.values() for block in blocks}
        if len(marks) > 1:
            self._wrong.append(f"some blocks of round {self._number} of {self._name()} are warm-up, and some count")
        elif self._has_counted and marks == {True}:
            self._wrong.append(f"round {self._number} of {self._name()} is warm-up, after rounds that count")
        self._has_counted |= False in marks

    def _name(self) -> str:
        return f"the race of {join(self.started.arms)}"
