"""Games compiled from Python: the same as their twins, quick to refuse what cannot work, and kept on disk."""

from __future__ import annotations

import inspect
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from compiled_games import CHEAT, GAMBLE, STEP, NimRules, Pig, PlainRace, Race

import windrow
from windrow.errors import GameError, IllegalMoveError, MissingExtraError, UnknownKeyError
from windrow.evaluators import HashEvaluator
from windrow.games import CHANCE, TERMINAL, Game, Hashed, Readable, State, Symmetric, Symmetry, make_game
from windrow.games.compiled import CompiledGame, compile_game
from windrow.games.compiled_functions import cache_folder
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
    config = windrow.SearchConfig(engine="vectorized", num_simulations=60, **settings)
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


def test_an_exception_names_method_and_line() -> None:
    race = Race()
    record = race.record(race.initial_state())
    record.trap = 1
    trapped = State(race, record.tobytes())
    line = line_of(Race.rules_class.apply, "raise RuntimeError")
    message = rf"RuntimeError: caught \(Race\.apply, .*compiled_games\.py:{line}\)"
    with pytest.raises(GameError, match=message):
        race.apply(trapped, CHEAT)
    assert race.explain_fault([GAMBLE, 2, STEP, STEP], trapped) is None
    reason = race.explain_fault([GAMBLE, 2, STEP, CHEAT, STEP], trapped)
    assert reason is not None and re.match(message, reason)
    after = race.apply(race.apply(trapped, STEP), STEP)
    with pytest.raises(GameError, match=rf"broke its own rules: {message} \(tree 0 after.* 2\)"):
        search(race, [after])


def test_an_index_outside_is_found_by_boundscheck() -> None:
    race = Race()
    record = race.record(race.initial_state())
    record.cells[1] = -7
    state = State(race, record.tobytes())
    with pytest.raises(GameError, match=r"IndexError: index -7 is out of bounds .* \(Race.observe, "):
        race.observe(state)


def broken(**methods: Any) -> type:
    """Nim with other methods or facts."""
    return type("Broken", (NimRules,), methods)


def line_of(method: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(method)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_a_compile_error_names_method_and_line() -> None:
    def initial_state(self, state):
        sticks = self.sticks
        state.stick = sticks

    with pytest.raises(GameError) as caught:
        compile_game(broken(initial_state=initial_state))()
    line = line_of(initial_state, "state.stick =")
    message = f"Broken.initial_state cannot be compiled ({__file__}:{line}): the state has no field 'stick'\n"
    assert str(caught.value).startswith(f"{message}    state.stick = sticks\n")


def test_a_compile_error_in_a_helper_names_its_line() -> None:
    def helper(self, number):
        return number.digits

    def initial_state(self, state):
        state.sticks = self.helper(3)

    with pytest.raises(GameError, match="Unknown attribute 'digits' of type") as caught:
        compile_game(broken(initial_state=initial_state, helper=helper))()
    assert f"{__file__}:{line_of(helper, 'digits')}" in str(caught.value)


def test_a_forgotten_return_is_noticed() -> None:
    def to_play(self, state):
        if state.sticks == 0:
            return TERMINAL

    with pytest.raises(GameError, match=r"must return the player to move.*it returns nothing on some of its ways"):
        compile_game(broken(to_play=to_play))()


def changes_self(self, state):
    self.sticks = 3


def hands_self_on(self, state):
    print(self)


def uses_what_is_not_there(self, state):
    state.sticks = self.stick


def uses_no_such_name(self, state):
    state.sticks = no_such_name  # noqa: F821


def uses_a_list(self, state):
    state.sticks = self.table[0]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (changes_self, r":LINE\) changes self.sticks"),
        (hands_self_on, r":LINE\) uses self as such"),
        (uses_what_is_not_there, r":LINE\) uses self.stick, which Broken does not have"),
        (uses_no_such_name, r":LINE\) uses no_such_name, which is not defined"),
        (uses_a_list, r":LINE\) uses self.table, which is a list"),
        (lambda self, state: None, "written with def"),
    ],
)
def test_what_cannot_be_compiled_is_refused(method: Any, message: str) -> None:
    line = method.__code__.co_firstlineno + 1
    with pytest.raises(GameError, match=message.replace("LINE", str(line))):
        compile_game(broken(initial_state=method, table=[1, 2]))()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"legal_actions": None, "legal_action": print},
            r"no method legal_actions \(is it legal_action\?\): write def",
        ),
        (
            {"apply": lambda self, state: None},
            r"apply has the parameters \(self, state\): write def apply\(self, state,",
        ),
        ({"chance_outcomes": lambda s, t, o, p: 0, "sample_outcome": lambda s, t, u: 0}, "one of them is enough"),
        ({"observe": lambda self, state, board, flat: None}, r"write def observe\(self, state, observation\)"),
        ({"num_actions": 0}, "num_actions must be from 1 to 65535, not 0"),
        ({"num_players": "two"}, "num_players must be an integer, not 'two'"),
        ({"num_players": 17}, "num_players must be from 1 to 16, not 17"),
        ({"max_legal_actions": 4}, "max_legal_actions must be from 1 to 3, not 4"),
        ({"state": None}, "state is missing"),
        ({"state": np.int64}, "state must have named fields"),
        ({"state": [("a", "no type")]}, "state is no NumPy dtype"),
        ({"state": [("a", object)]}, "the field 'a' of type object"),
        ({"state": [("a", "U3")]}, "the field 'a' of type <U3"),
        ({"state": [("a", [("b", ">i4")])]}, "the field 'b' of type >i4"),
        ({"state": [("shape", np.int8)]}, "cannot have a field 'shape'"),
        ({"symmetries": lambda self: []}, "the first symmetry must be the identity"),
        (
            {"symmetries": lambda self: [Symmetry([0, 1, 1], np.arange(10))]},
            "actions that are no permutation of 0 to 2",
        ),
    ],
)
def test_what_is_no_game_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(GameError, match=message):
        compile_game(broken(**changes))()


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (None, "must be a shape such as"),
        (5, "must be a shape such as"),
        ((3, 0), r"sizes of 1 and more, not \(3, 0\)"),
        ({}, "has no parts"),
        ({"board": (3,), "flat": (2,)}, r"write def observe\(self, state, board, flat\)"),
        ({"board": (3,)}, r"write def observe\(self, state, board\)"),
    ],
)
def test_a_wrong_observation_is_refused(observation: Any, message: str) -> None:
    def __init__(self):
        self.observation = observation

    with pytest.raises(GameError, match=message):
        compile_game(broken(__init__=__init__))()


def test_only_classes_are_compiled() -> None:
    with pytest.raises(GameError, match="compile_game is for classes"):
        compile_game(NimRules())  # pyright: ignore


def test_without_numba_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r'pip install "windrow\[numba\]"'):
        Race(goal=5)


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

    rules = broken(initial_state=initial_state, _more=one, table=np.arange(3))
    first = digest_of(rules())
    assert digest_of(rules()) == first
    assert digest_of(rules(sticks=8)) != first
    assert digest_of(broken(initial_state=initial_state, _more=two, table=np.arange(3))()) != first
    assert digest_of(broken(initial_state=initial_state, _more=one, table=np.arange(1, 4))()) != first
    assert digest_of(broken(initial_state=initial_state, _more=one, table=np.arange(3), unused=1)()) == first
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
    assert cache_folder() == tmp_path / "windrow" / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert cache_folder() == tmp_path / "numba" / "windrow"


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
