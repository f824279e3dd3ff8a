"""What goes into the replay on the device comes out with the right policy, result and side; self-play feeds it so."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from windrow import ConfigError, SearchConfig  # noqa: E402
from windrow import make_game as make_core_game  # noqa: E402
from windrow.tensor import TensorReplay, TensorSelfPlay, make_game  # noqa: E402
from windrow.tensor.game import like, rows  # noqa: E402
from windrow.tensor.play.openings import Openings  # noqa: E402
from windrow.tensor.play.selfplay import target_of, value_of  # noqa: E402
from windrow.tensor.result import TensorResult  # noqa: E402

CPU = torch.device("cpu")
NOTHING = 0.0


def make_replay(num_slots: int, num_rows: int, **settings: Any) -> TensorReplay:
    game, generator = make_game("tictactoe"), torch.Generator().manual_seed(1)
    return TensorReplay(game, num_slots, num_slots * num_rows, device=CPU, generator=generator, **settings)


def write_move(
    replay: TensorReplay,
    state: Any,
    actions: list[int],
    values: list[float],
    number: list[int],
    is_proven: list[bool] | None = None,
) -> Any:
    """Write positions whose target is the move that is played; returns those after it."""
    chosen = torch.tensor(actions)
    policy = torch.nn.functional.one_hot(chosen, 9).float()
    proven = None if is_proven is None else torch.tensor(is_proven)
    replay.write(state, policy, torch.tensor(values), torch.tensor(number), proven)
    return replay.game.step(state, chosen)


def drawn(replay: TensorReplay, batch_size: int = 400) -> dict[tuple[int, ...], tuple[int, float, float]]:
    """{stones of both on the nine squares: (action of the target, value, weight)} of a large batch."""
    batch = replay.sample(batch_size)
    boards: Any = batch.observations
    boards = (boards[:, 0] - boards[:, 1]).flatten(1).int().tolist()
    numbers = zip(batch.policy.argmax(1).tolist(), batch.value.tolist(), batch.weight.tolist(), strict=True)
    return dict(zip(map(tuple, boards), numbers, strict=True))


# X (player 0) takes the top row in five moves:   X X X
#                                                 O O .
#                                                 . . .
X_WINS = [0, 3, 1, 4, 2]
# O (player 1) takes the left column in six:      O X X
#                                                 O X .
#                                                 O . .
O_WINS = [1, 0, 2, 3, 4, 6]


def test_results_are_seen_by_the_player_to_move() -> None:
    replay = make_replay(2, 10)
    state = replay.game.initial(2)
    for ply, actions in enumerate(zip(X_WINS, O_WINS, strict=False)):
        state = write_move(replay, state, list(actions), [0.0, 0.0], [0, 0])
        is_over = torch.tensor([ply == 4, False])
        replay.finish(torch.tensor([0, 0]), is_over, torch.tensor([1.0, NOTHING]))
    assert len(replay) == 10
    replay.value_mix = 0.0
    found = drawn(replay)
    # The first game is over; the player to move sees own stones as 1. Both games began with an empty board.
    assert found[(1, 0, 0, -1, 0, 0, 0, 0, 0)] == (1, 1.0, 1.0)  # X is to move, and won
    assert found[(-1, -1, 0, 1, 0, 0, 0, 0, 0)] == (4, -1.0, 1.0)  # O is to move, and lost
    assert found[(1, 1, 0, -1, -1, 0, 0, 0, 0)] == (2, 1.0, 1.0)
    # The second goes on: nothing is to be learned from it yet.
    assert found[(0, -1, 0, 0, 0, 0, 0, 0, 0)][2] == 0.0
    state = write_move(replay, state, [0, O_WINS[5]], [0.0, 0.0], [1, 0])
    replay.finish(torch.tensor([1, 0]), torch.tensor([False, True]), torch.tensor([NOTHING, -1.0]))
    found = drawn(replay)
    assert found[(0, -1, 0, 0, 0, 0, 0, 0, 0)] == (0, 1.0, 1.0)  # O is to move, and won
    assert found[(1, -1, -1, 1, -1, 0, 0, 0, 0)] == (6, 1.0, 1.0)


def test_the_search_has_its_share_in_the_value() -> None:
    replay = make_replay(1, 4, value_mix=0.25)
    state = write_move(replay, replay.game.initial(1), [4], [0.2], [0])
    write_move(replay, state, [0], [-0.6], [0])
    replay.finish(torch.tensor([0]), torch.tensor([True]), torch.tensor([1.0]))
    found = drawn(replay, 50)
    assert found[(0,) * 9][1] == pytest.approx(0.75 * 1.0 + 0.25 * 0.2)
    assert found[(0, 0, 0, 0, -1, 0, 0, 0, 0)][1] == pytest.approx(0.75 * -1.0 + 0.25 * -0.6)


def test_a_proven_value_is_the_whole_target() -> None:
    replay = make_replay(1, 4, value_mix=0.25, prove=True)
    state = write_move(replay, replay.game.initial(1), [4], [0.2], [0], is_proven=[False])
    write_move(replay, state, [0], [0.5], [0], is_proven=[True])
    replay.finish(torch.tensor([0]), torch.tensor([True]), torch.tensor([1.0]))
    found = drawn(replay, 50)
    assert found[(0,) * 9][1] == pytest.approx(0.75 * 1.0 + 0.25 * 0.2)
    assert found[(0, 0, 0, 0, -1, 0, 0, 0, 0)][1] == 0.5
    assert replay.num_bytes == make_replay(1, 4).num_bytes + 4


def test_a_ring_that_goes_round_keeps_games_apart() -> None:
    """Room for three rows: games of one move each, whose results alternate, for six times the ring."""
    replay = make_replay(1, 3, value_mix=0.0)
    assert replay.max_games == 4
    for game in range(18):
        write_move(replay, replay.game.initial(1), [game % 9], [0.0], [game % 4])
        result = [1.0, 0.0, -1.0][game % 3]
        replay.finish(torch.tensor([game % 4]), torch.tensor([True]), torch.tensor([result]))
        assert len(replay) == min(game + 1, 3)
        batch = replay.sample(60)
        by_action = dict(zip(batch.policy.argmax(1).tolist(), batch.value.tolist(), strict=True))
        last_three = range(max(0, game - 2), game + 1)
        assert by_action == {past % 9: [1.0, 0.0, -1.0][past % 3] for past in last_three}
        assert bool((batch.weight == 1).all())


def test_an_empty_replay_gives_no_weight() -> None:
    assert make_replay(2, 5).sample(8).weight.tolist() == [0.0] * 8
    with pytest.raises(ConfigError, match="64 games in lock-step write 64 positions a move, but the replay holds 63"):
        TensorReplay(make_game("tictactoe"), 64, 63, device=CPU, generator=torch.Generator())


def test_images_are_those_of_the_game() -> None:
    symmetries = make_core_game("tictactoe").symmetries()
    replay = make_replay(1, 4, symmetries=symmetries)
    # X . .
    # . . O    X is to move, and takes the middle of the bottom row: all eight images differ.
    # . . .
    state = replay.game.step(replay.game.step(replay.game.initial(1), torch.tensor([0])), torch.tensor([5]))
    write_move(replay, state, [7], [0.0], [0])
    replay.finish(torch.tensor([0]), torch.tensor([True]), torch.tensor([1.0]))
    corners_edges = {(0, 5, 7), (2, 3, 7), (6, 5, 1), (8, 3, 1), (0, 7, 5), (2, 7, 3), (6, 1, 5), (8, 1, 3)}
    batch = replay.sample(300)
    seen = set[tuple[int, ...]]()
    boards: Any = batch.observations
    for board, policy, legal in zip(boards.flatten(2), batch.policy, batch.legal, strict=True):
        mine, theirs = board.argmax(1).tolist()
        seen.add((mine, theirs, int(policy.argmax())))
        assert board.sum() == 2 and not legal[mine] and not legal[theirs] and legal.sum() == 7
    assert seen == corners_edges
    with pytest.raises(ConfigError, match="symmetries of another game"):
        make_replay(1, 4, symmetries=make_core_game("connect4").symmetries())


def test_openings_are_random_and_never_over() -> None:
    game = make_game("connect4")
    generator = torch.Generator().manual_seed(0)
    openings = Openings(game, 12, num_slots=200, device=CPU, generator=generator)
    states, plies = openings.take(torch.ones(200, dtype=torch.bool))
    stones = game.observe(states).flatten(1).sum(1).to(torch.int64)
    assert torch.equal(stones, plies) and set(plies.tolist()) == set(range(13))
    assert not game.terminal(states).any()
    # Who does not want one does not take it: two that are taken follow each other in the bank.
    first, _ = openings.take(torch.tensor([False, True] + [False] * 198))
    second, _ = openings.take(torch.tensor([True] * 2 + [False] * 198))
    both, bank = torch.cat([first.occupied[1:2], second.occupied[:2]]), openings._bank.occupied
    assert torch.equal(both, bank[201:204]) and len(set(bank.tolist())) > 300


def test_values_of_a_gumbel_root_leave_out_rejected_moves() -> None:
    result = TensorResult(
        visits=torch.tensor([[6, 2, 0]], dtype=torch.int32),
        value_sum=torch.tensor([[3.0, -2.0, 0.0]], dtype=torch.float64),
        raw_prior=torch.tensor([[0.4, 0.4, 0.2]]),
        node_sum=torch.tensor([1.0], dtype=torch.float64),
        node_visits=torch.tensor([9], dtype=torch.int32),
        visits_before=torch.tensor([0], dtype=torch.int32),
        num_simulations=8,
        is_bad=torch.tensor([False]),
        temperature=1.0,
        improved_policy=torch.tensor([[0.6, 0.2, 0.2]]),
        chosen_action=torch.tensor([0]),
    )
    # (0.6 * 0.5 + 0.2 * -1) / 0.8: the third was never tried.
    assert value_of(result).tolist() == pytest.approx([0.125])
    assert target_of(result) is result.improved_policy


@pytest.mark.parametrize("root", ["gumbel", "puct"])
def test_selfplay_writes_whole_games(root: Any) -> None:
    """Rows of a slot are positions of games that follow each other, and results are those of their last move."""
    game = make_game("connect4", rows=4, columns=4, connect=3)
    generator = torch.Generator().manual_seed(3)
    slots, moves = 8, 40
    replay = TensorReplay(game, slots, slots * moves, device=CPU, generator=generator, value_mix=0.0)
    noise = {"gumbel_scale": 1.0} if root == "gumbel" else {"dirichlet_fraction": 0.25}
    selfplay = TensorSelfPlay(
        game,
        lambda boards: (torch.zeros(len(boards), 4), torch.zeros(len(boards))),
        SearchConfig(num_simulations=6, root=root, **noise),
        replay,
        device=CPU,
        generator=generator,
        budgets=[3],
        opening_plies=2,
        max_plies=9,
        temperature_plies=4,
    )
    for move in range(moves):
        selfplay.step(3 if move < 10 else 6)
    stats = selfplay.read_stats()
    assert selfplay.read_stats()["games"] == 0 and stats["bad_trees"] == 0
    num_games = num_moves = num_wins = num_draws = 0
    for slot in range(slots):
        states = like(game.initial(1), [kept[:, slot] for kept in replay._states])
        stones = game.observe(states).flatten(1).sum(1).tolist()
        numbers: list[int] = replay._number[:, slot].tolist()
        start = 0
        for row in range(1, moves):
            if numbers[row] == numbers[row - 1]:
                assert stones[row] == stones[row - 1] + 1
                continue
            assert numbers[row] == numbers[row - 1] + 1 and stones[row] <= 2 and row - start <= 9
            result = float(replay._results[numbers[row - 1], slot])
            before = rows(states, [row - 1] * 4)
            after = game.step(before, torch.arange(4))
            ends = game.returns(after)[:, 0][game.terminal(after) & game.legal(before).any(1)].tolist()
            assert result in ends or (result == 0.0 and row - start == 9)
            num_games, num_moves = num_games + 1, num_moves + row - start
            num_wins, num_draws = num_wins + (result > 0), num_draws + (result == 0)
            start = row
        goes_on = torch.isnan(replay._results[numbers[-1], slot])
        if not goes_on:  # its last move was the last of all
            num_games, num_moves = num_games + 1, num_moves + moves - start
            num_wins += float(replay._results[numbers[-1], slot]) > 0
            num_draws += float(replay._results[numbers[-1], slot]) == 0
    assert stats == {
        "games": num_games,
        "game_moves": num_moves,
        "first_player_wins": num_wins,
        "draws": num_draws,
        "bad_trees": 0,
    }
    assert num_games > 20 and num_wins > 3
    sums = replay._policy.float().sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums), atol=2e-3)
    with pytest.raises(ConfigError, match=r"made for 3, 6 simulations, not 5"):
        selfplay.step(5)
