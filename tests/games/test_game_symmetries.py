"""A symmetry maps games to games: playing the mapped moves leads to the mapped positions."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from plain_games import CASES, case_name

from windrow.games import TERMINAL, NativeGame, State, Symmetry, make_game

NUM_SYMMETRIES = {"tictactoe": 8, "connect4": 2, "gomoku": 8, "othello": 8, "hex": 4, "go": 8}


def exchanges_players(game: NativeGame, symmetry: Symmetry) -> bool:
    """Whether the image of a position is one with the other player to move, as in Hex reflected at a diagonal."""
    return game.name == "hex" and bool(symmetry.observation[-1] < symmetry.observation.size * 3 // 4)


def image_of_start(game: NativeGame, symmetry: Symmetry) -> State:
    """The mapped first position. Empty boards are their own images; Othello's four discs are not always."""
    start = game.initial_state()
    if exchanges_players(game, symmetry):
        # The layout of cpp/games/hex.h: boards; to_play, winner, mover.
        return State(game, start.data[:-8] + struct.pack("=hhi", 1, -1, 1))
    if game.name != "othello":
        return start
    # The layout of cpp/games/othello.h: own discs, other discs, moves; to_play, viewer.
    *boards, to_play, viewer = struct.unpack("=QQQii", start.data)
    images = [sum((board >> int(symmetry.actions[square]) & 1) << square for square in range(64)) for board in boards]
    return State(game, struct.pack("=QQQii", *images, to_play, viewer))


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_mapping_commutes_with_the_rules(case):
    game = make_game(case[0], **case[1])
    rng = random.Random(f"symmetries {case_name(case)}")
    for symmetry in game.symmetries():
        step = -1 if exchanges_players(game, symmetry) else 1
        players = {0: 0, 1: 1, TERMINAL: TERMINAL} if step == 1 else {0: 1, 1: 0, TERMINAL: TERMINAL}
        image_of_action = np.argsort(symmetry.actions)
        for _ in range(5 if game.num_actions < 100 else 1):
            state, image = game.initial_state(), image_of_start(game, symmetry)
            while True:
                assert game.to_play(image) == players[game.to_play(state)]
                actions = game.legal_actions(state)
                if step == -1:  # x never has the choice
                    actions = [action for action in actions if game.action_name(action) != "swap"]
                assert game.legal_actions(image) == sorted(image_of_action[actions])
                assert (game.observe(image).ravel() == game.observe(state).ravel()[symmetry.observation]).all()
                if game.to_play(state) == TERMINAL:
                    break
                action = rng.choice(actions)
                state, image = game.apply(state, action), game.apply(image, int(image_of_action[action]))
            assert game.returns(image) == game.returns(state)[::step]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_symmetries_form_a_group(case):
    """Permutations, the identity first, all different, and closed: one after another is one of them again."""
    game = make_game(case[0], **case[1])
    symmetries = game.symmetries()
    num_floats = int(np.prod(game.observation))
    assert len(symmetries) == NUM_SYMMETRIES[game.name]
    assert symmetries[0].actions.tolist() == list(range(game.num_actions))
    assert symmetries[0].observation.tolist() == list(range(num_floats))
    for symmetry in symmetries:
        assert sorted(symmetry.actions) == list(range(game.num_actions))
        assert sorted(symmetry.observation) == list(range(num_floats))
    members = {(tuple(s.actions), tuple(s.observation)) for s in symmetries}
    assert len(members) == len(symmetries)
    for first in symmetries:
        for second in symmetries:
            both = (tuple(first.actions[second.actions]), tuple(first.observation[second.observation]))
            assert both in members


def test_connect4_mirror_by_hand():
    _, mirror = make_game("connect4", rows=2, columns=3).symmetries()
    assert mirror.actions.tolist() == [2, 1, 0]
    assert mirror.observation.tolist() == [2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9]


def test_othello_start_has_four_of_the_eight():
    game = make_game("othello")
    images = [image_of_start(game, symmetry) for symmetry in game.symmetries()]
    assert sum(image == game.initial_state() for image in images) == 4
