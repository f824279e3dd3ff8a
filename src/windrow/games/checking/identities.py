"""Checks over all positions that were met: equal hashes for equal positions only, results that favour nobody."""

from __future__ import annotations

from collections import Counter
from typing import Any

from windrow.games.checking.lines import Line
from windrow.games.checking.subject import Subject, View
from windrow.games.checking.values import to_bytes
from windrow.games.protocol import TERMINAL

_MIN_ENDINGS = 20
"""Decided games from which on a pattern is no accident: with a fair coin it would be one in a million."""
_MIN_HASHES = 64


class IdentityChecker:
    """Remembers positions and results."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._by_hash: dict[int, tuple[View, tuple[int, ...]]] = {}
        self._by_value: dict[Any, tuple[int, tuple[int, ...]]] = {}
        self._winners: Counter[tuple[int, int]] = Counter()
        self._decided: tuple[int, ...] = ()  # the moves of one game that somebody won
        self._outcomes: set[bool] = set()

    def add(self, line: Line) -> None:
        """Take note of a line and its result."""
        for ply, view in enumerate(line.views):
            if view.sample_outcome is not None:
                self._outcomes.add(len(set(view.sample_outcome)) > 1)
            self.add_hash(line.states[ply], view, line.moves[:ply])
        last = line.views[-1]
        if last.to_play == TERMINAL and last.returns is not None and self._subject.num_players == 2 and line.moves:
            movers = [view.to_play for view in line.views if view.to_play >= 0]
            if movers and last.returns[0] != last.returns[1]:
                self._winners[movers[-1], int(last.returns[1] > last.returns[0])] += 1
                self._decided = tuple(line.moves)

    def add_hash(self, state: Any, view: View, moves: list[int]) -> None:
        """Compare the hash of a position with those of all others."""
        if view.hash is None or "hash" in self._subject.unstable:
            return
        known, known_moves = self._by_hash.setdefault(view.hash, (view, tuple(moves)))
        difference = known.difference(view, self._subject.unstable)
        if difference is not None:
            method = difference[0]
            seen = f"gave {view.hash} for two positions that are not the same: {method} differs after {known_moves}"
            self._subject.fault("hash", "hash", seen, moves, _code(known_moves))
        value = to_bytes(state)
        if value is None:
            return
        number, known_moves = self._by_value.setdefault(value, (view.hash, tuple(moves)))
        if number != view.hash:
            seen = f"gave {number} after {known_moves}, and {view.hash} for the same state after {tuple(moves)}"
            self._subject.fault("hash", "hash", seen, moves, _code(known_moves))

    def finish(self) -> None:
        """Say what is strange about all of it together."""
        subject = self._subject
        if len(self._by_hash) >= _MIN_HASHES and max(self._by_hash) < 2**64:
            bits = max(self._by_hash).bit_length()
            seen = f"gave numbers of {bits} bits at most; with 128 different positions are never taken for each other"
            subject.note("hash", "hash", seen)
        if self._outcomes == {False}:
            seen = "gave the same outcome for all seeds, in every position: does it look at its seed?"
            subject.note("chance", "sample_outcome", seen)
        self._judge_winners()

    def _judge_winners(self) -> None:
        """Results are for player 0 and player 1, not for whoever moved; mixing that up shows in patterns."""
        decided = sum(self._winners.values())
        if decided < _MIN_ENDINGS:
            return
        lost = sum(count for (mover, winner), count in self._winners.items() if mover != winner)
        movers, winners = {mover for mover, _ in self._winners}, {winner for _, winner in self._winners}
        if lost == decided:
            seen = (
                f"whoever made the last move lost all of {decided} decided games. In most games the last move wins: "
                "returns are for player 0 and player 1, not for the player to move"
            )
            self._subject.note("returns", "returns", seen, self._decided)
        elif len(movers) == 2 and len(winners) == 1:
            seen = (
                f"player {winners.pop()} won all of {decided} decided games, whoever made the last move: returns are "
                "for player 0 and player 1, not for the winner or the player to move"
            )
            self._subject.note("returns", "returns", seen, self._decided)


def _code(moves: tuple[int, ...]) -> str:
    return (
        "other = game.initial_state()\n"
        f"for move in {list(moves)}:\n"
        "    other = game.apply(other, move)\n"
        "print(game.hash(state), game.hash(other))"
    )
