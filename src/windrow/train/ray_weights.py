"""New weights for whoever evaluates on a cluster: announced to all, sent once, and then theirs to use.

announce ──► workers know how far behind they are, and stop if that is too far
send     ──► one object in the object store: for the inference actors, or for the workers that have the network
deliver  ──► workers go on, and records say so
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from windrow.train.ray_crew import Member, RayCrew
from windrow.train.ray_network import PortableNetwork


class WeightBroadcast:
    """The weights of one crew.

    Args:
        evaluator: whose they are; only those of a `PortableNetwork` are sent.
    """

    def __init__(self, crew: RayCrew, evaluator: object, version: int) -> None:
        self._crew = crew
        self._network = evaluator if isinstance(evaluator, PortableNetwork) else None
        self._made_with = version
        self.published = version
        """The version that all have."""
        self.announced = version
        """The newest, which may be on their way."""
        self._stored: Any = None
        """The newest weights in the object store, if workers have the network and were made with others."""
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="windrow-weights")
        self._sending: Future[None] | None = None

    def turn(self, version: int) -> None:
        """Send new weights if there are any, and tell workers if those sent have arrived; does not wait."""
        crew, network = self._crew, self._network
        if self._sending is None and version != self.announced:
            self.announced = version
            for member in crew.members:
                crew.tell(member, "announce", version)
            self._sending = Future[None]()
            if network is not None and crew.fleet is not None:
                # Beside the games: an actor that is being restarted is waited for.
                self._sending = self._sender.submit(crew.fleet.set_weights, network.weights, version)
            else:
                self._stored = None if network is None else crew.put(network.weights)
                self._sending.set_result(None)
        if self._sending is not None and self._sending.done():
            sending, self._sending = self._sending, None
            sending.result()
            self.published = self.announced
            for member in crew.members:
                crew.tell(member, "deliver", self.published, self._stored)

    def start(self, member: Member, margins: list[float]) -> None:
        """Have a new worker in a place, with the newest weights."""
        first = self.published if self._stored is None else self._made_with
        self._crew.start(member, first, self.announced, margins)
        if self._stored is not None:
            self._crew.tell(member, "deliver", self.published, self._stored)

    def close(self) -> None:
        """Send nothing any more."""
        self._sender.shutdown(wait=False, cancel_futures=True)
