"""mctx's part in peers.py: `mctx.muzero_policy` over pgx's Connect-4 with the network in JAX, all games in one jit.

The policy is used as it comes, with its own noise and formula: what is compared is how fast it is, not how it plays.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from peer_child import Task, read_arguments, serve_answers

TASK, _ = read_arguments()  # pins the process to its core: before JAX starts its threads

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import mctx  # noqa: E402
import pgx  # noqa: E402
from jax import lax  # noqa: E402

ENV = pgx.make("connect_four")
NUM_BLOCKS = sum(name.endswith("first.weight") for name in TASK.weights)


def to_jax(weights: dict[str, Any]) -> dict[str, Any]:
    """Kernels of convolutions in the layout that XLA computes fastest in on a CPU, the others transposed."""
    order = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}
    return {name: jnp.asarray(weight.transpose(order[weight.ndim])) for name, weight in weights.items()}


def convolve(weights: dict[str, Any], name: str, x: Any) -> Any:
    """[K, rows, columns, channels] in and out."""
    layout = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(x, weights[f"{name}.weight"], (1, 1), "SAME", dimension_numbers=layout)
    return y + weights[f"{name}.bias"]


def evaluate(weights: dict[str, Any], boards: Any) -> tuple[Any, Any]:
    """The network of resnet.py: (logits [K, 7], values [K]) of boards [K, rows, columns, 2]."""

    def linear(name: str, x: Any) -> Any:
        return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def flat(x: Any) -> Any:
        return x.transpose(0, 3, 1, 2).reshape(len(x), -1)

    x = jax.nn.relu(convolve(weights, "stem", boards.astype(jnp.float32)))
    for block in range(NUM_BLOCKS):
        inner = jax.nn.relu(convolve(weights, f"blocks.{block}.first", x))
        x = jax.nn.relu(x + convolve(weights, f"blocks.{block}.second", inner))
    logits = linear("policy", flat(jax.nn.relu(convolve(weights, "policy_planes", x))))
    hidden = jax.nn.relu(linear("value_hidden", flat(jax.nn.relu(convolve(weights, "value_plane", x)))))
    return logits, jnp.tanh(linear("value", hidden))[:, 0]


def legal_logits(logits: Any, legal: Any) -> Any:
    """Of illegal moves, as low as can be."""
    return jnp.where(legal, logits - logits.max(axis=-1, keepdims=True), jnp.finfo(logits.dtype).min)


def step(weights: dict[str, Any], _key: Any, action: Any, state: Any) -> tuple[Any, Any]:
    """The game and the network as mctx's model."""
    mover = state.current_player
    state = jax.vmap(ENV.step)(state, action)
    logits, values = evaluate(weights, state.observation)
    reward = jnp.take_along_axis(state.rewards, mover[:, None], axis=1)[:, 0]
    answer = mctx.RecurrentFnOutput(
        reward=reward,
        discount=jnp.where(state.terminated, 0.0, -1.0),
        prior_logits=legal_logits(logits, state.legal_action_mask),
        value=jnp.where(state.terminated, 0.0, values),
    )
    return answer, state


@jax.jit
def search(weights: dict[str, Any], key: Any, state: Any) -> Any:
    """[K, 7] visits as shares, one search per game."""
    logits, values = evaluate(weights, state.observation)
    root = mctx.RootFnOutput(prior_logits=legal_logits(logits, state.legal_action_mask), value=values, embedding=state)
    return mctx.muzero_policy(
        params=weights,
        rng_key=key,
        root=root,
        recurrent_fn=step,
        num_simulations=TASK.num_simulations,
        invalid_actions=~state.legal_action_mask,
    ).action_weights


apply_moves = jax.jit(jax.vmap(ENV.step))


def play(weights: dict[str, Any], task: Task, first: Any) -> tuple[float, Any]:
    """Search the position before every move: seconds, and the positions after the last move."""
    state, start = first, perf_counter()
    for ply, moves in enumerate(task.moves):
        jax.block_until_ready(search(weights, jax.random.PRNGKey(ply), state))
        state = apply_moves(state, moves)
    jax.block_until_ready(state)
    return perf_counter() - start, state


def main() -> None:
    """Get ready and serve."""
    task = TASK
    weights = to_jax(task.weights)
    first = jax.vmap(ENV.init)(jax.random.split(jax.random.PRNGKey(0), len(task.games)))
    # Who moves first is drawn by pgx; it decides the signs of rewards only.
    _, last = play(weights, task, first)  # compiles
    shares = search(weights, jax.random.PRNGKey(0), first)
    assert abs(float((shares * task.num_simulations).sum()) / (len(task.games) * task.num_simulations) - 1) < 1e-3
    num_simulations = len(task.games) * len(task.games[0]) * task.num_simulations
    serve_answers(
        *jax.jit(evaluate)(weights, last.observation),
        lambda: {"rate": num_simulations / play(weights, task, first)[0]},
        packages=["mctx", "pgx", "jax", "numpy"],
    )


if __name__ == "__main__":
    main()
