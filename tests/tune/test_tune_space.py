"""What is tried: bounded by the network's batch, the budget, the machine and the price."""

from __future__ import annotations

from typing import Any

from windrow import SearchConfig
from windrow.tune.space import Candidate, Space, default_engines


def space(**changes: Any) -> Space:
    limits: dict[str, Any] = {
        "base": SearchConfig(num_simulations=64),
        "engines": ("vectorized", "multiprocess"),
        "num_positions": None,
        "num_cores": 2,
        "evaluator_pipeline": 1,
        "full_batch": 64,
        "max_trees": 4096,
    }
    return Space(**{**limits, **changes})


def free(candidate: Candidate) -> float:
    return 1.0


def test_many_positions_vary_trees_around_a_full_batch() -> None:
    found = space().coarse(free)
    singles = [found for found in found if found.engine == "vectorized" and found.leaves_per_tree == 1]
    assert [candidate.num_trees for candidate in singles] == [8, 16, 32, 64, 128, 256]
    assert all(candidate.rows <= 128 for candidate in found if candidate.leaves_per_tree > 1)
    assert {candidate.num_workers for candidate in found if candidate.engine == "multiprocess"} == {2}
    assert len(found) == len(set(found))


def test_one_position_varies_leaves() -> None:
    one = space(num_positions=1, engines=default_engines(1, has_device=True), base=SearchConfig(num_simulations=20))
    assert [(found.engine, found.leaves_per_tree) for found in one.coarse(free)] == [
        ("sequential", 1),
        *(("batched", leaves) for leaves in (2, 2, 4, 4, 8, 8, 16, 16)),  # share and skip; no more than the budget
    ]
    assert one.references() == []


def test_what_is_worth_little_is_not_tried() -> None:

    def worth(candidate: Candidate) -> float:
        return 1.0 if candidate.on_collision == "skip" else 1.0 / candidate.leaves_per_tree

    found = space(num_positions=16).coarse(worth)
    assert {candidate.leaves_per_tree for candidate in found if candidate.on_collision != "skip"} == {1, 2, 4}
    assert {candidate.leaves_per_tree for candidate in found if candidate.on_collision == "skip"} == {2, 4, 8}


def test_max_trees_holds() -> None:
    assert max(found.num_trees for found in space(max_trees=20).coarse(free)) == 20
    assert {found.num_trees for found in space(max_trees=3).coarse(free)} == {3}


def test_looking_closer_changes_one_thing() -> None:
    here = space(evaluator_pipeline=2)
    good = here.resolve(Candidate(engine="vectorized", num_trees=128, leaves_per_tree=4))
    around = here.around(good)
    assert good not in around and len(set(around)) == len(around)
    names = ("num_trees", "leaves_per_tree", "num_threads", "pipeline", "max_batch")
    for other in around:
        assert sum(getattr(other, name) != getattr(good, name) for name in names) == 1, other
    assert {other.max_batch for other in around} == {None, 64}
    assert {other.leaves_per_tree for other in around} == {3, 4, 6}
    workers = space(num_cores=8).around(Candidate(engine="multiprocess", num_trees=64, num_workers=8, pipeline=1))
    assert {other.num_workers for other in workers} == {4, 7, 8}


def test_rows_of_a_call() -> None:
    assert Candidate(engine="sequential", num_trees=100).rows == 1
    assert Candidate(engine="batched", num_trees=100, leaves_per_tree=8).rows == 8
    assert Candidate(engine="vectorized", num_trees=100, leaves_per_tree=2, pipeline=3).rows == 68
    assert Candidate(engine="vectorized", num_trees=100, leaves_per_tree=2, max_batch=50).rows == 50


def test_settings_make_a_config() -> None:
    for candidate in space(num_positions=16).coarse(free):
        config = SearchConfig(num_simulations=64).with_settings(candidate.settings())
        assert (config.engine_name, config.leaves_per_tree) == (candidate.engine, candidate.leaves_per_tree)


def test_engines_that_are_chosen_from() -> None:
    assert default_engines(None, has_device=False) == ("vectorized", "multiprocess")
    assert default_engines(64, has_device=True) == ("vectorized", "multiprocess", "tensor")
