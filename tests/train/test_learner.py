from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from training_cases import CONNECT4, batch_of, filled_replay, same_bits

from windrow import ConfigError, TrainingError, UnknownKeyError
from windrow.train import Batch, LearnerConfig, step_rng

torch = pytest.importorskip("torch")

from windrow.nets import ResNet  # noqa: E402
from windrow.train import Learner  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def make_learner(net: Any = None, *, deterministic: bool = False, num_threads: int | None = None, **config: Any) -> Any:
    net = net or ResNet.for_game(CONNECT4, channels=8, blocks=1, value_hidden=8)
    return Learner(net, LearnerConfig(**config), device="cpu", deterministic=deterministic, num_threads=num_threads)


class Fixed(torch.nn.Module):
    """Says the same of every position."""

    def __init__(self, logits: list[float], value: float) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor(logits))
        self.value = torch.nn.Parameter(torch.tensor(value))

    def forward(self, x: Any) -> Any:
        return self.logits.expand(len(x), -1), self.value.expand(len(x))


# --- What is learned ---------------------------------------------------------------------------------------------


def test_the_loss_by_hand():
    """Three legal actions with weights 2:1:1; the illegal one, however likely, counts for nothing.

    Cross-entropy of the target (0, 1/2, 1/2) is (ln 4 + ln 4) / 2, of (1, 0, 0) it is ln 2. Entropy of (1/2, 1/4, 1/4)
    is 3/2 ln 2. Values: targets 1 and -1 against 0.5 are 0.5 and 1.5 away.
    """
    batch = Batch(
        observations=np.zeros((2, 1), np.float32),
        policy=np.array([[0, 0.5, 0.5, 0], [1, 0, 0, 0]], np.float32),
        value=np.array([1, -1], np.float32),
        legal=np.array([[1, 1, 1, 0]] * 2, bool),
    )
    learner = make_learner(Fixed([math.log(2), 0.0, 0.0, 100.0], 0.5), value_weight=2.0, precision="f32")
    measured = learner.step(batch)
    policy_loss = (2 * math.log(2) + math.log(2)) / 2
    value_loss = (0.25 + 2.25) / 2
    assert measured["policy_loss"] == pytest.approx(policy_loss, rel=1e-6)
    assert measured["value_loss"] == pytest.approx(value_loss, rel=1e-6)
    assert measured["loss"] == pytest.approx(policy_loss + 2 * value_loss, rel=1e-6)
    assert measured["value_error"] == pytest.approx(1.0, rel=1e-6)
    assert measured["policy_entropy"] == pytest.approx(1.5 * math.log(2), rel=1e-6)
    assert measured["target_entropy"] == pytest.approx(math.log(2) / 2, rel=1e-6)
    assert measured["uniform_policy_loss"] == pytest.approx(math.log(3), rel=1e-6)
    assert measured["value_variance"] == pytest.approx(1.0, rel=1e-6)
    # Of the loss: policy minus target on average, (0, 0, 0); of the value 2 * 2 * (0.5 - 0).
    assert measured["grad_norm"] == pytest.approx(2.0, rel=1e-6)
    assert learner.net.logits[3].item() == 100.0, "an illegal action is not moved"


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_it_learns(precision: str):
    learner = make_learner(precision=precision, warmup_steps=5, learning_rate=1e-2, schedule="constant")
    batch = batch_of(batch_size=64)
    first, *_, last = (learner.step(batch) for _ in range(60))
    assert last["value_loss"] < 0.2 * first["value_loss"]
    assert last["policy_loss"] < first["policy_loss"] - 0.3
    assert learner.num_steps == 60 and learner.precision == precision


def test_norms_and_biases_do_not_decay():
    """A part without a gradient shows it: of the value nothing is learned here."""
    learner = make_learner(value_weight=0.0, weight_decay=0.5, learning_rate=0.1, warmup_steps=0, schedule="constant")
    with torch.no_grad():
        learner.net.value.bias.fill_(0.25)
    before = {name: tensor.clone() for name, tensor in learner.net.state_dict().items()}
    learner.step(batch_of())
    after = learner.net.state_dict()
    for name in ("value.weight", "value_hidden.weight", "value_planes.conv.weight"):
        torch.testing.assert_close(after[name], before[name] * (1 - 0.1 * 0.5))
    for name in ("value.bias", "value_planes.norm.weight", "value_planes.norm.bias"):
        assert torch.equal(after[name], before[name]), name


def test_a_long_gradient_is_shortened():
    moved: list[float] = []
    for max_grad_norm in (1e-9, 1e9):
        learner = make_learner(max_grad_norm=max_grad_norm, learning_rate=1.0, weight_decay=0.0, warmup_steps=0)
        before = learner.net.policy.weight.detach().clone()
        assert learner.step(batch_of())["grad_norm"] > 1e-3
        moved.append((learner.net.policy.weight - before).abs().max().item())
    # AdamW's first step has the same length for gradients of any length that are long against its epsilon, 1e-8.
    assert moved[0] < 0.2 < moved[1]


def test_a_value_per_player():
    net = ResNet.for_game(CONNECT4, channels=8, blocks=1, num_values=2)
    measured = make_learner(net).step(batch_of(is_per_player=True))
    assert measured["value_loss"] > 0
    with pytest.raises(TrainingError, match=r"is_per_player=True"):
        make_learner(net).step(batch_of())


def test_observations_by_name():
    net = ResNet({"board": (2, 6, 7), "flat": (3,)}, 7, channels=8, blocks=1)
    plain = batch_of()
    named = dataclasses.replace(
        plain, observations={"flat": np.ones((len(plain), 3), np.float32), "board": plain.observations}
    )
    learner = make_learner(net)
    before = net.flat.weight.detach().clone()
    learner.step(named)
    assert not torch.equal(net.flat.weight, before)


def test_what_belongs_to_the_process_is_put_back():
    learner = make_learner(deterministic=True, num_threads=2)
    learner.net.eval()
    learner.step(batch_of())
    assert torch.get_num_threads() == 1
    assert not torch.are_deterministic_algorithms_enabled()
    assert not learner.net.training


# --- The learning rate -------------------------------------------------------------------------------------------


def test_the_learning_rate_by_hand():
    config = LearnerConfig(learning_rate=0.4, warmup_steps=3, final_share=0.5, total_steps=100)
    # Four steps up: 1/4, 2/4, 3/4, 1 of it; the cosine goes from 1 to 0, hence the factor from 1 to a half.
    assert config.learning_rate_at(0) == pytest.approx(0.1)
    assert config.learning_rate_at(1, progress=0.0) == pytest.approx(0.2)
    assert config.learning_rate_at(3, progress=0.0) == pytest.approx(0.4)
    assert config.learning_rate_at(50) == pytest.approx(0.4 * 0.75)
    assert config.learning_rate_at(100) == pytest.approx(0.2)
    assert config.learning_rate_at(1000) == pytest.approx(0.2), "and it stays there"
    assert config.learning_rate_at(7, progress=0.5) == pytest.approx(0.3), "what the caller says goes first"
    assert config.replace(total_steps=None).learning_rate_at(1000) == pytest.approx(0.4)
    assert config.replace(schedule="constant").learning_rate_at(100) == pytest.approx(0.4)


def test_the_learning_rate_is_used():
    learner = make_learner(learning_rate=0.5, warmup_steps=0, schedule="cosine", final_share=0.0)
    before = learner.net.policy.weight.detach().clone()
    assert learner.step(batch_of(), progress=1.0)["learning_rate"] == 0.0
    assert torch.equal(learner.net.policy.weight, before)
    assert learner.step(batch_of(), progress=0.5)["learning_rate"] == pytest.approx(0.25)


def test_every_setting_is_checked_and_explained():
    for field in dataclasses.fields(LearnerConfig):
        with pytest.raises(ConfigError, match=field.name):
            LearnerConfig(**{field.name: object()})  # pyright: ignore
    with pytest.raises(UnknownKeyError, match="Did you mean 'learning_rate'"):
        LearnerConfig(learning_rates=1.0)  # pyright: ignore
    config = LearnerConfig(batch_size=64, precision="bf16")
    assert LearnerConfig(**config.to_dict()) == config and config.replace(batch_size=32).batch_size == 32


# --- What goes wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["observations", "policy", "value"])
def test_a_loss_that_is_no_number_touches_nothing(part: str):
    learner, twin = make_learner(), make_learner()
    good = batch_of()
    for one in (learner, twin):
        one.step(good)
    poisoned = getattr(good, part).copy()
    poisoned.flat[0] = np.nan
    before = learner.state()
    with pytest.raises(TrainingError, match=r"step 1: loss is nan.*learning_rate"):
        learner.step(dataclasses.replace(good, **{part: poisoned}))
    assert same_bits(learner.state(), before), "norms included"
    learner.step(good)
    twin.step(good)
    assert same_bits(learner.state(), twin.state())


def test_weights_that_are_no_numbers_are_noticed():
    learner = make_learner()
    with torch.no_grad():
        learner.net.stem.conv.weight[0, 0, 0, 0] = math.inf
    with pytest.raises(TrainingError, match="step 0"):
        learner.step(batch_of())


def test_a_gpu_that_is_not_there():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(TrainingError, match='use device="cpu"'):
        Learner(ResNet.for_game(CONNECT4, channels=4, blocks=1), device="cuda")


# --- Going on exactly --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "num_threads"), [("f32", 1), ("bf16", 1), ("bf16", 2)])
def test_ten_steps_are_five_and_five(precision: str, num_threads: int):
    """To the last bit, and with the memory laid out anew in between."""
    replay = filled_replay()
    settings: dict[str, Any] = {"precision": precision, "total_steps": 10, "warmup_steps": 3}
    whole = make_learner(deterministic=True, num_threads=num_threads, **settings)
    measured = [whole.step(replay.sample(64, step_rng(1, step))) for step in range(10)]
    first = make_learner(deterministic=True, num_threads=num_threads, **settings)
    assert [first.step(replay.sample(64, step_rng(1, step))) for step in range(5)] == measured[:5]
    second = make_learner(deterministic=True, num_threads=num_threads, **settings)
    second.load_state(first.state())
    assert second.num_steps == 5
    assert [second.step(replay.sample(64, step_rng(1, step))) for step in range(5, 10)] == measured[5:]
    assert same_bits(second.state(), whole.state())
    assert not same_bits(first.state(), whole.state())


def test_a_state_is_a_copy():
    learner = make_learner()
    state = learner.state()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    learner.step(batch_of())
    assert same_bits(state, kept)
    assert all(tensor.is_contiguous() for tensor in state.values())


def test_the_state_of_another_network_is_refused():
    learner = make_learner()
    before = learner.state()
    for other in (
        make_learner(ResNet.for_game(CONNECT4, channels=8, blocks=2, value_hidden=8)),
        make_learner(ResNet.for_game(CONNECT4, channels=16, blocks=1, value_hidden=8)),
    ):
        with pytest.raises(TrainingError, match="another network"):
            learner.load_state(other.state())
    assert same_bits(learner.state(), before)
