"""Run by test_tensor_kernels.py: compiles Triton's kernels for a Hopper GPU, on a machine that may have none."""

from __future__ import annotations

from typing import Any

import tensor_cases as cases
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from windrow import SearchConfig

TARGET = GPUTarget("cuda", 90, 32)
TYPES = {torch.int32: "*i32", torch.int64: "*i64", torch.float32: "*fp32", torch.float64: "*fp64", torch.bool: "*i1"}
SETTINGS: list[dict[str, Any]] = [
    {"dirichlet_fraction": 0.25},
    {"root": "gumbel", "gumbel_scale": 1.0},
    {"on_collision": "share", "leaves_per_tree": 4, "first_play": "parent", "in_flight": "loss"},
]
SELECTION: list[dict[str, Any]] = [
    {
        "root_first_play": 1.0,
        "root_policy_temperature": 2.0,
        "c_puct_growth": 1.0,
        "value_scale": "node",
        "choose": "lcb",
    },
    {
        "root_first_play": "parent",
        "value_scale": "tree",
        "on_collision": "share",
        "leaves_per_tree": 4,
        "choose": "lcb",
    },
]
compiled: set[str] = set()


def compile_kernel(kernel: Any, *given: Any, grid: Any = None, warmup: bool = False, **named: Any) -> None:
    """Compile a kernel for the arguments of a launch, and launch nothing."""
    names = [parameter.name for parameter in kernel.params]
    options = {name: value for name, value in named.items() if name not in names}
    values = dict(zip(names, given, strict=False)) | {name: value for name, value in named.items() if name in names}
    types: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    for index, parameter in enumerate(kernel.params):
        value = values[parameter.name]
        if parameter.is_constexpr:
            types[parameter.name], constants[(index,)] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            types[parameter.name] = TYPES[value.dtype]
        else:
            types[parameter.name] = "fp32" if isinstance(value, float) else "i32"
    key = f"{kernel.__name__} {types} {constants} {options}"
    if key in compiled:
        return
    compiled.add(key)
    options.pop("debug", None)
    made: Any = triton.compile(ASTSource(kernel, types, constexprs=constants), target=TARGET, options=options)
    assert made.asm["cubin"]


def main() -> None:
    """Call every kernel for small and large numbers of actions, with and without chance and proofs."""
    setattr(JITFunction, "run", compile_kernel)  # noqa: B010
    for settings in [*SETTINGS, *SELECTION]:
        for prove in (False, True):
            config = SearchConfig(num_simulations=8, prove=prove, **settings)
            for name in ("connect4", "gomoku", "rafts"):
                states = cases.positions(name, {}, [0, 2])[0]
                search = cases.make_search(
                    name, {}, 2, config, device="cpu", kernels="triton", is_compiled=False, is_captured=False
                )
                search.run(states)
    print(f"compiled {len(compiled)}")


if __name__ == "__main__":
    main()
