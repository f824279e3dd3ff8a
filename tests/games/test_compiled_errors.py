"""What cannot be compiled, and what goes wrong in a compiled game: errors that name the method and the line."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

import numpy as np
import pytest
from compiled_games import CHEAT, GAMBLE, STEP, NimRules, Race, broken_nim

import windrow
from windrow.errors import GameError, MissingExtraError
from windrow.evaluators import HashEvaluator
from windrow.games import TERMINAL, State, Symmetry
from windrow.games.compiled import compile_game

pytest.importorskip("numba")


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
        windrow.Search(race, HashEvaluator(seed=3), windrow.SearchConfig(num_simulations=60)).run([after])


def test_an_index_outside_is_found_by_boundscheck() -> None:
    race = Race()
    record = race.record(race.initial_state())
    record.cells[1] = -7
    state = State(race, record.tobytes())
    with pytest.raises(GameError, match=r"IndexError: index -7 is out of bounds .* \(Race.observe, "):
        race.observe(state)


def line_of(method: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(method)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_methods_that_return_a_new_state_are_refused() -> None:
    """What they return is lost, and the state that they were given is as it was."""

    def apply(self, state, move):
        return state

    def sometimes(self, state, move):
        if move == 1:
            return state

    def returns(self, state, values):
        return 1

    for broken in (apply, sometimes):
        with pytest.raises(GameError, match=r"must return nothing: let it change the record `state` in place"):
            compile_game(broken_nim(apply=broken))()
    with pytest.raises(GameError, match=r"must return nothing: let it fill in the array `values` in place"):
        compile_game(broken_nim(returns=returns))()


def test_a_compile_error_names_method_and_line() -> None:
    def initial_state(self, state):
        sticks = self.sticks
        state.stick = sticks

    with pytest.raises(GameError) as caught:
        compile_game(broken_nim(initial_state=initial_state))()
    line = line_of(initial_state, "state.stick =")
    message = f"Broken.initial_state cannot be compiled ({__file__}:{line}): the state has no field 'stick'\n"
    assert str(caught.value).startswith(f"{message}    state.stick = sticks\n")


def test_a_compile_error_in_a_helper_names_its_line() -> None:
    def helper(self, number):
        return number.digits

    def initial_state(self, state):
        state.sticks = self.helper(3)

    with pytest.raises(GameError, match="Unknown attribute 'digits' of type") as caught:
        compile_game(broken_nim(initial_state=initial_state, helper=helper))()
    assert f"{__file__}:{line_of(helper, 'digits')}" in str(caught.value)


def test_a_forgotten_return_is_noticed() -> None:
    def to_play(self, state):
        if state.sticks == 0:
            return TERMINAL

    with pytest.raises(GameError, match=r"must return the player to move.*it returns nothing on some of its ways"):
        compile_game(broken_nim(to_play=to_play))()


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
        compile_game(broken_nim(initial_state=method, table=[1, 2]))()


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
        compile_game(broken_nim(**changes))()


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
        compile_game(broken_nim(__init__=__init__))()


def test_only_classes_are_compiled() -> None:
    with pytest.raises(GameError, match="compile_game takes a class"):
        compile_game(NimRules())  # pyright: ignore


def test_without_numba_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r'needs numba: pip install "windrow-mcts\[numba\]"'):
        Race(goal=5)
