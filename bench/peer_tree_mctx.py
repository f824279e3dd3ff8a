"""mctx's part in peers_tree.py: `mctx.muzero_policy` over pgx's Connect-4, one core, all positions in one jit.

Logits and values are 0, so that tree and game are all there is; pgx keeps the observation in every state.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from peer_child import MIN_ROUND_S, read_arguments, serve

TASK, _ = read_arguments()  # pins the process to its core: before JAX starts its threads

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import mctx  # noqa: E402
import pgx  # noqa: E402

ENV = pgx.make("connect_four")


def legal_logits(legal: Any) -> Any:
    """0 for what is legal, as low as can be for the rest."""
    return jnp.where(legal, 0.0, jnp.finfo(jnp.float32).min)


def step(_params: Any, _key: Any, action: Any, state: Any) -> tuple[Any, Any]:
    """The game as mctx's model."""
    mover = state.current_player
    state = jax.vmap(ENV.step)(state, action)
    reward = jnp.take_along_axis(state.rewards, mover[:, None], axis=1)[:, 0]
    answer = mctx.RecurrentFnOutput(
        reward=reward,
        discount=jnp.where(state.terminated, 0.0, -1.0),
        prior_logits=legal_logits(state.legal_action_mask),
        value=jnp.zeros(len(mover)),
    )
    return answer, state


@jax.jit
def search(key: Any, state: Any) -> Any:
    """[K, 7] visits as shares, one search per game."""
    legal = state.legal_action_mask
    root = mctx.RootFnOutput(prior_logits=legal_logits(legal), value=jnp.zeros(len(legal)), embedding=state)
    found = mctx.muzero_policy(
        params=(),
        rng_key=key,
        root=root,
        recurrent_fn=step,
        num_simulations=TASK.num_simulations,
        invalid_actions=~legal,
        dirichlet_fraction=0.0,
    )
    return found.action_weights


def rate(state: Any) -> dict[str, float]:
    """Simulations per second, of searches of all positions until the round is long enough."""
    count, start = 0, perf_counter()
    while (elapsed := perf_counter() - start) < MIN_ROUND_S or count == 0:
        jax.block_until_ready(search(jax.random.PRNGKey(count), state))
        count += len(TASK.games) * TASK.num_simulations
    return {"rate": count / elapsed}


def main() -> None:
    """Get ready and serve."""
    state = jax.vmap(ENV.init)(jax.random.split(jax.random.PRNGKey(0), len(TASK.games)))
    for moves in TASK.moves:
        state = jax.jit(jax.vmap(ENV.step))(state, moves)
    assert not bool(state.terminated.any())
    shares = search(jax.random.PRNGKey(0), state)
    assert abs(float(shares.sum()) / len(TASK.games) - 1) < 1e-3
    rate(state)
    serve(lambda: rate(state), packages=["mctx", "pgx", "jax", "numpy"])


if __name__ == "__main__":
    main()
