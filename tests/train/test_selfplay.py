"""Self-play: real games by the rules, keyed by their number, no idle slots; playout caps, openings, resignation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from windrow import TERMINAL, ConfigError, EvaluatorError, PredictionCache, Search, SearchConfig, evaluators, make_game
from windrow.evaluators import HashEvaluator
from windrow.train import GameRecord, SelfPlay, SelfPlayConfig
from windrow.train.resignation import Resignation, Watch

PUCT = SearchConfig(num_simulations=20, dirichlet_fraction=0.25)
GUMBEL = SearchConfig(num_simulations=20, root="gumbel", gumbel_scale=1.0, gumbel_considered=4)


def player(search: SearchConfig = PUCT, *, game: str = "connect4", evaluator: Any = None, **settings: Any) -> SelfPlay:
    made = make_game(game)
    return SelfPlay(made, evaluator or HashEvaluator(3), search, SelfPlayConfig(**{"num_slots": 16, **settings}))


def as_values(records: list[GameRecord]) -> dict[int, bytes]:
    return {record.number: record.to_bytes() for record in records}


@pytest.mark.parametrize("search", [PUCT, GUMBEL], ids=["puct", "gumbel"])
@pytest.mark.parametrize("game", ["connect4", "tictactoe", "othello"])
def test_records_are_games_by_the_rules(game: str, search: SearchConfig):
    selfplay = player(search, game=game, full_fraction=0.6, opening_plies=3)
    records = list(selfplay.play(30))
    assert len(records) == 30 <= selfplay.stats.games
    rules = selfplay.game
    for record in records:
        state = rules.unpack_start(record.initial)
        policies = iter(record.policy)
        for action, is_recorded in zip(record.actions.tolist(), record.is_recorded.tolist(), strict=True):
            legal = rules.legal_actions(state)
            assert action in legal
            if is_recorded:
                policy = next(policies).astype(np.float64)
                assert abs(policy.sum() - 1) < 5e-3
                assert not policy[[other for other in range(rules.num_actions) if other not in legal]].any()
            state = rules.apply(state, action)
        assert rules.to_play(state) == TERMINAL
        assert record.returns.tolist() == rules.returns(state)
        assert np.abs(record.root_value.astype(np.float64)).max() <= 1
    assert len({record.number for record in records}) == 30


@pytest.mark.parametrize("search", [PUCT, GUMBEL], ids=["puct", "gumbel"])
def test_a_game_depends_on_its_number_alone(search: SearchConfig):
    """Not on how many are played at once, nor on which came before."""
    settings: dict[str, Any] = {"full_fraction": 0.5, "opening_plies": 4}
    wide = as_values(list(player(search, num_slots=40, **settings).play(40, refill=False)))
    narrow = as_values(list(player(search, num_slots=3, **settings).play(40, refill=False)))
    assert wide == narrow
    later = SelfPlay(
        make_game("connect4"), HashEvaluator(3), search, SelfPlayConfig(num_slots=5, **settings), next_game=30
    )
    assert as_values(list(later.play(10, refill=False))) == {number: wide[number] for number in range(30, 40)}
    assert list(wide) != list(narrow)  # they finish in another order


def test_pipelined_play_is_the_same_play():
    config = PUCT.with_settings({"pipeline": 3, "max_batch": 5})
    plain = as_values(list(player(num_slots=12).play(20, refill=False)))
    assert as_values(list(player(config, num_slots=12).play(20, refill=False))) == plain


def test_without_noise_a_game_is_what_search_and_advance_play():
    """The first game, move for move: a Search with the tree kept from move to move."""
    search_config = SearchConfig(num_simulations=30, leaves_per_tree=1)
    record = next(player(search_config, num_slots=1, temperature_plies=0).play(1))
    game = make_game("connect4")
    search = Search(game, HashEvaluator(3), search_config)
    result = search.run(game.initial_state())
    for ply, action in enumerate(record.actions.tolist()):
        assert action == result.best_action
        expected = (result.visits / result.visits.sum()).astype(np.float16)
        assert record.policy[ply].tolist() == expected.tolist()
        assert record.root_value[ply] == np.float16(result.value)
        search.advance(action)
        if ply + 1 < len(record.actions):
            result = search.run()


def test_searches_that_need_no_evaluation_go_on():
    """With everything in the cache no batch has a row, and games are played to the end all the same."""
    config = PUCT.replace(cache_memory=1 << 24, dirichlet_fraction=0.0)
    selfplay = player(config, game="tictactoe", temperature_plies=0, num_slots=4)
    list(selfplay.play(40))
    before = selfplay.stats.nn_positions
    records = list(selfplay.play(40))
    assert len(records) == 40
    assert selfplay.stats.nn_positions == before


def test_a_cache_shared_by_two_evaluators_keeps_them_apart():
    cache = PredictionCache(1 << 22)
    for seed in (1, 2):
        game, config = make_game("connect4"), SelfPlayConfig(num_slots=8)
        shared = SelfPlay(game, HashEvaluator(seed), PUCT, config, cache=cache).play(8, refill=False)
        alone = SelfPlay(game, HashEvaluator(seed), PUCT, config).play(8, refill=False)
        assert as_values(list(shared)) == as_values(list(alone))


def test_slots_are_never_idle():
    """From the first batch on every slot has a row, except where a move needs no evaluation."""
    selfplay = player(num_slots=32)
    list(selfplay.play(200))
    assert selfplay.stats.batch_fill > 0.97
    assert selfplay.num_in_progress == 32


def test_playout_caps():
    selfplay = player(PUCT.replace(num_simulations=40), full_fraction=0.25, fast_simulations=5, reuse_tree=False)
    records = list(selfplay.play(120))
    moves = sum(len(record.actions) for record in records)
    recorded = sum(len(record.policy) for record in records)
    assert abs(recorded / moves - 0.25) < 0.05
    # Whatever was begun is counted: a quarter of 40 and three quarters of 5 a move.
    per_move = selfplay.stats.simulations / selfplay.stats.moves
    assert abs(per_move - (0.25 * 40 + 0.75 * 5)) < 1.5
    # A policy of 40 fresh visits is a multiple of 1/40.
    shares = np.concatenate([record.policy.ravel() for record in records]).astype(np.float64) * 40
    assert np.abs(shares - np.rint(shares)).max() < 0.03


def test_openings_are_drawn_and_not_recorded():
    records = list(player(opening_plies=4, num_slots=64).play(200, refill=False))
    game = make_game("connect4")
    starts = {game.unpack_start(record.initial) for record in records}
    assert game.initial_state() in starts and len(starts) > 40
    assert {len(record.initial) // 8 for record in records} == {0, 1, 2, 3, 4}, "moves"


def test_temperature_zero_repeats_itself_and_that_is_noticed():
    selfplay = player(SearchConfig(num_simulations=16), temperature_plies=0)
    list(selfplay.play(20, refill=False))
    assert selfplay.stats.repeated_games == 19
    varied = player(temperature_plies=30, num_slots=20)
    list(varied.play(20, refill=False))
    assert varied.stats.repeated_games == 0


def test_a_gumbel_root_without_noise_is_warned_of():
    """It is the default of a search that is to play its best, and no way to play against itself."""
    quiet = GUMBEL.replace(gumbel_scale=0.0)
    with pytest.warns(UserWarning, match="self-play repeats one game.* set gumbel_scale=1") as caught:
        selfplay = player(quiet)
    assert len(caught) == 1
    games = {tuple(record.actions.tolist()) for record in selfplay.play(8, refill=False)}
    assert len(games) == 1 and selfplay.stats.repeated_games == 7
    selfplay = player(GUMBEL)  # warnings are errors here
    assert len({tuple(record.actions.tolist()) for record in selfplay.play(8, refill=False)}) == 8


def test_a_longest_game_is_a_draw():
    records = list(player(max_plies=5).play(10))
    assert all(len(record.actions) <= 5 for record in records)
    assert any(len(record.actions) == 5 and not record.returns.any() for record in records)


def test_weights_may_change_between_games():
    """An evaluator whose version rises: records say from which to which weights they were played."""

    class Changing:
        version = 0

        def __init__(self) -> None:
            self._inner = HashEvaluator(1).bind(make_game("connect4"))

        def evaluate(self, observations: Any) -> Any:
            return self._inner.evaluate(observations)

        def submit(self, observations: Any) -> Any:
            return self._inner.submit(observations)

    changing = Changing()
    selfplay = SelfPlay(
        make_game("connect4"),
        changing,
        PUCT.replace(cache_memory=1 << 20),
        SelfPlayConfig(num_slots=8),
        first_version=5,
    )
    records = []
    for record in selfplay.play(40):
        records.append(record)
        changing.version += 1
    assert records[0].versions == (5, 5)
    assert all(first <= last for first, last in (record.versions for record in records))
    assert records[-1].versions[1] > 30


def test_after_an_error_play_goes_on():
    calls = 0
    inner = HashEvaluator(3).bind(make_game("connect4"))

    def fail_once(observations: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 30:
            raise RuntimeError("out of luck")
        return inner.evaluate(observations)

    selfplay = player(evaluator=evaluators.from_function(fail_once, batched=True))
    records: list[GameRecord] = []
    with pytest.raises(EvaluatorError, match="out of luck"):
        records.extend(selfplay.play(30))
    records += list(selfplay.play(30 - len(records)))
    assert as_values(records) == as_values(list(player().play(30)))


def test_not_a_number_names_the_position():
    def fn(observations: Any) -> Any:
        return np.full((len(observations), 7), np.nan, np.float32), np.zeros(len(observations), np.float32)

    with pytest.raises(EvaluatorError, match="the logit of legal action"):
        next(player(evaluator=evaluators.from_function(fn, batched=True)).play(1))


@pytest.mark.parametrize("engine", ["vectorized", "multiprocess"])
def test_play_ends_when_it_is_told_to_though_no_game_ends(engine: Any):
    search = SearchConfig(num_simulations=2000, dirichlet_fraction=0.25, engine=engine)
    selfplay = SelfPlay(make_game("tictactoe"), HashEvaluator(3), search, SelfPlayConfig(num_slots=1))
    answers = iter([False, False, True])
    assert list(selfplay.play(10, until=lambda: next(answers))) == []
    assert selfplay.num_in_progress >= 1
    assert len(list(selfplay.play(2))) == 2  # it goes on
    selfplay.close()


@pytest.mark.parametrize("engine", ["vectorized", "multiprocess"])
def test_a_play_that_was_left_does_not_disturb_the_next(engine: Any):
    """As after an error in the body of a loop: the traceback keeps the iterator for a while."""
    selfplay = player(PUCT.with_settings({"engine": engine, "pipeline": 2}))
    left = selfplay.play(60)
    records = [next(left), *selfplay.play(10)]
    with pytest.raises(ConfigError, match=r"this play\(\) is over"):
        records.extend(left)
    records += list(selfplay.play(10))
    numbers = [record.number for record in records]
    assert len(set(numbers)) == len(numbers) >= 21
    plain = as_values(list(player().play(max(numbers) + 1, refill=False)))
    assert all(plain[record.number] == record.to_bytes() for record in records)
    selfplay.close()


def test_dropping_games():
    selfplay = player()
    list(selfplay.play(3))
    assert selfplay.num_in_progress == 16
    selfplay.drop_games()
    assert selfplay.num_in_progress == 0
    assert len(list(selfplay.play(20, refill=False))) == 20
    assert selfplay.num_in_progress == 0


def test_bad_settings():
    with pytest.raises(ConfigError, match="needs a fixed number of simulations"):
        player(SearchConfig(num_simulations=None, time_limit_s=1.0))
    with pytest.raises(
        ConfigError, match=r"sequential engine has no self-play backend. Set engine to .*\"vectorized\""
    ):
        player(SearchConfig(engine="sequential"))
    with pytest.raises(ConfigError, match=r"windrow train GAME --engine tensor\)\. Set engine to .*\"vectorized\""):
        player(SearchConfig(engine="tensor"))
    with pytest.raises(ConfigError, match="resign_check_fraction"):
        player(resign_below=-0.9, resign_check_fraction=0.0)
    with pytest.raises(ConfigError, match=r"no setting 'num_slot'.*num_slots"):
        SelfPlayConfig(num_slot=3)  # pyright: ignore[reportCallIssue]
    selfplay = player()
    next(selfplay.play(1))
    with pytest.raises(ConfigError, match="games are in progress"):
        selfplay.play(1, refill=False)
    with pytest.raises(ConfigError, match="at least 1"):
        selfplay.play(0)


# --- Resignation -------------------------------------------------------------------------------------------------


def watched(values: list[float], *, is_checked: bool = True) -> Watch:
    resignation = Resignation(-0.5, patience=2, max_error=0.05)
    watch = Watch(is_checked)
    for value in values:
        resignation.would_resign(watch, 0, value)
    return watch


def test_the_margin_is_the_lowest_of_the_higher_of_two_in_a_row():
    assert watched([-0.2, -0.9, -0.3, -0.8, -0.7]).lowest[0] == -0.7
    assert watched([-0.9]).lowest[0] == 1.0  # one move is not two in a row


def test_the_threshold_keeps_wrong_resignations_rare():
    resignation = Resignation(-0.5, patience=1, max_error=0.1)
    rng = np.random.default_rng(0)
    assert resignation.threshold is None
    # Players who did not lose saw values as low as these.
    for value in rng.uniform(-1.0, 0.5, 100):
        watch = Watch(is_checked=True)
        resignation.would_resign(watch, 0, float(value))
        resignation.learn(watch, [1.0, -1.0])
    margins = np.array(resignation.margins)
    assert len(margins) == 100
    assert resignation.threshold is not None
    assert (margins < resignation.threshold).mean() <= 0.1
    assert resignation.threshold < -0.8
    again = Resignation(-0.5, patience=1, max_error=0.1, margins=resignation.margins)
    assert again.threshold == resignation.threshold


def test_lost_games_are_given_up_and_checked_ones_are_not():
    """With random values many players who do not lose look lost for a while: the threshold follows."""
    selfplay = player(
        SearchConfig(num_simulations=32, dirichlet_fraction=0.25),
        evaluator=evaluators.RolloutEvaluator(4, seed=1),
        num_slots=32,
        resign_below=-0.3,
        resign_patience=1,
        resign_check_fraction=0.5,
        resign_max_error=0.2,
    )
    records = list(selfplay.play(300))
    resignation = selfplay.resignation
    assert resignation.threshold is not None and resignation.threshold <= -0.3
    given_up = [record for record in records if record.resigned_by >= 0]
    assert len(given_up) == selfplay.stats.resigned_games > 10
    for record in given_up:
        assert record.returns[record.resigned_by] == -1 and record.returns.sum() == 0
    # The threshold of a moment is set by what came before; over the whole run the share is near the bound.
    assert resignation.num_wrong / resignation.num_checked < 0.3
    assert len(given_up) < 0.6 * len(records)  # half of the games are played out
