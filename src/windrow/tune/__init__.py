"""How to search fastest on this machine without losing strength: measure, weigh, choose, write a config.

tuning = tune(game, network, SearchConfig(num_simulations=64))
tuning.write("tuned.toml")              # for SearchConfig.read, and --config of the commands
"""

from windrow.tune.choice import Measured, choose
from windrow.tune.price import Price, PriceRow
from windrow.tune.space import Candidate
from windrow.tune.tuner import Tuning, tune

__all__ = ["Candidate", "Measured", "Price", "PriceRow", "Tuning", "choose", "tune"]
