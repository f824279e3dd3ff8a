"""The built-in networks beside the ResNet: shapes, gradients, export, and what they cannot be."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from windrow import ConfigError, make_game
from windrow.evaluators import load
from windrow.evaluators.backends.catalog import BACKENDS

torch = pytest.importorskip("torch")

from windrow.nets import MLP, Transformer, fold, from_spec, make_network  # noqa: E402
from windrow.nets.checking import check_network  # noqa: E402
from windrow.nets.config import KINDS, as_network  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
SHAPES: dict[str, Any] = {
    "board": (2, 6, 7),
    "flat": (9,),
    "named": {"hand": (3,), "board": (2, 5, 4), "marks": (1, 5, 4), "dice": (2, 2)},
    "named flat": {"hand": (3,), "dice": (2, 2)},
}
SMALL = {"mlp": {"width": 8, "layers": 2}, "transformer": {"width": 8, "layers": 2, "heads": 2}}
BACKEND_NAMES = [name for name in ("torch", "onnxruntime", "openvino") if BACKENDS[name].missing() is None]


def make(kind: str, shape: str, **settings: Any) -> Any:
    spec = {"kind": kind, "observation": SHAPES[shape], "num_actions": 5, **SMALL[kind], **settings}
    net = from_spec(spec)
    with torch.no_grad():  # heads and shortcuts begin with zeros, which would hide what is before them
        generator = torch.Generator().manual_seed(3)
        for parameter in net.parameters():
            parameter += torch.empty_like(parameter).normal_(0.0, 0.3, generator=generator)
    return net.eval()


def rows(shape: str, count: int) -> Any:
    generator = np.random.default_rng(5)

    def draw(one: tuple[int, ...]) -> Any:
        return generator.random((count, *one), dtype=np.float32)

    wanted = SHAPES[shape]
    return {name: draw(one) for name, one in wanted.items()} if isinstance(wanted, dict) else draw(wanted)


def call(net: Any, given: Any) -> tuple[Any, Any]:
    if isinstance(given, dict):
        return net(**{name: torch.as_tensor(array) for name, array in given.items()})
    return net(torch.as_tensor(given))


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("num_values", [1, 3])
def test_every_observation_gives_logits_and_bounded_values(kind: str, shape: str, num_values: int):
    net = make(kind, shape, num_values=num_values)
    logits, values = call(net, rows(shape, 4))
    assert logits.shape == (4, 5)
    assert values.shape == ((4,) if num_values == 1 else (4, 3))
    assert bool((values.abs() <= 1).all())
    (logits.square().sum() + values.square().sum()).backward()
    assert all(one.grad is not None and bool(one.grad.abs().any()) for one in net.parameters())


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("shape", ["named", "named flat"])
def test_every_part_of_an_observation_counts(kind: str, shape: str):
    net, given = make(kind, shape), rows(shape, 4)
    logits, values = call(net, given)
    for name in given:
        other_logits, other_values = call(net, {**given, name: given[name] + 1})
        assert not torch.equal(logits, other_logits) and not torch.equal(values, other_values), name


@pytest.mark.parametrize("kind", SMALL)
def test_a_spec_makes_the_same_network_again(kind: str):
    net = make(kind, "named")
    again = from_spec(json.loads(json.dumps(net.spec)))
    again.load_state_dict(net.state_dict())
    for one, other in zip(call(net, rows("named", 4)), call(again.eval(), rows("named", 4)), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("kind", SMALL)
def test_the_seed_decides_the_weights_and_nothing_else_does(kind: str):
    spec = {"kind": kind, "observation": [4], "num_actions": 2}
    torch.manual_seed(1)
    one = from_spec(spec, seed=3).state_dict()
    torch.manual_seed(2)
    same, other = from_spec(spec, seed=3).state_dict(), from_spec(spec, seed=4).state_dict()
    assert all(torch.equal(tensor, same[name]) for name, tensor in one.items())
    assert not all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize("backend", BACKEND_NAMES)
@pytest.mark.parametrize("kind", SMALL)
def test_the_fast_backends_take_it_and_its_new_weights(kind: str, backend: str):
    net, given = make(kind, "board"), rows("board", 16)
    evaluator = load(fold(net), positions=given, backend=backend, num_threads=1)
    for _ in range(2):
        for found, wanted in zip(evaluator.evaluate(given), call(net, given), strict=True):
            np.testing.assert_allclose(found, wanted.detach().numpy(), atol=1e-5, rtol=1e-4)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter *= 1.1
        evaluator.update(fold(net))
    evaluator.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("game", ["tictactoe", "azul", "backgammon"])
def test_every_kind_keeps_the_contract_on_real_games(kind: str, game: str):
    check_network(make_network(as_network(kind), make_game(game)), make_game(game))


@pytest.mark.parametrize(
    ("make_it", "hint"),
    [
        (lambda: Transformer((4,), 2, width=10, heads=4), "multiple of heads=4"),
        (lambda: Transformer({"a": (2, 3, 3), "b": (2, 4, 4)}, 9), r"a \(2, 3, 3\), b \(2, 4, 4\)"),
        (lambda: MLP((4,), 0), "num_actions"),
        (lambda: MLP((4,), 2, width=0), "width"),
        (lambda: MLP((4,), 2, layers=-1), "layers"),
        (lambda: Transformer((4,), 2, heads=0), "heads"),
        (lambda: MLP({}, 2), "at least one observation"),
    ],
)
def test_an_impossible_network_is_refused(make_it: Any, hint: str):
    with pytest.raises(ConfigError, match=hint):
        make_it()
