"""mctx with pgx on Connect-4, with a network of the same shape as ours in JAX: prints simulations per second as JSON.

Runs in a process of its own (see bench/tensor.py); mctx, pgx and jax must be importable.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import pgx

CHANNELS, NUM_BLOCKS, COLUMNS, CELLS = 64, 5, 7, 42
DTYPE = jnp.bfloat16

game = pgx.make("connect_four")


def make_weights(key: Any) -> dict[str, Any]:
    """Random weights: every layer a (kernel, bias)."""
    keys = iter(jax.random.split(key, 32))

    def conv(inputs: int, outputs: int, size: int) -> Any:
        scale = (2 / (size * size * inputs)) ** 0.5
        return jax.random.normal(next(keys), (size, size, inputs, outputs), DTYPE) * scale, jnp.zeros(outputs, DTYPE)

    def linear(inputs: int, outputs: int) -> Any:
        return jax.random.normal(next(keys), (inputs, outputs), DTYPE) * inputs**-0.5, jnp.zeros(outputs, DTYPE)

    return {
        "stem": conv(2, CHANNELS, 3),
        "blocks": [(conv(CHANNELS, CHANNELS, 3), conv(CHANNELS, CHANNELS, 3)) for _ in range(NUM_BLOCKS)],
        "policy_planes": conv(CHANNELS, 2, 1),
        "policy": linear(2 * CELLS, COLUMNS),
        "value_plane": conv(CHANNELS, 1, 1),
        "value_hidden": linear(CELLS, 64),
        "value": linear(64, 1),
    }


def convolve(x: Any, layer: Any) -> Any:
    """Same size in and out."""
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, layer[0], (1, 1), "SAME", dimension_numbers=names) + layer[1]


def network(weights: dict[str, Any], boards: Any) -> tuple[Any, Any]:
    """(logits [B, 7], values [B]) in float32."""
    x = jax.nn.relu(convolve(boards.astype(DTYPE), weights["stem"]))
    for first, second in weights["blocks"]:
        x = jax.nn.relu(x + convolve(jax.nn.relu(convolve(x, first)), second))
    policy = jax.nn.relu(convolve(x, weights["policy_planes"])).reshape(len(x), -1)
    logits = policy @ weights["policy"][0] + weights["policy"][1]
    value = jax.nn.relu(convolve(x, weights["value_plane"])).reshape(len(x), -1)
    value = jax.nn.relu(value @ weights["value_hidden"][0] + weights["value_hidden"][1])
    value = jnp.tanh(value @ weights["value"][0] + weights["value"][1])[:, 0]
    return logits.astype(jnp.float32), value.astype(jnp.float32)


def step(weights: dict[str, Any], _: Any, action: Any, state: Any) -> Any:
    """One simulation's leaf: play, look, and say how values pass upwards."""
    mover = state.current_player
    state = jax.vmap(game.step)(state, action)
    logits, value = network(weights, state.observation)
    logits = jnp.where(state.legal_action_mask, logits, jnp.finfo(jnp.float32).min)
    reward = state.rewards[jnp.arange(len(mover)), mover]
    is_over = state.terminated
    output = mctx.RecurrentFnOutput(
        reward=reward,
        discount=jnp.where(is_over, 0.0, -1.0),
        prior_logits=logits,
        value=jnp.where(is_over, 0.0, value),
    )
    return output, state


def main() -> None:
    """Measure one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, required=True)
    parser.add_argument("--simulations", type=int, required=True)
    arguments = parser.parse_args()
    key = jax.random.PRNGKey(0)
    weights = make_weights(key)

    @jax.jit
    def search(weights: dict[str, Any], key: Any, state: Any) -> Any:
        logits, value = network(weights, state.observation)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state)
        is_illegal = ~state.legal_action_mask
        return mctx.muzero_policy(
            weights, key, root, step, arguments.simulations, invalid_actions=is_illegal, dirichlet_fraction=0.0
        ).action_weights

    state = jax.jit(jax.vmap(game.init))(jax.random.split(key, arguments.trees))
    jax.block_until_ready(search(weights, key, state))
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        jax.block_until_ready(search(weights, key, state))
        rates.append(arguments.trees * arguments.simulations / (time.perf_counter() - start))
    print(json.dumps({"simulations_per_second": rates, "device": str(jax.devices()[0])}))


if __name__ == "__main__":
    main()
