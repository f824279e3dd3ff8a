"""Protocols of other programs over stdin and stdout: Gomocup's for Gomoku, and analysis in JSON lines for any game."""
