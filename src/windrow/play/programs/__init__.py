"""Outside programs as players: processes that are asked for moves by a protocol."""

from windrow.play.programs.command import PROTOCOLS, ProgramSettings, is_program
from windrow.play.programs.player import ProgramPlayer
from windrow.play.programs.program import Budget, Program, Resigned

__all__ = ["PROTOCOLS", "Budget", "Program", "ProgramPlayer", "ProgramSettings", "Resigned", "is_program"]
