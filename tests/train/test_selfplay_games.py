"""Self-play, records and replays of games with chance, with several players, and written in Python; and a short run."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_cases import finish, small_run

from windrow import CHANCE, TERMINAL, EvaluatorError, Search, SearchConfig, TrainingError, evaluators, make_game
from windrow.evaluators import HashEvaluator, RolloutEvaluator
from windrow.games import CoreGame, State
from windrow.play import make_player
from windrow.train import (
    GameLog,
    GameRecord,
    Replay,
    SelfPlay,
    SelfPlayConfig,
    TrainingRun,
    load_training,
    step_rng,
)

TOYS = Path(__file__).parents[1] / "search" / "toy_games.py"


def toy(name: str, **options: Any) -> CoreGame:
    return make_game(f"{TOYS}:{name}", **options)


GAMES: dict[str, Any] = {
    "pig": lambda: make_game("pig", target=25),
    "backgammon": lambda: make_game("backgammon"),
    "azul": lambda: make_game("azul"),
    "azul for three": lambda: make_game("azul", players=3),
    "three players": lambda: toy("TakeAway", heap=12),
    "two dice": lambda: toy("TwoDice"),
    "one player": lambda: toy("Reroll"),
    "lottery": lambda: toy("Lottery", rounds=3),
    "grown": lambda: toy("Grown", seed=5, players=3),
    "pig in Python": lambda: toy("PlainPig", target=25),
}
LONG = ("backgammon", "azul", "azul for three")
PUCT = SearchConfig(num_simulations=8, dirichlet_fraction=0.25)


def player(game: CoreGame, search: SearchConfig = PUCT, *, evaluator: Any = None, **settings: Any) -> SelfPlay:
    return SelfPlay(game, evaluator or HashEvaluator(3), search, SelfPlayConfig(**{"num_slots": 8, **settings}))


def few(name: str) -> int:
    return 3 if name in LONG else 12


def as_values(records: list[GameRecord]) -> dict[int, bytes]:
    return {record.number: record.to_bytes() for record in records}


def line_of(game: CoreGame, record: GameRecord) -> list[State]:
    """Every position of a recorded game, chance's among them, played move by move from its start."""
    moves, is_action = record.all_moves()
    states = [game.unpack_start(record.initial)]
    for move, of_player in zip(moves.tolist(), is_action.tolist(), strict=True):
        assert (game.to_play(states[-1]) == CHANCE) != of_player
        states.append(game.apply(states[-1], move))
    return states


# --- Records -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_records_are_games_by_the_rules(name: str):
    game = GAMES[name]()
    selfplay = player(game, full_fraction=0.6, opening_plies=3)
    records = list(selfplay.play(few(name)))
    has_chance = game.chance != "none"
    assert (sum(len(record.outcomes) for record in records) > 0) == has_chance
    for record in records:
        states = line_of(game, record)
        assert game.to_play(states[-1]) == TERMINAL
        assert record.returns.tolist() == pytest.approx(game.returns(states[-1]))
        assert record.returns.shape == (game.num_players,)
        moves, is_action = record.all_moves()
        assert moves[is_action].tolist() == record.actions.tolist()
        assert moves[~is_action].tolist() == record.outcomes.tolist()
        decisions = [state for state, of_player in zip(states, is_action.tolist(), strict=False) if of_player]
        policies = iter(record.policy.astype(np.float64))
        for state, is_recorded in zip(decisions, record.is_recorded.tolist(), strict=True):
            if is_recorded:
                policy = next(policies)
                assert abs(policy.sum() - 1) < 1e-2
                assert set(np.flatnonzero(policy).tolist()) <= set(game.legal_actions(state))
        assert np.abs(record.root_value.astype(np.float64)).max(initial=0.0) <= 1
    assert selfplay.stats.games >= len(records)


@pytest.mark.parametrize("name", GAMES)
def test_a_game_depends_on_its_number_alone(name: str):
    """Not on how many are played at once, on batches, threads or what came before: its dice belong to it."""
    settings: dict[str, Any] = {"full_fraction": 0.5, "opening_plies": 2}
    count = few(name)
    wide = as_values(list(player(GAMES[name](), num_slots=count, **settings).play(count, refill=False)))
    narrow = as_values(list(player(GAMES[name](), num_slots=2, **settings).play(count, refill=False)))
    assert wide == narrow
    config = PUCT.with_settings({"pipeline": 2, "max_batch": 3, "num_threads": 2})
    assert as_values(list(player(GAMES[name](), config, num_slots=5, **settings).play(count, refill=False))) == wide
    later = SelfPlay(
        GAMES[name](), HashEvaluator(3), PUCT, SelfPlayConfig(num_slots=3, **settings), next_game=count - 2
    )
    assert as_values(list(later.play(2, refill=False))) == {number: wide[number] for number in range(count - 2, count)}
    other = player(GAMES[name](), PUCT.replace(seed=1), num_slots=count, **settings)
    assert as_values(list(other.play(count, refill=False))) != wide


def test_games_have_dice_of_their_own():
    """Pig, in which there is nothing to choose at first: the first rolls of sixty games are fair and not alike."""
    records = list(player(make_game("pig"), num_slots=20).play(60, refill=False))
    first = [int(record.outcomes[0]) for record in records]
    assert set(first) == {1, 2, 3, 4, 5, 6}
    assert len({record.outcomes[:8].tobytes() for record in records}) > 55
    backgammon = make_game("backgammon")
    starts = {record.initial for record in player(backgammon, num_slots=12).play(12, refill=False)}
    assert len(starts) > 8, "who begins and with which roll is drawn before the first move"
    assert all(backgammon.to_play(backgammon.unpack_start(start)) >= 0 for start in starts)


@pytest.mark.parametrize("name", ["pig", "two dice", "azul for three", "three players"])
def test_without_noise_a_game_is_what_search_and_advance_play(name: str):
    """Move for move, with the subtree kept through actions and chance: the keys of the search's draws are self-play's.

    Tree 0 of a search of its own has the key (seed, 0, number of searches before), as game 0 has (seed, 0, ply).
    """
    game = GAMES[name]()
    config = SearchConfig(num_simulations=12, leaves_per_tree=1)
    record = next(player(game, config, num_slots=1, temperature_plies=0).play(1, refill=False))
    search = Search(game, HashEvaluator(3), config)
    result = search.run(game.unpack_start(record.initial))
    ply = 0
    for move, is_action in zip(*(array.tolist() for array in record.all_moves()), strict=True):
        if is_action:
            assert move == result.best_action
            assert record.policy[ply].tolist() == (result.visits / result.visits.sum()).astype(np.float16).tolist()
            assert record.root_value[ply] == np.float16(result.value)
            ply += 1
        search.advance(move)
        if game.to_play(search.states[0]) >= 0:
            result = search.run()
    assert ply == len(record)


@pytest.mark.parametrize("name", ["pig", "backgammon", "two dice", "lottery", "grown"])
def test_after_an_error_the_same_games_go_on(name: str):
    """What an evaluator's error undoes is searched again with the same draws: the games are those without the error."""
    game = GAMES[name]()
    inner = HashEvaluator(3).bind(game)
    calls = 0

    def fail_twice(observations: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls in (3, 9):
            raise RuntimeError("out of luck")
        return inner.evaluate(observations)

    count = few(name)
    selfplay = player(game, evaluator=evaluators.from_function(fail_twice, batched=True))
    records: list[GameRecord] = []
    for _ in range(2):
        with pytest.raises(EvaluatorError, match="out of luck"):
            records.extend(selfplay.play(count - len(records)))
    records += list(selfplay.play(count - len(records)))
    assert as_values(records) == as_values(list(player(game).play(count)))


def test_other_ways_to_play():
    """A Gumbel root, fresh trees, a cache, rollouts, a limit to the moves: all of it with dice and three players."""
    for name in ("pig", "three players", "grown", "lottery"):
        game = GAMES[name]()
        gumbel = SearchConfig(num_simulations=8, root="gumbel", gumbel_scale=1.0, gumbel_considered=4)
        for config, settings in (
            (gumbel, {}),
            (PUCT, {"reuse_tree": False}),
            (PUCT.replace(cache_memory=1 << 20), {}),
            (PUCT, {"max_plies": 2}),
        ):
            records = list(player(game, config, **settings).play(8, refill=False))
            for record in records:
                states = line_of(game, record)
                if settings.get("max_plies") and game.to_play(states[-1]) != TERMINAL:
                    assert len(record) == 2 and not record.returns.any()
                else:
                    assert record.returns.tolist() == pytest.approx(game.returns(states[-1]))
        assert len(list(player(game, evaluator=RolloutEvaluator(2)).play(5))) == 5


def test_a_cache_changes_no_game():
    for name in ("pig", "azul for three", "grown"):
        plain = as_values(list(player(GAMES[name]()).play(4, refill=False)))
        cached = player(GAMES[name](), PUCT.replace(cache_memory=1 << 22))
        assert as_values(list(cached.play(4, refill=False))) == plain


def test_a_twin_in_python_plays_the_same_games():
    """Pig in C++ and in Python: the same moves, the same dice, the same policies."""
    built_in = list(player(GAMES["pig"]()).play(10, refill=False))
    plain = list(player(GAMES["pig in Python"]()).play(10, refill=False))
    assert built_in == plain
    assert [record.moves_key for record in plain] == [record.moves_key for record in built_in]
    assert len({record.moves_key for record in plain}) == 10, "no two games are alike"
    assert all(record.initial == b"" for record in plain), "no moves led there"


# --- Bytes -------------------------------------------------------------------------------------------------------


@given(
    plies=st.lists(st.integers(0, 5), max_size=9),
    outcomes=st.data(),
    initial=st.binary(max_size=16),
    returns=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=6),
)
def test_a_record_with_chance_comes_back_as_it_was(
    plies: list[int], outcomes: Any, initial: bytes, returns: list[float]
):
    drawn = outcomes.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=len(plies), max_size=len(plies)))
    record = GameRecord(
        number=3,
        actions=np.arange(5, dtype=np.uint16),
        initial=initial,
        is_recorded=np.array([True, False, True, False, True]),
        policy=np.full((3, 7), 1 / 7, np.float16),
        root_value=np.linspace(-1, 1, 5).astype(np.float16),
        returns=np.array(returns, np.float32),
        versions=(1, 2),
        outcomes=np.array(drawn, np.int64),
        outcome_plies=np.array(sorted(plies), np.uint32),
    )
    again = GameRecord.from_bytes(record.to_bytes())
    assert again == record
    assert again.outcomes.tolist() == drawn and again.outcome_plies.tolist() == sorted(plies)
    moves, is_action = again.all_moves()
    assert moves[is_action].tolist() == [0, 1, 2, 3, 4] and moves[~is_action].tolist() == drawn
    # Before an outcome stand as many actions as its ply says.
    before = np.cumsum(is_action)[~is_action] if len(plies) else np.zeros(0)
    assert before.tolist() == sorted(plies)
    data = record.to_bytes()
    for length in range(len(data)):
        with pytest.raises(ValueError, match="bytes"):
            GameRecord.from_bytes(data[:length])
    with pytest.raises(ValueError, match="bytes"):
        GameRecord.from_bytes(data + b"\0")


def test_all_moves_in_the_order_in_which_they_came():
    """Chance twice before the first move, once after the second, and at the end."""
    record = GameRecord(
        number=0,
        actions=np.array([10, 11, 12], np.uint16),
        initial=b"",
        is_recorded=np.zeros(3, bool),
        policy=np.zeros((0, 20), np.float16),
        root_value=np.zeros(3, np.float16),
        returns=np.zeros(2, np.float32),
        versions=(0, 0),
        outcomes=np.array([-1, -2, -3, -4], np.int64),
        outcome_plies=np.array([0, 0, 2, 3], np.uint32),
    )
    moves, is_action = record.all_moves()
    assert moves.tolist() == [-1, -2, 10, 11, -3, 12, -4]
    assert is_action.tolist() == [False, False, True, True, False, True, False]
    for plies in ([0, 0, 2, 4], [0, 2, 1, 3], [0, 0, 2]):
        with pytest.raises(ValueError, match="outcomes of chance do not lie within a game of 3 moves"):
            dataclasses.replace(record, outcome_plies=np.array(plies, np.uint32))


def test_a_record_is_laid_out_as_it_says():
    """By hand: two moves of a game with three actions, the second recorded, after one move that was not played.

    Header: format 4, number 5, 2 moves, 1 recorded, 3 actions, 8 bytes for the start, 2 players, versions 7 and 8,
    nobody resigned. Then one outcome of chance (u32: after 1 move, i64: 6), the start (i64: 4), the moves (u16), the
    bits of what is recorded (01 from the left: 64) and of what is proven (10: 128), the policy (f16: 0, .5, .5), the
    values (f16: 1, -1) and the
    returns (f32: 1, -1); all little-endian.
    """
    header = struct.pack("<HQIIIIHQQh", 4, 5, 2, 1, 3, 8, 2, 7, 8, -1)
    body = struct.pack("<IIq", 1, 1, 6) + struct.pack("<q", 4)
    body += struct.pack("<HH", 2, 1) + bytes([64, 128]) + struct.pack("<eee", 0, 0.5, 0.5)
    body += struct.pack("<ee", 1, -1) + struct.pack("<ff", 1, -1)
    record = GameRecord.from_bytes(header + body)
    assert (record.number, record.initial, record.versions, record.resigned_by) == (5, struct.pack("<q", 4), (7, 8), -1)
    assert record.actions.tolist() == [2, 1] and record.is_recorded.tolist() == [False, True]
    assert record.is_proven.tolist() == [True, False]
    assert record.policy.tolist() == [[0, 0.5, 0.5]] and record.root_value.tolist() == [1, -1]
    assert record.returns.tolist() == [1, -1]
    assert record.outcomes.tolist() == [6] and record.outcome_plies.tolist() == [1]
    assert record.to_bytes() == header + body
    for kind, writer in ((3, "a windrow before 0.2"), (5, "a newer windrow")):
        with pytest.raises(ValueError, match=f"format {kind}, which only {writer} can read"):
            GameRecord.from_bytes(struct.pack("<H", kind) + (header + body)[2:])
    for length in range(len(header + body)):
        with pytest.raises(ValueError, match="bytes"):
            GameRecord.from_bytes((header + body)[:length])


@pytest.mark.parametrize("name", GAMES)
def test_games_are_kept_in_logs(name: str, tmp_path: Path):
    records = list(player(GAMES[name](), opening_plies=2).play(3, refill=False))
    with GameLog(tmp_path / "games") as log:
        for record in records:
            log.append(record)
    read = GameLog.read(tmp_path / "games")
    assert read == records
    game = GAMES[name]()
    for record in read:
        assert game.to_play(line_of(game, record)[-1]) == TERMINAL


# --- Replays -----------------------------------------------------------------------------------------------------


def flat(observation: Any) -> bytes:
    parts = observation.values() if isinstance(observation, dict) else [observation]
    return b"".join(np.ascontiguousarray(part, np.float32).tobytes() for part in parts)


@pytest.mark.parametrize("value_mix", [0.0, 0.25])
@pytest.mark.parametrize("name", GAMES)
def test_a_replay_gives_what_was_played(name: str, value_mix: float):
    """Every row is a position of a game: its observation, policy, legal moves, and the result from its seat on."""
    game = GAMES[name]()
    records = list(player(game, full_fraction=0.7, opening_plies=2).play(few(name), refill=False))
    replay = Replay(game, 100_000, value_mix=value_mix)
    expected = set()
    for record in records:
        states = line_of(game, record)
        is_action = record.all_moves()[1].tolist()
        decisions = [state for state, of_player in zip(states, is_action, strict=False) if of_player]
        policies = iter(record.policy.astype(np.float32))
        for state, is_recorded, searched in zip(decisions, record.is_recorded, record.root_value, strict=True):
            if not is_recorded:
                continue
            mover = game.to_play(state)
            values = np.roll(record.returns, -mover)
            values[0] = np.float32(1 - value_mix) * values[0] + np.float32(value_mix) * np.float32(searched)
            policy = next(policies)
            legal = np.zeros(game.num_actions, bool)
            legal[game.legal_actions(state)] = True
            seen = values if game.num_values > 1 else values[:1]
            expected.add(
                (flat(game.observe(state)), (policy / policy.sum()).tobytes(), legal.tobytes(), seen.tobytes())
            )
        assert replay.add(record) == int(record.is_recorded.sum())
    assert len(replay) == sum(len(record.policy) for record in records)
    batch = replay.sample(400, step_rng(1, 2))
    assert batch.value.shape == ((400, game.num_players) if game.num_values > 1 else (400,))
    parts = batch.observations if isinstance(batch.observations, dict) else {"": batch.observations}
    shapes = game.observation if isinstance(game.observation, dict) else {"": game.observation}
    assert {part: array.shape for part, array in parts.items()} == {p: (400, *shape) for p, shape in shapes.items()}
    for row in range(400):
        observation = b"".join(array[row].tobytes() for array in parts.values())
        legal, value = batch.legal[row], np.atleast_1d(batch.value[row])
        drawn = (observation, batch.policy[row].tobytes(), legal.tobytes(), value.tobytes())
        assert drawn in expected
        assert not batch.policy[row][~legal].any()


def test_the_values_of_three_are_seen_from_the_mover_on():
    """By hand: two sticks, three players. 0 takes one, 1 takes the last: results -1/4, 1 and -1.

    At the first position 0 moves: (-1/4, 1, -1). At the second 1 moves: from 1 on, (1, -1, -1/4).
    """
    game = toy("TakeAway", heap=2)
    record = GameRecord(
        number=0,
        actions=np.array([0, 0], np.uint16),
        initial=b"",
        is_recorded=np.ones(2, bool),
        policy=np.array([[0.5, 0.5, 0], [1, 0, 0]], np.float16),
        root_value=np.zeros(2, np.float16),
        returns=np.array([-0.25, 1, -1], np.float32),
        versions=(0, 0),
    )
    replay = Replay(game, 10)
    replay.add(record)
    batch = replay.sample(50, step_rng(0, 0))
    seen = {(tuple(o), tuple(v)) for o, v in zip(batch.observations.tolist(), batch.value.tolist(), strict=True)}
    assert seen == {((0, 0, 1), (-0.25, 1, -1)), ((0, 1, 0), (1, -1, -0.25))}


@pytest.mark.parametrize("name", ["pig", "backgammon", "azul", "two dice", "lottery", "pig in Python"])
def test_a_record_with_impossible_dice_is_refused(name: str):
    game = GAMES[name]()
    record = next(player(game).play(1, refill=False))
    replay = Replay(game, 1000)
    wrong = record.outcomes.copy()
    wrong[len(wrong) // 2] = 10**15
    for bad in (
        dataclasses.replace(record, outcomes=wrong),
        dataclasses.replace(record, outcome_plies=np.zeros_like(record.outcome_plies)),  # all before the first move
    ):
        with pytest.raises(TrainingError, match="game 0 is not a game of"):
            replay.add(bad)
        assert len(replay) == 0
    assert replay.add(record) == len(record.policy)


# --- A run -------------------------------------------------------------------------------------------------------


SHORT: dict[str, Any] = {
    "games_per_iteration": 12,
    "min_positions": 40,
    "samples_per_position": 2.0,
    "search": {"num_simulations": 8},
    "selfplay": {"num_slots": 8},
    "replay": {"max_positions": 2000},
}


@pytest.mark.parametrize(
    ("name", "options", "num_values"),
    [("pig", {"target": 25}, 1), (f"{TOYS}:TakeAway", {"heap": 9}, 3), (f"{TOYS}:TwoDice", {}, 1)],
    ids=["pig", "three players", "two dice"],
)
def test_a_run_learns_saves_and_plays(name: str, options: dict[str, Any], num_values: int, tmp_path: Path):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(**SHORT, game=name, game_options=options)))
    game = make_game(name, **options)
    saved = load_training(folder, game=game)
    assert saved.counters["iteration"] == 3 and saved.counters["games"] == 36 and saved.counters["steps"] > 0
    assert game.num_values == num_values
    trained = make_player(game, f"{folder}:sims=10,backend=torch")
    state = game.initial_state()
    while (mover := game.to_play(state)) != TERMINAL:
        if mover == CHANCE:
            state = game.apply(state, game.sample_outcome(state, 2**63))
            continue
        (action,) = trained.choose([state])
        assert action in game.legal_actions(state)
        state = game.apply(state, action)
    trained.close()
    again = TrainingRun.resume(folder, {"num_iterations": 4}, game=game)
    assert len(again.strategy.replay) > 0
    finish(again)
    assert load_training(folder, game=game).counters["iteration"] == 4


def test_a_deterministic_run_with_dice_is_the_same_again(tmp_path: Path):
    games = []
    for number in range(2):
        config = small_run(**SHORT, game="pig", game_options={"target": 25}, deterministic=True, num_iterations=2)
        folder = finish(TrainingRun.create(tmp_path / f"run{number}", config))
        games.append([GameLog.read(path) for path in sorted((folder / "games").iterdir())])
    assert games[0] == games[1]
