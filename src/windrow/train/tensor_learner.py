"""The learner on the device: draws from the replay there and learns, without the host waiting for anything.

On a GPU a whole step (draw, forward, backward, clip, AdamW) is captured once in a CUDA graph and replayed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from windrow.errors import TrainingError
from windrow.tensor.play.replay import TensorReplay
from windrow.train.learner import Learner, LearnerConfig, as_targets

_ILLEGAL = -1e9
"""Logit of an illegal action: finite, so that zero times its logarithm is zero."""
_WARM_UPS = 3
_METRICS = (
    *("loss", "policy_loss", "value_loss", "value_error", "policy_entropy"),
    *("target_entropy", "uniform_policy_loss", "value_variance", "grad_norm"),
)


class TensorLearner(Learner):
    """`Learner` over a `TensorReplay`; state, losses and learning rates are the same.

    Args:
        net: the network; its weights are changed in place.
        generator: the replay's; a graph has to know it.
        is_compiled: translate the network with torch.compile.
    """

    def __init__(
        self,
        net: torch.nn.Module,
        config: LearnerConfig,
        replay: TensorReplay,
        *,
        device: torch.device,
        generator: torch.Generator,
        is_compiled: bool = False,
    ) -> None:
        super().__init__(net, config, device)
        self._replay, self._generator = replay, generator
        self._model: Any = torch.compile(self.net, dynamic=False) if is_compiled else self.net
        self._graph: torch.cuda.CUDAGraph | None = None
        self._rate = torch.zeros((), device=device)
        self._last_rate = 0.0
        self._sums = torch.zeros(len(_METRICS), dtype=torch.float64, device=device)
        self._num_summed = 0
        if device.type == "cuda":
            for group in self._optimizer.param_groups:
                group["capturable"], group["lr"] = True, self._rate

    def prepare(self) -> None:
        """On a GPU, compile and capture a step; the weights are left as they are."""
        if self.device.type != "cuda" or self._graph is not None:
            return
        moving = [*self._parameters.values(), *self._buffers.values(), self._sums]
        moving += [tensor for kept in self._optimizer.state.values() for tensor in kept.values()]
        before = [tensor.detach().clone() for tensor in moving]
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                self._learn()
        torch.cuda.synchronize(self.device)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph, stream=stream):
            self._learn()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        with torch.no_grad():
            for tensor, old in zip(moving, before, strict=True):
                tensor.copy_(old)
        self._graph = graph

    def learn(self, *, progress: float) -> None:
        """One step from a batch of the replay. `progress`: share of the run that is done, from 0 to 1."""
        self._last_rate = self.config.learning_rate_at(self.num_steps, progress)
        if self._graph is not None:
            self._rate.fill_(self._last_rate)
            self._graph.replay()
        else:
            if self.device.type == "cuda":
                self._rate.fill_(self._last_rate)
            else:
                for group in self._optimizer.param_groups:
                    group["lr"] = self._last_rate
            self._learn()
        self.num_steps += 1
        self._num_summed += 1

    def read_metrics(self) -> dict[str, float]:
        """Means over the steps since the last call, and the learning rate; waits for the device.

        Raises:
            TrainingError: a loss or a gradient was not a number: the weights are spoiled.
        """
        if not self._num_summed:
            return {}
        sums: list[float] = self._sums.cpu().numpy().tolist()
        means = {name: total / self._num_summed for name, total in zip(_METRICS, sums, strict=True)}
        self._sums.zero_()
        self._num_summed = 0
        if bad := [name for name, mean in means.items() if not math.isfinite(mean)]:
            raise TrainingError(
                f"learning failed before step {self.num_steps}: {', '.join(bad)} became NaN or infinite, and the "
                f"weights with it. Lower learning_rate ({self.config.learning_rate:g}), or set "
                'precision="f32"'
            )
        return {**means, "learning_rate": self._last_rate}

    def _learn(self) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        batch = self._replay.sample(self.config.batch_size)
        # Weights change in every step, and so do their copies in bfloat16: there is nothing to cache.
        is_short = self.precision == "bf16"
        with self._training():
            with torch.autocast(self.device.type, torch.bfloat16, enabled=is_short, cache_enabled=False):
                shown: Any = batch.observations
                if isinstance(shown, Mapping):
                    answer: Any = self._model(**{name: _last(part) for name, part in cast("Any", shown).items()})
                else:
                    answer = self._model(_last(shown))
            logits, values = answer[0].float(), as_targets(answer[1].float(), batch.value)
            log_policy = functional.log_softmax(logits.masked_fill(~batch.legal, _ILLEGAL), dim=-1)
            share = batch.weight / batch.weight.sum().clamp_min(1.0)
            policy_loss = -((batch.policy * log_policy).sum(-1) * share).sum()
            value_loss = ((values - batch.value).square() * share).sum()
            loss = policy_loss + self.config.value_weight * value_loss
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._parameters.values(), self.config.max_grad_norm)
        self._optimizer.step()
        with torch.no_grad():
            value_error = ((values - batch.value).abs() * share).sum()
            entropy = -((log_policy.exp() * log_policy).sum(-1) * share).sum()
            target_entropy = -(torch.xlogy(batch.policy, batch.policy).sum(-1) * share).sum()
            uniform_loss = (batch.legal.sum(-1).clamp_min(1).log() * share).sum()
            variance = ((batch.value - (batch.value * share).sum()).square() * share).sum()
            measured: list[Tensor] = [loss, policy_loss, value_loss, value_error, entropy]
            measured += [target_entropy, uniform_loss, variance, norm]
            self._sums += torch.stack([one.detach().double() for one in measured])


def _last(part: Tensor) -> Tensor:
    return part.contiguous(memory_format=torch.channels_last) if part.ndim == 4 else part
