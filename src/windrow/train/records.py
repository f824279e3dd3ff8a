"""Game records, which self-play makes and the replay memory takes, and the log file that keeps them.

A log is eight bytes that identify it, followed by one frame per game. Each frame is written by one system call, so
killing the program tears at most the last one:

    length u32 | CRC-32 of the record u32 | CRC-32 of the eight bytes before u32 | record
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import CheckpointError
from windrow.files import open_regular
from windrow.spelling import counted
from windrow.train.disk import explain_write, writing

NOBODY = -1
"""`resigned_by` of a game that was played to its end."""

_MAGIC = b"windrow\x01"
_FRAME = struct.Struct("<III")
# Format, number, moves, recorded moves, actions, bytes of `initial`, players, first and last version, who resigned.
_HEADER = struct.Struct("<HQIIIIHQQh")
_FORMAT = 4
_NUM_OUTCOMES = struct.Struct("<I")


@dataclass(frozen=True, slots=True, eq=False)
class GameRecord:
    """Record of one game: T moves, of which R were searched fully, and C chance outcomes.

    number: number of the game in its run; key of its random numbers.
    actions: [T] all moves, starting from `initial`.
    initial: the moves before the first of them, as `CoreGame.pack_start` packs them.
    is_recorded: [T] which moves were searched fully; only those are trained on.
    policy: [R, A] target policies of those moves, in order.
    root_value: [T] the search's value of the position, for the player to move.
    is_proven: [T] whether that value is proven.
    returns: [players] the result.
    versions: versions of the weights at the first and at the last move.
    resigned_by: the player who resigned, or `NOBODY`.
    outcomes: [C] the chance outcomes, in order.
    outcome_plies: [C] number of moves before each outcome; ascending.
    """

    number: int
    actions: npt.NDArray[np.uint16]
    initial: bytes
    is_recorded: npt.NDArray[np.bool_]
    policy: npt.NDArray[np.float16]
    root_value: npt.NDArray[np.float16]
    returns: npt.NDArray[np.float32]
    versions: tuple[int, int]
    resigned_by: int = NOBODY
    outcomes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    outcome_plies: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    is_proven: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))

    def __post_init__(self) -> None:
        num_moves = len(self.actions)
        if not len(self.is_proven):
            object.__setattr__(self, "is_proven", np.zeros(num_moves, bool))
        plies = self.outcome_plies
        if len(plies) != len(self.outcomes) or (np.diff(plies.astype(np.int64)) < 0).any() or (plies > num_moves).any():
            raise ValueError(f"{len(self.outcomes)} outcomes of chance do not lie within a game of {num_moves} moves")
        lengths = len(self.is_recorded), len(self.root_value), len(self.is_proven)
        if any(length != num_moves for length in lengths):
            raise ValueError(
                f"a game of {num_moves} moves has as many is_recorded, root_value and is_proven, not {lengths}"
            )
        if self.policy.ndim != 2 or len(self.policy) != np.count_nonzero(self.is_recorded):
            raise ValueError(
                f"policy has shape {self.policy.shape}, but {np.count_nonzero(self.is_recorded)} moves are recorded"
            )

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, GameRecord) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def moves_key(self) -> bytes:
        """A key that is equal for games that are alike move for move, including the dice and the start."""
        return self.initial + self.actions.tobytes() + self.outcomes.tobytes()

    def all_moves(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """[T + C] actions and chance outcomes in order, and which of them are actions."""
        is_action = np.ones(len(self.actions) + len(self.outcomes), bool)
        is_action[self.outcome_plies.astype(np.int64) + np.arange(len(self.outcomes))] = False
        moves = np.empty(len(is_action), np.int64)
        moves[is_action], moves[~is_action] = self.actions, self.outcomes
        return moves, is_action

    def to_bytes(self) -> bytes:
        """The whole game as bytes, the same on every machine."""
        header = _HEADER.pack(
            _FORMAT,
            self.number,
            len(self.actions),
            *self.policy.shape,
            len(self.initial),
            len(self.returns),
            *self.versions,
            self.resigned_by,
        )
        arrays = [
            self.actions.astype("<u2", copy=False),
            np.packbits(self.is_recorded),
            np.packbits(self.is_proven),
            self.policy.astype("<f2", copy=False),
            self.root_value.astype("<f2", copy=False),
            self.returns.astype("<f4", copy=False),
        ]
        chance = [self.outcome_plies.astype("<u4", copy=False), self.outcomes.astype("<i8", copy=False)]
        outcomes = [_NUM_OUTCOMES.pack(len(self.outcomes)), *(array.tobytes() for array in chance)]
        return b"".join([header, *outcomes, self.initial, *(array.tobytes() for array in arrays)])

    @classmethod
    def from_bytes(cls, data: bytes) -> GameRecord:
        """Read the game that `to_bytes` wrote.

        Raises:
            ValueError: these are not the bytes of a game.
        """
        least = _HEADER.size + _NUM_OUTCOMES.size
        if len(data) < least:
            raise ValueError(f"a game has at least {least} bytes, not {len(data)}")
        kind, number, moves, recorded, actions, start_bytes, players, *versions, resigned_by = _HEADER.unpack_from(data)
        if kind != _FORMAT:
            writer = "a newer windrow" if kind > _FORMAT else "a windrow before 0.2"
            raise ValueError(f"this game has format {kind}, which only {writer} can read")
        (num_outcomes,) = _NUM_OUTCOMES.unpack_from(data, _HEADER.size)
        start = least
        sizes = [4 * num_outcomes, 8 * num_outcomes]
        num_bits = (moves + 7) // 8
        sizes += [start_bytes, 2 * moves, num_bits, num_bits, 2 * recorded * actions, 2 * moves, 4 * players]
        if len(data) != start + sum(sizes):
            raise ValueError(f"this game has {start + sum(sizes)} bytes, not {len(data)}")
        parts = list[bytes]()
        for size in sizes:
            parts.append(data[start : start + size])
            start += size
        outcome_plies, outcomes, initial, played, recorded_bits, proven_bits, policy, root_value, returns = parts
        return cls(
            number=number,
            actions=np.frombuffer(played, "<u2").astype(np.uint16),
            initial=initial,
            is_recorded=np.unpackbits(np.frombuffer(recorded_bits, np.uint8), count=moves).astype(np.bool_),
            is_proven=np.unpackbits(np.frombuffer(proven_bits, np.uint8), count=moves).astype(np.bool_),
            policy=np.frombuffer(policy, "<f2").astype(np.float16).reshape(recorded, actions),
            root_value=np.frombuffer(root_value, "<f2").astype(np.float16),
            returns=np.frombuffer(returns, "<f4").astype(np.float32),
            versions=(versions[0], versions[1]),
            resigned_by=resigned_by,
            outcomes=np.frombuffer(outcomes, "<i8").astype(np.int64),
            outcome_plies=np.frombuffer(outcome_plies, "<u4").astype(np.uint32),
        )


class GameLog:
    """A file of games that only grows, opened for appending. Use it as a context manager, or `close` it.

    A torn end, which a killed program leaves, is cut off when the log is opened.

    Args:
        path: the file; it is created if it does not exist.

    Raises:
        CheckpointError: the file cannot be written, or is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        end = max((end for _, end in _frames(self.path)), default=0) if self.path.exists() else 0
        with writing(self.path):
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._end = max(end, len(_MAGIC))
        try:
            os.ftruncate(self._file, end)
            if end == 0:
                self._write(_MAGIC, 0)
        except OSError as error:
            self.close()
            raise explain_write(self.path, error) from error

    def __enter__(self) -> GameLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, record: GameRecord) -> None:
        """Write a game. It then survives the end of the program and, after `sync`, also a power failure.

        Raises:
            CheckpointError: the game cannot be written, for example because the disk is full; the log is unchanged.
        """
        data = record.to_bytes()
        start = struct.pack("<II", len(data), zlib.crc32(data))
        frame = start + struct.pack("<I", zlib.crc32(start)) + data
        try:
            self._write(frame, self._end)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise explain_write(self.path, error) from error
        self._end += len(frame)

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        with writing(self.path):
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file; may be called more than once."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @staticmethod
    def read(path: str | os.PathLike[str]) -> list[GameRecord]:
        """Read all games of a log, without a torn one at its end.

        Raises:
            CheckpointError: the log cannot be read, or is damaged before its end.
        """
        return list(GameLog.iterate(path))

    @staticmethod
    def iterate(path: str | os.PathLike[str]) -> Iterator[GameRecord]:
        """Read the games of a log one by one, as `read` gives them, with memory for one game."""
        for data, end in _frames(Path(path)):
            yield _parse(data, end, path)

    def _write(self, data: bytes, position: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, position)
            view, position = view[written:], position + written


def _parse(data: bytes, end: int, path: str | os.PathLike[str]) -> GameRecord:
    try:
        return GameRecord.from_bytes(data)
    except ValueError as error:
        raise CheckpointError(f"{path} has no valid game before byte {end}: {error}") from error


def _frames(path: Path) -> Iterator[tuple[bytes, int]]:
    """Each record and the end of its frame; stops before a torn one.

    What is torn: a frame that the file ends within, a last one whose bytes never reached the disk before the power
    failed, and zeros at the end, which some file systems leave then. Everything else is damage.
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            magic = file.read(len(_MAGIC))
            if magic != _MAGIC:
                if len(magic) < len(_MAGIC) and _MAGIC.startswith(magic):
                    return
                raise CheckpointError(
                    f"{path} is not a game log, or is from a newer windrow: name a file that windrow wrote, or "
                    "install the windrow that wrote it"
                )
            position, num_games = len(_MAGIC), 0
            while len(header := file.read(_FRAME.size)) == _FRAME.size:
                length, checksum, header_checksum = _FRAME.unpack(header)
                if zlib.crc32(header[:8]) != header_checksum:
                    if not header.strip(b"\0") and _is_zero(file):
                        return
                    raise _damaged(path, position, num_games)
                end = position + _FRAME.size + length
                if end > size:
                    return
                data = file.read(length)
                if zlib.crc32(data) != checksum:
                    if end == size:
                        return
                    raise _damaged(path, position, num_games)
                yield data, end
                position, num_games = end, num_games + 1
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error


def _is_zero(file: Any) -> bool:
    """Whether only zeros are left."""
    while chunk := file.read(1 << 20):
        if chunk.strip(b"\0"):
            return False
    return True


def _damaged(path: Path, position: int, num_games: int) -> CheckpointError:
    return CheckpointError(
        f"{path} is damaged at byte {position}, after {counted(num_games, 'good game')}. To continue with those games, "
        f"cut the file off there: truncate -s {position} {path}"
    )
