"""All backends by name, with their requirements."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from windrow.errors import ConfigError, EvaluatorError, MissingExtraError, how_to_install
from windrow.spelling import explain_unknown

if TYPE_CHECKING:
    from windrow.evaluators.backends.runner import Runner
    from windrow.evaluators.backends.source import Network

Precision: TypeAlias = Literal["f32", "bf16", "int8"]
Device: TypeAlias = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Backend:
    """One way to evaluate a network.

    family: the backends among which `precision` chooses.
    build: import string of `build(network, backend, num_threads) -> Runner`.
    packages: what must be importable, beside what a module's export needs.
    extra: what to install if it is not.
    takes_onnx: whether it reads ONNX; otherwise it runs the module itself.
    is_quick: whether it is built in about a second, so that "auto" may try it.
    """

    name: str
    family: str
    precision: Precision
    device: Device
    build: str
    packages: tuple[str, ...]
    extra: str
    takes_onnx: bool = False
    is_quick: bool = True

    def missing(self) -> str | None:
        """Why this machine cannot run it and what to do; None if it can."""
        absent = [package for package in self.packages if not is_installed(package)]
        if absent:
            return f"{' and '.join(absent)} not installed: {how_to_install(self.extra)}"
        probe = _PROBES.get(self.name)
        return probe() if probe is not None else None

    def require(self) -> None:
        """Raise unless this machine can run it."""
        if (reason := self.missing()) is None:
            return
        message = f"backend {self.name!r} cannot be used here: {reason}"
        raise MissingExtraError(message) if "pip install" in reason else EvaluatorError(message)

    def make(self, network: Network, *, num_threads: int, is_exact_count: bool = True) -> Runner:
        """The network in this runtime, with so many threads; or with at most so many, where others need the cores."""
        self.require()
        module, _, attribute = self.build.partition(":")
        factory = cast("Callable[..., Runner]", getattr(import_module(module), attribute))
        more = {"is_exact_count": is_exact_count} if self.build == _TORCH_CPU else {}
        return factory(network, backend=self, num_threads=num_threads, **more)


_TORCH_CPU = "windrow.evaluators.backends.torch_cpu:build"
_TORCH_CUDA = "windrow.evaluators.backends.torch_cuda:build"
_ONNX = "windrow.evaluators.backends.onnx_runtime:build"
_OPENVINO = "windrow.evaluators.backends.openvino:build"


def _torch(name: str, family: str, precision: Precision, device: Device = "cpu", *, is_quick: bool = True) -> Backend:
    build = _TORCH_CPU if device == "cpu" else _TORCH_CUDA
    return Backend(name, family, precision, device, build, ("torch",), "torch", is_quick=is_quick)


def _onnx(name: str, precision: Precision, device: Device, *, is_quick: bool = True) -> Backend:
    return Backend(name, name, precision, device, _ONNX, ("onnxruntime",), "onnx", takes_onnx=True, is_quick=is_quick)


def _openvino(name: str, precision: Precision, *packages: str, extra: str = "openvino") -> Backend:
    needed = ("openvino", *packages)
    return Backend(name, "openvino", precision, "cpu", _OPENVINO, needed, extra, takes_onnx=True)


BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (
        _torch("torch", "torch", "f32"),
        _torch("torch-channels-last", "torch-channels-last", "f32"),
        _torch("torch-bf16", "torch", "bf16"),
        _torch("torch-compile", "torch-compile", "f32", is_quick=False),
        _onnx("onnxruntime", "f32", "cpu"),
        _openvino("openvino", "f32"),
        _openvino("openvino-bf16", "bf16"),
        _openvino("openvino-int8", "int8", "nncf", extra="int8"),
        _torch("cuda", "cuda", "f32", "cuda"),
        _torch("cuda-bf16", "cuda", "bf16", "cuda"),
        _torch("cuda-compile", "cuda-compile", "bf16", "cuda", is_quick=False),
        _onnx("onnxruntime-cuda", "f32", "cuda"),
        _onnx("tensorrt", "bf16", "cuda", is_quick=False),
    )
}


def find_backend(name: str, precision: str | None = None) -> Backend:
    """The backend called `name`, or its relative of that precision: "openvino" with "bf16" is "openvino-bf16"."""
    if name not in BACKENDS:
        known = explain_unknown(name, ["auto", *BACKENDS], what="backends")
        raise ConfigError(f"there is no backend {name!r}. {known}")
    backend = BACKENDS[name]
    check_precision(precision)
    if precision is None or backend.precision == precision:
        return backend
    family = [other for other in BACKENDS.values() if other.family == backend.family]
    for other in family:
        # "openvino-bf16" with precision="int8" contradicts itself; only the plain name leaves the precision open.
        if name == backend.family and other.precision == precision:
            return other
    has = " or ".join(other.precision for other in family) if name == backend.family else backend.precision
    raise ConfigError(f"backend {name!r} computes in {has}, not in precision={precision!r}: remove one of the two")


def check_precision(precision: str | None) -> None:
    """Raise unless `precision` is one there is."""
    known = ("f32", "bf16", "int8")
    if precision is not None and precision not in known:
        raise ConfigError(f"precision cannot be {precision!r}. {explain_unknown(precision, known, what='choices')}")


def select_backends(
    *, precision: str | None = None, device: str | None = None, names: Iterable[str] | None = None
) -> list[Backend]:
    """The backends that "auto" has to choose from, whether this machine has them or not.

    Args:
        precision: only of this one.
        device: only on this one.
        names: only these; otherwise all that are built quickly.
    """
    check_precision(precision)
    if device not in (None, "cpu", "cuda"):
        raise ConfigError(f'device must be "cpu", "cuda", or None for both, not {device!r}')
    backends = [find_backend(name) for name in names] if names is not None else list(BACKENDS.values())
    return [
        backend
        for backend in backends
        if (names is not None or backend.is_quick)
        and precision in (None, backend.precision)
        and device in (None, backend.device)
    ]


@cache
def is_installed(package: str) -> bool:
    """Whether `package` can be imported; it is not."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # something stands in the way of finding it, so of importing it too
        return False


# --- What a package being there does not tell --------------------------------------------------------------------


def cpu_has_bf16() -> bool:
    """Whether the CPU multiplies bfloat16 by itself; without that it is slower than float32."""
    return any(flag in _cpu_flags() for flag in ("avx512_bf16", "amx_bf16", " bf16 "))


def cpu_overflows() -> bool:
    """Whether the CPU adds products of 8-bit numbers in 16 bits, where they overflow: x86 not known to have VNNI."""
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    return is_x86 and not any(flag in _cpu_flags() for flag in ("avx512_vnni", "avx_vnni", "amx_int8"))


@cache
def _cpu_flags() -> str:
    """What Linux tells of the CPU; nothing elsewhere."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def _openvino_lacks_bf16() -> str | None:
    from windrow.evaluators.backends.openvino import shared_core

    capabilities: list[str] = shared_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return None if "BF16" in capabilities else "this CPU has no bfloat16 instructions: use openvino or openvino-int8"


def _no_gpu() -> str | None:
    torch: Any = import_module("torch")
    return None if torch.cuda.is_available() else "PyTorch finds no GPU: use a CPU backend"


def _lacks_provider(provider: str) -> Callable[[], str | None]:
    def probe() -> str | None:
        onnxruntime: Any = import_module("onnxruntime")
        if provider in onnxruntime.get_available_providers():
            return None
        return f"this build of ONNX Runtime has no {provider}: install onnxruntime-gpu instead"

    return probe


_PROBES: dict[str, Callable[[], str | None]] = {
    "openvino-bf16": _openvino_lacks_bf16,
    "cuda": _no_gpu,
    "cuda-bf16": _no_gpu,
    "cuda-compile": _no_gpu,
    "onnxruntime-cuda": _lacks_provider("CUDAExecutionProvider"),
    "tensorrt": _lacks_provider("TensorrtExecutionProvider"),
}
