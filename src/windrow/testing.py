"""Checks for what others write: whether a game, or an engine, keeps the rules that searches rely on.

    from windrow.testing import check_game

    def test_my_game():
        check_game(MyGame())

The same from the command line: `windrow check my_package.my_game:MyGame`. `check_engine("mine")` does it for an engine.
"""

from windrow.games.checking import Fault, GameFaultsError, Report, check_game, examine, find_faults
from windrow.search.checking import EngineFaultError, check_engine

__all__ = [
    "EngineFaultError",
    "Fault",
    "GameFaultsError",
    "Report",
    "check_engine",
    "check_game",
    "examine",
    "find_faults",
]
