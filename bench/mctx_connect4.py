"""mctx over pgx's Connect-4, as several programs measure it: the game as mctx's model, and a network with any weights.

Import it after the process is pinned to its cores: JAX starts its threads then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import pgx
from jax import lax

GAME = pgx.make("connect_four")
COLUMNS = 7

step_games = jax.jit(jax.vmap(GAME.step))


def first_states(count: int) -> Any:
    """[K] games before the first move. Who moves first is drawn by pgx; it decides the signs of rewards only."""
    return jax.vmap(GAME.init)(jax.random.split(jax.random.PRNGKey(0), count))


def make_search(evaluate: Callable[[Any, Any], tuple[Any, Any]], num_simulations: int, **more: Any) -> Any:
    """A jitted function from (parameters, key, states [K]) to [K, 7] visits as shares, one search per game.

    Args:
        evaluate: gives (logits [K, 7], values [K]) for parameters and boards [K, rows, columns, 2].
        num_simulations: of every search.
        more: further arguments of `mctx.muzero_policy`.
    """

    def step(params: Any, _key: Any, action: Any, state: Any) -> tuple[Any, Any]:
        mover = state.current_player
        state = jax.vmap(GAME.step)(state, action)
        logits, values = evaluate(params, state.observation)
        answer = mctx.RecurrentFnOutput(
            reward=jnp.take_along_axis(state.rewards, mover[:, None], axis=1)[:, 0],
            discount=jnp.where(state.terminated, 0.0, -1.0),
            prior_logits=_legal_logits(logits, state.legal_action_mask),
            value=jnp.where(state.terminated, 0.0, values),
        )
        return answer, state

    @jax.jit
    def search(params: Any, key: Any, state: Any) -> Any:
        logits, values = evaluate(params, state.observation)
        legal = state.legal_action_mask
        root = mctx.RootFnOutput(prior_logits=_legal_logits(logits, legal), value=values, embedding=state)
        return mctx.muzero_policy(
            params=params,
            rng_key=key,
            root=root,
            recurrent_fn=step,
            num_simulations=num_simulations,
            invalid_actions=~legal,
            **more,
        ).action_weights

    return search


def _legal_logits(logits: Any, legal: Any) -> Any:
    """Of illegal moves, as low as can be."""
    return jnp.where(legal, logits - logits.max(axis=-1, keepdims=True), jnp.finfo(logits.dtype).min)


def to_jax(weights: Mapping[str, Any], dtype: Any = jnp.float32) -> dict[str, Any]:
    """Weights of resnet.py: convolutions in the layout that XLA computes fastest in on a CPU, the others transposed."""
    order = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}
    return {name: jnp.asarray(weight.transpose(order[weight.ndim]), dtype) for name, weight in weights.items()}


def evaluate_resnet(weights: dict[str, Any], boards: Any) -> tuple[Any, Any]:
    """The network of resnet.py, in the precision of its weights: float32 (logits [K, 7], values [K]) of boards."""

    def convolve(name: str, x: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, weights[f"{name}.weight"], (1, 1), "SAME", dimension_numbers=layout)
        return y + weights[f"{name}.bias"]

    def linear(name: str, x: Any) -> Any:
        return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def flat(x: Any) -> Any:
        return x.transpose(0, 3, 1, 2).reshape(len(x), -1)

    x = jax.nn.relu(convolve("stem", boards.astype(weights["stem.weight"].dtype)))
    for block in range(sum(name.endswith("first.weight") for name in weights)):
        inner = jax.nn.relu(convolve(f"blocks.{block}.first", x))
        x = jax.nn.relu(x + convolve(f"blocks.{block}.second", inner))
    logits = linear("policy", flat(jax.nn.relu(convolve("policy_planes", x))))
    hidden = jax.nn.relu(linear("value_hidden", flat(jax.nn.relu(convolve("value_plane", x)))))
    values = jnp.tanh(linear("value", hidden))[:, 0]
    return logits.astype(jnp.float32), values.astype(jnp.float32)
