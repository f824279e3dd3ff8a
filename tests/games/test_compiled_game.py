"""Games compiled from Python: the same as their twins, quick to refuse what cannot work, and kept on disk."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from compiled_games import CHEAT, GAMBLE, STEP, NimRules, Pig, PlainRace, Race, broken_nim

import windrow
from windrow.errors import GameError, IllegalMoveError, UnknownKeyError
from windrow.evaluators import HashEvaluator
from windrow.games import CHANCE, TERMINAL, Game, Hashed, Readable, State, Symmetric, make_game
from windrow.games.checking import examine
from windrow.games.compiled import CompiledGame, compile_game
from windrow.games.compiled_functions import compiled_folder
from windrow.games.compiled_source import FrozenMethods

pytest.importorskip("numba")

EXAMPLES = Path(__file__).parents[2] / "examples" / "games"


@pytest.fixture(scope="module")
def connect4() -> Iterator[Any]:
    """The example's class."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        from connect4_compiled import Connect4

        yield Connect4
    finally:
        sys.path.remove(str(EXAMPLES))


def check_lock_step(game: Any, builtin: Any, num_games: int) -> None:
    """Random games, move by move: players, legal moves, chances, observations to the last bit, returns, hashes."""
    rng = random.Random(f"compiled {builtin!r}")
    hashes: dict[int, int] = {}
    for _ in range(num_games):
        state, expected = game.initial_state(), builtin.initial_state()
        while True:
            player = builtin.to_play(expected)
            assert game.to_play(state) == player
            assert game.legal_actions(state) == builtin.legal_actions(expected)
            assert game.observe(state).tobytes() == builtin.observe(expected).tobytes()
            assert hashes.setdefault(builtin.hash(expected), game.hash(state)) == game.hash(state)
            if player == TERMINAL:
                break
            if player == CHANCE:
                outcomes = builtin.chance_outcomes(expected)
                assert game.chance_outcomes(state) == outcomes
                move = rng.choice(outcomes)[0]
            else:
                move = rng.choice(builtin.legal_actions(expected))
            state, expected = game.apply(state, move), builtin.apply(expected, move)
        assert game.returns(state) == builtin.returns(expected)
    assert len(set(hashes.values())) == len(hashes)


def search(game: Any, states: list[Any], **settings: Any) -> list[windrow.SearchResult]:
    config = windrow.SearchConfig(engine="vectorized", num_simulations=60).with_settings(settings)
    with windrow.Search(game, HashEvaluator(seed=3), config) as searching:
        return searching.run(states)


def test_connect4_plays_like_the_builtin_one(connect4: Any) -> None:
    check_lock_step(connect4(), make_game("connect4"), num_games=100)


def test_pig_plays_like_the_builtin_one() -> None:
    check_lock_step(Pig(target=30), make_game("pig", target=30), num_games=40)


@pytest.mark.parametrize("settings", [{}, {"num_threads": 3, "leaves_per_tree": 4}], ids=["plain", "threads"])
@pytest.mark.parametrize("name", ["connect4", "pig"])
def test_is_searched_like_the_builtin_one(name: str, settings: dict[str, Any], connect4: Any) -> None:
    """Equal observations get equal answers: every count must be the same."""
    game = connect4() if name == "connect4" else Pig(target=30)
    builtin = make_game(name, **dict(game.options) if name == "pig" else {})
    texts = ["", "4453", "17"] if name == "connect4" else ["", "roll 4 roll 1", "roll 6 hold"]
    expected = search(builtin, [builtin.state_from_moves(text) for text in texts], **settings)
    found = search(game, [game.state_from_moves(text) for text in texts], **settings)
    assert [result.visits.tolist() for result in found] == [result.visits.tolist() for result in expected]
    assert [result.value for result in found] == [result.value for result in expected]


@pytest.mark.parametrize("num_threads", [1, 3])
def test_three_players_are_searched_like_a_plain_class(num_threads: int) -> None:
    race, plain = Race(), PlainRace()
    moves = [[], [GAMBLE, 2, STEP], [CHEAT, STEP, GAMBLE, 0]]
    plain_states = []
    for line in moves:
        state = plain.initial_state()
        for move in line:
            state = plain.apply(state, move)
        plain_states.append(state)
    found = search(race, [race.state_from_moves(line) for line in moves], num_threads=num_threads)
    expected = search(plain, plain_states, num_threads=num_threads)
    assert [result.visits.tolist() for result in found] == [result.visits.tolist() for result in expected]


def test_race_by_hand() -> None:
    """+2 for player 0, a step for player 1, a step for player 2: player 0 sees herself, then 1, then 2."""
    race = Race()
    state = race.state_from_moves([GAMBLE, 2, STEP, STEP])
    assert race.to_play(state) == 0
    observation = race.observe(state)
    assert observation["track"].tolist() == [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 1, 0, 0, 0]]
    assert observation["turn"].tolist() == [1, 0]
    gambled = race.apply(state, GAMBLE)
    assert race.to_play(gambled) == CHANCE and race.chance == "sampled"
    assert race.observe(gambled)["turn"].tolist() == [0, 1]
    assert race.legal_actions(gambled) == []
    assert race.sample_outcome(gambled, 14) == 1  # 14 halved is 7
    won = race.apply(gambled, 2)
    assert race.to_play(won) == TERMINAL
    assert race.legal_actions(won) == []
    assert race.returns(won) == [1.0, -0.5, -0.5]


def test_fulfils_the_protocols(connect4: Any) -> None:
    for game in (connect4(), Pig(target=30), Race()):
        assert isinstance(game, CompiledGame)
        for protocol in (Game, Symmetric, Hashed, Readable):
            assert isinstance(game, protocol)
    assert (Race().num_players, Race().num_values, Pig(target=30).num_values) == (3, 3, 1)
    assert connect4().observation == (2, 6, 7)
    assert dict(Race().observation) == {"track": (3, 5), "turn": (2,)}


def test_states_are_padded_to_whole_words() -> None:
    """1 + 8 + 3 + 4 bytes; aligned, the 8 begin at 8, the 3 at 16 and the 4 at 20: 24."""
    assert Race().native.state_bytes == 24
    assert len(Pig(target=30).initial_state().data) == 8


def test_hash_tells_what_the_class_says(connect4: Any) -> None:
    game = connect4()
    state = game.state_from_moves("1234")
    assert game.hash(state) == game.hash(game.state_from_moves("3214"))
    assert game.hash(state) != game.hash(game.state_from_moves("1243"))
    race = Race()
    record = race.record(race.initial_state())
    record.trap = 0.25  # its own hash leaves that out
    other = State(race, record.tobytes())
    assert other != race.initial_state()
    assert race.hash(other) == race.hash(race.initial_state())


def test_symmetries_are_those_of_the_builtin_one(connect4: Any) -> None:
    expected = make_game("connect4").symmetries()
    for image, other in zip(connect4().symmetries(), expected, strict=True):
        assert image.actions.tolist() == other.actions.tolist()
        assert image.observation.tolist() == other.observation.tolist()


def test_words(connect4: Any) -> None:
    game, builtin = connect4(), make_game("connect4")
    state = game.state_from_moves("44 5,3")
    assert str(state) == str(builtin.state_from_moves("4453"))
    assert game.moves_to_text([3, 3, 4, 2]) == "4453"
    assert repr(game) == "Connect4(rows=6, columns=7)"
    with pytest.raises(IllegalMoveError, match="'8' at character 2"):
        game.state_from_moves("48")
    with pytest.raises(IllegalMoveError, match=r"'4' at character 7 .* is not legal here"):
        game.state_from_moves("4444444")
    race = Race()
    assert race.moves_to_text([GAMBLE, 2, STEP]) == "1 +2 0"
    assert race.state_from_moves("1 +2 0") == race.state_from_moves([GAMBLE, 2, STEP])
    assert str(race.initial_state()) == "gambles: False\nplayer: 0\ncells: [0 0 0]\ntrap: 0.\nplayer 0 to move"
    assert str(race.state_from_moves("1")).endswith("chance to move")
    assert str(race.state_from_moves("1 +2 0 0 1 +2")).endswith("game over: 1 -0.5 -0.5")


def test_positions_as_text() -> None:
    pig = Pig()
    state = pig.state_from_moves("roll 6 hold roll 4")
    assert state.to_text() == "6-0 4 1 1" and pig.parse("6-0 4 1 1") == state
    with pytest.raises(GameError, match="'6-0' is not a position of Pig"):
        pig.parse("6-0")
    assert examine(pig, num_games=2).faults == []


def test_chance_does_what_it_may() -> None:
    pig, race = Pig(target=30), Race()
    with pytest.raises(IllegalMoveError, match="outcome 7 cannot happen here"):
        pig.apply(pig.state_from_moves("roll"), 7)
    with pytest.raises(IllegalMoveError, match="outcome 3 cannot happen here"):
        race.apply(race.state_from_moves([GAMBLE]), 3)


@pytest.mark.slow
def test_options_make_other_games(connect4: Any) -> None:
    small = connect4(rows=4, columns=5)
    assert small.observation == (2, 4, 5) and small.num_actions == 5
    assert small != connect4()
    check_lock_step(small, make_game("connect4", rows=4, columns=5), num_games=30)


def test_options_are_named(connect4: Any) -> None:
    assert dict(connect4(6).options) == {"rows": 6, "columns": 7}
    assert dict(Pig(target=30).options) == {"target": 30}
    with pytest.raises(UnknownKeyError, match=r"Connect4 has no option 'row'\. Did you mean 'rows'"):
        connect4(row=5)


def test_is_a_value(connect4: Any) -> None:
    game, same = connect4(), connect4(6, columns=7)
    assert game == same and hash(game) == hash(same)
    assert game.initial_state() == same.initial_state()
    assert game != Pig(target=30) and game != make_game("connect4")


def test_games_and_states_can_be_pickled() -> None:
    state = Race(goal=4).state_from_moves([GAMBLE, 2])
    again = pickle.loads(pickle.dumps(state))
    assert again == state and again.game == state.game
    assert type(again.game) is Race


def test_make_game_makes_it_from_a_file(connect4: Any) -> None:
    name = f"{EXAMPLES / 'connect4_compiled.py'}:Connect4"
    game = make_game(name)
    assert game == connect4() and game.name == name
    again = pickle.loads(pickle.dumps(game))
    assert again == game and again.name == name


FACTOR = 3


def times(number: int) -> int:
    return number * FACTOR


def digest_of(rules: object) -> str:
    """Of all that initial_state depends on; nothing is compiled."""

    def leave(function: FunctionType) -> FunctionType:
        return function

    frozen = FrozenMethods(rules, leave)
    frozen.method("initial_state")
    return frozen.digest()


def test_the_digest_depends_on_all_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def initial_state(self, state):
        state.sticks = times(self.sticks) + self._more()

    def one(self):
        return self.table[1]

    def two(self):
        return self.table[1] + 1

    rules = broken_nim(initial_state=initial_state, _more=one, table=np.arange(3))
    first = digest_of(rules())
    assert digest_of(rules()) == first
    assert digest_of(rules(sticks=8)) != first
    assert digest_of(broken_nim(initial_state=initial_state, _more=two, table=np.arange(3))()) != first
    assert digest_of(broken_nim(initial_state=initial_state, _more=one, table=np.arange(1, 4))()) != first
    assert digest_of(broken_nim(initial_state=initial_state, _more=one, table=np.arange(3), unused=1)()) == first
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 4)
    assert digest_of(rules()) != first


IN_ANOTHER_PROCESS = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
from connect4_compiled import Connect4
game = Connect4()
print(game.is_from_cache, game.state_from_moves("4453").data.hex())
"""


def test_another_process_finds_the_compiled_code(connect4: Any) -> None:
    data = connect4().state_from_moves("4453").data
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", data.hex()]


def test_the_cache_folder_is_the_users_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compiled_folder() == tmp_path / "windrow" / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert compiled_folder() == tmp_path / "numba" / "windrow"


@pytest.mark.slow
def test_works_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    game = compile_game(NimRules)(sticks=7)
    assert not game.is_from_cache
    assert game.legal_actions(game.state_from_moves([2, 2])) == [0]


@pytest.mark.slow
def test_damaged_files_are_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rules = compile_game(NimRules)
    assert not rules(sticks=6).is_from_cache
    assert rules(sticks=6).is_from_cache
    kept = list(tmp_path.rglob("*.nb?"))
    assert kept
    for file in kept:
        file.write_bytes(file.read_bytes()[:40])
    game = rules(sticks=6)
    assert not game.is_from_cache
    assert game.legal_actions(game.state_from_moves([2, 1])) == [0]
    del game
    assert not rules(sticks=6).is_from_cache  # what was damaged is gone, and written again
    assert rules(sticks=6).is_from_cache


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("connect4_*.py")), ids=lambda path: path.stem)
def test_examples_run(example: Path) -> None:
    if example.stem == "connect4_tensor":
        pytest.importorskip("torch")
    run = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "the same as the built-in game" in run.stdout
    rows = [line.split() for line in run.stdout.splitlines()]
    best = rows[rows.index(["move", "visits", "share", "Q", "prior"]) + 1]
    assert best[0] == "4"
