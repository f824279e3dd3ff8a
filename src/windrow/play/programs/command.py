"""The spec of a player that is an outside program: `uci:stockfish,UCI_Elo=1350`, `gtp:gnugo --level 1`, `gnubg:0`.

    PROTOCOL:COMMAND,key=value,key=value

The command is written as in a shell: its words are separated by spaces, and quotes keep spaces and commas. The settings
of `ProgramSettings` are windrow's; all others belong to the protocol.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from typing import Any

from windrow.errors import ConfigError, ProgramError
from windrow.play.specs import parse_settings
from windrow.settings import Settings

PROTOCOLS: dict[str, str] = {
    "gnubg": "windrow.play.programs.gnubg:GnubgProgram",
    "gomocup": "windrow.play.programs.gomocup:GomocupProgram",
    "gtp": "windrow.play.programs.gtp:GtpProgram",
    "uci": "windrow.play.programs.uci:UciProgram",
    "ugi": "windrow.play.programs.uci:UgiProgram",
}
"""Import strings of the protocols by the word that begins a spec. Each is a class derived from `Program`."""

DEBIAN_PACKAGES = {
    "fairy-stockfish": "fairy-stockfish",
    "gnubg": "gnubg",
    "gnugo": "gnugo",
    "stockfish": "stockfish",
}
"""Debian's package of a program, by the program's name."""

_GAMES = "/usr/games"
"""Debian's folder of games, which the path of some users lacks."""
_MAX_S = 1e6
_PIECE = re.compile(r"""((?:[^,'"]|"[^"]*"|'[^']*'|['"])*)(?:,|$)""")


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ProgramSettings(Settings):
    """Settings of every outside program.

    time_s: seconds that the program is told to use for a move; None: the protocol's default.
    clock_s: seconds on the program's clock for all moves of a game. It loses a game in which it uses more. None: no
        clock.
    increment_s: seconds added to the clock after each move.
    timeout_s: seconds after which a program without a clock loses the game, because it seems to hang.
    processes: processes of the program, each of which plays one game at a time; None: one per core, at most 4.
    """

    time_s: float | None = None
    clock_s: float | None = None
    increment_s: float = 0.0
    timeout_s: float = 120.0
    processes: int | None = None

    def __post_init__(self) -> None:
        self._check_number("time_s", 0.001, _MAX_S, is_optional=True)
        self._check_number("clock_s", 0.001, _MAX_S, is_optional=True)
        self._check_number("increment_s", 0.0, _MAX_S)
        self._check_number("timeout_s", 0.001, _MAX_S)
        self._check_integer("processes", 1, 256, is_optional=True)
        if self.time_s is not None and self.clock_s is not None:
            raise ConfigError("time_s is for every move and clock_s for a whole game: give one of them")


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """The parts of a program's spec.

    text: the whole spec, which is the player's name.
    protocol: name of the protocol.
    command: words of the command; empty if there is none.
    settings: windrow's own settings.
    options: settings of the protocol, as text by key.
    """

    text: str
    protocol: str
    command: tuple[str, ...]
    settings: ProgramSettings
    options: dict[str, str]


def is_program(text: str) -> bool:
    """Whether a player's spec names an outside program."""
    return text.strip().partition(":")[0] in PROTOCOLS and not os.path.exists(text.strip())


def parse_program(text: str) -> ProgramSpec:
    """Split the spec of a program into its parts.

    Raises:
        ConfigError: the spec is malformed, or a setting has an impossible value.
    """
    protocol, _, rest = text.strip().partition(":")
    pieces = [match[1].strip() for match in _PIECE.finditer(rest) if match[0]]
    try:
        command = tuple(shlex.split(pieces[0])) if pieces and not _is_setting(pieces[0]) else ()
    except ValueError as error:
        raise ConfigError(f"{text!r}: the command cannot be read: {error}") from None
    own: dict[str, Any] = {}
    options: dict[str, str] = {}
    known = ProgramSettings.setting_names()
    for piece in pieces[1:] if command else pieces:
        if not _is_setting(piece):
            raise ConfigError(
                f"{text!r}: {piece!r} is not a setting key=value; arguments of the program follow its name, separated "
                f"by spaces: {protocol}:PROGRAM --argument,key=value"
            )
        key, _, value = piece.partition("=")
        if key.strip() in known:
            own |= parse_settings([piece])
        else:
            options[key.strip()] = value.strip().strip("\"'")
    return ProgramSpec(text.strip(), protocol, command, ProgramSettings(**own), options)


def find_program(name: str) -> str:
    """The path of a program, which is looked for in PATH and in Debian's folder of games.

    Raises:
        ProgramError: it is not installed; the message names Debian's package, if there is one.
    """
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), _GAMES]))
    if found is None:
        package = DEBIAN_PACKAGES.get(os.path.basename(name))
        hint = f"install it (on Debian: apt install {package})" if package else "install it, or give its path"
        raise ProgramError(f"the program {name} was not found: {hint}")
    return found


def is_installed(name: str) -> bool:
    """Whether `find_program` finds a program."""
    try:
        find_program(name)
    except ProgramError:
        return False
    return True


def _is_setting(piece: str) -> bool:
    return re.match(r"[A-Za-z_][\w -]*=", piece) is not None
