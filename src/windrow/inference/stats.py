"""Statistics of an inference server and of its clients."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, TypeVar

C = TypeVar("C", bound="Counts")


@dataclass(slots=True)
class Counts:
    """Base class of statistics whose numbers never decrease."""

    kept: ClassVar[tuple[str, ...]] = ()
    """Fields that `since` leaves as they are."""

    def since(self: C, before: C | None) -> C:
        """Return a copy with the differences to `before`; None stands for zeros."""
        names = [field.name for field in fields(self) if field.name not in self.kept]
        changes = {name: getattr(self, name) - (getattr(before, name) if before else 0) for name in names}
        return replace(self, **changes)


@dataclass(slots=True)
class ServerStats(Counts):
    """Counts and seconds since the server was made; they never decrease."""

    kept = ("max_queued_rows",)

    batches: int = 0
    """Number of evaluator calls."""
    rows: int = 0
    """Number of positions evaluated."""
    places: int = 0
    """Capacity in rows of the requests that were answered; `rows / places` is how full they were."""
    requests: int = 0
    """Number of answered requests; one batch may hold several."""
    queued_rows: int = 0
    """Rows in the queue when a batch was sent, including rows that did not fit into the batch; summed over batches."""
    max_queued_rows: int = 0
    """Maximum number of rows in the queue when a batch was sent."""
    wait_s: float = 0.0
    """Seconds from posting a request to sending its batch, summed over requests."""
    inference_s: float = 0.0
    """Seconds from sending a batch to receiving its answer, summed over batches."""
    copy_s: float = 0.0
    """Seconds spent on copying rows into batches and answers out of them."""
    idle_s: float = 0.0
    """Seconds spent waiting for requests with nothing else to do."""

    @property
    def queue_depth(self) -> float:
        """Mean number of rows in the queue when a batch was sent."""
        return self.queued_rows / self.batches if self.batches else 0.0


@dataclass(slots=True)
class ClientStats(Counts):
    """Statistics of one client of an inference server since the client was connected; they never decrease."""

    requests: int = 0
    """Number of answered requests."""
    rows: int = 0
    """Number of positions in those requests."""
    wait_s: float = 0.0
    """Seconds from posting a request to sending its batch, summed over requests."""
    inference_s: float = 0.0
    """Seconds from sending the batch to receiving its answer, summed over requests."""
    transport_s: float = 0.0
    """Seconds spent on copying rows and answers, and on waking the client while it waited."""
