"""Matches of games with dice: the two games of a pair have the same luck, and points are points."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from windrow import CHANCE, TERMINAL, ConfigError, make_game
from windrow.games import CoreGame, State
from windrow.play import MatchResult, RandomPlayer, make_player, play_match
from windrow.play.elo import PairCounts
from windrow.play.match import random_openings

TOYS = Path(__file__).parents[1] / "search" / "toy_games.py"
PIG = make_game("pig", target=40)
GAMES: dict[str, Any] = {
    "pig": lambda: PIG,
    "backgammon": lambda: make_game("backgammon"),
    "backgammon for wins": lambda: make_game("backgammon", scoring="wins"),
    "azul": lambda: make_game("azul"),
    "two dice": lambda: make_game(f"{TOYS}:TwoDice"),
    "pig in Python": lambda: make_game(f"{TOYS}:PlainPig", target=40),
}


def line(game: CoreGame, text: str) -> list[tuple[State, int, int]]:
    """(position, move, moves of players before) of a whole game, its last position with a move of -1."""
    state, steps, ply = game.initial_state(), list[tuple[State, int, int]](), 0
    for word in text.split():
        is_chance = game.to_play(state) == CHANCE
        move = game.parse_outcome(word) if is_chance else game.parse_action(word)
        steps.append((state, move, ply))
        ply += not is_chance
        state = game.apply(state, move)
    return [*steps, (state, -1, ply)]


def dice(game: CoreGame, text: str) -> dict[int, list[int]]:
    """What chance did, by how many moves players had made before."""
    rolls: dict[int, list[int]] = {}
    for state, move, ply in line(game, text)[:-1]:
        if game.to_play(state) == CHANCE:
            rolls.setdefault(ply, []).append(move)
    return rolls


def play(game: CoreGame, a: Any = "random", b: Any = "random", **settings: Any) -> MatchResult:
    plies = 1 if "TwoDice" in game.name else None  # it has four moves in all
    standard = {"num_games": 12, "seed": 3, "stop_when_sure": False, "openings_plies": plies}
    return play_match(game, a, b, **{**standard, **settings})


# --- Points ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_games_are_by_the_rules_and_counted_rightly(name: str):
    """A win is a point, whatever it counts in the game itself: a gammon is not two."""
    game = GAMES[name]()
    result = play(game)
    assert len(result.games) == result.wins + result.draws + result.losses == 12
    for number, played in enumerate(result.games):
        end = line(game, played.moves)[-1][0]
        assert end == game.state_from_moves(played.moves)
        assert game.to_play(end) == TERMINAL
        own, other = (game.returns(end)[seat] for seat in (number % 2, 1 - number % 2))
        assert played.first == "AB"[number % 2]
        assert played.score == (1.0 if own > other else 0.0 if own < other else 0.5)
    points = [result.games[n].score + result.games[n + 1].score for n in range(0, 12, 2)]
    assert list(result.pairs) == PairCounts(points).counts
    assert json.loads(json.dumps(result.to_dict()))["num_games"] == 12
    assert "12 games of" in result.table()


def test_gammons_happen_in_these_games():
    """Or the test above would not have tried them."""
    game = make_game("backgammon")
    ends = [line(game, played.moves)[-1][0] for played in play(game, num_games=40).games]
    assert {round(3 * abs(game.returns(end)[0])) for end in ends} >= {1, 2}


# --- The same dice -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_the_games_of_a_pair_have_the_same_dice(name: str):
    """After equally many moves chance does the same in both; only what it was asked may differ, so not in Azul.

    There the same random bits deal other tiles from another bag. In other pairs the dice are others.
    """
    game = GAMES[name]()
    # Players who differ, so that the games of a pair are not the same one twice.
    result = play(game, RandomPlayer(seed=1), RandomPlayer(seed=2), openings_plies=2)
    rolls = [dice(game, played.moves) for played in result.games]
    num_common = 0
    for first, second in zip(rolls[::2], rolls[1::2], strict=True):
        common = first.keys() & second.keys()
        num_common += len(common)
        if name != "azul":
            assert {ply: first[ply] for ply in common} == {ply: second[ply] for ply in common}
    assert num_common >= 6
    moves = [played.moves for played in result.games]
    assert any(first != second for first, second in zip(moves[::2], moves[1::2], strict=True))
    starts = [moves_before(game, text, 2) for text in moves]
    assert starts[::2] == starts[1::2], "and the same opening"
    if name in ("pig", "backgammon", "pig in Python"):
        others = [[roll for ply in sorted(pair) for roll in pair[ply]][2:10] for pair in rolls[::2]]
        assert len({tuple(other) for other in others}) == len(others)


def moves_before(game: CoreGame, text: str, num_plies: int) -> list[int]:
    return [move for _, move, ply in line(game, text) if ply < num_plies]


@pytest.mark.parametrize("name", GAMES)
def test_equal_players_split_every_pair(name: str):
    """The same player with the same seed on both sides, and the same dice: both games of a pair are one game."""
    game = GAMES[name]()
    spec = "random" if name == "azul" else "rollout:6"
    a, b = make_player(game, spec, seed=8), make_player(game, spec, seed=8)
    result = play(game, a, b, num_games=8)
    assert result.score == 0.5 and result.pairs == (0, 0, 4, 0, 0)
    assert all(one.moves == other.moves for one, other in zip(result.games[::2], result.games[1::2], strict=True))


@pytest.mark.parametrize("name", GAMES)
def test_a_match_is_the_same_again_and_with_any_number_of_games_at_once(name: str):
    game = GAMES[name]()

    def match(max_concurrent: int, seed: int = 3) -> MatchResult:
        return play(game, "rollout:3", "random", num_games=8, seed=seed, max_concurrent=max_concurrent)

    many = match(128)
    assert match(128) == many
    assert match(2) == many
    assert match(128, seed=4).games != many.games


# --- Openings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_openings_end_where_a_player_is_to_move(name: str):
    game = GAMES[name]()
    openings = list(islice(random_openings(game, 2, seed=1), 20))
    for moves, state in openings:
        assert game.to_play(state) >= 0
        replayed = game.initial_state()
        for move in moves:
            replayed = game.apply(replayed, move)
        assert replayed == state
    assert len({game.hash(state) for _, state in openings}) > (3 if name == "two dice" else 10)


def test_openings_of_no_moves_still_have_dice():
    """Backgammon begins with a roll: thirty openings of no moves, then longer ones."""
    game = make_game("backgammon")
    openings = list(islice(random_openings(game, 0, seed=1), 30))
    assert len({game.hash(state) for _, state in openings}) == 30
    assert all(len(moves) >= 1 for moves, _ in openings)


def test_a_game_shorter_than_its_openings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Four moves are asked for, and after four the game is over: shorter openings are taken, or it is said in words."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "short_game.py").write_text(
        f"import sys\nsys.path.insert(0, {str(TOYS.parent)!r})\nfrom toy_games import TwoDice\n"
        "class Short(TwoDice):\n"
        "    num_calls = 0\n"
        "    def apply(self, state, move):\n"
        "        self.num_calls += 1\n"
        "        assert self.num_calls < 20_000, 'this goes on for ever'\n"
        "        return super().apply(state, move)\n"
    )
    game = make_game("short_game:Short")
    try:
        result = play(game, num_games=4, openings_plies=4)
    except ConfigError as error:
        assert "openings_plies" in str(error)
    else:
        assert len(result.games) == 4


# --- Strength ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spec", "num_games", "score"),
    [("pig", "rollout:100", 100, 0.65), ("backgammon", "rollout:16", 60, 0.7), ("azul", "rollout:60", 30, 0.75)],
)
def test_who_looks_ahead_beats_who_does_not(name: str, spec: str, num_games: int, score: float):
    """Against random moves. That much equal players would score two times in a thousand, or less often."""
    assert play(GAMES[name](), spec, "random", num_games=num_games, seed=1).score >= score


class Watcher:
    """A player that notes how many moves it is told were made before."""

    def __init__(self) -> None:
        self.name, self.plies = "watcher", list[int]()

    def choose_at(self, states: Sequence[State], plies: Sequence[int]) -> list[int]:
        self.plies += plies
        return [state.game.legal_actions(state)[0] for state in states]

    def choose(self, states: Sequence[State]) -> list[int]:
        raise AssertionError("choose_at is asked if there is one")

    def close(self) -> None:
        pass


def test_only_moves_of_players_are_counted():
    """Pig with an opening of two moves: the first question is about ply 2, however often the die was rolled."""
    watcher = Watcher()
    result = play(PIG, watcher, "random", num_games=2, openings_plies=2)
    asked = sorted(watcher.plies)
    expected = []
    for number, played in enumerate(result.games):
        steps = line(PIG, played.moves)
        expected += [ply for state, _, ply in steps if PIG.to_play(state) == number % 2 and ply >= 2]
    assert asked == sorted(expected)


# --- What is no match --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "players"),
    [("azul", {"players": 3}, 3), (f"{TOYS}:TakeAway", {}, 3), (f"{TOYS}:Reroll", {}, 1)],
)
def test_a_match_is_for_two(name: str, options: dict[str, Any], players: int):
    with pytest.raises(ConfigError, match=f"a match is for two players, but .* has {players}"):
        play(make_game(name, **options))


def test_two_who_do_not_share_one_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Who has more than the other wins; both may have gained."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "uneven_game.py").write_text(
        f"import sys\nsys.path.insert(0, {str(TOYS.parent)!r})\nfrom toy_games import Drawn\n"
        "TREE = (0, {0: (1, {0: (0.25, 0.5), 1: (0.5, 0.5)}), 1: (1, {0: (1.0, 0.75), 1: (-0.5, -0.25)})})\n"
        "def game(): return Drawn(TREE, players=2, actions=2, zero_sum=False)\n"
    )
    game = make_game("uneven_game:game")
    results = [play(game, num_games=2, openings_plies=0, seed=seed) for seed in range(12)]
    scores = {(played.moves, played.first): played.score for result in results for played in result.games}
    assert {moves for moves, _ in scores} == {"0 0", "0 1", "1 0", "1 1"}
    for (moves, first), score in scores.items():
        for_first = {"0 0": 0.0, "0 1": 0.5, "1 0": 1.0, "1 1": 0.0}[moves]
        assert score == (for_first if first == "A" else 1 - for_first)
