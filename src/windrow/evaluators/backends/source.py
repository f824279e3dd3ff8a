"""What `load` was given: a module, an exported program or an ONNX file, and the inputs it takes.

A `Network` is read once and handed to as many runtimes as are tried. It is a snapshot: what happens to the module
afterwards does not reach the runtimes before `update`.
"""

from __future__ import annotations

import copy
import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast

from windrow.errors import EvaluatorError, MissingExtraError, how_to_install
from windrow.evaluators.backends.catalog import is_installed
from windrow.evaluators.backends.runner import Weights
from windrow.evaluators.backends.weights import read_weights
from windrow.evaluators.positions import Positions
from windrow.games.protocol import Shape

Dims: TypeAlias = "tuple[int | None, ...]"
"""A shape without the batch; None where a file leaves a dimension open."""

_FLOAT = 1  # TensorProto.FLOAT


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a network: its name ("" if the game has only one) and the shape of one row."""

    name: str
    shape: Dims

    def __str__(self) -> str:
        dims = ", ".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"{self.name or 'observations'} [K, {dims}]"


@dataclass(slots=True)
class Network:
    """A network and what it takes.

    inputs: in the order in which arrays are handed to the runtimes.
    module: it as a PyTorch module on the CPU, in float32 and evaluation mode; None if it came as ONNX.
    onnx: it as ONNX, the bytes or the path of a file; None until it is exported.
    calibration: positions to choose quantization ranges by, if there are any.
    held_out: others, to compare backends on.
    state_names: the names of the module's weights, whether they reach the ONNX graph or not.
    label: how messages call it.
    """

    inputs: tuple[Input, ...]
    label: str
    module: Any = None
    onnx: bytes | str | None = None
    calibration: Positions | None = None
    held_out: Positions | None = None
    state_names: frozenset[str] = frozenset()
    _signature: str = field(default="", repr=False)

    @property
    def is_named(self) -> bool:
        """Whether observations come as a mapping of names to arrays."""
        return self.inputs[0].name != "" or len(self.inputs) > 1

    def to_onnx(self) -> bytes | str:
        """The network as ONNX, exported if need be; bytes or the path of a file."""
        if self.onnx is None:
            from windrow.evaluators.backends.export import export_onnx

            self.onnx = export_onnx(self.module, self.inputs, label=self.label)
        return self.onnx

    def require_module(self, backend: str) -> Any:
        """The module, for a backend that runs modules."""
        if self.module is None:
            raise EvaluatorError(
                f"backend {backend!r} runs PyTorch modules, but {self.label} is an ONNX file: load the module itself, "
                'or choose backend="onnxruntime" or "openvino"'
            )
        return self.module

    def weights(self) -> Weights:
        """The weights it came with."""
        if self.module is not None:
            return read_weights(self.module)
        numpy_helper: Any = import_module("onnx.numpy_helper")
        model = read_onnx(self.to_onnx(), label=self.label)
        return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}

    def onnx_weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights in the ONNX model: float32, and not a single number unless the module calls it one."""
        model = read_onnx(self.to_onnx(), label=self.label)
        shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer if tensor.data_type == _FLOAT}
        return {
            name: shape
            for name, shape in shapes.items()
            if (name in self.state_names if self.state_names else shape != ())
        }

    @property
    def signature(self) -> str:
        """Equal for networks of equal shape, whatever their weights."""
        if not self._signature:
            facts = [str(part) for part in self.inputs]
            if self.module is not None:
                facts.append(str(self.module))
                facts += [f"{name} {tuple(value.shape)}" for name, value in self.module.state_dict().items()]
            elif isinstance(self.onnx, str):
                # Weights of the same shapes take the same number of bytes.
                facts += [
                    str(file.stat().st_size) for file in sorted(Path(self.onnx).parent.glob(_siblings(self.onnx)))
                ]
            self._signature = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
        return self._signature


def open_source(source: object, *, inputs: tuple[Input, ...] | None, trust_code: bool = False) -> Network:
    """Read what `load` was given.

    Args:
        source: a `torch.nn.Module`, or the path of a file whose suffix is one of `READERS`.
        inputs: what the game gives; needed for modules, which do not say what they take.
        trust_code: read also files that can hold code, and run it.

    Raises:
        EvaluatorError: it cannot be read, takes other inputs than the game gives, or can hold code.
    """
    torch = sys.modules.get("torch")  # whoever has a module has imported it
    if torch is not None and isinstance(source, torch.nn.Module):
        return _read_module(source, inputs, f"the module {type(source).__name__}")
    if isinstance(source, str | os.PathLike):
        path = Path(cast("str | os.PathLike[str]", source))
        if not path.is_file():
            raise EvaluatorError(f"there is no file {path}: give the path of a network or of a checkpoint")
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise EvaluatorError(
                f"{path} cannot be read; windrow reads {', '.join(READERS)} files. For a state dict, create the "
                "module, call its load_state_dict, and load the module"
            )
        if reader is _read_program and not trust_code:
            raise EvaluatorError(
                f"{path} is a torch.export program. Such a file holds pickles, and loading it runs whatever code is "
                "in them. If you trust its source, write load(path, trust_code=True). An ONNX file of the same "
                "network needs no trust"
            )
        return reader(path, inputs)
    raise EvaluatorError(
        f"a network must be a torch.nn.Module or the path of a file, not {type(source).__name__}: {source!r:.100}. "
        "For a function, use windrow.evaluators.from_function or from_jax"
    )


def check_inputs(taken: tuple[Input, ...], given: tuple[Input, ...], *, label: str, giver: str) -> tuple[Input, ...]:
    """The inputs in the network's order, with the names by which the game gives them.

    Raises:
        EvaluatorError: the network takes other inputs than the game gives.
    """
    by_name = {part.name: part for part in given}
    if len(given) == 1 and given[0].name == "" and len(taken) == 1:
        matched: tuple[Input, ...] | None = given
    elif len(given) == len(taken) and {part.name for part in taken} == set(by_name):
        matched = tuple(by_name[part.name] for part in taken)
    else:
        matched = None
    if matched is None or not all(_fits(one.shape, other.shape) for one, other in zip(taken, matched, strict=True)):
        raise EvaluatorError(
            f"{label} takes {' and '.join(map(str, taken))}, but {giver} gives {' and '.join(map(str, given))}: "
            "export the network for this game, or search the game it was made for"
        )
    return matched


def _fits(taken: Dims, given: Dims) -> bool:
    return len(taken) == len(given) and all(
        one is None or other is None or one == other for one, other in zip(taken, given, strict=True)
    )


def copy_module(module: Any) -> Any:
    """A deep copy."""
    with warnings.catch_warnings():
        # PyTorch's own programs copy what PyTorch has deprecated.
        warnings.simplefilter("ignore", FutureWarning)
        return copy.deepcopy(module)


def read_onnx(location: bytes | str, *, label: str) -> Any:
    """The model as the `onnx` package has it, with weights that lie beside the file."""
    if not is_installed("onnx"):
        raise MissingExtraError(f"the weights of {label} need onnx: {how_to_install('onnx')}")
    onnx: Any = import_module("onnx")
    return onnx.load(location) if isinstance(location, str) else onnx.load_from_string(location)


def game_inputs(observation: Shape | Mapping[str, Shape]) -> tuple[Input, ...]:
    """What a game gives, from its `observation`."""
    if isinstance(observation, Mapping):
        return tuple(Input(name, tuple(shape)) for name, shape in observation.items())
    return (Input("", tuple(observation)),)


# --- Readers: one per kind of file -------------------------------------------------------------------------------


def _read_module(module: Any, inputs: tuple[Input, ...] | None, label: str) -> Network:
    if inputs is None:
        raise EvaluatorError(f"{label} does not declare its inputs: pass game=... or positions=... (observations)")
    try:
        snapshot = copy_module(module).to("cpu").float()
    except Exception as error:
        raise EvaluatorError(f"{label} cannot be copied ({error}): it must support copy.deepcopy") from error
    for part in snapshot.modules():
        part.training = False  # not eval(): programs loaded from files have no such method
    snapshot.requires_grad_(False)
    return Network(inputs, label, module=snapshot, state_names=frozenset(snapshot.state_dict()))


def _read_program(path: Path, inputs: tuple[Input, ...] | None) -> Network:
    """A program saved by `torch.export.save`."""
    if not is_installed("torch"):
        raise MissingExtraError(f"{path} needs PyTorch: {how_to_install('torch')}")
    torch: Any = import_module("torch")
    try:
        program = torch.export.load(path)
    except Exception as error:
        raise EvaluatorError(f"{path} is not a program saved by torch.export.save: {error}") from error
    specs = [node for node in program.graph.nodes if node.op == "placeholder"]
    user = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"}
    taken: list[Input] = []
    for node in specs:
        if node.name in user:
            dims = [dim if isinstance(dim, int) else None for dim in node.meta["val"].shape]
            taken.append(_open_batch(Input(node.name, tuple(dims)), path))
    return _read_module(program.module(), _named_as_given(tuple(taken), inputs, path), str(path))


def _read_onnx(path: Path, inputs: tuple[Input, ...] | None) -> Network:
    """An ONNX file, with any weights that lie beside it."""
    taken = tuple(_open_batch(part, path) for part in _onnx_inputs(path))
    return Network(_named_as_given(taken, inputs, path), str(path), onnx=str(path))


def _named_as_given(taken: tuple[Input, ...], given: tuple[Input, ...] | None, path: Path) -> tuple[Input, ...]:
    """The inputs of a file, checked against those of the game if they are known; a single one has no name."""
    if given is not None:
        return check_inputs(taken, given, label=str(path), giver="the game")
    return (Input("", taken[0].shape),) if len(taken) == 1 else taken


def _onnx_inputs(path: Path) -> list[Input]:
    """The inputs of an ONNX file with their batch, read by whichever runtime is there."""
    try:
        if is_installed("onnxruntime"):
            onnxruntime: Any = import_module("onnxruntime")
            session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            for part in session.get_inputs():
                if part.type != "tensor(float)":
                    raise EvaluatorError(f"{path} takes {part.name} as {part.type}: export it with float32 inputs")
            return [
                Input(part.name, tuple(dim if isinstance(dim, int) else None for dim in part.shape))
                for part in session.get_inputs()
            ]
        if is_installed("openvino"):
            from windrow.evaluators.backends.openvino import shared_core

            return [
                Input(
                    part.get_any_name(),
                    tuple(None if dim.is_dynamic else dim.get_length() for dim in part.get_partial_shape()),
                )
                for part in shared_core().read_model(str(path)).inputs
            ]
    except EvaluatorError:
        raise
    except Exception as error:
        raise EvaluatorError(f"{path} is not an ONNX file that can be read: {error}") from error
    raise MissingExtraError(f"{path} needs a runtime: {how_to_install('onnx')} or {how_to_install('openvino')}")


def _open_batch(part: Input, path: Path) -> Input:
    """The input without its batch, which must be open."""
    if not part.shape or part.shape[0] is not None:
        raise EvaluatorError(
            f"{path} takes {part.name} of the fixed shape {list(part.shape)}: export it with a dynamic batch, "
            'dynamic_shapes=({0: "batch"},)'
        )
    return Input(part.name, part.shape[1:])


def _siblings(path: str) -> str:
    return f"{Path(path).name}*"


READERS: dict[str, Callable[[Path, tuple[Input, ...] | None], Network]] = {
    ".onnx": _read_onnx,
    ".pt2": _read_program,
}
"""By suffix; a new kind of checkpoint is one more entry."""
