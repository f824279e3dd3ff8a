from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training_cases import CONNECT4, filled_replay, random_record

from windrow import ConfigError, TrainingError, make_game
from windrow.games.native import NativeGame
from windrow.train import GameRecord, Replay, step_rng


def positions(game: NativeGame, record: GameRecord) -> list[Any]:
    """The states of the recorded moves, played one by one."""
    state = game.unpack_start(record.initial)
    found: list[Any] = []
    for action, is_recorded in zip(record.actions.tolist(), record.is_recorded, strict=True):
        if is_recorded:
            found.append(state)
        state = game.apply(state, action)
    return found


def rows_of(replay: Replay, seed: int = 0, count: int = 400) -> list[tuple[bytes, bytes, float, bytes]]:
    """Each row of a batch as something that can be compared and looked up."""
    batch = replay.sample(count, step_rng(seed, 0))
    parts = zip(batch.observations, batch.policy, batch.value.tolist(), batch.legal, strict=True)
    return [
        (observation.tobytes(), policy.tobytes(), value, legal.tobytes()) for observation, policy, value, legal in parts
    ]


def expected(game: NativeGame, record: GameRecord, value_mix: float) -> list[tuple[bytes, bytes, float, bytes]]:
    """The same, from the rules as Python knows them."""
    found: list[Any] = []
    searched = record.root_value[record.is_recorded].astype(np.float32)
    for state, policy, value in zip(positions(game, record), record.policy.astype(np.float32), searched, strict=True):
        outcome = record.returns[game.to_play(state)]
        mixed = np.float32(1 - np.float32(value_mix)) * outcome + np.float32(value_mix) * value
        legal = np.zeros(game.num_actions, bool)
        legal[game.legal_actions(state)] = True
        observation = np.asarray(game.observe(state), np.float32)
        found.append((observation.tobytes(), (policy / policy.sum()).tobytes(), float(mixed), legal.tobytes()))
    return found


@pytest.mark.parametrize("value_mix", [0.0, 0.25, 1.0])
@pytest.mark.parametrize(("name", "opening"), [("connect4", 0), ("connect4", 5), ("othello", 0), ("tictactoe", 2)])
def test_what_is_drawn_is_what_was_played(name: str, opening: int, value_mix: float):
    game = make_game(name)
    record = random_record(game, 3, share=0.6, opening=opening)
    replay = Replay(game, 1000, value_mix=value_mix, use_symmetries=False)
    assert replay.add(record) == len(replay) == record.is_recorded.sum()
    assert set(rows_of(replay, count=1000)) == set(expected(game, record, value_mix))


def test_the_value_is_the_movers():
    """Hand-worked: x wins in column 1, so x was winning in every position with x to move, and o losing.

    . . . .
    x
    x o
    x o
    x o        1 2 1 2 1 2 1
    """
    record = GameRecord(
        number=0,
        actions=np.array([0, 1, 0, 1, 0, 1, 0], np.uint16),
        initial=b"",
        is_recorded=np.array([1, 1, 0, 0, 0, 1, 1], bool),
        policy=np.full((4, 7), 1 / 7, np.float16),
        root_value=np.array([0.5, -0.5, 0, 0, 0, -1, 1], np.float16),
        returns=np.array([1, -1], np.float32),
        versions=(0, 0),
    )
    replay = Replay(CONNECT4, 10, value_mix=0.5)
    replay.add(record)
    batch = replay.sample(500, step_rng(0, 0))
    num_stones = batch.observations.reshape(500, -1).sum(1)
    for stones, value in ((0, 0.75), (1, -0.75), (5, -1.0), (6, 1.0)):
        assert set(batch.value[num_stones == stones].tolist()) == {value}


# --- Symmetries --------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    name=st.sampled_from(["connect4", "gomoku", "othello", "tictactoe"]),
    number=st.integers(0, 10_000),
    where=st.floats(0, 1, exclude_max=True),
)
def test_an_image_is_the_position_of_the_image_game(name: str, number: int, where: float):
    """Whoever plays the images of all moves comes to the image of the position: it must be what is drawn."""
    game = make_game(name, **({"size": 6} if name == "gomoku" else {}))
    record = random_record(game, number)
    ply = int(where * len(record))
    only = np.arange(len(record)) == ply
    record = dataclasses.replace(record, is_recorded=only, policy=record.policy[only])
    images: set[tuple[bytes, bytes, bytes]] = set()
    start = np.ravel(game.observe(game.initial_state()))
    # Othello begins in a position that half of its symmetries change: no game leads to those images.
    reached = [symmetry for symmetry in game.symmetries() if np.array_equal(start[symmetry.observation], start)]
    assert len(reached) == len(game.symmetries()) // (2 if name == "othello" else 1)
    for symmetry in reached:
        image_of = np.argsort(symmetry.actions)  # the image of a policy is policy[actions]
        state = game.state_from_moves([int(image_of[action]) for action in record.actions[:ply]])
        policy = record.policy[0].astype(np.float32)
        policy /= policy.sum()
        image = np.zeros_like(policy)
        image[image_of] = policy
        legal = np.zeros(game.num_actions, bool)
        legal[game.legal_actions(state)] = True
        images.add((np.asarray(game.observe(state)).tobytes(), image.tobytes(), legal.tobytes()))
    replay = Replay(game, 10)
    replay.add(record)
    # With 8 images and 200 rows, one is missing once in 10^10 times.
    drawn = {(observation, policy, legal) for observation, policy, _, legal in rows_of(replay, count=200)}
    assert drawn >= images if name == "othello" else drawn == images


def test_symmetries_are_drawn_evenly():
    replay = Replay(CONNECT4, 10)
    record = random_record(CONNECT4, 0)
    only = np.arange(len(record)) == 1
    replay.add(dataclasses.replace(record, is_recorded=only, policy=record.policy[only]))
    rows = [observation for observation, *_ in rows_of(replay, count=2000)]
    count = rows.count(rows[0])
    assert 1000 - 6 * 22.4 < count < 1000 + 6 * 22.4  # six standard deviations


# --- The ring ----------------------------------------------------------------------------------------------------


def test_the_oldest_are_forgotten():
    records = [random_record(CONNECT4, number, share=0.7) for number in range(8)]
    for max_positions in (1, 7, 40, 63, 64, 500):
        replay = Replay(CONNECT4, max_positions, use_symmetries=False)
        known: list[Any] = []
        num_bytes = replay.bytes
        for record in records:
            replay.add(record)
            known = [*known, *expected(CONNECT4, record, 0.0)][-max_positions:]
            assert len(replay) == len(known)
            assert set(rows_of(replay, count=30 * len(known))) == set(known)
        assert replay.bytes == num_bytes == max_positions * (24 + 2 * 7 + 4)


def test_a_replay_filled_from_the_end_of_the_games_draws_the_same():
    """Where in the ring the oldest lies depends on all that was ever added; what is drawn must not."""
    records = [random_record(CONNECT4, number) for number in range(20)]
    whole, end = Replay(CONNECT4, 100), Replay(CONNECT4, 100)
    for record in records:
        whole.add(record)
    for record in records[-8:]:
        end.add(record)
    assert len(whole) == len(end) == 100
    assert rows_of(whole) == rows_of(end)


def test_the_generator_decides_what_is_drawn():
    replay = filled_replay()
    assert rows_of(replay, seed=1) == rows_of(replay, seed=1)
    assert rows_of(replay, seed=1) != rows_of(replay, seed=2)
    first, second = (replay.sample(64, step_rng(3, step)).observations for step in (10, 11))
    assert not np.array_equal(first, second)


def test_a_step_has_its_own_random_numbers():
    """Philox keyed by (seed, step): what is drawn in one step does not depend on other steps."""
    assert step_rng(7, 3).integers(1 << 40, size=4).tolist() == step_rng(7, 3).integers(1 << 40, size=4).tolist()
    drawn = [tuple(step_rng(seed, step).integers(1 << 40, size=2)) for seed in range(20) for step in range(20)]
    assert len(set(drawn)) == 400
    assert isinstance(step_rng(2**64 - 1, 2**63).bit_generator, np.random.Philox)


# --- Forms -------------------------------------------------------------------------------------------------------


def test_a_batch_has_the_right_form():
    batch = filled_replay().sample(33, step_rng(0, 0))
    assert len(batch) == 33
    assert batch.observations.shape == (33, 2, 6, 7) and batch.observations.dtype == np.float32
    assert batch.policy.shape == batch.legal.shape == (33, 7)
    assert batch.policy.dtype == batch.value.dtype == np.float32 and batch.legal.dtype == np.bool_
    assert batch.value.shape == (33,)
    np.testing.assert_allclose(batch.policy.sum(1), 1.0, rtol=1e-6)
    assert not batch.policy[~batch.legal].any()


def test_a_value_per_player_begins_with_the_mover():
    scalar = Replay(CONNECT4, 1000, value_mix=0.25)
    both = Replay(CONNECT4, 1000, value_mix=0.25, is_per_player=True)
    for number in range(5):
        for replay in (scalar, both):
            replay.add(random_record(CONNECT4, number))
    one, two = (replay.sample(100, step_rng(0, 0)).value for replay in (scalar, both))
    assert two.shape == (100, 2)
    assert np.array_equal(two[:, 0], one) and np.array_equal(two[:, 1], -one)


# --- What does not fit -------------------------------------------------------------------------------------------


def test_an_empty_replay_says_so():
    with pytest.raises(TrainingError, match="empty"):
        Replay(CONNECT4, 10).sample(4, step_rng(0, 0))


def test_impossible_settings():
    with pytest.raises(ConfigError, match="max_positions must be at least 1"):
        Replay(CONNECT4, 0)
    with pytest.raises(ConfigError, match="value_mix"):
        Replay(CONNECT4, 10, value_mix=1.5)


def test_records_that_do_not_fit_are_refused_and_change_nothing():
    good = random_record(CONNECT4, 41)
    policy_of_full_column = good.policy.copy()
    policy_of_full_column[-1, :] = 0
    policy_of_full_column[0, 0] = np.nan
    illegal = np.array([3] * 7, np.uint16)
    bad = {
        "game 41 is not a game of connect4": dataclasses.replace(good, initial=b"12345678"),
        "ply 6: action 3 is not a legal move": GameRecord(
            41, illegal, good.initial, np.zeros(7, bool), np.zeros((0, 7), np.float16), np.zeros(7, np.float16),
            good.returns, (0, 0),
        ),
        "over 9 actions": random_record_of_other_width(good),
        "a policy that is not a distribution": dataclasses.replace(good, policy=policy_of_full_column),
        "values that are not finite numbers": dataclasses.replace(good, root_value=good.root_value * np.nan),
    }  # fmt: skip
    replay = filled_replay(num_games=2)
    before, size = rows_of(replay), len(replay)
    for reason, record in bad.items():
        with pytest.raises(TrainingError, match=reason):
            replay.add(record)
    assert len(replay) == size and rows_of(replay) == before


def random_record_of_other_width(record: GameRecord) -> GameRecord:
    return dataclasses.replace(record, policy=np.full((len(record.policy), 9), 1 / 9, np.float16))


def test_a_policy_for_an_illegal_move_is_refused():
    actions = np.array([0, 0, 0, 0, 0, 0, 1], np.uint16)  # column 1 is full before the last
    record = GameRecord(
        number=5,
        actions=actions,
        initial=b"",
        is_recorded=np.arange(7) == 6,
        policy=np.full((1, 7), 1 / 7, np.float16),
        root_value=np.zeros(7, np.float16),
        returns=np.zeros(2, np.float32),
        versions=(0, 0),
    )
    with pytest.raises(TrainingError, match="game 5 has a policy that is not a distribution over legal moves"):
        Replay(CONNECT4, 10).add(record)
