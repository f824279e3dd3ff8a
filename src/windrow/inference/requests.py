"""The requests of a server: one request of one client, the queue of waiting requests, and batches of sent requests."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from windrow.evaluators.port import ObservationBuffer, Ticket
from windrow.inference.channel import IS_WORKING, Channel, Slot
from windrow.inference.stats import ClientStats


class ServedClient:
    """The server's state of one client, which has one channel."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.num_seen = 0
        self.num_waiting = 0
        self.stats = ClientStats()

    @property
    def is_working(self) -> bool:
        """Whether the client is searching and will send more requests."""
        return bool(self.channel.header[IS_WORKING])


@dataclass(slots=True, eq=False)
class Request:
    """One request of a client: some rows for one model, in a slot of the client's channel."""

    client: ServedClient
    slot: int
    model: int
    num_rows: int
    num_places: int
    posted_ns: int


@dataclass(slots=True, eq=False)
class Batch:
    """Requests that the evaluator answers in one call."""

    requests: list[Request]
    num_rows: int
    model: int
    version: int
    sent_ns: int
    buffer: ObservationBuffer | None
    ticket: Ticket


class RequestQueue:
    """The queue of requests that wait for a batch, oldest first."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()
        self.num_rows = 0
        """Number of rows in all requests of the queue."""

    def __bool__(self) -> bool:
        return bool(self._requests)

    @property
    def oldest(self) -> Request:
        """The request that has waited longest; the queue must not be empty."""
        return self._requests[0]

    def add(self, client: ServedClient, slot: int) -> None:
        """Append the request in a slot of a client's channel."""
        words = client.channel.slots[slot]
        request = Request(
            client, slot, words[Slot.MODEL], words[Slot.NUM_ROWS], words[Slot.NUM_PLACES], words[Slot.POSTED_NS]
        )
        client.num_waiting += 1
        self._requests.append(request)
        self.num_rows += request.num_rows

    def take(self, model: int, max_rows: int) -> tuple[list[Request], int]:
        """Remove and return requests of one model, oldest first, up to `max_rows` rows but at least one request."""
        taken: list[Request] = []
        left: deque[Request] = deque()
        num_rows = 0
        while self._requests:
            request = self._requests.popleft()
            if request.model == model and (not taken or num_rows + request.num_rows <= max_rows):
                taken.append(request)
                num_rows += request.num_rows
                request.client.num_waiting -= 1
            else:
                left.append(request)
        self._requests = left
        self.num_rows -= num_rows
        return taken, num_rows

    def of_client(self, client: ServedClient) -> list[Request]:
        """The requests of one client."""
        return [request for request in self._requests if request.client is client]

    def remove(self, request: Request) -> None:
        """Remove one request; its client's number of waiting requests stays unchanged."""
        self._requests.remove(request)
        self.num_rows -= request.num_rows

    def recount(self) -> None:
        """Count the rows again: an interrupt can come between a change of the queue and the change of its count."""
        self.num_rows = sum(request.num_rows for request in self._requests)

    def clear(self) -> None:
        """Remove all requests."""
        self._requests.clear()
        self.num_rows = 0
