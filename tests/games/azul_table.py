"""What the tests of Azul share: positions set up by hand, moves and deals by name, random games."""

from __future__ import annotations

import random
from collections.abc import Iterator

from plain_azul import PlainAzul, PlainBoard

from windrow.games import CHANCE, TERMINAL, State, make_game
from windrow.games.core_game import CoreGame

PLAYERS = [2, 3, 4]
FULL_DEAL = "BBYR/BYKW/BKWW/YYRK/RRKW"  # four of each colour


def dealt(game: CoreGame, name: str, state: State) -> State:
    """The state after the deal of that name."""
    return game.apply(state, game.parse_outcome(name))


def played(game: CoreGame, moves: str, state: State) -> State:
    """The state after moves, given by their names."""
    for name in moves.split():
        state = game.apply(state, game.parse_action(name))
    return state


def legal_names(state: State) -> list[str]:
    """The legal moves by name."""
    return [state.game.action_name(action) for action in state.game.legal_actions(state)]


def table(**parts: object) -> State:
    """A position of two players, or of as many as there are boards; what is not given is as in the beginning."""
    boards = parts.pop("boards", [PlainBoard(), PlainBoard()])
    plain = PlainAzul(players=len(boards))
    plain.boards = boards
    for name, part in parts.items():
        assert hasattr(plain, name)
        setattr(plain, name, list(part) if isinstance(part, str) else part)
    return State(make_game("azul", players=len(boards)), plain.packed())


def pile(data: bytes, name: str) -> list[int]:
    """A pile of a state's bytes, by colour: the layout of cpp/games/azul.h."""
    start = {"centre": 73, "bag": 78, "lid": 83}[name]
    return list(data[start : start + 5])


def random_game(game: CoreGame, rng: random.Random) -> Iterator[tuple[State, int | None]]:
    """Every state of a game and the move made there. Players of one game share a taste for some destinations.

    Every third game or so they like long lines, which keep so many tiles that deals run short.
    """
    some = [rng.random() ** 3 + 0.001 for _ in range(6)]
    taste = rng.choice([some, some, [0.1, 0.3, 1, 2, 3, 0.001]])
    state = game.initial_state()
    while (player := game.to_play(state)) != TERMINAL:
        if player == CHANCE:
            move = game.sample_outcome(state, rng.getrandbits(64))
        else:
            legal = game.legal_actions(state)
            [move] = rng.choices(legal, [taste[action % 6] for action in legal])
        yield state, move
        state = game.apply(state, move)
    yield state, None
