"""Checks of your own games and engines.

    from windrow.testing import check_game

    def test_my_game():
        check_game(MyGame())

On the command line: `windrow check my_package.my_game:MyGame`. `check_engine("mine")` checks an engine.
"""

from windrow.games.checking import Fault, GameFaultsError, Report, check_game, examine
from windrow.search.checking import EngineFaultError, check_engine

__all__ = [
    "EngineFaultError",
    "Fault",
    "GameFaultsError",
    "Report",
    "check_engine",
    "check_game",
    "examine",
]
