"""The operations on trees in two versions: `..._torch.py` in plain torch ops, and `..._triton.py` as Triton kernels.

The functions of a pair have the same names and signatures, and their results are equal bit by bit. The plain versions
run on any device. Their loops wait for the device in every step, so they are slow on a GPU.

    one_leaf    one simulation of every tree: the fast path for K = 1, and the evaluation of new roots
    rounds      K simulations of every tree at a time, selected without each other's results
    proofs      proven values, which the functions above follow up the tree
    spread      the exploration constant where it differs between nodes, and the spread of values it may depend on
    gumbel      the Gumbel root, which divides its simulations by sequential halving
    noise       temperature and Dirichlet noise of the priors at the roots
    outcomes    draws of chance outcomes
    numerics    exp, log, softmax and random numbers, with the same bits as `windrow.numerics`
    tower       a residual network in one kernel; its two versions agree only up to rounding
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
    """Return the modules of one version, "torch" or "triton". Triton is imported only here."""
    try:
        return Kernels(*(import_module(f"windrow.tensor.ops.{part}_{name}") for part in Kernels._fields))
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise MissingExtraError(
            'kernels="triton" needs Triton, which comes with PyTorch for CUDA; kernels="torch" runs without it, but '
            "is slow"
        ) from error
