"""The work on the trees, twice: `..._torch.py` in plain torch ops, beside it `..._triton.py` as Triton kernels.

Functions of a pair have the same names and signatures, and give the same bits. The plain ones run anywhere; their loops
end when every tree is done, which asks the device, so on a GPU they are slow.

    one_leaf    one simulation of every tree: the fast path of K = 1, and the evaluation of new roots
    rounds      K simulations of every tree at a time, which do not know of each other's results
    gumbel      a root that spends its simulations by sequential halving
    noise       Dirichlet noise at the roots
    outcomes    which outcome of chance comes
    numerics    exp, log, softmax and random numbers, as the law defines them
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from windrow.errors import MissingExtraError


class Kernels(NamedTuple):
    """The modules that a search calls, all in plain torch ops or all in Triton."""

    one_leaf: ModuleType
    rounds: ModuleType
    gumbel: ModuleType
    noise: ModuleType


def load_kernels(name: str) -> Kernels:
    """The plain torch ops or Triton's kernels. Triton is imported when it is used, not before."""
    try:
        return Kernels(*(import_module(f"windrow.tensor.ops.{part}_{name}") for part in Kernels._fields))
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise MissingExtraError(
            'the kernels of the tensor engine need Triton, which comes with PyTorch for CUDA; kernels="torch" runs '
            "without it, slowly"
        ) from error
