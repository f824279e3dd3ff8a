"""`windrow info`: what is installed and what the machine has."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer

from windrow.cli.options import JsonOption
from windrow.cli.output import print_facts, print_json, print_table
from windrow.cores import num_cores
from windrow.distribution import NAME
from windrow.evaluators.backends.catalog import BACKENDS, cpu_has_bf16, is_installed
from windrow.files import cache_folder
from windrow.memory import spare_memory
from windrow.play.specs import parse_game

EXTRAS: dict[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "openvino": ("openvino",),
    "int8": ("openvino", "nncf"),
    "jax": ("jax",),
    "numba": ("numba",),
    "openspiel": ("open_spiel",),
    "pettingzoo": ("pettingzoo",),
    "ray": ("ray",),
    "web": ("fastapi", "uvicorn"),
    "cli": ("typer", "rich"),
    "train": ("torch", "safetensors", "tensorboard", "typer", "rich"),
}


EXAMPLES = (
    "windrow info",
    "windrow info --json # to put into a bug report",
    "windrow info --memory gomoku --sims 400 --trees 512 # what the tensor engine will need",
)


def info(
    game: Annotated[
        str | None,
        typer.Option("--memory", metavar="GAME", help="Say instead what trees of this game need on a GPU."),
    ] = None,
    sims: Annotated[int, typer.Option("--sims", "-n", help="With --memory: simulations per search.", min=1)] = 400,
    trees: Annotated[int, typer.Option("--trees", help="With --memory: games searched at once.", min=1)] = 1024,
    as_json: JsonOption = False,
) -> None:
    """Show versions, devices, threads, extras that are installed, and where things are kept."""
    if game is not None:
        _print_memory(game, sims, trees, as_json=as_json)
        return
    document = collect()
    if as_json:
        print_json(document)
        return
    print_facts({name: str(value) for name, value in document["system"].items()})
    print()
    extras = [
        (name, "installed" if not extra["missing"] else "missing " + ", ".join(extra["missing"]), extra["versions"])
        for name, extra in document["extras"].items()
    ]
    print_table(("extra", "<state", "<versions"), [(name, state, _list(found)) for name, state, found in extras])
    print()
    backends = [(name, "usable" if reason is None else reason) for name, reason in document["backends"].items()]
    print_table(("backend", "<state"), backends)


def _print_memory(game: str, sims: int, trees: int, *, as_json: bool) -> None:
    """What the tensor engine would take, before it takes it."""
    from windrow.tensor import make_game, memory_needed

    rules = parse_game(game)
    needed = memory_needed(make_game(rules.name, **rules.options), sims, trees)
    document = {"game": repr(rules), "num_simulations": sims, "num_trees": trees, "bytes": needed}
    if as_json:
        print_json({**document, "bytes_per_tree": needed // trees, "gpu": _gpus()})
        return
    print_facts(
        {
            "trees": f"{trees:,} of {rules!r}, {sims:,} simulations each",
            "needed": f"{needed / 2**30:.2f} GiB on the GPU, {needed / trees / 2**10:.0f} KiB a tree",
            "besides": "the network and its activations",
            "GPU": _gpus(),
        }
    )


def collect() -> dict[str, Any]:
    """All of it as plain values."""
    return {
        "system": {
            "windrow": _version(NAME),
            "python": platform.python_version(),
            "numpy": _version("numpy"),
            "system": platform.platform(),
            "cores": num_cores(),
            "bfloat16 on the CPU": "yes" if cpu_has_bf16() else "no",
            "memory to spare": f"{spare_memory() / 2**30:.1f} GiB",
            "GPU": _gpus(),
            "threads of PyTorch": _torch_threads(),
            "cache folder": str(cache_folder()),
        },
        "extras": {
            name: {
                "missing": [package for package in packages if not is_installed(package)],
                "versions": {package: _version(package) for package in packages if is_installed(package)},
            }
            for name, packages in EXTRAS.items()
        },
        "backends": {name: backend.missing() for name, backend in BACKENDS.items()},
    }


def _list(versions: dict[str, str]) -> str:
    return ", ".join(f"{package} {found}" for package, found in versions.items())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _gpus() -> str:
    if not is_installed("torch"):
        return "unknown, because PyTorch is not installed"
    import torch

    if not torch.cuda.is_available():
        return "none that PyTorch can use"
    return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


def _torch_threads() -> str:
    if not is_installed("torch"):
        return "PyTorch is not installed"
    import torch

    return str(torch.get_num_threads())
