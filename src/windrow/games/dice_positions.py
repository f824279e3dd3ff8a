"""Positions of backgammon and Pig as text; `windrow.games.positions` calls these functions.

Backgammon uses the position ID of GNU Backgammon: 14 characters that show the checkers as the player on turn sees
them. Then come that player and the dice. The ID holds 80 bits, the lowest bit of each byte first: for the opponent
and then for the player on turn, for the points 1 to 24 and the bar, a 1 for every checker and a 0.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from dataclasses import dataclass

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL

_MARKS = "xo"
_NUM_POINTS = 24
_NUM_CHECKERS = 15
_NUM_PLACES = _NUM_POINTS + 1
_NOBODY = -1
_ID_LENGTH = 14
_ID_BYTES = 10
_FIRST = "first"
_PASS = 150
_BACKGAMMON_FORM = "must be a position ID, x or o, and the dice, such as '4HPwATDgc/ABMA x 31'"
_PIG_FORM = "must be the scores of x and o, the turn total and whose turn it is, such as '34-51 +12 x'"


@dataclass(frozen=True, slots=True)
class BackgammonBoard:
    """A position of backgammon. Player 0 is x, player 1 is o.

    points: [24] the checkers on the points 1 to 24 as x numbers them: so many of x's, or negative, so many of o's.
    bar: checkers of x and of o on the bar.
    off: checkers of x and of o that are borne off.
    dice: what is left to play of the roll, four equal dice for a double; empty before the roll.
    on_roll: the player whose turn it is, who has rolled or will roll; of a finished game the winner. None before the
        first roll of the game, which decides who begins.
    """

    points: tuple[int, ...]
    bar: tuple[int, int]
    off: tuple[int, int]
    dice: tuple[int, ...]
    on_roll: int | None


@dataclass(frozen=True, slots=True)
class PigBoard:
    """A position of Pig.

    scores: of both players, without the turn total.
    turn_total: what has been rolled in this turn and is not yet scored.
    player: whose turn it is; of a finished game the winner.
    is_rolling: whether the die rolls.
    """

    scores: tuple[int, int]
    turn_total: int
    player: int
    is_rolling: bool


def backgammon_board(state: State) -> BackgammonBoard:
    """What is on the board."""
    *points, bar_x, bar_o = struct.unpack_from("26b", state.data)
    (mover,) = struct.unpack_from("b", state.data, 30)
    x, o = (sum(max(sign * count, 0) for count in points) for sign in (1, -1))
    return BackgammonBoard(
        points=tuple(points),
        bar=(bar_x, bar_o),
        off=(_NUM_CHECKERS - bar_x - x, _NUM_CHECKERS - bar_o - o),
        dice=tuple(die for die in state.data[26:30] if die),
        on_roll=None if mover == _NOBODY else mover,
    )


def backgammon_text(state: State) -> str:
    """A backgammon position as a position ID, the player on turn and the dice that are left to play."""
    board = backgammon_board(state)
    viewer = board.on_roll or 0
    sides = [
        [*(max(count, 0) for count in board.points), board.bar[0]],
        [*(max(-count, 0) for count in reversed(board.points)), board.bar[1]],
    ]
    key = _position_id(sides[1 - viewer], sides[viewer])
    if board.on_roll is None:
        return f"{key} {_FIRST}"
    return " ".join([key, _MARKS[board.on_roll], *([_dice_text(board.dice)] if board.dice else [])])


def parse_backgammon(game: CoreGame, text: str) -> State:
    """The position that a text such as "4HPwATDgc/ABMA x 31" describes."""
    words = text.split()
    if len(words) not in (2, 3) or words[1].lower() not in (*_MARKS, _FIRST):
        raise GameError(f"position {text!r:.500} {_BACKGAMMON_FORM}.")
    sides = _read_position_id(words[0])
    if words[1].lower() == _FIRST:
        start = game.initial_state()
        if len(words) == 3 or backgammon_text(start).split()[0] != words[0]:
            raise GameError(f"{_FIRST!r} stands only after the ID of the position in which a game begins.")
        return start
    mover = _MARKS.index(words[1].lower())
    if mover == 0:
        sides.reverse()
    x, o = sides
    points = [x[place] - o[_NUM_POINTS - 1 - place] for place in range(_NUM_POINTS)]
    left = sum(sides[mover])
    if not sum(sides[1 - mover]):
        raise GameError(f"{_MARKS[1 - mover]} has no checkers left and has won, so {_MARKS[mover]} is not on turn.")
    if not left and len(words) == 3:
        raise GameError(f"{_MARKS[mover]} has no checkers left, so the game is over: leave the dice out.")
    dice = _read_dice(words[2]) if len(words) == 3 else []
    to_play = TERMINAL if not left else mover if dice else CHANCE
    rest = struct.pack("2b4B2b", x[_NUM_POINTS], o[_NUM_POINTS], *dice, *[0] * (4 - len(dice)), mover, to_play)
    state = State(game, struct.pack("24b", *points) + rest)
    is_begun = len(dice) in (1, 3) or (len(dice) == 2 and dice[0] == dice[1])
    if is_begun and game.legal_actions(state) == [_PASS]:
        raise GameError(f"{_MARKS[mover]} cannot play {words[2]} here, so the turn is over.")
    return state


def _position_id(opponent: list[int], own: list[int]) -> str:
    bits = "".join("1" * count + "0" for count in (*opponent, *own)).ljust(8 * _ID_BYTES, "0")
    return base64.b64encode(int(bits[::-1], 2).to_bytes(_ID_BYTES, "little")).decode()[:_ID_LENGTH]


def _read_position_id(board: str) -> list[list[int]]:
    """The checkers of the opponent and of the player on turn, on the points 1 to 24 and the bar."""
    try:
        if len(board) != _ID_LENGTH:
            raise ValueError
        key = base64.b64decode(board + "==", validate=True)
    except (ValueError, binascii.Error):
        raise GameError(f"a position ID has {_ID_LENGTH} letters, digits, + and /, unlike {board!r:.100}.") from None
    bits = f"{int.from_bytes(key, 'little'):0{8 * _ID_BYTES}b}"[::-1]
    *groups, rest = bits.split("0", 2 * _NUM_PLACES)
    counts = [len(group) for group in groups]
    sides = [counts[:_NUM_PLACES], counts[_NUM_PLACES:]]
    if len(counts) != 2 * _NUM_PLACES or "1" in rest or max(map(sum, sides)) > _NUM_CHECKERS:
        raise GameError(f"position ID {board!r} gives a player more than {_NUM_CHECKERS} checkers.")
    both = [place + 1 for place in range(_NUM_POINTS) if sides[1][place] and sides[0][_NUM_POINTS - 1 - place]]
    if both:
        raise GameError(f"position ID {board!r} has checkers of both players on point {both[0]}.")
    if _position_id(*sides) != board:
        raise GameError(f"position ID {board!r} is not how it is written: use {_position_id(*sides)}.")
    return sides


def _dice_text(dice: tuple[int, ...]) -> str:
    """A roll as two digits; what is left of one with + between the dice."""
    if len(dice) == 4:
        return f"{dice[0]}{dice[0]}"
    return ("" if len(dice) == 2 and dice[0] != dice[1] else "+").join(map(str, dice))


def _read_dice(text: str) -> list[int]:
    if re.fullmatch(r"[1-6][1-6]", text):
        high, low = sorted(map(int, text), reverse=True)
        return [high] * 4 if high == low else [high, low]
    dice = [int(die) for die in text.split("+")] if re.fullmatch(r"[1-6](\+[1-6])*", text) else []
    if not dice or len(dice) > 3 or len(set(dice)) > 1:
        raise GameError(
            f"dice {text!r:.100} must be a roll, such as 31 or 33, or what is left of one: 3, or 3+3 of a double."
        )
    return dice


def pig_text(state: State) -> str:
    """A position of Pig: the scores, the turn total, whose turn it is, and "rolls" while the die rolls."""
    board = pig_board(state)
    x, o = board.scores
    return f"{x}-{o} +{board.turn_total} {_MARKS[board.player]}{' rolls' if board.is_rolling else ''}"


def pig_board(state: State) -> PigBoard:
    """The scores, and what the turn has made so far."""
    x, o, total, mover, to_play = struct.unpack("<3h2b", state.data)
    return PigBoard((x, o), total, mover, to_play == CHANCE)


def parse_pig(game: CoreGame, text: str) -> State:
    """The position that a text such as "34-51 +12 x" describes."""
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5}) \+(\d{1,5}) ([xo])( rolls)?", " ".join(text.lower().split()))
    if not found:
        raise GameError(f"position {text!r:.500} {_PIG_FORM}; 'rolls' follows while the die rolls.")
    scores, total, mover = [int(found[1]), int(found[2])], int(found[3]), _MARKS.index(found[4])
    target = int(game.options["target"])
    for mark, score in zip(_MARKS, scores, strict=True):
        if score == 1 or score > target:
            raise GameError(f"{mark} cannot have {score}: scores are 0 or from 2 to {target}.")
    if scores[1 - mover] == target:
        raise GameError(f"{_MARKS[1 - mover]} has {target} and has won, so it is not the turn of {_MARKS[mover]}.")
    is_over = scores[mover] == target
    if is_over and (total or found[5]):
        raise GameError(f"{_MARKS[mover]} has {target} and has won: write +0, and no 'rolls'.")
    if not is_over and (total == 1 or scores[mover] + total >= target):
        raise GameError(f"turn total {total} cannot be: it is 0 or from 2 up, and with it {target} are not reached.")
    to_play = TERMINAL if is_over else CHANCE if found[5] else mover
    return State(game, struct.pack("<3h2b", *scores, total, mover, to_play))
