"""Positions of Azul as text; `windrow.games.positions` calls these functions.

A position is a list of parts with `;` or a new line between them, each a word and what it says:

    round 2; turn 1; start 0
    displays BBYR/----/BKWW/----/YRRK; centre YYK*; bag B10 Y9 R9 K8 W8
    player 0: 12 points, lines -/RR/-/-/WW, wall B..../...../...../...../....., floor KK
    player 1: 3 points, lines -/-/-/-/-, wall ...../...../..B../...../....., floor -

Tiles are B, Y, R, K (black) and W. `turn` is the player to move, "deal" before the tiles are dealt, or "over". `start`
is the player who begins the next round unless another takes the marker `*` from the centre; it is in the centre, or
first on the floor line of that player.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL

_COLOURS = "BYRKW"
_COLOUR_NAMES = ("blue", "yellow", "red", "black", "white")
_PER_COLOUR = 20
_ROWS = 5
_DISPLAY_TILES = 4
_MAX_DISPLAYS = 9
_MAX_BOARDS = 4
_FLOOR_PLACES = 7
_MARKER = "*"
_NOTHING = "-"
_STATES = {"deal": CHANCE, "over": TERMINAL}
_PARTS = ("round", "turn", "start", "displays", "centre", "bag", "lid")
_BOARD = re.compile(r"(\d{1,4}) points?, *lines ([^,]*), *wall ([^,]*), *floor ([^,]*)")


def _heaps() -> list[tuple[int, ...]]:
    """The contents of a display by its number, as counts of the colours (cpp/games/azul_displays.h)."""
    counts = {
        tuple(tiles.count(colour) for colour in range(_ROWS))
        for size in range(_DISPLAY_TILES + 1)
        for tiles in combinations_with_replacement(range(_ROWS), size)
    }
    return sorted(counts)


_HEAPS = _heaps()
_HEAP_NUMBERS = {counts: number for number, counts in enumerate(_HEAPS)}


@dataclass(frozen=True, slots=True)
class AzulPlayer:
    """A player's board. Tiles are the letters B, Y, R, K (black) and W.

    score: points.
    lines: [5] the tiles on the pattern lines, the shortest line first: "", "RR".
    wall: [5] the rows of the wall, five characters each: the letter of a tile that is there, or ".".
    floor: the tiles on the floor line by colour, after the marker "*" if it is there.
    """

    score: int
    lines: tuple[str, ...]
    wall: tuple[str, ...]
    floor: str


@dataclass(frozen=True, slots=True)
class AzulBoard:
    """A position of Azul. Every heap of tiles is a string of letters: `board.bag.count("B")` counts the blue ones.

    round: number of the round, from 1; of a finished game the last one.
    turn: the player to move; None while tiles are dealt and when the game is over.
    start: who begins the next round unless another player takes the marker from the centre.
    displays: the tiles on each display.
    centre: the tiles in the centre by colour, then the marker "*" if it is there.
    bag, lid: tiles to be dealt, and tiles that go into the bag once it is empty.
    players: one board per player.
    """

    round: int
    turn: int | None
    start: int
    displays: tuple[str, ...]
    centre: str
    bag: str
    lid: str
    players: tuple[AzulPlayer, ...]


def azul_board(state: State) -> AzulBoard:
    """All that lies on the table."""
    data, num_players = bytes(state.data), state.game.num_players
    displays, centre, bag, lid = data[64 : 65 + 2 * num_players], data[73:78], data[78:83], data[83:88]
    to_play, start, has_marker, num_rounds = struct.unpack_from("<bBBxH", data, 88)
    return AzulBoard(
        round=num_rounds + (to_play != TERMINAL),
        turn=to_play if to_play >= 0 else None,
        start=start,
        displays=tuple(_tiles(_HEAPS[heap]) for heap in displays),
        centre=_tiles(centre) + _MARKER * has_marker,
        bag=_tiles(bag),
        lid=_tiles(lid),
        players=tuple(
            _player(data[16 * player : 16 * player + 16], has_marker=not has_marker and start == player)
            for player in range(num_players)
        ),
    )


def _player(data: bytes, *, has_marker: bool) -> AzulPlayer:
    wall, score, *rest = struct.unpack("<IH10B", data)
    rows = (
        "".join(wall_colour(row, column) if wall >> (row * _ROWS + column) & 1 else "." for column in range(_ROWS))
        for row in range(_ROWS)
    )
    lines = (_COLOURS[line >> 3] * (line & 7) for line in rest[:_ROWS])
    return AzulPlayer(score, tuple(lines), tuple(rows), _MARKER * has_marker + _tiles(rest[_ROWS:]))


def azul_text(state: State) -> str:
    """A position of Azul in the notation that `parse_azul` reads, on one line."""
    board, to_play = azul_board(state), state.game.to_play(state)
    turn = next((word for word, number in _STATES.items() if number == to_play), to_play)
    parts = [
        f"round {board.round}",
        f"turn {turn}",
        f"start {board.start}",
        "displays " + "/".join(tiles.ljust(_DISPLAY_TILES, _NOTHING) for tiles in board.displays),
        f"centre {board.centre or _NOTHING}",
        f"bag {_counted(board.bag)}",
        f"lid {_counted(board.lid)}",
    ]
    for number, player in enumerate(board.players):
        points = f"{player.score} point{'' if player.score == 1 else 's'}"
        lines = "/".join(line or _NOTHING for line in player.lines)
        wall, floor = "/".join(player.wall), player.floor or _NOTHING
        parts.append(f"player {number}: {points}, lines {lines}, wall {wall}, floor {floor}")
    return "; ".join(parts)


def parse_azul(game: CoreGame, text: str) -> State:
    """The position that a text of the form above describes; `lid` may be left out, it then has the missing tiles."""
    parts = dict(_read_parts(game, text))
    players, num_displays = game.num_players, 2 * game.num_players + 1
    boards = [_Board(player, parts[f"player {player}"]) for player in range(players)]
    displays = _read_displays(parts["displays"], num_displays)
    centre = _read_tiles("centre", parts["centre"].replace(_MARKER, "", 1))
    bag = _read_counts("bag", parts["bag"])
    to_play = _STATES.get(parts["turn"])
    if to_play is None:
        to_play = _read_number("turn", parts["turn"], players - 1, "a player, deal or over")
    start = _read_number("start", parts["start"], players - 1, "a player")
    markers = [board.player for board in boards if board.has_marker]
    is_in_centre = _MARKER in parts["centre"]
    if len(markers) + is_in_centre != 1:
        raise GameError("the marker * must be in one place: in the centre or on one floor line.")
    if markers and markers != [start]:
        raise GameError(f"player {markers[0]} has the marker *, so start is {markers[0]}, not {start}.")
    lid = _lid(parts.get("lid"), [*displays, centre, bag, *(board.tiles for board in boards)])
    rounds = _read_number("round", parts["round"], int(game.options["max_rounds"]), "a number from 1 to max_rounds")
    _check_phase(game, rounds, to_play, start, boards, [*displays, centre], bag, lid, is_in_centre=is_in_centre)
    order = iter(sorted((_HEAP_NUMBERS[_counts(heap)] for heap in displays if heap), reverse=True))
    numbers = [next(order) if heap else 0 for heap in displays]
    data = b"".join(board.packed() for board in boards).ljust(16 * _MAX_BOARDS, b"\0")
    data += bytes(numbers).ljust(_MAX_DISPLAYS, b"\0") + bytes(n for pile in (centre, bag, lid) for n in _counts(pile))
    data += struct.pack("<bBBxHxx", to_play, start, is_in_centre, rounds - (to_play != TERMINAL))
    return State(game, data)


class _Board:
    """A player's board as the text describes it."""

    def __init__(self, player: int, text: str) -> None:
        found = _BOARD.fullmatch(text)
        if not found:
            raise GameError(
                f"player {player}: {text!r:.200} must be like '12 points, lines -/RR/-/-/WW, "
                "wall B..../...../...../...../....., floor *KK'."
            )
        self.player, self.score = player, int(found[1])
        lines, walls = found[2].strip().split("/"), found[3].strip().split("/")
        if len(lines) != _ROWS or len(walls) != _ROWS:
            raise GameError(f"player {player} must have {_ROWS} lines and {_ROWS} rows of the wall.")
        self.wall = 0
        self.lines: list[tuple[str, int]] = []
        self.tiles: Counter[str] = Counter()
        for row, wall in enumerate(walls):
            self._read_wall_row(row, wall.upper())
        for row, line in enumerate(lines):
            self._read_line(row, line.upper())
        floor = found[4].strip()
        self.has_marker = _MARKER in floor
        self.floor = _read_tiles(f"floor of player {player}", floor.replace(_MARKER, "", 1))
        self.tiles += self.floor
        if self.floor.total() > _FLOOR_PLACES:
            raise GameError(f"the floor line of player {player} has {self.floor.total()} tiles, more than 7.")

    def _read_wall_row(self, row: int, text: str) -> None:
        colours = [wall_colour(row, column) for column in range(_ROWS)]
        if len(text) != _ROWS or any(tile not in (".", colour) for tile, colour in zip(text, colours, strict=False)):
            raise GameError(
                f"row {row + 1} of the wall of player {self.player}, {text!r:.50}, must be {''.join(colours)} with . "
                "for every missing tile."
            )
        self.tiles.update(text.replace(".", ""))
        self.wall |= sum(1 << (row * _ROWS + column) for column, tile in enumerate(text) if tile != ".")

    def _read_line(self, row: int, text: str) -> None:
        tiles = "" if text == _NOTHING else text
        where = f"line {row + 1} of player {self.player}, {text!r:.50},"
        is_known = text == _NOTHING or (text != "" and set(text) <= set(_COLOURS))
        if not is_known or len(tiles) > row + 1 or len(set(tiles)) > 1:
            raise GameError(f"{where} must be - or at most {row + 1} equal tiles of {_COLOURS}.")
        if tiles and self.has_on_wall(row, tiles[0]):
            raise GameError(f"{where} has a colour that row {row + 1} of the wall has already.")
        self.lines.append((tiles[:1], len(tiles)))
        self.tiles.update(tiles)

    def has_on_wall(self, row: int, colour: str) -> bool:
        """Whether the row of the wall has its tile of the colour."""
        return bool(self.wall >> (row * _ROWS + (_COLOURS.index(colour) + row) % _ROWS) & 1)

    @property
    def has_full_line(self) -> bool:
        """Whether a pattern line is full, so that its tile goes to the wall when the round ends."""
        return any(count == row + 1 for row, (_, count) in enumerate(self.lines))

    @property
    def has_full_row(self) -> bool:
        """Whether a row of the wall is complete, which ends the game."""
        return any(self.wall >> (row * _ROWS) & 31 == 31 for row in range(_ROWS))

    def packed(self) -> bytes:
        """The bytes of the board (cpp/games/azul.h)."""
        lines = [_COLOURS.index(colour) << 3 | count if count else 0 for colour, count in self.lines]
        return struct.pack("<IH10B", self.wall, self.score, *lines, *_counts(self.floor))


def _read_parts(game: CoreGame, text: str) -> Iterator[tuple[str, str]]:
    """The parts of the text by their names, each once."""
    wanted = [*_PARTS, *(f"player {player}" for player in range(game.num_players))]
    seen: set[str] = set()
    for part in filter(None, map(str.strip, re.split(r"[;\n]", text))):
        found = re.fullmatch(r"(player \d+(?=:)|[a-z]+):? *(.*)", " ".join(part.split()))
        if not found or found[1] not in wanted:
            raise GameError(f"{part!r:.100} is no part of a position of {game!r}: the parts are {', '.join(wanted)}.")
        if found[1] in seen:
            raise GameError(f"the position says {found[1]!r} twice.")
        seen.add(found[1])
        yield found[1], found[2]
    if missing := [name for name in wanted if name not in seen and name != "lid"]:
        raise GameError(f"the position lacks {', '.join(missing)}; its parts are {', '.join(wanted)}.")


def _read_displays(text: str, num_displays: int) -> list[Counter[str]]:
    names = text.split("/")
    if len(names) != num_displays:
        raise GameError(f"there are {num_displays} displays with / between them, not {len(names)}.")
    displays = [_read_tiles(f"display {chr(65 + index)}", name) for index, name in enumerate(names)]
    for index, tiles in enumerate(displays):
        if tiles.total() > _DISPLAY_TILES:
            raise GameError(f"display {chr(65 + index)} has {tiles.total()} tiles, more than {_DISPLAY_TILES}.")
    return displays


def _read_tiles(where: str, text: str) -> Counter[str]:
    tiles = text.upper().replace(_NOTHING, "").replace(" ", "")
    if wrong := set(tiles) - set(_COLOURS):
        raise GameError(f"{where}, {text!r:.100}, has {min(wrong)!r}: tiles are {', '.join(_COLOURS)}.")
    return Counter(tiles)


def _read_counts(where: str, text: str) -> Counter[str]:
    words = [] if text == _NOTHING else text.upper().split()
    found = [re.fullmatch(rf"([{_COLOURS}])(\d{{1,3}})", word) for word in words]
    tiles = Counter({match[1]: int(match[2]) for match in found if match})
    if None in found or len(tiles) != len(words):
        raise GameError(f"{where} {text!r:.100} must be numbers of tiles, each colour once, such as B17 W3, or -.")
    return tiles


def _read_number(where: str, text: str, largest: int, what: str) -> int:
    if not re.fullmatch(r"\d{1,4}", text) or int(text) > largest or (where == "round" and int(text) == 0):
        raise GameError(f"{where} {text!r:.100} must be {what}.")
    return int(text)


def _lid(text: str | None, others: list[Counter[str]]) -> Counter[str]:
    """The tiles in the lid; all tiles together are 20 of each colour."""
    total = sum(others, Counter[str]())
    lid = Counter({colour: _PER_COLOUR - total[colour] for colour in _COLOURS})
    if text is not None:
        lid = _read_counts("lid", text)
    for colour, name in zip(_COLOURS, _COLOUR_NAMES, strict=True):
        count = total[colour] + max(lid[colour], 0)
        if count != _PER_COLOUR:
            raise GameError(f"there are {count} {name} tiles, bag and lid included: the game has {_PER_COLOUR}.")
    return lid


def _check_phase(
    game: CoreGame,
    rounds: int,
    to_play: int,
    start: int,
    boards: list[_Board],
    offer: list[Counter[str]],
    bag: Counter[str],
    lid: Counter[str],
    *,
    is_in_centre: bool,
) -> None:
    """Refuse what cannot be at this time of a round."""
    is_last = rounds >= int(game.options["max_rounds"]) or not (bag + lid)
    has_full_row = any(board.has_full_row for board in boards)
    if to_play >= 0:
        if not any(offer):
            raise GameError("no tiles are on offer, so nobody is to move: turn is deal or over.")
        sizes = [tiles.total() for tiles in offer[:-1] if tiles and tiles.total() < _DISPLAY_TILES]
        if sizes and (bag or len(sizes) > 1):
            raise GameError(f"a display has {sizes[0]} of 4 tiles: that can be only one, when the bag is empty.")
    else:
        if any(offer) or any(board.floor for board in boards) or not is_in_centre:
            raise GameError("between rounds the displays and floor lines are empty, and the marker * is in the centre.")
        if any(board.has_full_line for board in boards):
            raise GameError("between rounds no pattern line is full: its tile has gone to the wall.")
    if to_play == TERMINAL and not (has_full_row or is_last):
        raise GameError("the game is not over: no wall has a complete row.")
    if to_play == TERMINAL and start != 0:
        raise GameError("start is 0 in a game that is over.")
    if to_play != TERMINAL and has_full_row:
        raise GameError("a wall has a complete row, so the game is over.")
    if to_play == CHANCE and not (bag + lid):
        raise GameError("no tiles are left to deal, so the game is over.")


def wall_colour(row: int, column: int) -> str:
    """The colour that a place of the wall takes."""
    return _COLOURS[(column - row) % _ROWS]


def _tiles(counts: tuple[int, ...] | bytes | list[int]) -> str:
    return "".join(colour * count for colour, count in zip(_COLOURS, counts, strict=True))


def _counted(tiles: str) -> str:
    words = [f"{colour}{tiles.count(colour)}" for colour in _COLOURS if colour in tiles]
    return " ".join(words) or _NOTHING


def _counts(tiles: Counter[str]) -> tuple[int, ...]:
    return tuple(tiles[colour] for colour in _COLOURS)
