"""Options of the engines: how each engine runs a search.

`SearchConfig` defines a search. The options here define how an engine runs it: threads, processes, batches and
machines. They change the speed of a search; with a deterministic engine they do not change its result.

    from windrow.engines import Multiprocess

    SearchConfig(engine="multiprocess")                 # the engine with its default options
    SearchConfig(engine=Multiprocess(num_workers=4))    # the engine with one option set

A TOML file has either `engine = "multiprocess"` in the table `[search]`, or a table of its own:

    [search.engine]
    name = "multiprocess"
    num_workers = 4
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from windrow.engine_registry import AUTO, engine_names, is_place, load_engine
from windrow.errors import ConfigError, UnknownKeyError
from windrow.settings import Settings
from windrow.spelling import explain_unknown

__all__ = [
    "Auto",
    "Batched",
    "EngineOptions",
    "HostOptions",
    "Multiprocess",
    "Ray",
    "Sequential",
    "Tensor",
    "Vectorized",
]

Placement: TypeAlias = Literal["spread", "pack"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class EngineOptions(Settings):
    """Base class of the engines' options; also the options of an engine that has none."""

    name: str = ""
    """The engine's name in the registry."""

    @classmethod
    def explain_key(cls, key: str, settings: Mapping[str, Any]) -> str:
        """Explain why a key is unknown; it may be an option of another engine."""
        return explain_option(key, cls().name) or Settings.explain_key.__func__(cls, key, settings)

    def foreign_code(self) -> dict[str, str]:
        """Options, by name, that make this process run code from elsewhere.

        A file does not decide these options, because a stranger may have written it: the user has to repeat them.
        """
        return {}

    def to_dict(self) -> dict[str, Any]:
        """The engine's name and the options that differ from their defaults."""
        default = type(self)()
        changed = {key: value for key, value in self.values().items() if value != getattr(default, key)}
        return {"name": self.name, **changed}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class HostOptions(EngineOptions):
    """Base class of the options of engines that call the evaluator from the CPU."""

    max_batch: int | None = None
    """Maximum number of rows (positions) in one call of the evaluator. None: no limit."""

    def __post_init__(self) -> None:
        self._check_integer("max_batch", 1, 2**31 - 1, is_optional=True)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Sequential(HostOptions):
    """Options of the sequential engine: one leaf at a time."""

    name: str = "sequential"
    """The engine's name."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Batched(HostOptions):
    """Options of the batched engine: several leaves of one tree at a time."""

    name: str = "batched"
    """The engine's name."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Vectorized(HostOptions):
    """Options of the vectorized engine: leaves of many trees at a time."""

    name: str = "vectorized"
    """The engine's name."""
    num_threads: int | None = None
    """Number of threads that grow trees. None: one per 128 trees, at most one per core. With an asynchronous evaluator
    it is three for every four cores instead."""
    pipeline: int | None = None
    """Number of batches in flight at once; with 2 or more, the search selects leaves during inference. None: an
    asynchronous evaluator's own choice (2 on a GPU) if each batch has at least 1,024 leaves, otherwise 1."""

    def __post_init__(self) -> None:
        HostOptions.__post_init__(self)
        self._check_integer("num_threads", 1, 1024, is_optional=True)
        self._check_integer("pipeline", 1, 64, is_optional=True)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Auto(Vectorized):
    """Options of the auto engine, which is the vectorized engine for several trees; one tree uses only `max_batch`."""

    name: str = "auto"
    """The engine's name."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Multiprocess(HostOptions):
    """Options of the multiprocess engine: trees in worker processes, one inference server."""

    name: str = "multiprocess"
    """The engine's name."""
    num_workers: int | None = None
    """Number of worker processes that grow trees. Every worker has at least one tree. None: one per core."""
    pipeline: int | None = None
    """Number of batches that one worker has in flight. None: 2 if the evaluator is asynchronous or a worker has 1,024
    leaves, otherwise 1."""
    max_wait_ms: float = 1.0
    """Maximum time a worker's leaves wait to be batched with others'. A batch is sent at once when every worker is
    waiting."""
    max_inflight_batches: int | None = None
    """Maximum number of batches given to the evaluator at once. None: the evaluator's own choice."""
    max_restarts: int = 2
    """Maximum number of dead workers replaced in one search. One more ends the search with an error."""
    worker_timeout_s: float | None = 60.0
    """Seconds without a sign of life after which a worker is assumed to hang in the game; the search then ends with an
    error. Set it above the time that the game takes for one round of all trees of a worker. None: no limit."""

    def __post_init__(self) -> None:
        HostOptions.__post_init__(self)
        self._check_integer("num_workers", 1, 65536, is_optional=True)
        self._check_integer("pipeline", 1, 64, is_optional=True)
        self._check_number("max_wait_ms", 0.0, 1e6)
        self._check_integer("max_inflight_batches", 1, 64, is_optional=True)
        self._check_integer("max_restarts", 0, 2**31 - 1)
        self._check_number("worker_timeout_s", 1e-3, 1e9, is_optional=True)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Ray(HostOptions):
    """Options of the ray engine: evaluators on a Ray cluster and, in self-play, also the trees."""

    name: str = "ray"
    """The engine's name."""

    # --- The cluster ------------------------------------------------------------------------------------------

    address: str | None = None
    """Address of the cluster. None or "auto": the cluster that this machine belongs to, or a new one on this machine.
    "local": always a new one. Otherwise the address of the cluster's head, such as "10.0.0.1:6379"."""
    num_actors: int = 1
    """Number of inference actors to start, unless the search is given an `InferenceFleet`. 0 (self-play only): every
    worker holds the network itself, which suits workers with a GPU or many cores."""
    cpus_per_actor: float | None = None
    """Number of cores that Ray reserves for an inference actor. None: 1 in self-play. In a search at most 1, and few
    enough that several searches fit into one cluster. In self-play on the CPU an actor evaluates with this many
    threads."""
    gpus_per_actor: float = 0.0
    """Number of GPUs of an inference actor; a fraction lets several actors share one. 0: the actors evaluate on the
    CPU."""
    start_timeout_s: float = 300.0
    """Time limit in seconds for starting the inference actors and, in self-play, the first worker."""

    # --- Batches ----------------------------------------------------------------------------------------------

    max_batch: int | None = None
    """Batch size: a batch of this many rows is sent to an actor at once, and no call has more. A search with fewer
    trees than that has several leaves of each tree in flight. None: chosen from the number of trees and the budget."""
    max_wait_ms: float = 1.0
    """Maximum time in milliseconds that a leaf waits for its batch to fill while other batches are in flight."""
    max_inflight_batches: int | None = None
    """Maximum number of batches in flight, over all actors. None: two per actor."""
    num_threads: int | None = None
    """Number of threads that grow the trees of the search or, in self-play, of each worker. None: chosen from the
    number of trees; in self-play, `cpus_per_worker`."""

    # --- Self-play on the cluster -----------------------------------------------------------------------------

    num_workers: int | None = None
    """Number of workers that play games. None: as many as fit into the cluster."""
    cpus_per_worker: float = 1.0
    """Number of cores that Ray reserves for a worker."""
    gpus_per_worker: float = 0.0
    """Number of GPUs of a worker, or a fraction of one; used with `num_actors=0`."""
    pipeline: int | None = None
    """Number of batches that one worker has in flight. None: 2 if it plays at least 64 games and asks actors, otherwise
    1."""
    placement: Placement = "spread"
    """Placement of workers and actors. "spread": Ray distributes them evenly over the nodes; those that do not fit wait
    for new nodes. "pack": they are reserved together on as few nodes as possible (a placement group), so that most
    leaves stay on their node. The cluster must have room for all of them before anything starts."""
    max_lag: int = 1
    """Maximum number of versions by which a worker's weights may lag behind the newest. A worker that lags further
    waits for newer weights. 0: no worker plays while new weights are being sent."""
    report_s: float = 0.5
    """Seconds between two reports of a worker. This limits how far a worker plays ahead."""
    max_restarts: int = 2
    """Maximum number of times in a row that one worker or one game may be lost. One more ends self-play with an
    error."""
    worker_timeout_s: float | None = 60.0
    """Seconds without a sign of life after which a worker is replaced. None: no limit."""

    def __post_init__(self) -> None:
        HostOptions.__post_init__(self)
        address: Any = self.address
        if address is not None and (not isinstance(address, str) or not address):
            raise ConfigError(f"address must be a string such as 10.0.0.1:6379, not {address!r}")
        self._check_integer("num_actors", 0, 65536)
        self._check_number("cpus_per_actor", 0.0, 4096.0, is_optional=True)
        self._check_number("gpus_per_actor", 0.0, 1024.0)
        self._check_number("start_timeout_s", 1e-3, 1e9)
        self._check_number("max_wait_ms", 0.0, 1e6)
        self._check_integer("max_inflight_batches", 1, 64, is_optional=True)
        self._check_integer("num_threads", 1, 1024, is_optional=True)
        self._check_integer("num_workers", 1, 65536, is_optional=True)
        self._check_number("cpus_per_worker", 0.0, 4096.0)
        self._check_number("gpus_per_worker", 0.0, 64.0)
        self._check_integer("pipeline", 1, 64, is_optional=True)
        self._check_choice("placement", Placement)
        self._check_integer("max_lag", 0, 2**31 - 1)
        self._check_number("report_s", 1e-3, 3600.0)
        self._check_integer("max_restarts", 0, 2**31 - 1)
        self._check_number("worker_timeout_s", 1e-3, 1e9, is_optional=True)
        if self.gpus_per_worker and self.num_actors != 0:
            raise ConfigError("gpus_per_worker is for workers that hold the network themselves: also set num_actors=0")

    def foreign_code(self) -> dict[str, str]:
        """The address: a cluster elsewhere can run code in this process."""
        return {} if self.address in (None, "auto", "local") else {"address": str(self.address)}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Tensor(EngineOptions):
    """Options of the tensor engine: trees, game and network as tensors on one device."""

    name: str = "tensor"
    """The engine's name."""
    game: Any = None
    """The rules in torch ops, for a game for which windrow has none: a `TensorGame`, or the place of a class such as
    "nim.py:NimTensors". The class is created with the game's options. windrow checks that both versions have the same
    rules."""
    device: str = "auto"
    """Device that holds the trees. "auto": the network's device, or the GPU if there is one."""

    def __post_init__(self) -> None:
        if not isinstance(self.device, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f'device must be a string such as "cuda:1", not {self.device!r:.100}')

    def foreign_code(self) -> dict[str, str]:
        """The game, because a class that is named by its place is imported."""
        return {"game": self.game} if isinstance(self.game, str) else {}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class OwnEngine(HostOptions):
    """Options of an engine that is named by its place. Its class is imported when a search or a run is created."""

    name: str = ""
    """Place of the class: `myengine.py:Greedy` or `package.engines:Greedy`."""

    def foreign_code(self) -> dict[str, str]:
        """The engine itself, because it is imported."""
        return {"name": self.name}


BUILT_IN: dict[str, type[EngineOptions]] = {
    kind().name: kind for kind in (Auto, Sequential, Batched, Vectorized, Multiprocess, Ray, Tensor)
}
"""Options classes of windrow's own engines, available without importing the engines."""


def options_class(name: str) -> type[EngineOptions]:
    """Return the options class of an engine.

    Raises:
        ConfigError: there is no engine of this name.
    """
    if is_place(name):
        return OwnEngine  # the name may be a stranger's, in the folder of a run: nothing is imported here
    return BUILT_IN[name] if name in BUILT_IN else load_engine(name).Options


def as_options(engine: object) -> EngineOptions:
    """Return the options for an engine's name, for a table with `name` and options, or for options (unchanged).

    Raises:
        ConfigError: there is no such engine, or it does not have these options.
    """
    if isinstance(engine, type) and issubclass(engine, EngineOptions):
        raise ConfigError(f"engine takes an options object, not the class: write {engine.__name__}()")
    if isinstance(engine, EngineOptions):
        if type(engine) is not (kind := options_class(engine.name)):
            raise ConfigError(f"the {engine.name} engine takes {kind.__name__}, not {type(engine).__name__}")
        return engine
    table = cast("Mapping[str, Any]", engine if isinstance(engine, Mapping) else {"name": engine})
    if (name := table.get("name", AUTO)) not in (known := engine_names()) and not is_place(name):
        hint = explain_unknown(str(name), known, what="choices")
        if str(name).endswith(".py"):
            hint = f"Also name the class in the file, such as {name}:Greedy"
        raise ConfigError(f"engine cannot be {name!r}. {hint}")
    try:
        return options_class(name)(**{"name": name, **table})
    except UnknownKeyError as error:
        raise UnknownKeyError(f"engine {name!r}: {error}") from None


def option_names() -> tuple[str, ...]:
    """Names of all options of all engines whose packages are installed."""
    found: dict[str, None] = {}
    for engine in engine_names():
        with suppress(ImportError, ConfigError):
            found |= dict.fromkeys(options_class(engine).setting_names())
    return tuple(key for key in found if key != "name")


def engines_with(option: str) -> tuple[str, ...]:
    """Names of windrow's own engines that have this option."""
    return tuple(name for name, kind in BUILT_IN.items() if option in kind.setting_names() and option != "name")


def explain_option(key: str, engine: str) -> str | None:
    """Explain that a setting is an option of other engines; None if no engine has it."""
    if not (owners := engines_with(key)):
        return None
    example = engine if engine in owners else next((name for name in owners if name != AUTO), owners[0])
    kind = BUILT_IN[example].__name__
    listed = owners[0] if len(owners) == 1 else f"{', '.join(owners[:-1])} and {owners[-1]}"
    which = f"{key} is an option of the {listed} engine{'s' if len(owners) > 1 else ''}"
    return (
        f"{which if engine in owners else f'{which}, not of {engine}'}. Write engine={kind}({key}=...) in Python, "
        f'[search.engine] with name = "{example}" in a file, --engine {example} on the command line'
    )
