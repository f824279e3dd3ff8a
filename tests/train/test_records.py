from __future__ import annotations

import dataclasses
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_cases import CONNECT4, random_record

from hostile_run import put
from windrow import CheckpointError, make_game
from windrow.train import GameLog, GameRecord

TICTACTOE = make_game("tictactoe")
GAMES = [random_record(TICTACTOE, number, share=0.3) for number in range(4)]


def write_log(path: Path, records: list[GameRecord]) -> bytes:
    path.unlink(missing_ok=True)
    with GameLog(path) as log:
        for record in records:
            log.append(record)
    return path.read_bytes()


# --- One game ----------------------------------------------------------------------------------------------------


@given(
    number=st.integers(0, 2**63),
    moves=st.lists(st.tuples(st.integers(0, 2**16 - 1), st.booleans(), st.floats(-1, 1, width=16)), max_size=20),
    initial=st.binary(max_size=40),
    num_actions=st.integers(1, 9),
    returns=st.lists(st.floats(-1, 1, width=32), max_size=4),
    versions=st.tuples(st.integers(0, 2**63), st.integers(0, 2**63)),
    resigned_by=st.integers(-1, 3),
)
def test_a_record_comes_back_as_it_was(
    number: int,
    moves: list[tuple[int, bool, float]],
    initial: bytes,
    num_actions: int,
    returns: list[float],
    versions: tuple[int, int],
    resigned_by: int,
):
    is_recorded = np.array([kept for _, kept, _ in moves], np.bool_)
    policy = np.random.default_rng(0).random((is_recorded.sum(), num_actions)).astype(np.float16)
    record = GameRecord(
        number=number,
        actions=np.array([action for action, _, _ in moves], np.uint16),
        initial=initial,
        is_recorded=is_recorded,
        policy=policy,
        root_value=np.array([value for _, _, value in moves], np.float16),
        returns=np.array(returns, np.float32),
        versions=versions,
        resigned_by=resigned_by,
    )
    again = GameRecord.from_bytes(record.to_bytes())
    assert again == record and hash(again) == hash(record) and len(again) == len(moves)
    for field in dataclasses.fields(GameRecord):
        one, other = getattr(record, field.name), getattr(again, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other), field.name
        else:
            assert one == other, field.name


def test_bytes_that_are_no_game_are_refused():
    data = GAMES[0].to_bytes()
    for length in range(len(data)):
        with pytest.raises(ValueError, match="bytes"):
            GameRecord.from_bytes(data[:length])
    with pytest.raises(ValueError, match="bytes"):
        GameRecord.from_bytes(data + b"\0")
    with pytest.raises(ValueError, match="newer windrow"):
        GameRecord.from_bytes(b"\x09" + data[1:])


def test_a_record_must_fit_together():
    record = random_record(CONNECT4, 1, share=0.5)
    with pytest.raises(ValueError, match="recorded"):
        dataclasses.replace(record, policy=record.policy[:-1])
    with pytest.raises(ValueError, match="root_value"):
        dataclasses.replace(record, root_value=record.root_value[:-1])


# --- A log of games ----------------------------------------------------------------------------------------------


def test_a_log_grows(tmp_path: Path):
    path = tmp_path / "games"
    write_log(path, GAMES[:2])
    with GameLog(path) as log:
        log.append(GAMES[2])
        assert GameLog.read(path) == GAMES[:3], "a game is there as soon as it is appended"
        log.sync()
    assert GameLog.read(path) == GAMES[:3]


def test_a_log_torn_anywhere_keeps_the_games_before(tmp_path: Path):
    path = tmp_path / "games"
    sizes = [len(write_log(path, GAMES[:count])) for count in range(4)]
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        num_whole = max((count for count, size in enumerate(sizes) if size <= length), default=0)
        assert GameLog.read(path) == GAMES[:num_whole], length
        with GameLog(path) as log:
            log.append(GAMES[3])
        assert GameLog.read(path) == [*GAMES[:num_whole], GAMES[3]], length


def test_a_flipped_bit_is_never_a_game(tmp_path: Path):
    """Every byte in turn: the log is refused, or only the last game, which may have been torn, is missing."""
    path = tmp_path / "games"
    start_of_last = len(write_log(path, GAMES[:2]))
    whole = write_log(path, GAMES[:3])
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << (place % 8)
        path.write_bytes(data)
        try:
            found = GameLog.read(path)
        except CheckpointError as error:
            assert str(path) in str(error)
        else:
            assert place >= start_of_last and found == GAMES[:2], place


def test_damage_says_where_and_what_to_do(tmp_path: Path):
    path = tmp_path / "games"
    good = len(write_log(path, GAMES[:1]))
    data = bytearray(write_log(path, GAMES[:3]))
    data[good + 20] ^= 255
    path.write_bytes(data)
    for use in (GameLog.read, GameLog):
        with pytest.raises(CheckpointError, match=f"at byte {good}, after 1 good game.*truncate -s {good}"):
            use(path)
    assert path.read_bytes() == data, "a damaged log is left as it is"
    path.write_bytes(data[:good])  # what the message says
    assert GameLog.read(path) == GAMES[:1]


def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path):
    """Some file systems leave them when the power fails."""
    path = tmp_path / "games"
    whole = write_log(path, GAMES[:2])
    for count in (1, 11, 12, 13, 5000):
        path.write_bytes(whole + bytes(count))
        assert GameLog.read(path) == GAMES[:2]


def test_other_files_are_left_alone(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("not a log of games")
    for use in (GameLog.read, GameLog):
        with pytest.raises(CheckpointError, match="not a game log"):
            use(path)
    assert path.read_text() == "not a log of games"


def test_a_log_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        GameLog(tmp_path / "file" / "games")
    with pytest.raises(CheckpointError, match="cannot be read"):
        GameLog.read(tmp_path / "nothing")


def test_a_log_that_may_not_grow_is_as_it_was(tmp_path: Path):
    """The system refuses to write on, in the midst of a game, as it does when the disk is full."""
    path = tmp_path / "games"
    before = write_log(path, GAMES[:2])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with GameLog(path) as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 30, hard))
        try:
            with pytest.raises(CheckpointError, match=f"{path} cannot be written"):
                log.append(GAMES[2])
            assert path.read_bytes() == before
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        log.append(GAMES[3])
    assert GameLog.read(path) == [*GAMES[:2], GAMES[3]]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_log_that_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "000001.games"
    put(path, kind)
    with pytest.raises(CheckpointError, match="not a regular file"):
        GameLog.read(path)
