"""Checks of what the learner measured.

Losses are compared with those of a network that knows nothing, which the learner measures on the same batches:
`uniform_policy_loss` for a policy that prefers no move, `value_variance` for the best constant value. The figures for
healthy runs are from the shipped configs of tic-tac-toe, Connect-4, backgammon and Pig and from Hex with the standard
settings, a minute or two each on two cores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from windrow.config import SearchConfig
from windrow.spelling import counted
from windrow.train.diagnosis.evidence import Evidence
from windrow.train.diagnosis.finding import Finding
from windrow.train.learner_config import LearnerConfig

_MIN_STEPS = 400
"""Steps before a network is expected to know anything. Connect-4 gains 0.04 in the value after 30 steps and 0.2 after
200."""
_WINDOW_STEPS = 100
"""Steps over which losses are averaged: single iterations can be a few steps, and noisy."""
_MIN_GAIN = 0.02
"""Share of the loss of an ignorant network that must be gained. After 400 steps healthy runs gain 0.2 or more in the
value; in the policy Hex and backgammon gain only 0.01, which is why `flat_loss` asks for both."""
_HIGH_RATE = 0.02
"""Learning rate above which a loss, or a value alone, that does not improve is blamed on it. AdamW moves every weight
by about the rate in each step; the shipped configs have 0.002 to 0.012. Tic-tac-toe learns nothing at 0.03 with a
transformer and at 0.1 with a ResNet."""
_LOW_RATE = 0.001
"""Learning rate below which such a loss is blamed on it being too low."""
_DEFAULT_RATE = LearnerConfig().learning_rate
_MIN_VARIANCE = 0.005
"""Variance of the values below which they are all the same: games with one result, which another check reports."""
_DIVERGED = 1.1
"""Loss of the policy against the uniform one's from which on it is worse. Healthy runs never exceed 1.01; tic-tac-toe
at a learning rate of 3 begins at 1.24."""
_VALUE_DIVERGED = 2.0
"""Loss of the value against the best constant's. Healthy runs never exceed 1.01, one without a value loss has 1.1, and
tic-tac-toe at a learning rate of 3 has 3.4."""
_UNIFORM = 0.985
"""Entropy of the search's policies against that of no preference, above which there is nothing to learn from them."""
_IDLE, _IDLE_STEPS = 0.992, 600
"""The same, and steps, above which the search is at fault. Backgammon with small batches, which is healthy, has 0.96 to
0.986 after 440 to 660 steps, or 0.991 after 1,000 where the learner is fast; a `c_puct` of 1000 has 0.994 and more."""
_OWN = 0.005
"""Divergence of the search's policies from the network's, against the loss of no preference, below which they are the
same. Healthy runs have 0.017 or more over their first 400 steps and 0.03 after them; a Gumbel root that hardly weighs
values (`gumbel_value_scale` 0.001) has 0.0005. A mastered game may have as little later on."""
_COLLAPSED = 0.03
"""Entropy of the policies against that of no preference, below which they have collapsed. Healthy runs stay above 0.23,
which is tic-tac-toe at perfect play."""
_EARLY = 0.5
"""Share of a run in which a decided policy is too early; later it may be mastery."""
_EARLY_STEPS = 5000
"""The same for a run without an end."""
_MAX_REUSE = 20.0
"""Samples per recorded move. The shipped configs ask for 1 to 4; the bound leaves room for scarce games."""
_PATIENCE = 0.25
"""Share of a run after which it should have learned something."""
_PATIENCE_ITERATIONS = 20
"""The same for a run without an end."""
_FIGURES = ("policy_loss", "uniform_policy_loss", "target_entropy", "value_loss", "value_variance")


def no_steps(run: Evidence) -> Finding | None:
    """No learning step was taken."""
    if not run.metrics or run.num_steps:
        return None
    last, config = run.metrics[-1], run.config
    games, positions, batch_size = last.get("games", 0.0), last.get("positions", 0.0), config.learner.batch_size
    if not run.is_over and not _comes_too_late(run, last, positions):
        return None
    samples = positions * config.samples_per_position
    remedies: list[str] = []
    if config.num_iterations is not None:
        remedies.append(f"--iterations {2 * len(run.metrics)}")
    if config.time_limit_s is not None:
        # Ten times as long as it takes to record the positions that learning begins with.
        factor = min(max(10 * config.min_positions / max(positions, 1.0), 2.0), 20.0)
        remedies = [f"--time {math.ceil(factor * config.time_limit_s / 60)}m"]
    if not games:
        reason = "not one game had ended"
        remedies.append(f"--slots {max(1, config.selfplay.num_slots // 8)}")
        remedies.append(f"--sims {max(2, (config.search.num_simulations or 0) // 4)}")
    elif not samples:
        reason, remedies = "samples_per_position is 0", ["--set samples_per_position=4"]
    elif positions < config.min_positions:
        reason = f"learning begins at {config.min_positions:,} recorded positions (min_positions)"
        remedies.append(f"--set min_positions={max(1, int(positions) // 2)}")
    elif samples < batch_size:
        reason = f"they allow {samples:,.0f} samples (samples_per_position), less than a batch of {batch_size:,}"
        remedies.append(f"--batch-size {max(1, int(samples) // 8)}")
    else:
        reason = "learning from an iteration's games begins in the next iteration"
    gave = f"{counted(int(games), 'game')} gave {counted(int(positions), 'position')}"
    return Finding(
        "no_steps",
        f"No learning step was taken: {gave}, and {reason}.",
        f"Try {' or '.join(remedies)}." if remedies else "Let the run continue.",
    )


def flat_loss(run: Evidence) -> Finding | None:
    """The loss is that of a network which knows nothing, though there is something to learn."""
    seen, rate = _recent(run), run.config.learner.learning_rate
    if seen is None or not _is_flat(seen) or rate > _HIGH_RATE:  # `diverged` reports a rate that is too high
        return None
    if rate < _LOW_RATE:
        remedy = f"Raise learner.learning_rate ({rate:g}). If that does not help, check that the observation shows"
    else:
        remedy = (
            f"Try another learner.learning_rate ({rate:g}), such as {rate / 4:g}, and check that the observation shows"
        )
    return Finding(
        "flat_loss",
        f"The loss does not fall: after {run.num_steps:,} steps {_compared(seen)}.",
        f"{remedy} the whole position.",
    )


def diverged(run: Evidence) -> Finding | None:
    """The learning rate is too high: the loss is worse than that of a network which knows nothing, or stays there.

    At such a rate the policy may learn something while the value learns nothing: that counts too.
    """
    seen, rate = _recent(run), run.config.learner.learning_rate
    if seen is None or not (_is_diverged(seen) or (rate > _HIGH_RATE and (_is_flat(seen) or _is_value_flat(seen)))):
        return None
    return Finding(
        "diverged",
        f"The learning rate is too high: after {run.num_steps:,} steps {_compared(seen)}.",
        f"Lower learner.learning_rate ({rate:g}), for example to {min(rate / 4, _DEFAULT_RATE):g}, and resume from "
        "an earlier checkpoint or start again.",
    )


def constant_value(run: Evidence) -> Finding | None:
    """The value predicts no better than a constant, while the policy learns at a usual rate."""
    seen = _recent(run)
    if seen is None or not _is_value_flat(seen) or _is_diverged(seen) or _is_flat(seen):
        return None
    if run.config.learner.learning_rate > _HIGH_RATE:  # `diverged` reports it
        return None
    return Finding(
        "constant_value",
        f"The value predicts no better than a constant: after {run.num_steps:,} steps value_loss is "
        f"{seen['value_loss']:.3f}, the best constant has {seen['value_variance']:.3f}.",
        "Check that the observation shows the position as the player to move sees it and that returns are for the "
        "right player (windrow check). If both are right, give the run more games, or raise learner.value_weight "
        f"({run.config.learner.value_weight:g}).",
    )


def idle_search(run: Evidence) -> Finding | None:
    """The search teaches the policy nothing: it prefers no move, or what the network prefers."""
    seen = _recent(run)
    if seen is None:
        return None
    if run.num_steps >= _IDLE_STEPS and seen["target_entropy"] > _IDLE * seen["uniform_policy_loss"]:
        shown = (
            f"after {run.num_steps:,} steps its policies still have an entropy of {seen['target_entropy']:.3f} nats; "
            f"no preference at all would be {seen['uniform_policy_loss']:.3f}"
        )
    elif max(_divergence(seen), _divergence(first := _first(run) or seen)) < _OWN * first["uniform_policy_loss"]:
        shown = (
            f"over {run.num_steps:,} steps its policies equal the network's own, from which they diverge by only "
            f"{_divergence(seen):.4f} nats (policy_loss less target_entropy)"
        )
    else:
        return None
    search = run.config.search
    weight = _weight_of_values(search, raises=True)
    return Finding(
        "idle_search",
        f"The search adds nothing to the policy: {shown}.",
        f"Raise search.num_simulations ({search.num_simulations}) or {weight}; if no game has a winner, fix that "
        "first.",
    )


def collapsed_policy(run: Evidence) -> Finding | None:
    """The search or the network is certain of one move everywhere, early in the run."""
    part = Evidence(run.config, [row for row in run.metrics if _is_early(run, row)])
    names = ("policy_entropy", "target_entropy", "uniform_policy_loss")
    seen = part.mean(*names, over="steps", amount=_WINDOW_STEPS)
    if seen is None:
        return None
    entropy, whose = min((seen["policy_entropy"], "network's"), (seen["target_entropy"], "search's"))
    if entropy >= _COLLAPSED * seen["uniform_policy_loss"]:
        return None
    search = run.config.search
    weight = _weight_of_values(search, raises=False)
    return Finding(
        "collapsed_policy",
        f"The policy has collapsed: within {part.num_steps:,} steps the entropy of the {whose} policies fell to "
        f"{entropy:.3f} nats, of {seen['uniform_policy_loss']:.3f} for no preference.",
        f"Raise search.num_simulations ({search.num_simulations}) or {weight}; if only the network is that certain, "
        f"lower learner.learning_rate ({run.config.learner.learning_rate:g}).",
    )


def reused_positions(run: Evidence) -> Finding | None:
    """Every position is learned from too often."""
    if run.num_steps < _WINDOW_STEPS or not (positions := run.metrics[-1].get("positions", 0.0)):
        return None
    reuse = run.num_steps * run.config.learner.batch_size / positions
    if reuse < _MAX_REUSE:
        return None
    return Finding(
        "reused_positions",
        f"Positions are learned from too often: {run.num_steps:,} steps on {positions:,.0f} positions use each "
        f"{reuse:.0f} times.",
        f"Lower samples_per_position ({run.config.samples_per_position:g}), for example to 4, or play more games.",
    )


def small_replay(run: Evidence) -> Finding | None:
    """The replay holds less than one iteration, or hardly more than a batch."""
    size, batch = run.config.replay.max_positions, run.config.learner.batch_size
    if run.num_steps < _WINDOW_STEPS or len(run.metrics) < 2:
        return None
    last, before = run.metrics[-1], run.metrics[-2]
    if last.get("replay_positions", 0.0) < size - batch or "positions" not in before:
        return None  # it is not full yet
    recorded = last["positions"] - before["positions"]
    wanted = max(2.0 * recorded, 4.0 * batch)
    if size >= wanted / 2:
        return None
    return Finding(
        "small_replay",
        f"The replay memory is too small: it holds {size:,} positions, but an iteration records {recorded:,.0f} and "
        f"a batch takes {batch:,}.",
        f"Raise replay.max_positions to {10 * max(recorded, batch):,.0f} or more.",
    )


def _comes_too_late(run: Evidence, last: Mapping[str, float], positions: float) -> bool:
    """Whether a run that goes on will record too few positions for its first step, with a margin of two."""
    done, config = run.progress_at(last), run.config
    if last.get("games", 0.0) < config.selfplay.num_slots:  # games of the first batch end at about one time
        return False
    if done is None:
        return len(run.metrics) >= _PATIENCE_ITERATIONS
    needed = max(config.min_positions, config.learner.batch_size / max(config.samples_per_position, 1e-9))
    return done >= _PATIENCE and 2.0 * positions < done * needed


def _weight_of_values(search: SearchConfig, *, raises: bool) -> str:
    """Which setting gives values more weight, or less, at the root that the run has."""
    if search.root == "gumbel":
        return f"{'raise' if raises else 'lower'} search.gumbel_value_scale ({search.gumbel_value_scale:g})"
    return f"{'lower' if raises else 'raise'} search.c_puct ({search.c_puct:g})"


def _recent(run: Evidence) -> dict[str, float] | None:
    """Losses of late, and what they would be without knowledge; None before `_MIN_STEPS`."""
    return run.mean(*_FIGURES, over="steps", amount=_WINDOW_STEPS) if run.num_steps >= _MIN_STEPS else None


def _first(run: Evidence) -> dict[str, float] | None:
    """The same of the first `_MIN_STEPS` steps, in which a network has the most to learn from a search."""
    count = next((number for number, row in enumerate(run.metrics) if row.get("steps", 0.0) >= _MIN_STEPS), 0)
    part = Evidence(run.config, run.metrics[: count + 1])
    return part.mean(*_FIGURES, over="steps", amount=part.num_steps)


def _divergence(seen: dict[str, float]) -> float:
    """Kullback-Leibler divergence of the network's policy from the search's."""
    return seen["policy_loss"] - seen["target_entropy"]


def _gain(seen: dict[str, float], loss: str, ignorant: str) -> float:
    return 1.0 - seen[loss] / max(seen[ignorant], 1e-9)


def _is_diverged(seen: dict[str, float]) -> bool:
    is_value_bad = seen["value_loss"] > _VALUE_DIVERGED * seen["value_variance"] + _MIN_VARIANCE
    return is_value_bad or seen["policy_loss"] > _DIVERGED * seen["uniform_policy_loss"]


def _is_flat(seen: dict[str, float]) -> bool:
    """Whether neither policy nor value is better than without knowledge, though the search has preferences."""
    if seen["target_entropy"] > _UNIFORM * seen["uniform_policy_loss"] or _is_diverged(seen):
        return False
    is_value_flat = seen["value_variance"] <= _MIN_VARIANCE or _is_value_flat(seen)
    return is_value_flat and _gain(seen, "policy_loss", "uniform_policy_loss") < _MIN_GAIN


def _is_value_flat(seen: dict[str, float]) -> bool:
    """Whether the value is no better than a constant, though results differ."""
    return seen["value_variance"] > _MIN_VARIANCE and _gain(seen, "value_loss", "value_variance") < _MIN_GAIN


def _compared(seen: dict[str, float]) -> str:
    return (
        f"policy_loss is {seen['policy_loss']:.3f} and value_loss {seen['value_loss']:.3f}; a network that knows "
        f"nothing has {seen['uniform_policy_loss']:.3f} and {seen['value_variance']:.3f}"
    )


def _is_early(run: Evidence, row: Mapping[str, float]) -> bool:
    done = run.progress_at(row)
    return row.get("steps", 0.0) <= _EARLY_STEPS if done is None else done <= _EARLY
