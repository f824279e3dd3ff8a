"""A PyTorch module as evaluator, on the CPU."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from windrow import ConfigError, EvaluatorError, Search, SearchConfig, make_game
from windrow.engines import Batched
from windrow.evaluators import Evaluator, Pipelined, TorchEvaluator

GAME = make_game("connect4")


class SmallNet(torch.nn.Module):
    """Two convolutions with normalization and dropout, so that training and evaluation mode differ."""

    def __init__(self, values: str = "[K]") -> None:
        super().__init__()
        torch.manual_seed(3)
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(2, 8, 3, padding=1),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.5),
            torch.nn.Conv2d(8, 8, 3, padding=1),
            torch.nn.Flatten(),
        )
        self.policy, self.value = torch.nn.Linear(8 * 42, 7), torch.nn.Linear(8 * 42, 1)
        self._values = values

    def forward(self, observations: Any) -> Any:
        hidden = self.body(observations)
        value = torch.tanh(self.value(hidden))
        return self.policy(hidden), value if self._values == "[K, 1]" else value[:, 0]


def rows(count: int = 6) -> Any:
    return np.random.default_rng(0).normal(size=(count, 2, 6, 7)).astype(np.float32)


def by_hand(net: Any, observations: Any) -> tuple[Any, Any]:
    net.eval()
    with torch.no_grad():
        logits, values = net(torch.from_numpy(observations))
    return logits.numpy(), values.numpy()


def test_it_is_an_evaluator():
    evaluator = TorchEvaluator(SmallNet(), device="cpu")
    assert isinstance(evaluator, Evaluator) and isinstance(evaluator, Pipelined)
    assert evaluator.pipeline == 1
    buffer = evaluator.allocate((5, 84))
    assert buffer.shape == (5, 84) and buffer.dtype == np.float32 and buffer.flags.c_contiguous


def test_it_says_what_the_module_says():
    net, observations = SmallNet(), rows()
    want = by_hand(net, observations)
    evaluator = TorchEvaluator(net, device="cpu")
    for logits, values in (evaluator.evaluate(observations), evaluator.submit(observations).result()):
        assert logits.dtype == values.dtype == np.float32
        assert (logits == want[0]).all() and (values == want[1]).all()


def test_auto_runs_somewhere():
    evaluator = TorchEvaluator(SmallNet())
    assert evaluator.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert evaluator.evaluate(rows())[0].shape == (6, 7)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    with pytest.raises(EvaluatorError, match=r'device="cuda" needs a GPU.*"cpu"'):
        TorchEvaluator(SmallNet(), device="cuda")


def modes(net: Any) -> list[bool]:
    return [module.training for module in net.modules()]


def test_a_module_in_training_is_evaluated_and_put_back():
    net = SmallNet()
    net.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    logits, _ = TorchEvaluator(net, device="cpu").evaluate(rows())
    assert all(modes(net))
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]), f"{name}: batch statistics must not learn from a search"
    assert (logits == by_hand(net, rows())[0]).all()


def test_a_module_in_evaluation_stays_there():
    net = SmallNet().eval()
    TorchEvaluator(net, device="cpu").evaluate(rows())
    assert not any(modes(net))


@pytest.mark.parametrize("root_is_training", [True, False])
def test_parts_with_a_mode_of_their_own_keep_it(root_is_training: bool):
    """Frozen normalization inside a module in training, or a part in training inside a frozen one."""
    net = SmallNet()
    net.train(root_is_training)
    net.body[1].train(not root_is_training)
    before = modes(net)
    TorchEvaluator(net, device="cpu").evaluate(rows())
    assert modes(net) == before


def test_the_mode_is_put_back_after_an_error_too():
    net = SmallNet()
    net.train()
    with pytest.raises(RuntimeError):
        TorchEvaluator(net, device="cpu").evaluate(np.zeros((2, 5, 6, 7), np.float32))
    assert net.training


def test_weights_are_live():
    """What a learner changes, the next batch sees; no copy."""
    net = SmallNet()
    evaluator = TorchEvaluator(net, device="cpu")
    first = evaluator.evaluate(rows())[0].copy()
    with torch.no_grad():
        net.policy.bias += 1.0
    second = evaluator.evaluate(rows())[0]
    np.testing.assert_allclose(second, first + 1.0, atol=1e-5)


def new_weights(net: Any) -> dict[str, Any]:
    return {name: torch.rand_like(weight, dtype=torch.float32) for name, weight in net.state_dict().items()}


CHANGES: dict[str, Any] = {
    "a step of an optimizer": lambda net: torch.optim.SGD(net.parameters(), 0.1).step(
        lambda: net(torch.from_numpy(rows(1)))[0].sum().backward()
    ),
    "a checkpoint": lambda net: net.load_state_dict(new_weights(net)),
    "a checkpoint of tensors": lambda net: net.load_state_dict(new_weights(net), assign=True),
    "one vector": lambda net: torch.nn.utils.vector_to_parameters(torch.rand(10_000), net.parameters()),
    "another precision": lambda net: net.double(),
    "other data": lambda net: setattr(net.policy.bias, "data", torch.rand(7)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_weights_are_another_version(change: str):
    net = SmallNet()
    evaluator = TorchEvaluator(net, device="cpu")
    before = evaluator.version
    assert evaluator.version == before
    CHANGES[change](net)
    assert evaluator.version > before
    assert evaluator.version == evaluator.version


def test_weights_replaced_twice_are_another_version():
    """The second ones may be where those were that the first ones replaced."""
    net = torch.nn.Linear(4, 3)
    evaluator = TorchEvaluator(net, device="cpu")
    for _ in range(20):
        net.load_state_dict(new_weights(net), assign=True)
        before = evaluator.version
        for _ in range(2):
            net.load_state_dict(new_weights(net), assign=True)
        assert evaluator.version > before


def test_a_copy_counts_its_own_weights():
    evaluator = TorchEvaluator(SmallNet(), device="cpu")
    assert evaluator.version >= 0
    copied = pickle.loads(pickle.dumps(evaluator))
    before = copied.version
    copied.module.load_state_dict(new_weights(copied.module))
    assert copied.version > before
    assert copy.deepcopy(evaluator).version >= 0


def test_a_search_can_be_between_training_steps():
    """Inference mode must not leak into the module: gradients still flow after a search."""
    net = SmallNet()
    net.train()
    Search(GAME, TorchEvaluator(net, device="cpu"), SearchConfig(num_simulations=5)).run(GAME.initial_state())
    logits, values = net(torch.from_numpy(rows()))
    (logits.sum() + values.sum()).backward()
    assert net.policy.weight.grad is not None and torch.isfinite(net.policy.weight.grad).all()


def test_bfloat16_is_close_and_comes_back_as_float32():
    """Autocast computes convolutions and products with 8 bits of mantissa: within a few 2^-8 of the largest logit."""
    net = SmallNet()
    exact = by_hand(net, rows())
    logits, values = TorchEvaluator(net, device="cpu", dtype=torch.bfloat16).evaluate(rows())
    assert logits.dtype == values.dtype == np.float32
    assert (logits != exact[0]).any(), "nothing ran in bfloat16"
    assert np.abs(logits - exact[0]).max() < 0.05 * max(1.0, float(np.abs(exact[0]).max()))
    assert np.abs(values - exact[1]).max() < 0.05
    assert net.policy.weight.dtype == torch.float32


def test_float32_may_be_asked_for_by_name():
    net = SmallNet()
    logits, _ = TorchEvaluator(net, device="cpu", dtype=torch.float32).evaluate(rows())
    assert (logits == by_hand(net, rows())[0]).all()


@pytest.mark.parametrize("values", ["[K]", "[K, 1]"])
def test_a_search_takes_values_of_both_shapes(values: str):
    config = SearchConfig(num_simulations=40, leaves_per_tree=4)
    want = Search(GAME, TorchEvaluator(SmallNet(), device="cpu"), config).run(GAME.initial_state())
    got = Search(GAME, TorchEvaluator(SmallNet(values), device="cpu"), config).run(GAME.initial_state())
    assert got.visits.tolist() == want.visits.tolist()
    assert got.visits.sum() == 40


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_a_search_uses_the_modules_answers(engine: str):
    """The root's prior and value are those of the module, called by hand."""
    net = SmallNet()
    search = Search(GAME, TorchEvaluator(net, device="cpu"), SearchConfig(engine=engine, num_simulations=0))
    result = search.run(GAME.state_from_moves("4453"))
    logits, values = by_hand(net, GAME.observe(GAME.state_from_moves("4453"))[None])
    weights = np.exp(logits[0].astype(np.float64))
    np.testing.assert_allclose(result.prior, weights / weights.sum(), rtol=1e-5)
    assert result.value == pytest.approx(float(values[0]), abs=1e-6)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: x.sum(dim=(1, 2, 3)), r"not \(Tensor\)"),
        (lambda x: (x.sum(dim=(1, 2, 3)),), r"not \(Tensor\)"),
        (lambda x: (x, x, x), r"not \(Tensor, Tensor, Tensor\)"),
        (lambda x: (x, 1.0), r"not \(Tensor, float\)"),
        (lambda x: {"policy": x, "value": x}, r"not \(dict\)"),
        (lambda x: None, r"not \(NoneType\)"),
    ],
)
def test_a_wrong_answer_is_described(answer: Any, message: str):
    class Wrong(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return answer(x)

    with pytest.raises(EvaluatorError, match=message):
        TorchEvaluator(Wrong(), device="cpu").evaluate(rows())


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda x: x, "give windrow.evaluators.from_function for a function"),
        (torch.nn.Linear, "give an object of it"),
        ({}, "takes a torch.nn.Module, not {}"),
    ],
)
def test_something_that_is_not_a_module(module: Any, message: str):
    with pytest.raises(ConfigError, match=message):
        TorchEvaluator(module)


def test_a_device_that_does_not_exist():
    with pytest.raises(ConfigError, match=r"device must be .*, not 'gpu'"):
        TorchEvaluator(torch.nn.Linear(1, 1), device="gpu")


def test_a_module_in_the_evaluators_place_is_told_its_wrapper():
    with pytest.raises(ConfigError, match=r"write TorchEvaluator\(Linear\), or load\(Linear, game=game\)$"):
        Search(GAME, torch.nn.Linear(1, 1))


def test_a_wrong_shape_is_found_by_the_search():
    class Wrong(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.zeros(len(x), 9), torch.zeros(len(x))

    with pytest.raises(EvaluatorError, match=r"logits have shape \(1, 9\), not \(1, 7\)"):
        Search(GAME, TorchEvaluator(Wrong(), device="cpu")).run(GAME.initial_state())


def test_an_error_in_the_module_is_the_cause():
    class Broken(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no such layer")

    with pytest.raises(
        EvaluatorError, match=r"raised ValueError on 1 positions: no such layer \(it was given float32 \(1, 2, 6, 7\)\)"
    ) as caught:
        Search(GAME, TorchEvaluator(Broken(), device="cpu")).run(GAME.initial_state())
    assert isinstance(caught.value.__cause__, ValueError)


def test_named_observations_are_passed_by_name():
    class Named(torch.nn.Module):
        def forward(self, *, flat: Any, board: Any) -> Any:
            assert flat.shape == (3, 4) and board.shape == (3, 2, 5)
            return board.sum(dim=1), flat[:, 0]

    board = np.arange(30, dtype=np.float32).reshape(3, 2, 5)
    flat = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    logits, values = TorchEvaluator(Named(), device="cpu").evaluate({"board": board, "flat": flat})
    assert (logits == board.sum(axis=1)).all() and (values == flat[:, 0]).all()


def test_tensors_from_a_function_are_taken_too():
    """A batched function may return tensors, with gradients or without."""
    from windrow.evaluators import from_function

    net = SmallNet().eval()
    for max_batch in (None, 2):
        evaluator = from_function(lambda observations: net(torch.from_numpy(observations)), batched=True)
        config = SearchConfig(num_simulations=10, leaves_per_tree=4, engine=Batched(max_batch=max_batch))
        assert Search(GAME, evaluator, config).run(GAME.initial_state()).visits.sum() == 10
