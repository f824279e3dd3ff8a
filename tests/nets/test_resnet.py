from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

import windrow
from windrow import ConfigError, make_game
from windrow.evaluators import load
from windrow.evaluators.backends.catalog import BACKENDS
from windrow.evaluators.positions import random_positions

torch = pytest.importorskip("torch")

from windrow.nets import ResNet, fold, from_spec  # noqa: E402
from windrow.nets.specs import KINDS  # noqa: E402

# Every way an observation may look: one board, one flat row, boards and flat rows by name.
SHAPES: dict[str, Any] = {
    "board": (2, 6, 7),
    "flat": (9,),
    "named": {"hand": (3,), "board": (2, 5, 4), "marks": (1, 5, 4), "dice": (2, 2)},
    "named flat": {"hand": (3,), "dice": (2, 2)},
}
pytestmark = pytest.mark.usefixtures("one_thread")
BACKEND_NAMES = [name for name in ("torch", "onnxruntime", "openvino") if BACKENDS[name].missing() is None]


def make_net(kind: str = "board", **settings: Any) -> Any:
    """A small network that has seen some batches, so that its norms are not those it was born with."""
    net = ResNet(SHAPES[kind], 5, channels=8, blocks=2, value_hidden=8, **settings)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if "norm" in name:  # those that end a block are zero at first, and would hide what is before them
                parameter.uniform_(0.5, 1.5, generator=generator)
            if name.startswith(("policy.", "value.")):
                parameter.normal_(0.0, 0.5, generator=generator)
        for seed in range(3):
            call(net, rows(kind, 32, seed=seed))
    return net.eval()


def rows(kind: str, count: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    shapes = SHAPES[kind]
    if isinstance(shapes, dict):
        return {name: rng.normal(size=(count, *shape)).astype(np.float32) for name, shape in shapes.items()}
    return rng.normal(size=(count, *shapes)).astype(np.float32)


def call(net: Any, observations: Any) -> tuple[Any, Any]:
    if isinstance(observations, dict):
        return net(**{name: torch.from_numpy(part) for name, part in observations.items()})
    return net(torch.from_numpy(observations))


@pytest.mark.parametrize("name", windrow.game_names())
def test_a_new_network_knows_nothing(name: str):
    """Any move, and a draw: self-play begins without a prejudice."""
    game = make_game(name)
    net = windrow.nets.ResNet.for_game(game, channels=16, blocks=2).eval()
    with torch.no_grad():
        logits, values = call(net, random_positions(game, 32).observations)
    assert logits.shape == (32, game.num_actions) and values.shape == (32,)
    priors = torch.softmax(logits, -1) * game.num_actions
    assert priors.min() > 0.6 and priors.max() < 1.6
    assert values.abs().max() < 0.3


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("num_values", [1, 3])
def test_shapes(kind: str, num_values: int):
    logits, values = call(make_net(kind, num_values=num_values), rows(kind, 6))
    assert logits.shape == (6, 5)
    assert values.shape == ((6,) if num_values == 1 else (6, num_values))
    assert values.abs().max() <= 1 and logits.dtype == values.dtype == torch.float32


@pytest.mark.parametrize("kind", SHAPES)
def test_rows_do_not_see_each_other(kind: str):
    net = make_net(kind)
    many = rows(kind, 8)
    few = {name: part[2:4] for name, part in many.items()} if isinstance(many, dict) else many[2:4]
    for all_rows, some_rows in zip(call(net, many), call(net, few), strict=True):
        torch.testing.assert_close(all_rows[2:4], some_rows)


def test_every_part_of_an_observation_counts():
    net = make_net("named")
    given = rows("named", 4)
    logits, values = call(net, given)
    for name in given:
        other_logits, other_values = call(net, {**given, name: given[name] + 1})
        assert not torch.equal(logits, other_logits) and not torch.equal(values, other_values), name


@pytest.mark.parametrize("kind", SHAPES)
def test_a_spec_makes_the_same_network_again(kind: str):
    net = make_net(kind)
    again = from_spec(json.loads(json.dumps(net.spec)))
    again.load_state_dict(net.state_dict())
    assert again.spec == net.spec
    for one, other in zip(call(net, rows(kind, 4)), call(again.eval(), rows(kind, 4)), strict=True):
        assert torch.equal(one, other)


def test_every_kind_of_network_can_be_made():
    for kind in KINDS:
        assert from_spec({"kind": kind, "observation": [4], "num_actions": 2}).spec["kind"] == kind


def test_the_seed_decides_the_weights_and_nothing_else_does():
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = ResNet((2, 3, 3), 9, channels=4, blocks=1, seed=5).state_dict()
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(3)
    second = ResNet((2, 3, 3), 9, channels=4, blocks=1, seed=5).state_dict()
    other = ResNet((2, 3, 3), 9, channels=4, blocks=1, seed=6).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["stem.conv.weight"], other["stem.conv.weight"])


@pytest.mark.parametrize("kind", SHAPES)
def test_a_network_can_be_copied_and_pickled(kind: str):
    net = make_net(kind)
    for same in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert isinstance(same, ResNet) and same.spec == net.spec and not same.training
        for one, other in zip(call(net, rows(kind, 4)), call(same, rows(kind, 4)), strict=True):
            assert torch.equal(one, other)


# --- Folding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHAPES)
def test_folding_changes_no_answer(kind: str):
    net = make_net(kind)
    state = copy.deepcopy(net.state_dict())
    folded = fold(net.train())
    assert not folded.training and not any("norm" in name for name in folded.state_dict())
    assert not any(parameter.requires_grad for parameter in folded.parameters())
    for one, other in zip(call(net.eval(), rows(kind, 16)), call(folded, rows(kind, 16)), strict=True):
        torch.testing.assert_close(one, other, atol=2e-6, rtol=2e-5)  # one rounding per weight
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())


def test_folding_twice_is_folding_once():
    once = fold(make_net())
    twice = fold(once)
    assert all(torch.equal(tensor, twice.state_dict()[name]) for name, tensor in once.state_dict().items())


def test_a_value_per_player_stays():
    net = make_net(num_values=2)
    _, values = call(net, rows("board", 5))
    _, folded = call(fold(net), rows("board", 5))
    torch.testing.assert_close(folded, values, atol=2e-6, rtol=2e-5)


# Exports take seconds; every backend gets its model in the same way.
@pytest.mark.parametrize(
    ("kind", "backend"),
    [("board", name) for name in BACKEND_NAMES]
    + [pytest.param("named", name, marks=[pytest.mark.slow] * (name == "openvino")) for name in BACKEND_NAMES],
)
def test_a_folded_network_is_loaded_and_updated(kind: str, backend: str):
    net = make_net(kind)
    given = rows(kind, 16)
    evaluator = load(fold(net), positions=given, backend=backend, num_threads=1)
    for round_number in range(2):
        for found, wanted in zip(evaluator.evaluate(given), call(net, given), strict=True):
            np.testing.assert_allclose(found, wanted.detach().numpy(), atol=1e-5, rtol=1e-4)
        if round_number == 0:
            with torch.no_grad():
                call(net.train(), rows(kind, 32, seed=9))
                net.stem.conv.weight *= 1.5
            evaluator.update(fold(net.eval()))
    assert evaluator.version == 1
    evaluator.close()


def test_a_network_without_our_layers_is_copied():
    net = torch.nn.Linear(2, 2)
    copied = fold(net)
    assert torch.equal(copied.weight, net.weight) and not copied.weight.requires_grad
    with torch.no_grad():
        net.weight += 1
    assert not torch.equal(copied.weight, net.weight)


# --- What cannot be made -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ({"kind": "resnte"}, "Did you mean 'resnet'"),
        ({}, "unknown kind of network None"),
        ({"kind": "resnet", "observation": [2, 3, 3], "num_actions": 9, "width": 3}, "width"),
        ({"kind": "resnet", "num_actions": 9}, "observation"),
        ({"kind": "resnet", "observation": [2, 3, 3], "num_actions": 0}, "num_actions"),
        ({"kind": "resnet", "observation": [2, 3, 3], "num_actions": 9, "channels": "many"}, "channels"),
        ({"kind": "resnet", "observation": [2, 3, 3], "num_actions": 9, "blocks": -1}, "blocks"),
        ({"kind": "resnet", "observation": {}, "num_actions": 9}, "at least one observation"),
        (
            {"kind": "resnet", "observation": {"a": [2, 3, 3], "b": [2, 4, 4]}, "num_actions": 9},
            r"a \(2, 3, 3\), b \(2, 4, 4\)",
        ),
    ],
)
def test_an_impossible_network_is_refused(spec: dict[str, Any], hint: str):
    with pytest.raises(ConfigError, match=hint):
        from_spec(spec)
