"""Whether a game keeps the rules that searches rely on; `windrow.testing` is the way in."""

from windrow.games.checking.examination import check_game, examine
from windrow.games.checking.fault import Fault, GameFaultsError, Kind, Report

__all__ = ["Fault", "GameFaultsError", "Kind", "Report", "check_game", "examine"]
