"""The games of a run on disk: a log per iteration, from which the replay is filled again after a restart."""

from __future__ import annotations

from pathlib import Path

from windrow.train.disk import writing
from windrow.train.records import GameLog, GameRecord


class GameArchive:
    """The folder `games` of a run.

    Args:
        max_positions: recorded moves that a replay holds: logs that lie behind so many are not needed.
    """

    def __init__(self, folder: Path, max_positions: int) -> None:
        self.folder = folder / "games"
        self._max_positions = max_positions
        self._num_positions: dict[int, int] = {}

    def open(self, iteration: int) -> GameLog:
        """The log of an iteration, to append to."""
        return GameLog(self._path(iteration))

    def note(self, iteration: int, records: list[GameRecord]) -> None:
        """Remember how much is in a log."""
        self._num_positions[iteration] = count_positions(records)

    def read_back(self, iteration: int) -> list[list[GameRecord]]:
        """The games of the iterations up to `iteration`, oldest first; no more of them than fill a replay."""
        needed: list[list[GameRecord]] = []
        num_positions = 0
        for number, path in reversed(self._logs()):
            if number > iteration:
                continue
            if num_positions >= self._max_positions:
                break
            records = GameLog.read(path)
            self.note(number, records)
            num_positions += self._num_positions[number]
            needed.append(records)
        return needed[::-1]

    def carry_over(self, iteration: int) -> list[GameRecord]:
        """The games that finished after iteration `iteration`: all of them belong to the next one now."""
        later = [path for number, path in self._logs() if number > iteration]
        # By number: a kill while they are moved to one log leaves some in two.
        records = {record.number: record for path in later for record in GameLog.read(path)}
        target = self._path(iteration + 1)
        if records:
            with GameLog(target) as log:
                there = {record.number for record in GameLog.read(target)}
                for record in records.values():
                    if record.number not in there:
                        log.append(record)
        for path in later:
            if path != target:
                _delete(path)
        return list(records.values())

    def drop_after(self, iteration: int) -> None:
        """Delete the games that finished after iteration `iteration`."""
        for number, path in self._logs():
            if number > iteration:
                _delete(path)

    def forget_before(self, iteration: int) -> None:
        """Delete the logs that a replay at iteration `iteration` has forgotten."""
        num_positions = 0
        for number, path in reversed(self._logs()):
            if number > iteration:
                continue
            if num_positions >= self._max_positions:
                _delete(path)
                self._num_positions.pop(number, None)
            else:
                num_positions += self._num_positions.get(number, 0)

    def _path(self, iteration: int) -> Path:
        return self.folder / f"{iteration:06d}.games"

    def _logs(self) -> list[tuple[int, Path]]:
        """The logs by iteration, oldest first."""
        return sorted((int(path.stem), path) for path in self.folder.glob("*.games") if path.stem.isdigit())


def count_positions(records: list[GameRecord]) -> int:
    """Recorded moves of some games."""
    return sum(len(record.policy) for record in records)


def _delete(path: Path) -> None:
    with writing(path):
        path.unlink(missing_ok=True)
