"""The engines' options: how each engine runs a search.

`SearchConfig` says what a search means. The options say how an engine carries it out: threads, processes, batches,
machines. They change the speed of a search, not its result, wherever the engine is deterministic.

    from windrow.engines import Multiprocess

    SearchConfig(engine="multiprocess")                       the engine with its default options
    SearchConfig(engine=Multiprocess(num_workers=4))          with an option set

In a TOML file that is `engine = "multiprocess"` in the table `[search]`, or a table of its own:

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
    """Options of an engine. The class of an engine without any, and the base of all others."""

    name: str = ""
    """The engine's name in the registry."""

    @classmethod
    def explain_key(cls, key: str, settings: Mapping[str, Any]) -> str:
        """Why a key is unknown; it may be an option of another engine."""
        return explain_option(key, cls().name) or Settings.explain_key.__func__(cls, key, settings)

    def foreign_code(self) -> dict[str, str]:
        """Options that let code from elsewhere run in this process, by name.

        A file that a stranger may have written does not decide these: the user has to repeat them.
        """
        return {}

    def to_dict(self) -> dict[str, Any]:
        """The name, and the options that differ from their defaults."""
        usual = type(self)()
        changed = {key: value for key, value in self.values().items() if value != getattr(usual, key)}
        return {"name": self.name, **changed}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class HostOptions(EngineOptions):
    """Options of an engine that calls the evaluator from the host."""

    max_batch: int | None = None
    """Maximum number of rows in one call of the evaluator. None: no limit."""

    def __post_init__(self) -> None:
        self._check_integer("max_batch", 1, 2**31 - 1, is_optional=True)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Sequential(HostOptions):
    """Options of the sequential engine: one leaf at a time."""

    name: str = "sequential"
    """The engine's name."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Batched(HostOptions):
    """Options of the batched engine: many leaves of one tree at a time."""

    name: str = "batched"
    """The engine's name."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Vectorized(HostOptions):
    """Options of the vectorized engine: leaves of many trees at a time."""

    name: str = "vectorized"
    """The engine's name."""
    num_threads: int | None = None
    """Threads that grow trees. None: one for every 128 trees, at most one per core, or three for every four cores if
    the evaluator works asynchronously."""
    pipeline: int | None = None
    """Batches in flight at once, so that selection goes on during inference. None: as many as an asynchronous evaluator
    prefers (2 on a GPU) if each batch has 1,024 leaves or more, else 1."""

    def __post_init__(self) -> None:
        HostOptions.__post_init__(self)
        self._check_integer("num_threads", 1, 1024, is_optional=True)
        self._check_integer("pipeline", 1, 64, is_optional=True)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Auto(Vectorized):
    """Options of the auto engine. For many trees it is the vectorized engine; one tree uses `max_batch` alone."""

    name: str = "auto"
    """The engine's name."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Multiprocess(HostOptions):
    """Options of the multiprocess engine: trees in worker processes, one inference server."""

    name: str = "multiprocess"
    """The engine's name."""
    num_workers: int | None = None
    """Processes that grow trees; each has at least one tree. None: one per core."""
    pipeline: int | None = None
    """Batches that one worker has in flight. None: 2 if the evaluator is asynchronous or a worker has 1,024 leaves,
    else 1."""
    max_wait_ms: float = 1.0
    """Maximum time a worker's leaves wait to be batched with others'. A batch is sent at once when every worker is
    waiting."""
    max_inflight_batches: int | None = None
    """Batches with the evaluator at once. None: as many as the evaluator prefers."""
    max_restarts: int = 2
    """Dead workers that are replaced in one search; one more ends it with an error."""
    worker_timeout_s: float | None = 60.0
    """Seconds without a sign of life after which a worker is taken to hang in the game, which ends the search with an
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
    """Options of the ray engine: evaluators on a Ray cluster and, in self-play, the trees too."""

    name: str = "ray"
    """The engine's name."""

    # --- The cluster ------------------------------------------------------------------------------------------

    address: str | None = None
    """The cluster. None or "auto": the one this machine belongs to, or a new one on this machine. "local": always a new
    one. Otherwise the address of its head, such as "10.0.0.1:6379"."""
    num_actors: int = 1
    """Inference actors to start, unless the search is given an `InferenceFleet`. 0, in self-play alone: every worker
    holds the network itself, which suits workers with a GPU or many cores of their own."""
    cpus_per_actor: float | None = None
    """Cores that Ray reserves for an inference actor. None: in self-play 1; in a search at most 1, and few enough that
    several searches fit into one cluster. On the CPU an actor of self-play evaluates with as many threads."""
    gpus_per_actor: float = 0.0
    """GPUs of an inference actor; a fraction lets several share one. 0: the actors evaluate on the CPU."""
    start_timeout_s: float = 300.0
    """Seconds in which the inference actors, and in self-play a first worker, must be up."""

    # --- Batches ----------------------------------------------------------------------------------------------

    max_batch: int | None = None
    """Rows at which a batch is sent to an actor, and the maximum in one call. With fewer trees than that, a search has
    several leaves of a tree in flight. None: chosen by the number of trees and the budget."""
    max_wait_ms: float = 1.0
    """Maximum time a leaf waits for its batch to fill while other batches are in flight."""
    max_inflight_batches: int | None = None
    """Batches in flight at once, over all actors. None: two per actor."""
    num_threads: int | None = None
    """Threads that grow trees: of the search, or of each worker in self-play. None: chosen by the number of trees; in
    self-play, `cpus_per_worker`."""

    # --- Self-play on the cluster -----------------------------------------------------------------------------

    num_workers: int | None = None
    """Workers that play games. None: as many as the cluster has room for."""
    cpus_per_worker: float = 1.0
    """Cores that Ray reserves for a worker."""
    gpus_per_worker: float = 0.0
    """GPUs of a worker, or a fraction of one; for `num_actors=0`."""
    pipeline: int | None = None
    """Batches that one worker has in flight. None: 2 if it has 64 games or more and asks actors, else 1."""
    placement: Placement = "spread"
    """"spread": Ray places workers and actors wherever there is room, evenly over the nodes; those for which there is
    none wait for nodes to join. "pack": room for all of them is reserved on as few nodes as possible (a placement
    group), so that most leaves stay on their node; the cluster must have that room before anything starts."""
    max_lag: int = 1
    """Maximum number of versions that a worker's weights may be behind the newest. A worker further behind waits for
    newer weights. 0: no worker plays while new weights are on their way."""
    report_s: float = 0.5
    """Seconds between two reports of a worker, which bound how far it plays ahead."""
    max_restarts: int = 2
    """Times that one worker or one game may be lost in a row; one more ends self-play with an error."""
    worker_timeout_s: float | None = 60.0
    """Seconds without a sign of life after which a worker is replaced. None: no limit."""

    def __post_init__(self) -> None:
        HostOptions.__post_init__(self)
        address: Any = self.address
        if address is not None and (not isinstance(address, str) or not address):
            raise ConfigError(f"address must be the text of an address, not {address!r}")
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
            raise ConfigError("gpus_per_worker is for workers that hold the network themselves: set num_actors=0 too")

    def foreign_code(self) -> dict[str, str]:
        """A cluster elsewhere can run code in this process."""
        return {} if self.address in (None, "auto", "local") else {"address": str(self.address)}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Tensor(EngineOptions):
    """Options of the tensor engine: trees, game and network as tensors on one device."""

    name: str = "tensor"
    """The engine's name."""
    game: Any = None
    """The rules in torch ops, for a game that windrow does not bring along in torch ops: a `TensorGame`, or a class by
    its place, such as "nim.py:NimTensors", made with the options of the game. windrow checks that both are the same
    game."""
    device: str = "auto"
    """The device that holds the trees. "auto": the device of the network, or the GPU if there is one."""

    def __post_init__(self) -> None:
        if not isinstance(self.device, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f'device must be text such as "cuda:1", not {self.device!r:.100}')

    def foreign_code(self) -> dict[str, str]:
        """A game that is named by its place is imported."""
        return {"game": self.game} if isinstance(self.game, str) else {}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class OwnEngine(HostOptions):
    """Options of an engine that is named by its place; its class is imported when a search or a run is made."""

    name: str = ""
    """Where the class is: `myengine.py:Greedy` or `package.engines:Greedy`."""

    def foreign_code(self) -> dict[str, str]:
        """The engine itself is imported."""
        return {"name": self.name}


BUILT_IN: dict[str, type[EngineOptions]] = {
    kind().name: kind for kind in (Auto, Sequential, Batched, Vectorized, Multiprocess, Ray, Tensor)
}
"""Options of windrow's own engines, which need not be imported for them."""


def options_class(name: str) -> type[EngineOptions]:
    """The options class of an engine.

    Raises:
        ConfigError: there is no engine of this name.
    """
    if is_place(name):
        return OwnEngine  # the name may be a stranger's, in the folder of a run: nothing is imported here
    return BUILT_IN[name] if name in BUILT_IN else load_engine(name).Options


def as_options(engine: object) -> EngineOptions:
    """Options from an engine's name, a table with its `name` and options, or options as they are.

    Raises:
        ConfigError: there is no such engine, or it cannot have these options.
    """
    if isinstance(engine, type) and issubclass(engine, EngineOptions):
        raise ConfigError(f"engine takes options, not their class: write {engine.__name__}()")
    if isinstance(engine, EngineOptions):
        if type(engine) is not (kind := options_class(engine.name)):
            raise ConfigError(f"the {engine.name} engine takes {kind.__name__}, not {type(engine).__name__}")
        return engine
    table = cast("Mapping[str, Any]", engine if isinstance(engine, Mapping) else {"name": engine})
    if (name := table.get("name", AUTO)) not in (known := engine_names()) and not is_place(name):
        hint = explain_unknown(str(name), known, what="choices")
        if str(name).endswith(".py"):
            hint = f"Name the class in it too, such as {name}:Greedy"
        raise ConfigError(f"engine cannot be {name!r}. {hint}")
    try:
        return options_class(name)(**{"name": name, **table})
    except UnknownKeyError as error:
        raise UnknownKeyError(f"engine {name!r}: {error}") from None


def option_names() -> tuple[str, ...]:
    """The names of all options of all engines whose packages are installed."""
    found: dict[str, None] = {}
    for engine in engine_names():
        with suppress(ImportError, ConfigError):
            found |= dict.fromkeys(options_class(engine).setting_names())
    return tuple(key for key in found if key != "name")


def engines_with(option: str) -> tuple[str, ...]:
    """The names of the engines that have an option, of those that come with windrow."""
    return tuple(name for name, kind in BUILT_IN.items() if option in kind.setting_names() and option != "name")


def explain_option(key: str, engine: str) -> str | None:
    """Why a setting is unknown to an engine although others have it as an option; None if no engine has it."""
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
