"""What inference actors did, as they count it and as a client sees it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from windrow.inference.stats import ServerStats


@dataclass(slots=True)
class ActorStats:
    """One inference actor, as it counts since it was started or restarted."""

    actor: int
    """Its place in the fleet."""
    pid: int = 0
    """Of its process."""
    node_id: str = ""
    """Ray's name of the node it is on."""
    is_alive: bool = True
    """Whether it answered. If not, everything below is empty."""
    was_restarted: bool = False
    """Whether it died and was started again."""
    versions: dict[str, int] = field(default_factory=dict[str, int])
    """By model, the version of its weights."""
    errors: int = 0
    """Batches that the evaluator did not answer."""
    busy_s: float = 0.0
    """Seconds in which at least one batch was with the evaluator."""
    up_s: float = 0.0
    """Seconds since it was started."""
    work: ServerStats = field(default_factory=ServerStats)
    """Batches, rows, requests, waiting."""


@dataclass(slots=True)
class LinkStats:
    """One inference actor, as one client sees it; counts only grow."""

    actor: int
    requests: int = 0
    """Answered ones."""
    rows: int = 0
    latency_s: float = 0.0
    """From asking to having the answer, summed over requests."""
    wait_s: float = 0.0
    """Of that, waiting on the actor for others or for the evaluator."""
    inference_s: float = 0.0
    """Of that, being evaluated; the rest was transport."""
    batches: float = 0.0
    """Forward passes, those shared with other clients by its share of their rows."""
    busy_s: float = 0.0
    """Seconds in which the actor had a batch with its evaluator, from the first to the last of these requests."""
    queued_rows: int = 0
    """Rows that waited when a request's batch was begun, its own included, summed over requests."""
    max_queued_rows: int = 0
    errors: int = 0
    """Answers that were the evaluator's error."""
    failures: int = 0
    """Times that it was lost and taken out."""
    last_error: str = ""

    def since(self, before: LinkStats | None) -> LinkStats:
        """What was added to `before`; the largest queue is that of all time."""
        if before is None:
            return self
        counted = [part.name for part in fields(self) if part.name not in _NOT_COUNTED]
        return replace(self, **{name: getattr(self, name) - getattr(before, name) for name in counted})


_NOT_COUNTED = ("actor", "max_queued_rows", "last_error")
