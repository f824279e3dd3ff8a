"""The evaluator interface of the tensor engine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from windrow.errors import EvaluatorError

Evaluator: TypeAlias = "Callable[..., tuple[Tensor, Tensor]] | torch.nn.Module"


class WeightCopy(torch.nn.Module):
    """A module that evaluates with a copy of the weights. Every search calls `refresh` before its first evaluation."""

    def refresh(self) -> None:
        """Update the copy in place. The host must not wait for the device: the call is captured in a CUDA graph."""
        raise NotImplementedError


class Network:
    """Wrapper of an evaluator: calls it in evaluation mode, and checks its first answer for each batch size."""

    def __init__(self, evaluator: Any, device: torch.device, num_actions: int) -> None:
        self._call, self._num_actions = evaluator, num_actions
        self._checked: set[int] = set()  # batch sizes whose answers have passed the check
        self.dtype, self.memory_format = torch.float32, torch.contiguous_format
        if isinstance(evaluator, torch.nn.Module):
            evaluator.to(device)
            floating = [tensor for tensor in evaluator.parameters() if tensor.is_floating_point()]
            if len({tensor.dtype for tensor in floating}) > 1:
                kinds = sorted({str(tensor.dtype) for tensor in floating})
                raise EvaluatorError(
                    f"the module mixes {' and '.join(kinds)}: convert it to one type, such as .to(torch.bfloat16)"
                )
            if floating:
                self.dtype = floating[0].dtype
            channels_last = torch.channels_last
            if any(
                tensor.dim() == 4 and tensor.is_contiguous(memory_format=channels_last) and not tensor.is_contiguous()
                for tensor in floating
            ):
                self.memory_format = channels_last

    def __call__(self, observations: Any) -> tuple[Tensor, Tensor]:
        """Return (logits [rows, A], values [rows]), contiguous."""
        named = cast("Mapping[str, Tensor]", observations) if isinstance(observations, Mapping) else None
        with self.evaluating():
            answer: Any = self._call(observations) if named is None else self._call(**named)
        num_rows = len(cast("Tensor", observations) if named is None else next(iter(named.values())))
        if num_rows not in self._checked:
            self._check(answer, num_rows)
        logits, values = answer
        return logits.contiguous(), values.reshape(-1)

    def refresh(self) -> None:
        """Update the copy of the weights if the evaluator uses one. Does not wait for the device; can be captured."""
        if isinstance(self._call, WeightCopy):
            self._call.refresh()

    @contextmanager
    def evaluating(self) -> Generator[None]:
        """Return a context in which all submodules are in evaluation mode."""
        parts = self._call.modules() if isinstance(self._call, torch.nn.Module) else ()
        training = [part for part in parts if part.training]
        for part in training:
            part.training = False
        try:
            yield
        finally:
            for part in training:
                part.training = True

    def _check(self, answer: Any, num_rows: int) -> None:
        num_actions = self._num_actions
        parts: list[Any] = [*answer] if isinstance(answer, tuple | list) else [answer]
        if len(parts) != 2:
            kinds = ", ".join(type(part).__name__ for part in parts)
            raise EvaluatorError(f"the evaluator must return logits [B, A] and values [B], not ({kinds})")
        for name, tensor, shapes in (
            ("logits", parts[0], [(num_rows, num_actions)]),
            ("values", parts[1], [(num_rows,), (num_rows, 1)]),
        ):
            if not isinstance(tensor, Tensor) or tuple(tensor.shape) not in shapes:
                got = tuple(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
                raise EvaluatorError(f"the evaluator's {name} must be {shapes[0]}, not {got}")
            if tensor.dtype not in (torch.float32, torch.bfloat16, torch.float16):
                raise EvaluatorError(
                    f"the evaluator's {name} are {tensor.dtype}: return float32, bfloat16 or float16 (the search "
                    "converts them to float32)"
                )
        self._checked.add(num_rows)
