"""Decides when to resign, and measures how many resignations would be wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from windrow.train.selfplay_config import SelfPlayConfig

_MIN_CHECKED = 40
"""Players who did not lose that must be watched to the end before anybody resigns."""
_MAX_REMEMBERED = 1000


@dataclass(slots=True)
class Watch:
    """The values of each player's moves in one game.

    is_checked: the game is played to its end in any case, to measure wrong resignations.
    recent: per player, the values of the last moves.
    lowest: per player, the lowest threshold so far at which the player would have continued.
    """

    is_checked: bool
    recent: tuple[list[float], ...] = field(default_factory=lambda: ([], []))
    lowest: list[float] = field(default_factory=lambda: [1.0, 1.0])


class Resignation:
    """A threshold on the search's value, kept so low that few resignations are wrong.

    A player resigns whose last `patience` moves all had a value below the threshold. Some games are played to the end
    in any case. They set the threshold so that, of the players who did not lose, at most `max_error` would have
    resigned. Until enough of them have been seen, nobody resigns.

    Args:
        below: maximum of the threshold; None: nobody resigns.
        patience: number of moves in a row.
        max_error: maximum share of the players who did not lose that would have resigned.
        margins: `margins` of an earlier run, to continue from.
    """

    def __init__(self, below: float | None, *, patience: int, max_error: float, margins: Sequence[float] = ()) -> None:
        self._below, self._patience, self._max_error = below, patience, max_error
        self._margins = deque(margins, maxlen=_MAX_REMEMBERED)
        self._news = deque[float](maxlen=_MAX_REMEMBERED)
        self.num_checked = 0
        self.num_wrong = 0
        self.threshold: float | None = None
        """The threshold; None while nobody resigns."""
        self._set_threshold()

    @classmethod
    def of(cls, config: SelfPlayConfig, margins: Sequence[float]) -> Resignation:
        """Make one from a config, continuing from `margins`."""
        return cls(
            config.resign_below, patience=config.resign_patience, max_error=config.resign_max_error, margins=margins
        )

    @property
    def margins(self) -> list[float]:
        """The thresholds at which players who did not lose would have continued to the end, newest last."""
        return list(self._margins)

    def would_resign(self, watch: Watch, player: int, value: float) -> bool:
        """Record the value of one move; return whether its player resigns now."""
        recent = watch.recent[player]
        recent.append(value)
        if len(recent) < self._patience:
            return False
        del recent[: -self._patience]
        margin = max(recent)
        watch.lowest[player] = min(watch.lowest[player], margin)
        return self.threshold is not None and margin < self.threshold and not watch.is_checked

    def learn(self, watch: Watch, returns: Sequence[float]) -> None:
        """Learn from a game that was played to its end."""
        if self._below is None or not watch.is_checked:
            return
        for player, result in enumerate(returns):
            if result < 0:
                continue
            self.num_checked += 1
            if self.threshold is not None and watch.lowest[player] < self.threshold:
                self.num_wrong += 1
            self._margins.append(watch.lowest[player])
            self._news.append(watch.lowest[player])
        self._set_threshold()

    def take_news(self) -> list[float]:
        """The margins learned here since the last call."""
        news = list(self._news)
        self._news.clear()
        return news

    def add(self, margins: Sequence[float]) -> None:
        """Add margins that were learned elsewhere."""
        if margins:
            self._margins.extend(margins)
            self._set_threshold()

    def _set_threshold(self) -> None:
        if self._below is None or len(self._margins) < _MIN_CHECKED:
            return
        # Of the margins seen, at most this many may lie below the threshold.
        num_allowed = int(self._max_error * len(self._margins))
        self.threshold = min(self._below, sorted(self._margins)[num_allowed])
