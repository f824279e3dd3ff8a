"""Backgammon once more, in the plainest Python: lists of where the checkers are, and every whole turn spelled out.

Slow, obviously right, and sharing nothing with the C++ rules but the numbering of actions and the look of the picture.
Both players count from their own side: 25 is the bar, 24 to 1 are the points, 0 is off the board; so what one calls
point p, the other calls 25 - p.
"""

from __future__ import annotations

from collections.abc import Sequence

BAR, OFF = 25, 0
NUM_CHECKERS = 15
START = 2 * [24] + 5 * [13] + 3 * [8] + 5 * [6]
PASS = 25 * 6

Checkers = tuple[int, ...]  # the places of one player's fifteen checkers, highest first
Step = tuple[int, int]  # from where, with which die
Turn = tuple[Step, ...]


def places(checkers: Sequence[int]) -> Checkers:
    """Fifteen places in the one order that makes equal positions equal."""
    return tuple(sorted(checkers, reverse=True))


def after_step(mine: Checkers, theirs: Checkers, step: Step) -> tuple[Checkers, Checkers] | None:
    """The position after one checker of mine has moved; None if it may not."""
    source, die = step
    if source == OFF or source not in mine:
        return None
    if BAR in mine and source != BAR:
        return None
    target = source - die
    if target <= 0:
        if max(mine) > 6:
            return None
        if target < 0 and max(mine) > source:
            return None
        target = OFF
    there = 25 - target  # as they call it
    moved = list(mine)
    moved.remove(source)
    moved.append(target)
    if target == OFF or there not in theirs:
        return places(moved), theirs
    if theirs.count(there) >= 2:
        return None
    hit = list(theirs)
    hit.remove(there)
    hit.append(BAR)
    return places(moved), places(hit)


def turns_in_order(mine: Checkers, theirs: Checkers, dice: Sequence[int]) -> list[Turn]:
    """Everything that can be done with the dice in this order, until one cannot be played."""
    if not dice:
        return [()]
    turns: list[Turn] = []
    for source in sorted(set(mine)):
        position = after_step(mine, theirs, (source, dice[0]))
        if position is not None:
            turns += [((source, dice[0]), *rest) for rest in turns_in_order(*position, dice[1:])]
    return turns or [()]


def whole_turns(mine: Checkers, theirs: Checkers, roll: tuple[int, int]) -> set[Turn]:
    """The turns the rules allow; the empty one alone if nothing can be moved."""
    one, other = roll
    if one == other:
        turns = set(turns_in_order(mine, theirs, [one] * 4))
    else:
        turns = {*turns_in_order(mine, theirs, [one, other]), *turns_in_order(mine, theirs, [other, one])}
    longest = max(len(turn) for turn in turns)
    turns = {turn for turn in turns if len(turn) == longest}
    if longest == 1 and one != other:
        with_larger = {turn for turn in turns if turn[0][1] == max(roll)}
        return with_larger or turns
    return turns


def after_turn(mine: Checkers, theirs: Checkers, turn: Turn) -> tuple[Checkers, Checkers]:
    """The position after a whole turn."""
    for step in turn:
        position = after_step(mine, theirs, step)
        assert position is not None
        mine, theirs = position
    return mine, theirs


def action_of(step: Step) -> int:
    """The number of the action that makes this step."""
    source, die = step
    return (source - 1) * 6 + die - 1


class PlainBackgammon:
    """A game.

    checkers: of x and of o.
    mover: 0 for x, 1 for o, None before the first roll.
    turns: what the mover may still do in this turn; None while the dice are to be rolled.
    dice: what remains to be played.
    """

    def __init__(self) -> None:
        self.checkers = [places(START), places(START)]
        self.mover: int | None = None
        self.turns: set[Turn] | None = None
        self.dice: list[int] = []

    def is_over(self) -> bool:
        return any(set(checkers) == {OFF} for checkers in self.checkers)

    def outcomes(self) -> dict[str, float]:
        """What chance may do, by name, and how likely it is."""
        if self.mover is None:
            return {f"{who}{high}{low}": 1 / 30 for who in "xo" for high in range(1, 7) for low in range(1, high)}
        pairs = [(a, b) for a in range(1, 7) for b in range(1, 7)]
        chances: dict[str, float] = {}
        for a, b in pairs:
            name = f"{max(a, b)}{min(a, b)}"
            chances[name] = chances.get(name, 0.0) + 1 / 36
        return chances

    def roll(self, name: str) -> None:
        if self.mover is None:
            self.mover = "xo".index(name[0])
        one, other = int(name[-2]), int(name[-1])
        self.dice = [one] * 4 if one == other else [one, other]
        self.turns = whole_turns(self.checkers[self.mover], self.checkers[1 - self.mover], (one, other))

    def legal(self) -> list[int]:
        if self.is_over() or self.turns is None:
            return []
        return sorted({action_of(turn[0]) if turn else PASS for turn in self.turns})

    def play(self, action: int) -> None:
        assert self.mover is not None
        assert self.turns is not None
        if action != PASS:
            step = (action // 6 + 1, action % 6 + 1)
            position = after_step(self.checkers[self.mover], self.checkers[1 - self.mover], step)
            assert position is not None
            self.checkers[self.mover], self.checkers[1 - self.mover] = position
            self.dice.remove(step[1])
            self.turns = {turn[1:] for turn in self.turns if turn[0] == step}
        if self.is_over():
            self.dice, self.turns = [], None
        elif self.turns == {()}:
            self.dice, self.turns = [], None
            self.mover = 1 - self.mover

    def stakes(self) -> int:
        """1, 2 for a gammon or 3 for a backgammon, when the mover has won."""
        assert self.mover is not None
        lost = self.checkers[1 - self.mover]
        if OFF in lost:
            return 1
        return 3 if any(place == BAR or 25 - place <= 6 for place in lost) else 2

    def returns(self, scoring: str) -> list[float]:
        value = self.stakes() / 3 if scoring == "points" else 1.0
        return [value, -value] if self.mover == 0 else [-value, value]

    def status(self) -> str:
        if self.mover is None:
            return "first roll"
        mark = "xo"[self.mover]
        if self.is_over():
            return mark + ["", " wins", " wins a gammon", " wins a backgammon"][self.stakes()]
        if self.turns is None:
            return f"{mark} rolls"
        return f"{mark} to move, to play: {' '.join(map(str, self.dice))}"

    def picture(self) -> str:
        """The board as x sees it, with the numbers of the player whose turn it is."""
        x, o = self.checkers

        def cell(point: int) -> str:
            own, other = x.count(point), o.count(25 - point)
            return f"{own}x" if own else f"{other}o" if other else "."

        def row(points: list[int], *, is_numbers: bool) -> str:
            numbers = [25 - point if self.mover == 1 else point for point in points]
            words = [str(number) for number in numbers] if is_numbers else [cell(point) for point in points]
            cells = [word.rjust(4) for word in words]
            return "".join([*cells[:6], " |", *cells[6:]])

        top, bottom = list(range(13, 25)), list(range(12, 0, -1))
        return "\n".join(
            [
                row(top, is_numbers=True),
                row(top, is_numbers=False),
                " " * 24 + " |",
                row(bottom, is_numbers=False),
                row(bottom, is_numbers=True),
                f"bar x {x.count(BAR)} o {o.count(BAR)}, off x {x.count(OFF)} o {o.count(OFF)}",
                self.status(),
            ]
        )

    def observation(self) -> list[float]:
        mine, theirs = self.checkers[self.mover or 0], self.checkers[1 - (self.mover or 0)]

        def units(count: int) -> list[float]:
            return [float(count >= 1), float(count >= 2), float(count >= 3), max(0, count - 3) / 12]

        row: list[float] = []
        for point in range(1, 25):
            row += units(mine.count(point))
        for point in range(1, 25):
            row += units(theirs.count(25 - point))
        row += [mine.count(BAR) / 15, theirs.count(BAR) / 15, mine.count(OFF) / 15, theirs.count(OFF) / 15]
        return [*row, *(float(face in self.dice) for face in range(1, 7)), len(self.dice) / 4]
