"""Statistics of an inference server and of its clients."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class ServerStats:
    """Counts and seconds since the server was made; they never decrease."""

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

    def since(self, before: ServerStats) -> ServerStats:
        """Return the differences to `before`; `max_queued_rows` stays the maximum since the server was made."""
        changes = {field.name: getattr(self, field.name) - getattr(before, field.name) for field in fields(self)}
        return ServerStats(**{**changes, "max_queued_rows": self.max_queued_rows})

    def copy(self) -> ServerStats:
        """Return a copy, which does not change any more."""
        return self.since(ServerStats())


@dataclass(slots=True)
class ClientStats:
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

    def since(self, before: ClientStats | None) -> ClientStats:
        """Return the differences to `before`; None stands for zeros."""
        if before is None:
            return self
        changes = {field.name: getattr(self, field.name) - getattr(before, field.name) for field in fields(self)}
        return ClientStats(**changes)
