"""Games as pages have them: a list of moves, and what a page must know about the position behind the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.web.limits import RequestError
from windrow.web.pictures import draw


class Line:
    """A game from its beginning, or from a position: moves, and the states between them.

    Moves are actions, and outcomes where chance is to move. Setting other moves keeps the states of the common part.

    position: where it starts, in the notation of the game; empty: at the beginning.
    """

    def __init__(self, game: CoreGame) -> None:
        self.game = game
        self.position = ""
        self.moves: tuple[int, ...] = ()
        self.names: list[str] = []
        self.states: list[State] = [game.initial_state()]

    @property
    def state(self) -> State:
        """The position now."""
        return self.states[-1]

    def start_at(self, position: str) -> State:
        """The state in which a game from `position` starts.

        Raises:
            GameError: that is no position of the game.
        """
        if position == self.position:
            return self.states[0]
        return self.game.parse(position) if position else self.game.initial_state()

    def replace(self, moves: Sequence[int], position: str = "") -> None:
        """Make `moves`, played from `position`, the game; if something is not possible nothing has changed.

        Raises:
            GameError: there is no such position, or a move is not possible where it stands.
        """
        same, start = 0, self.start_at(position)
        if position == self.position:
            while same < min(len(moves), len(self.moves)) and moves[same] == self.moves[same]:
                same += 1
            states, names = self.states[: same + 1], self.names[:same]
        else:
            text = start.to_text() if position else ""
            position = "" if position and text == self.game.initial_state().to_text() else text
            states, names = [start], list[str]()
        for move in moves[same:]:
            state = self.game.apply(states[-1], move)
            names.append(self.game.move_name(states[-1], move))
            states.append(state)
        self.position, self.moves, self.states, self.names = position, tuple(moves), states, names

    def describe(self) -> dict[str, Any]:
        """All that a page needs to draw the position and to go on from it."""
        game, state = self.game, self.state
        turn = game.to_play(state)
        text = game.render(state)
        before = self.states[-2] if len(self.states) > 1 else None
        outcomes: list[list[Any]] | None = None
        if turn == CHANCE and game.chance == "listed":
            outcomes = [[outcome, game.outcome_name(outcome), p] for outcome, p in game.chance_outcomes(state)]
        return {
            "type": "position",
            "moves": list(self.moves),
            "names": self.names,
            "movers": [game.to_play(state) for state in self.states[:-1]],
            "text": game.moves_to_text(self.moves, self.states[0]),
            "start": self.position,
            "here": state.to_text() if game.has_notation else "",
            "rendering": text,
            "status": text.splitlines()[-1] if text else "",
            "turn": "over" if turn == TERMINAL else "chance" if turn == CHANCE else turn,
            "legal": [[action, game.move_name(state, action)] for action in game.legal_actions(state)],
            "outcomes": outcomes,
            "returns": game.returns(state) if turn == TERMINAL else None,
            "picture": draw(game, state, before),
        }


def read_moves(game: CoreGame, text: str, most: int, start: State | None = None) -> list[int]:
    """The moves in a text such as "4453" or "d3c5", played from `start`, or from the beginning.

    Raises:
        IllegalMoveError: it says which move is wrong, and what is legal instead.
        RequestError: there are more than `most`.
    """
    moves = game.moves_from_text(text, start)
    if len(moves) > most:
        raise RequestError(f"a game has at most {most} moves here")
    return moves
