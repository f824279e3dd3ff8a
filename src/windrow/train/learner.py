"""The learner: takes batches and improves the weights, with the same bits after every restart.

On the CPU the network is kept in the memory layout (channels last) and, if the processor supports it, the precision
(bfloat16) that are fastest there; `bench/learner.py` prints the difference.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from windrow.errors import TrainingError
from windrow.evaluators.backends.catalog import cpu_has_bf16
from windrow.train.learner_config import LearnerConfig
from windrow.train.replay import Batch

__all__ = ["Learner", "LearnerConfig", "step_rng"]

_MOMENTS = ("exp_avg", "exp_avg_sq")
_ILLEGAL = -1e9
"""Logit of an illegal action: finite, so that zero times its logarithm is zero."""


def step_rng(seed: int, step: int) -> np.random.Generator:
    """The random numbers of one step of a run: Philox keyed by (seed, step), so there is nothing to save."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, step], np.uint64)))


def as_targets(values: Tensor, targets: Tensor) -> Tensor:
    """Values of a network in the shape of their targets; those of one player may be [K, 1]."""
    return values[:, 0] if values.shape == (*targets.shape, 1) else values


class Learner:
    """Trains a network with AdamW on the policy's cross-entropy over the legal actions and the value's squared error.

    Args:
        net: the network. It is moved to `device`, and its weights are changed in place.
        config: settings of the learner.
        device: "cpu", "cuda", or "auto" for the GPU if there is one.
        deterministic: use algorithms that give the same bits every time, even where others are faster.
        num_threads: number of CPU threads that learn. None: PyTorch's number. The last bits of sums depend on it.
    """

    def __init__(
        self,
        net: Any,
        config: LearnerConfig | None = None,
        device: str | torch.device = "auto",
        *,
        deterministic: bool = False,
        num_threads: int | None = None,
    ) -> None:
        self.config = config or LearnerConfig()
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise TrainingError(f'device="{device}" needs a GPU, and PyTorch finds none: use device="cpu"')
        self.net: torch.nn.Module = net.to(self.device, memory_format=torch.channels_last)
        self.deterministic = deterministic
        if deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS is first used
        self.num_threads = num_threads or torch.get_num_threads()
        precision = self.config.precision
        has_bf16 = self.device.type == "cuda" or cpu_has_bf16()
        self.precision: str = precision if precision != "auto" else "bf16" if has_bf16 else "f32"
        self.num_steps = 0
        self._parameters: dict[str, Tensor] = dict(self.net.named_parameters())
        self._buffers: dict[str, Tensor] = dict(self.net.named_buffers())
        weights = [one for one in self._parameters.values() if one.ndim > 1]
        others = [one for one in self._parameters.values() if one.ndim <= 1]
        groups = [
            {"params": weights, "weight_decay": self.config.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        self._optimizer = torch.optim.AdamW([group for group in groups if group["params"]], fused=True)
        for parameter in self._parameters.values():
            self._optimizer.state[parameter] = {
                "step": torch.zeros((), device=self.device),
                **{moment: torch.zeros_like(parameter) for moment in _MOMENTS},
            }

    # --- Learning ---------------------------------------------------------------------------------------------

    def step(self, batch: Batch, *, progress: float | None = None) -> dict[str, float]:
        """Learn from a batch; blocks. Return metrics, measured before the weights changed.

        Args:
            batch: positions to learn from.
            progress: share of the run that is done, from 0 to 1; see `LearnerConfig.total_steps`.

        Returns:
            loss, policy_loss, value_loss, value_error (mean distance from the target), policy_entropy (of the network's
            policy), target_entropy (of the policy to learn), grad_norm (before clipping) and learning_rate. Two more
            are for comparison with a network that knows nothing: uniform_policy_loss is the policy_loss of a uniform
            policy, and value_variance is the value_loss of the best constant.

        Raises:
            TrainingError: the loss or its gradient is not finite. The weights are unchanged.
        """
        learning_rate = self.config.learning_rate_at(self.num_steps, progress)
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        before = {name: buffer.clone() for name, buffer in self._buffers.items()}
        self._optimizer.zero_grad(set_to_none=True)
        with self._arithmetic():
            with self._training():
                loss, parts = self._loss(batch)
                loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(self._parameters.values(), self.config.max_grad_norm)
            # The one time that the GPU is waited for.
            numbers: list[float] = torch.stack([loss.detach(), *parts.values(), norm]).cpu().numpy().tolist()
            measured = dict(zip(("loss", *parts, "grad_norm"), numbers, strict=True))
            if not all(math.isfinite(number) for number in numbers):
                self._optimizer.zero_grad(set_to_none=True)
                for name, buffer in self._buffers.items():
                    buffer.copy_(before[name])  # the norms have seen the batch already
                raise TrainingError(self._explain(measured))
            self._optimizer.step()
        self.num_steps += 1
        return {**measured, "learning_rate": learning_rate}

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss and the metrics."""
        policy, value, legal = (self._tensor(part) for part in (batch.policy, batch.value, batch.legal))
        with self._precision():
            if isinstance(batch.observations, Mapping):
                answer: Any = self.net(**{name: self._tensor(part) for name, part in batch.observations.items()})
            else:
                answer = self.net(self._tensor(batch.observations))
        logits, values = answer[0].float(), as_targets(answer[1].float(), value)
        if values.shape != value.shape:
            raise TrainingError(
                f"the network gives values {tuple(values.shape)}, but the batch has targets {tuple(value.shape)}: a "
                "network with one value per player needs Replay(..., is_per_player=True)"
            )
        log_policy = functional.log_softmax(logits.masked_fill(~legal, _ILLEGAL), dim=-1)
        policy_loss = -(policy * log_policy).sum(-1).mean()
        value_loss = functional.mse_loss(values, value)
        with torch.no_grad():
            parts = {
                "policy_loss": policy_loss.detach(),
                "value_loss": value_loss.detach(),
                "value_error": (values - value).abs().mean(),
                "policy_entropy": -(log_policy.exp() * log_policy).sum(-1).mean(),
                "target_entropy": -torch.xlogy(policy, policy).sum(-1).mean(),
                "uniform_policy_loss": legal.sum(-1).float().log().mean(),
                "value_variance": value.var(0, correction=0).mean(),
            }
        return policy_loss + self.config.value_weight * value_loss, parts

    def _tensor(self, array: Any) -> Tensor:
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":
            tensor = tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.precision == "bf16" else nullcontext()

    @contextmanager
    def _training(self) -> Generator[None]:
        """The network in training mode, for a while."""
        was_training = self.net.training
        self.net.train()
        try:
            yield
        finally:
            self.net.train(was_training)

    @contextmanager
    def _arithmetic(self) -> Generator[None]:
        """PyTorch's settings during a step. They belong to the whole process, so they are restored."""
        threads = torch.get_num_threads()
        is_strict = torch.are_deterministic_algorithms_enabled()
        only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
        if threads != self.num_threads:
            torch.set_num_threads(self.num_threads)
        if self.deterministic:
            torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(is_strict, warn_only=only_warns)
            if threads != self.num_threads:
                torch.set_num_threads(threads)

    def _explain(self, measured: dict[str, float]) -> str:
        bad = ", ".join(f"{name} is {number}" for name, number in measured.items() if not math.isfinite(number))
        return (
            f"learning failed at step {self.num_steps}: {bad}. The weights are unchanged since the step before. Lower "
            f"learning_rate ({self.config.learning_rate:g}) or max_grad_norm ({self.config.max_grad_norm:g}), or set "
            'precision="f32"'
        )

    # --- Going on later ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """A copy of all that `load_state` needs to continue exactly, on the CPU and fit for safetensors.

        Names begin with "net." for weights, and with "exp_avg." and "exp_avg_sq." for AdamW's moments, which have the
        shape of the weights. "step" counts the steps.
        """
        tensors = {f"net.{name}": tensor for name, tensor in self.net.state_dict().items()}
        for name, parameter in self._parameters.items():
            for moment in _MOMENTS:
                tensors[f"{moment}.{name}"] = self._optimizer.state[parameter][moment]
        copied = {
            name: tensor.detach().to("cpu", copy=True).contiguous(memory_format=torch.contiguous_format)
            for name, tensor in tensors.items()
        }
        return {**copied, "step": torch.tensor(self.num_steps, dtype=torch.int64)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a saved state.

        Raises:
            TrainingError: the state is from another network; nothing has changed.
        """
        there = self.state()
        missing = [name for name in there if name not in state]
        unknown = [name for name in state if name not in there]
        shapes = [name for name in there if name in state and state[name].shape != there[name].shape]
        if problems := [*missing, *unknown, *shapes]:
            few = ", ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else "")
            raise TrainingError(
                f"this state is from another network; it differs in {few}. Make the network from the checkpoint's "
                "own spec"
            )
        with torch.no_grad():
            for name, tensor in self.net.state_dict().items():
                tensor.copy_(state[f"net.{name}"])
            self.num_steps = int(state["step"])
            for name, parameter in self._parameters.items():
                kept = self._optimizer.state[parameter]
                kept["step"].fill_(self.num_steps)
                for moment in _MOMENTS:
                    kept[moment].copy_(state[f"{moment}.{name}"])
