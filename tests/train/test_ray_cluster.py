"""Self-play on several Ray nodes, of which one is killed and one joins: no game counts twice, none is lost."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ray_cases import descendants, is_running, wait_until
from windrow import SearchConfig, make_game
from windrow.engines import Ray
from windrow.evaluators import HashEvaluator
from windrow.train import GameLog, SelfPlay, SelfPlayConfig
from windrow.train.ray_selfplay import RaySelfPlay

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIG = SearchConfig(num_simulations=40, dirichlet_fraction=0.25, seed=9, engine=Ray(num_workers=6, max_restarts=5))


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without cores and three nodes with two each, every one with processes of its own; all on this machine."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": 100 << 20},
    )
    try:
        for _ in range(3):
            made.add_node(num_cpus=2, object_store_memory=100 << 20)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        processes = descendants(os.getpid())
        ray.shutdown()
        made.shutdown()
        wait_until(lambda: not any(is_running(pid) for pid in processes), "a process of Ray is left")


def make(**options: Any) -> SelfPlay:
    selfplay = SelfPlay(
        make_game("connect4"),
        HashEvaluator(3),
        CONFIG.with_settings(options),
        SelfPlayConfig(num_slots=48),
    )
    assert isinstance(selfplay.backend, RaySelfPlay)
    return selfplay


def plain_games(count: int) -> dict[int, bytes]:
    selfplay = SelfPlay(
        make_game("connect4"), HashEvaluator(3), CONFIG.replace(engine="vectorized"), SelfPlayConfig(num_slots=48)
    )
    return {record.number: record.to_bytes() for record in selfplay.play(count, refill=False)}


def wait_for_nodes(selfplay: SelfPlay, play: Any, take: Any, num_workers: int) -> None:
    """Play on until so many workers are up."""
    deadline = time.monotonic() + 120
    while len(selfplay.backend.nodes) < num_workers:
        assert time.monotonic() < deadline, selfplay.backend.nodes
        take(next(play))


def test_a_node_is_killed_in_the_middle(cluster: Any, tmp_path: Path) -> None:
    selfplay = make(num_actors=0, report_s=0.1)
    log = GameLog(tmp_path / "games")
    acknowledged: list[int] = []

    def take(record: Any) -> None:
        log.append(record)
        acknowledged.append(record.number)

    play = selfplay.play(2**31)
    wait_for_nodes(selfplay, play, take, 6)
    before = Counter(selfplay.backend.nodes.values())
    assert sorted(before.values()) == [2, 2, 2]  # spread evenly over three nodes

    victim = cluster.list_all_nodes()[-1]
    dead = victim.node_id
    assert before[dead] == 2
    cluster.remove_node(victim, allow_graceful=False)
    num_before = len(acknowledged)
    while selfplay.backend.num_restarts < 2 or len(acknowledged) < num_before + 300:
        take(next(play))
    # Four cores are left for six workers: two wait for a node to join.
    assert set(selfplay.backend.nodes.values()) == set(before) - {dead}
    assert len(selfplay.backend.nodes) == 4
    cluster.add_node(num_cpus=2, object_store_memory=100 << 20)
    wait_for_nodes(selfplay, play, take, 6)
    after = Counter(selfplay.backend.nodes.values())
    assert sorted(after.values()) == [2, 2, 2] and dead not in after
    for _ in range(200):
        take(next(play))
    play.close()
    selfplay.close()

    numbers = Counter(acknowledged)
    assert max(numbers.values()) == 1, "a game counted twice"
    log.close()
    assert [record.number for record in GameLog.read(tmp_path / "games")] == acknowledged
    # The games of the dead node were begun again, and are the same: nothing is missing but what was in progress.
    missing = set(range(selfplay.next_game)) - set(acknowledged)
    assert len(missing) == selfplay.num_in_progress + len(selfplay.backend.finished)
    want = plain_games(selfplay.next_game)
    assert all(record.to_bytes() == want[record.number] for record in GameLog.read(tmp_path / "games"))


def test_exactly_the_games_asked_for_after_a_kill(cluster: Any) -> None:
    """With inference actors, of which one is lost with its node."""
    want = plain_games(250)
    selfplay = make(num_actors=2, cpus_per_actor=1.0, report_s=0.1, num_workers=4)
    got: dict[int, bytes] = {}
    is_killed = False
    for record in selfplay.play(250, refill=False):
        assert record.number not in got
        got[record.number] = record.to_bytes()
        if len(got) > 20 and len(selfplay.backend.nodes) == 4 and not is_killed:
            assert len(set(selfplay.backend.nodes.values())) >= 2
            doomed = selfplay.backend.crew.fleet.stats()[0].node_id
            node = next(node for node in cluster.list_all_nodes() if node.node_id == doomed)
            cluster.remove_node(node, allow_graceful=False)
            is_killed = True
    assert is_killed
    assert dict(sorted(got.items())) == dict(sorted(want.items()))
    assert selfplay.num_in_progress == 0
    selfplay.close()
