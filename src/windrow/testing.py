"""Checks for what others write: whether a game keeps the rules that searches rely on.

    from windrow.testing import check_game

    def test_my_game():
        check_game(MyGame())

The same from the command line: `windrow check my_package.my_game:MyGame`.
"""

from windrow.games.checking import Fault, GameFaultsError, Report, check_game, examine, find_faults

__all__ = ["Fault", "GameFaultsError", "Report", "check_game", "examine", "find_faults"]
