"""Players, matches and tournaments between them, and their difference in strength as Elo."""

from windrow.play.elo import SequentialTest, elo_to_score, score_to_elo
from windrow.play.ladder import Rung, climb, ladder_table
from windrow.play.match import MatchProgress, MatchResult, play_match
from windrow.play.players import Player, RandomPlayer, SearchPlayer, make_player
from windrow.play.pretrained import Pretrained, find_pretrained, pretrained_networks
from windrow.play.programs import ProgramPlayer
from windrow.play.ratings import RatedGame, Ratings, fit_ratings
from windrow.play.seating import Gain
from windrow.play.solved import SolvedPosition, SolvedScore, score_player, solved_positions
from windrow.play.solver import Connect4Solver, SolverPlayer
from windrow.play.specs import parse_game
from windrow.play.tournament import Standing, TournamentGame, TournamentResult, play_tournament

__all__ = [
    "Connect4Solver",
    "Gain",
    "MatchProgress",
    "MatchResult",
    "Player",
    "Pretrained",
    "ProgramPlayer",
    "RandomPlayer",
    "RatedGame",
    "Ratings",
    "Rung",
    "SearchPlayer",
    "SequentialTest",
    "SolvedPosition",
    "SolvedScore",
    "SolverPlayer",
    "Standing",
    "TournamentGame",
    "TournamentResult",
    "climb",
    "elo_to_score",
    "find_pretrained",
    "fit_ratings",
    "ladder_table",
    "make_player",
    "parse_game",
    "play_match",
    "play_tournament",
    "pretrained_networks",
    "score_player",
    "score_to_elo",
    "solved_positions",
]
