"""The stones a Gomocup manager talks about, and the position they make.

A manager counts columns x from the left and rows y from the top, both from 0, and calls stones "own" and "opponent's".
Who began follows from how many there are of each: with equally many the brain did, with one more of the opponent's he
did.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import GameError, IllegalMoveError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL

OWN, OPPONENT = 1, 2


@dataclass(frozen=True, slots=True)
class Stone:
    """A stone on the board.

    action: where it lies, as the game counts squares.
    owner: OWN or OPPONENT.
    """

    action: int
    owner: int


def read_square(text: str, size: int) -> int:
    """The action at the coordinates `x,y`.

    Raises:
        IllegalMoveError: these are no coordinates, or lie outside of the board.
    """
    x, y = read_numbers(text, 2, "coordinates are written x,y")
    if not (0 <= x < size and 0 <= y < size):
        raise IllegalMoveError(f"{x},{y} is not on the board of {size}x{size}")
    return y * size + x


def read_numbers(text: str, count: int, rule: str) -> list[int]:
    """Exactly `count` whole numbers with commas between them; otherwise IllegalMoveError with `rule`."""
    parts = [part.strip() for part in text.split(",")]
    # Digits of other scripts are numbers to Python, and numbers of any length cost time.
    if len(parts) != count or not all(part.lstrip("-").isdecimal() and part.isascii() for part in parts):
        raise IllegalMoveError(f"{rule}, not {text[:40]!r}")
    if any(len(part) > 9 or "-" in part[1:] for part in parts):
        raise IllegalMoveError(f"{rule}, not {text[:40]!r}")
    return [int(part) for part in parts]


def write_square(action: int, size: int) -> str:
    """An action as a manager reads it: `x,y`."""
    return f"{action % size},{action // size}"


def build_state(game: CoreGame, stones: list[Stone]) -> State:
    """The position of `stones` with this brain to move; they may be given in any order.

    Raises:
        GameError: the numbers of stones do not fit each other, or the game is over before the last stone.
    """
    taken: set[int] = set()
    for stone in stones:
        if stone.action in taken:
            raise GameError(f"there are two stones on {game.action_name(stone.action)}")
        taken.add(stone.action)
    waiting = {owner: [stone.action for stone in stones if stone.owner == owner] for owner in (OWN, OPPONENT)}
    surplus = len(waiting[OPPONENT]) - len(waiting[OWN])
    if surplus not in (0, 1):
        raise GameError(
            f"{len(waiting[OWN])} own stones and {len(waiting[OPPONENT])} of the opponent do not come from turns"
        )
    mover = OWN if surplus == 0 else OPPONENT
    state = game.initial_state()
    for _ in stones:
        state = _place(game, state, waiting[mover], is_last=len(waiting[OWN]) + len(waiting[OPPONENT]) == 1)
        mover = OWN + OPPONENT - mover
    return state


def _place(game: CoreGame, state: State, actions: list[int], *, is_last: bool) -> State:
    """Play the first of `actions` that does not end the game, and take it from the list.

    Where six in a row do not win, stones in another order than they were played may be five for a moment.
    """
    for place, action in enumerate(actions):
        after = game.apply(state, action)
        if is_last or game.to_play(after) != TERMINAL:
            del actions[place]
            return after
    raise GameError("the game is over on this board")
