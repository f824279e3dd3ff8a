"""Which games are being played, by whom, and which are done: a game counts once, whoever hands it in how often.

    take ──► open, with a worker ──► handed in (once)
      ▲              │
      └── the worker was lost

The number of a game is the key of its random numbers, so that a game that is begun again is the same game.
"""

from __future__ import annotations

from collections import deque


class GameLedger:
    """The numbers of all games in progress."""

    def __init__(self, next_game: int = 0) -> None:
        self.next_game = next_game
        """The lowest number that nobody was given yet."""
        self.num_allowed: float = 0
        """How many more games of new numbers may be begun."""
        self._holder: dict[int, int] = {}
        self._held: dict[int, set[int]] = {}
        self._returned: deque[int] = deque()
        self._losses: dict[int, int] = {}

    @property
    def num_open(self) -> int:
        """Games begun, or to be begun again, and not handed in."""
        return len(self._holder.keys() | self._returned)

    def num_held(self, worker: int) -> int:
        """Open games that a worker has."""
        return len(self._held.get(worker, ()))

    def next_number(self) -> int | None:
        """A new number, for a game whose player nobody can lose; None if no more may be begun."""
        if self.num_allowed < 1:
            return None
        self.num_allowed -= 1
        self.next_game += 1
        return self.next_game - 1

    def take(self, worker: int, count: int) -> list[int]:
        """Up to `count` games for a worker to play: first those that others did not finish, lowest number first."""
        numbers: list[int] = []
        held = self._held.setdefault(worker, set())
        # An interrupt comes after a call, and so at the beginning of a round: a number is with somebody, or nobody's.
        while len(numbers) < count:
            if self._returned:
                number = self._returned[0]
                del self._returned[0]
            elif self.num_allowed >= 1:
                self.num_allowed -= 1
                number = self.next_game
                self.next_game += 1
            else:
                break
            numbers += [number]
            self._holder[number] = worker
            held |= {number}
        return numbers

    def is_open(self, number: int) -> bool:
        """Whether a game was begun, or is to be begun again, and not handed in."""
        return number in self._holder or number in self._returned

    def is_held(self, number: int, worker: int) -> bool:
        """Whether a worker has an open game."""
        return number in self._held.get(worker, ())

    def hand_in(self, number: int) -> bool:
        """A game is finished; whether it counts, which it does the first time."""
        is_first = self.is_open(number)
        for held in self._held.values():
            held.discard(number)
        if number in self._returned:
            self._returned.remove(number)  # by one who was thought to be lost
        self._losses.pop(number, None)
        self._holder.pop(number, None)
        return is_first

    def lose(self, worker: int) -> tuple[int, int]:
        """A worker is no more: its games are to be begun again.

        Returns:
            The game that was lost most often so far, counting this time, and how often; (-1, 0) if it had none.
        """
        numbers = sorted(self._held.get(worker, ()))
        # If an interrupt comes in between, they are with the worker and to be begun again: played twice, counted once.
        self._returned = deque(sorted({*numbers, *self._returned}))
        for number in numbers:
            self._holder.pop(number, None)
            self._losses[number] = self._losses.get(number, 0) + 1
        self._held.pop(worker, None)
        worst = max(numbers, key=lambda number: self._losses[number], default=-1)
        return worst, self._losses.get(worst, 0)

    def drop(self) -> None:
        """Forget all open games: they are not played, and who hands one in all the same is not listened to."""
        self._holder.clear()
        self._held.clear()
        self._returned.clear()
        self._losses.clear()
