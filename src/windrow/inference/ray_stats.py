"""Statistics of inference actors, as counted by the actors and as seen by a client."""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.inference.stats import Counts, ServerStats


@dataclass(slots=True)
class ActorStats:
    """Statistics of one inference actor since it was started or restarted."""

    actor: int
    """Number of the actor in the fleet."""
    pid: int = 0
    """Process id of the actor."""
    node_id: str = ""
    """Ray's id of the actor's node."""
    is_alive: bool = True
    """Whether the actor answered. If not, all fields but `actor` are empty."""
    was_restarted: bool = False
    """Whether the actor died and was restarted."""
    versions: dict[str, int] = field(default_factory=dict[str, int])
    """Versions of the weights, by model."""
    errors: int = 0
    """Number of batches for which the evaluator raised an error."""
    busy_s: float = 0.0
    """Seconds in which the evaluator had at least one batch."""
    up_s: float = 0.0
    """Seconds since the actor was started."""
    work: ServerStats = field(default_factory=ServerStats)
    """Counts of batches, rows and requests, and waiting times."""


@dataclass(slots=True)
class LinkStats(Counts):
    """Statistics of one inference actor as seen by one client; counts never decrease."""

    kept = ("actor", "max_queued_rows", "last_error")

    actor: int
    """Number of the actor in the fleet."""
    requests: int = 0
    """Number of answered requests."""
    rows: int = 0
    """Number of positions in those requests."""
    latency_s: float = 0.0
    """Seconds from sending a request to receiving its answer, summed over requests."""
    wait_s: float = 0.0
    """Seconds of `latency_s` in which requests waited in the actor, for other requests or for the evaluator."""
    inference_s: float = 0.0
    """Seconds of `latency_s` in which requests were evaluated; the rest of `latency_s` is transport."""
    batches: float = 0.0
    """Number of forward passes; a pass shared with other clients counts by this client's share of its rows."""
    busy_s: float = 0.0
    """Seconds in which the actor's evaluator had a batch, from the first to the last of these requests."""
    queued_rows: int = 0
    """Rows in the actor's queue when a request's batch was started, including its own rows; summed over requests."""
    max_queued_rows: int = 0
    """Maximum number of rows in the actor's queue when a request's batch was started."""
    errors: int = 0
    """Number of requests for which the evaluator raised an error."""
    failures: int = 0
    """Number of times the actor was lost."""
    last_error: str = ""
    """Text of the last error; empty if there was none."""
