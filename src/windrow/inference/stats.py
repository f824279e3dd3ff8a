"""What an inference server did, and what its clients waited for."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class ServerStats:
    """Counts and seconds since the server was made; all only grow."""

    batches: int = 0
    """Calls of an evaluator."""
    rows: int = 0
    """Positions evaluated."""
    places: int = 0
    """Rows that the requests in those batches had room for."""
    requests: int = 0
    """Questions of clients; several may be joined in a batch."""
    queued_rows: int = 0
    """Rows that waited when a batch was sent, those it left behind included, summed over batches."""
    max_queued_rows: int = 0
    """The most rows that waited when a batch was sent."""
    wait_s: float = 0.0
    """From the posting of a request to its batch, summed over requests."""
    inference_s: float = 0.0
    """From sending a batch to having its answer, summed over batches."""
    copy_s: float = 0.0
    """Gathering rows into batches and handing answers out."""
    idle_s: float = 0.0
    """Waiting for requests with nothing else to do."""

    @property
    def queue_depth(self) -> float:
        """Rows that waited when a batch was sent, on average."""
        return self.queued_rows / self.batches if self.batches else 0.0

    def since(self, before: ServerStats) -> ServerStats:
        """What was added to `before`; the largest queue is that of all time."""
        changes = {field.name: getattr(self, field.name) - getattr(before, field.name) for field in fields(self)}
        return ServerStats(**{**changes, "max_queued_rows": self.max_queued_rows})

    def copy(self) -> ServerStats:
        """As it is now."""
        return self.since(ServerStats())


@dataclass(slots=True)
class ClientStats:
    """What an inference server has done for one client, since the client was connected; all counts only grow."""

    requests: int = 0
    """Questions it asked."""
    rows: int = 0
    """Positions in them."""
    wait_s: float = 0.0
    """From posting a request to its batch."""
    inference_s: float = 0.0
    """From there to the answer."""
    transport_s: float = 0.0
    """Copying its rows and answers, and waking it up while it waited."""

    def since(self, before: ClientStats | None) -> ClientStats:
        """What was added to `before`."""
        if before is None:
            return self
        changes = {field.name: getattr(self, field.name) - getattr(before, field.name) for field in fields(self)}
        return ClientStats(**changes)
