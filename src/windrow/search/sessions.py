"""A search in progress, by engine: what it works with, and the loop that carries it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias, cast

from windrow import _core
from windrow.config import SearchConfig
from windrow.inference.port import EvaluatorPort
from windrow.search.batched import run_batched
from windrow.search.engine import Session
from windrow.search.plan import Plan
from windrow.search.sequential import run_sequential
from windrow.search.vectorized import run_vectorized

if TYPE_CHECKING:
    from windrow.inference.ray_client import RayEvaluator
    from windrow.search.multiprocess import RemoteSession
    from windrow.search.ray import RaySession
    from windrow.search.remote_forest import RemoteForest
    from windrow.search.tensor import TensorSession
    from windrow.tensor.forest import TensorForest

AnySession: TypeAlias = "Session | RemoteSession | RaySession | TensorSession"

_ENGINES = {"sequential": run_sequential, "batched": run_batched, "vectorized": run_vectorized}


def make_session(
    forest: _core.Forest | RemoteForest | TensorForest,
    port: EvaluatorPort,
    client: RayEvaluator | None,
    plan: Plan,
    config: SearchConfig,
    should_stop: Callable[[], bool],
) -> AnySession:
    """What the engine of `plan` works with.

    Args:
        forest: the trees.
        port: the evaluator.
        client: the same on a Ray cluster, with the ray engine.
        plan: what the config left open.
        config: how to search.
        should_stop: asked again and again; once it says yes no more simulations are selected.
    """
    if isinstance(forest, _core.Forest):
        if client is None:
            return Session(forest, port, plan.leaves_per_tree, plan.pipeline, config.max_batch, should_stop)
        from windrow.search.ray import RaySession

        return RaySession(forest, port, client, plan, config.max_wait_ms / 1000.0, should_stop)
    if plan.engine == "tensor":
        from windrow.search.tensor import TensorSession

        return TensorSession(cast("TensorForest", forest))
    from windrow.search.multiprocess import RemoteSession

    return RemoteSession(cast("RemoteForest", forest), port, should_stop)


def run_engine(engine: str, session: AnySession) -> Iterator[None]:
    """Grow all trees to the end of their budgets, yielding often."""
    if isinstance(session, Session):
        return _ENGINES[engine](session)
    if isinstance(session.forest, _core.Forest):
        from windrow.search.ray import run_ray

        return run_ray(cast("RaySession", session))
    if engine == "tensor":
        from windrow.search.tensor import run_tensor

        return run_tensor(cast("TensorSession", session))
    from windrow.search.multiprocess import run_multiprocess

    return run_multiprocess(cast("RemoteSession", session))
