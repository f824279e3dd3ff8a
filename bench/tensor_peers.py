"""mctx with pgx on Connect-4 and the network of resnet.py, in bfloat16: prints simulations per second as JSON.

Runs in a process of its own (see bench/tensor.py); mctx, pgx and jax must be importable.
"""

from __future__ import annotations

import argparse
import json
import time

import jax
import jax.numpy as jnp
from mctx_connect4 import COLUMNS, evaluate_resnet, first_states, make_search, to_jax
from resnet import make_resnet


def main() -> None:
    """Measure one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, required=True)
    parser.add_argument("--simulations", type=int, required=True)
    arguments = parser.parse_args()
    network = make_resnet((2, 6, 7), COLUMNS)
    weights = to_jax({name: value.numpy() for name, value in network.state_dict().items()}, jnp.bfloat16)
    search = make_search(evaluate_resnet, arguments.simulations, dirichlet_fraction=0.0)
    key, state = jax.random.PRNGKey(0), first_states(arguments.trees)
    jax.block_until_ready(search(weights, key, state))
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        jax.block_until_ready(search(weights, key, state))
        rates.append(arguments.trees * arguments.simulations / (time.perf_counter() - start))
    print(json.dumps({"simulations_per_second": rates, "device": str(jax.devices()[0])}))


if __name__ == "__main__":
    main()
