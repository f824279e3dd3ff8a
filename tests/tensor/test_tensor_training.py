"""Training with everything on the device, here the CPU: learner, copy of the weights, runs, the solved positions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow import ConfigError, Search, SearchConfig, TrainingError, WindrowError, make_game  # noqa: E402
from windrow.evaluators import TorchEvaluator  # noqa: E402
from windrow.games.protocol import TERMINAL  # noqa: E402
from windrow.nets import ResNet, fold  # noqa: E402
from windrow.play.solved import solved_positions  # noqa: E402
from windrow.tensor import TensorReplay  # noqa: E402
from windrow.tensor import make_game as make_tensor_game  # noqa: E402
from windrow.tensor.games import GAMES  # noqa: E402
from windrow.train import (  # noqa: E402
    Learner,
    LearnerConfig,
    TrainConfig,
    TrainingRun,
    config_for,
    load_model,
    read_metrics,
)
from windrow.train.device import DeviceTraining, budgets_of  # noqa: E402
from windrow.train.inference_copy import InferenceCopy  # noqa: E402
from windrow.train.replay import Batch  # noqa: E402
from windrow.train.strength import StrengthTest  # noqa: E402
from windrow.train.tensor_learner import TensorLearner  # noqa: E402
from windrow.train.tensor_solved import TensorSolvedTest, states_after  # noqa: E402

CPU = torch.device("cpu")
ON_THE_CPU: dict[str, Any] = {"search.engine": "tensor", "search.engine.device": "cpu"}
SMALL: dict[str, Any] = {
    **ON_THE_CPU,
    "num_iterations": 2,
    "games_per_iteration": 16,
    "min_positions": 64,
    "network.channels": 8,
    "network.blocks": 1,
    "search.num_simulations": 4,
    "selfplay.num_slots": 16,
    "replay.max_positions": 320,
    "learner.batch_size": 16,
    "learner.precision": "f32",
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors are small here: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make_training(folder: Path, game: str = "tictactoe", **overrides: Any) -> TrainingRun:
    return TrainingRun.create(folder, config_for(make_game(game), {**SMALL, **overrides}))


# --- Parts ------------------------------------------------------------------------------------------------------------


def test_learns_as_the_learner_on_the_host_does() -> None:
    """One position, drawn again and again, and a second one whose game goes on."""
    game, tensor_game = make_game("tictactoe"), make_tensor_game("tictactoe")
    generator = torch.Generator().manual_seed(0)
    replay = TensorReplay(tensor_game, 2, 2, device=CPU, generator=generator, value_mix=0.0)
    policy = torch.tensor([[0.5, 0.25, 0.25, 0, 0, 0, 0, 0, 0]] * 2)
    state = tensor_game.step(tensor_game.initial(2), torch.tensor([8, 7]))
    replay.write(state, policy, torch.zeros(2), torch.zeros(2, dtype=torch.int64))
    replay.finish(torch.zeros(2, dtype=torch.int64), torch.tensor([True, False]), torch.tensor([1.0, 0.0]))
    config = LearnerConfig(batch_size=16, precision="f32", warmup_steps=2)
    nets = [ResNet.for_game(game, channels=8, blocks=1, seed=5) for _ in range(2)]
    for net in nets:  # what batch norm sees of a position does not depend on how often it was drawn
        for module in net.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 0.0
                module.forward = lambda x: x  # pyright: ignore[reportAttributeAccessIssue]
    ours = TensorLearner(nets[0], config, replay, device=CPU, generator=generator)
    theirs = Learner(nets[1], config, CPU)
    observation = game.observe(game.apply(game.initial_state(), 8))
    count = 16
    batch = Batch(
        np.repeat(observation[None], count, 0),
        np.repeat(policy[:1].numpy(), count, 0),
        np.full(count, -1.0, np.float32),  # the second player is to move, and lost
        np.array([[action != 8 for action in range(9)]] * count),
    )
    for step in range(3):
        expected = theirs.step(batch, progress=step / 3)
        ours.learn(progress=step / 3)
        measured = ours.read_metrics()
        for name in ("loss", "policy_loss", "value_loss", "target_entropy", "value_variance", "learning_rate"):
            assert measured[name] == pytest.approx(expected[name], rel=1e-4), name
    for name, tensor in nets[1].named_parameters():
        torch.testing.assert_close(dict(nets[0].named_parameters())[name], tensor, rtol=1e-3, atol=1e-5, msg=name)
    assert ours.num_steps == 3 and ours.read_metrics() == {}


def test_a_learner_that_fails_says_so() -> None:
    training_net = ResNet.for_game(make_game("tictactoe"), channels=4, blocks=0)
    generator = torch.Generator()
    replay = TensorReplay(make_tensor_game("tictactoe"), 2, 4, device=CPU, generator=generator)
    learner = TensorLearner(training_net, LearnerConfig(batch_size=4), replay, device=CPU, generator=generator)
    with torch.no_grad():
        training_net.value.bias.fill_(torch.nan)
    learner.learn(progress=0.0)
    with pytest.raises(TrainingError, match=r"loss.* became NaN or infinite"):
        learner.read_metrics()


@pytest.mark.parametrize("observation", [(2, 6, 7), {"board": (2, 3, 3), "clock": (5,)}, (11,)])
def test_the_copy_is_the_network_folded(observation: Any) -> None:
    net = ResNet(observation, 7, channels=8, blocks=2, seed=1)
    copy = InferenceCopy(net, dtype=torch.float32)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) + (0.5 if name.endswith("var") else -0.5))
    copy.update(num_steps=1, steps_done=1)
    for (name, ours), theirs in zip(copy.folded.named_parameters(), fold(net).parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, msg=name)
    assert copy.averaged is net


def test_the_copy_averages() -> None:
    net = ResNet((3, 3, 3), 9, channels=4, blocks=0, seed=1)
    copy = InferenceCopy(net, dtype=torch.float32, average=0.5)
    before, after = copy.averaged.policy.bias.clone(), net.policy.bias
    with torch.no_grad():
        after.fill_(8.0)
    copy.update(num_steps=2, steps_done=1000)  # a quarter of the old is left
    torch.testing.assert_close(copy.averaged.policy.bias, 0.25 * before + 6.0)
    torch.testing.assert_close(copy.folded.policy.bias, 0.25 * before + 6.0)
    copy.update(num_steps=1, steps_done=10)  # so early, nothing is
    torch.testing.assert_close(copy.averaged.policy.bias, after.detach())


def test_budgets_double() -> None:
    def budgets(early: int | None, last: int) -> list[int]:
        return budgets_of(TrainConfig.from_dict({"early_simulations": early, "search": {"num_simulations": last}}))

    assert budgets(None, 32) == [32]
    assert budgets(8, 64) == [8, 16, 32, 64]
    assert budgets(6, 32) == [6, 12, 24, 32]
    assert budgets(40, 32) == [32]


# --- Solved positions -------------------------------------------------------------------------------------------------


def test_solved_positions_are_the_same_on_the_device() -> None:
    game, tensor_game = make_game("connect4"), make_tensor_game("connect4")
    net = ResNet.for_game(game, channels=4, blocks=1, seed=3).eval()
    with torch.no_grad():
        net.policy.weight.mul_(20.0)  # with an opinion
    test = TensorSolvedTest(game, tensor_game, net, SearchConfig(num_simulations=4), num_trees=256, device=CPU)
    positions = solved_positions(game)
    expected = np.stack([game.observe(position.state) for position in positions])
    assert np.array_equal(tensor_game.observe(test._states).numpy()[: len(positions)], expected)
    bare = StrengthTest(game, TorchEvaluator(net, device="cpu")).measure()["solved_policy"]
    assert test.score(0).overall.share == pytest.approx(bare, abs=1 / 600)
    assert {name: share.num_positions for name, share in test.score().phases.items()} == {
        "8-13": 150,
        "14-19": 150,
        "20-25": 150,
        "26-33": 150,
    }


def test_lines_of_different_lengths() -> None:
    game = make_tensor_game("tictactoe")
    states = states_after(game, [[], [4], [0, 8, 2]], CPU)
    boards = game.observe(states)
    assert (boards[:, 0] - boards[:, 1]).flatten(1).tolist() == [
        [0] * 9,
        [0, 0, 0, 0, -1, 0, 0, 0, 0],
        [-1, 0, -1, 0, 0, 0, 0, 0, 1],
    ]


# --- Runs -------------------------------------------------------------------------------------------------------------


@cache
def tictactoe() -> tuple[list[Any], list[set[int]]]:
    """Every position in which a wrong move is possible, and the right ones."""
    game = make_game("tictactoe")
    states: dict[bytes, Any] = {}

    @cache
    def value(key: bytes) -> float:
        state = states[key]
        if game.to_play(state) == TERMINAL:
            return game.returns(state)[0]
        values = [value(follow(state, action)) for action in game.legal_actions(state)]
        return max(values) if game.to_play(state) == 0 else min(values)

    def follow(state: Any, action: int) -> bytes:
        after = game.apply(state, action)
        states.setdefault(after.data, after)
        return after.data

    start = game.initial_state()
    states[start.data] = start
    value(start.data)
    found, right = list[Any](), list[set[int]]()
    for state in [*states.values()]:
        legal = game.legal_actions(state)
        best = {action for action in legal if value(follow(state, action)) == value(state.data)}
        if len(best) < len(legal):
            found.append(state)
            right.append(best)
    return found, right


def test_tictactoe_is_learned(tmp_path: Path) -> None:
    """From random weights, the bare network plays nearly all positions right, on one thread in half a minute."""
    settings = {
        **ON_THE_CPU,
        "num_iterations": 8,
        "games_per_iteration": 1024,
        "early_simulations": 4,
        "search.num_simulations": 8,
        "selfplay.num_slots": 512,
        "replay.max_positions": 40_000,
        "learner.batch_size": 512,
        "learner.learning_rate": 0.01,
        "learner.precision": "f32",
    }
    game = make_game("tictactoe")
    training = TrainingRun.create(tmp_path, config_for(game, settings))
    for _ in training.iterations():
        pass
    training.close()
    positions, right = tictactoe()
    net = load_model(tmp_path, game=game).net
    with torch.no_grad():
        logits, _ = net(torch.from_numpy(np.stack([game.observe(state) for state in positions])))
    is_legal = torch.zeros_like(logits, dtype=torch.bool)
    for row, state in enumerate(positions):
        is_legal[row, game.legal_actions(state)] = True
    chosen: list[int] = logits.masked_fill(~is_legal, -1e9).argmax(1).tolist()
    share = sum(action in best for action, best in zip(chosen, right, strict=True)) / len(positions)
    assert share > 0.96  # a new network: about half


def test_runs_are_kept_and_resumed(tmp_path: Path) -> None:
    training = make_training(tmp_path, checkpoint_every=5)
    first, second = training.iterations()
    assert first.checkpoint is None and second.checkpoint is not None  # the last one always
    assert training.is_over and training.progress == 1.0
    summary = training.summary()
    training.close()
    assert summary["games"] >= 32 and summary["positions"] == summary["simulations"] / 4 and summary["backend"] == "cpu"
    assert [line["iteration"] for line in read_metrics(tmp_path)] == [1, 2]
    saved = load_model(tmp_path)
    for ours, theirs in zip(training.net.parameters(), saved.net.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert json.loads((tmp_path / "config.json").read_text())["search"]["engine"]["device"] == "cpu"
    with pytest.raises(ConfigError, match="holds a run already"):
        make_training(tmp_path)
    again = TrainingRun.resume(tmp_path, {"num_iterations": 3})
    assert again.strategy.learner.num_steps == summary["steps"] > 0
    (third,) = again.iterations()
    again.close()
    assert third.iteration == 3 and third.metrics["games"] > summary["games"]
    assert third.metrics["steps"] > summary["steps"]


@pytest.mark.parametrize(("game", "options"), [("othello", {}), ("gomoku", {"size": 7})])
def test_other_games_train(tmp_path: Path, game: str, options: dict[str, Any]) -> None:
    settings: dict[str, Any] = {
        "search.root": "puct",
        "search.dirichlet_fraction": 0.0,
        "selfplay.max_plies": 6,
        "early_simulations": None,
    }
    settings["device.weight_average"] = 0.0
    training = TrainingRun.create(tmp_path, config_for(make_game(game, **options), {**SMALL, **settings}))
    first, last = training.iterations()
    training.close()
    assert training.net is training.strategy.learner.net and training.strategy.solved is None
    assert last.metrics["loss"] > 0 and "solved_policy" not in last.metrics and last.metrics["game_length"] <= 6
    assert last.metrics["games"] > first.metrics["games"] >= 16


OWN_GAME = Path(__file__).with_name("nim_sibling.py")


def test_a_game_of_ones_own_is_learned(tmp_path: Path) -> None:
    """Nim of 10 sticks, twice: the device plays the tensors, everyone else the class."""
    game = make_game(f"{OWN_GAME}:Nim", sticks=10)
    settings = {**SMALL, "num_iterations": 12, "games_per_iteration": 64, "selfplay.num_slots": 64}
    settings |= {"replay.max_positions": 4000, "learner.batch_size": 64, "search.num_simulations": 16}
    sibling = {"search.engine.game": f"{OWN_GAME}:NimTensors"}
    training = TrainingRun.create(tmp_path, config_for(game, {**settings, **sibling}))
    for _ in training.iterations():
        pass
    training.close()
    model = load_model(tmp_path, game=game)
    with Search(game, TorchEvaluator(model.net), SearchConfig(num_simulations=64)) as search:
        states = [game.state_from_moves(moves) for moves in ([], [0], [1, 0], [0, 0, 0])]
        # Whoever leaves a multiple of four wins: 10, 9, 7 and 7 sticks, of which 2, 1, 3 and 3 are taken.
        assert [result.best_action for result in search.run(states)] == [1, 0, 2, 2]
    with pytest.raises(ConfigError, match=r"--set search\.engine\.game=.*NimTensors"):
        TrainingRun.resume(tmp_path, game=game)
    with pytest.raises(ConfigError, match="name the game yourself"):
        TrainingRun.resume(tmp_path, sibling)
    changes = {"num_iterations": 13, "device.weight_average": 0.5, **sibling}
    resumed = TrainingRun.resume(tmp_path, changes, game=game)
    assert type(resumed.strategy.tensor_game).__name__ == "NimTensors"
    assert resumed.config.device.weight_average == 0.5
    resumed.close()


def test_a_sibling_must_be_there_and_be_the_same_game(tmp_path: Path) -> None:
    for name, message in {
        None: "write a class with the functions of a windrow.tensor.TensorGame",
        "Misere": "differ after the moves .*: returns",
        "Nim": "Nim is no TensorGame",
        "NimTensor": "NimTensors",
    }.items():
        sibling = {"search.engine.game": name and f"{OWN_GAME}:{name}"}
        config = config_for(make_game(f"{OWN_GAME}:Nim"), {**SMALL, **sibling})
        with pytest.raises(WindrowError, match=message):
            TrainingRun.create(tmp_path / "run", config)
        assert not (tmp_path / "run").exists()


def test_connect4_measures_its_strength(tmp_path: Path) -> None:
    training = make_training(
        tmp_path, "connect4", num_iterations=1, **{"selfplay.num_slots": 200, "learner.batch_size": 400}
    )
    (report,) = training.iterations(events := Events())
    training.close()
    assert 0.2 < report.metrics["solved_policy"] < 0.9
    assert report.metrics["num_simulations"] == 4 and report.metrics["replay_positions"] == 200
    assert events.kinds == {"games"}


class Events:
    """What kinds there were."""

    def __init__(self) -> None:
        self.kinds = set[str]()

    def __call__(self, kind: str, numbers: dict[str, float]) -> None:
        assert numbers["of"] == SMALL["games_per_iteration"]
        self.kinds.add(kind)


def test_a_network_that_breaks_ends_the_run(tmp_path: Path) -> None:
    training = make_training(tmp_path)
    with torch.no_grad():
        training.strategy.copy.folded.policy.bias.fill_(torch.nan)
    with pytest.raises(TrainingError, match=r"gave a NaN, an infinity or .* in iteration 1"):
        next(training.iterations())
    training.close()
    assert training.counters.iteration == 0


@pytest.mark.parametrize(
    ("setting", "value"),
    [("selfplay.full_fraction", 0.5), ("selfplay.resign_below", -0.9), ("deterministic", True), ("keep_games", True)],
)
def test_what_it_does_not_know_is_refused(tmp_path: Path, setting: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"does not know .*{setting.rpartition('.')[2]} yet"):
        make_training(tmp_path, **{setting: value})
    assert not any(tmp_path.iterdir())


def test_shipped_configs_are_for_games_of_the_tensor_engine() -> None:
    folder = Path(__file__).parents[2] / "src" / "windrow" / "train" / "configs" / "device"
    names = sorted(path.stem for path in folder.glob("*.toml"))
    assert names == sorted(GAMES)
    for name in names:
        game = make_game(name)
        config = config_for(game, ON_THE_CPU)
        assert config.game == make_tensor_game(name).name
        assert config == TrainConfig.read(folder / f"{name}.toml", {**ON_THE_CPU, "game_options": dict(game.options)})
        DeviceTraining(game, config)  # which refuses what it does not know
