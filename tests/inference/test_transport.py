"""Shared memory, doorbells and messages, between real processes where it matters."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from interrupts import is_interrupted_at
from windrow import make_game
from windrow.evaluators import HashEvaluator
from windrow.inference import InferenceClient, InferenceServer
from windrow.inference.control import Control
from windrow.inference.doorbell import Doorbell
from windrow.inference.memory import SharedMemory


@pytest.fixture(params=["eventfd and memfd", "pipe and file"])
def _kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this system has, and what others have."""
    if request.param == "pipe and file":
        monkeypatch.delattr(os, "eventfd")
        monkeypatch.delattr(os, "memfd_create")


@pytest.mark.usefixtures("_kind")
def test_memory_is_shared_and_has_no_name() -> None:
    before = sorted(os.listdir("/dev/shm"))
    memory = SharedMemory.create(10_000)
    other = SharedMemory.attach(os.dup(memory.fd))
    assert memory.num_bytes == other.num_bytes == 12_288
    memory.floats(4096, (3, 2))[:] = 1.5
    memory.words(2, 1)[0] = 2**63
    assert other.floats(4096, (6,)).tolist() == [1.5] * 6 and other.words(0, 4).tolist() == [0, 0, 2**63, 0]
    assert memory.put_text(8000, 5, "größer") == 5 and other.text(8000, 5) == "grö" + "�"[:0] + other.text(8004, 1)
    assert sorted(os.listdir("/dev/shm")) == before
    memory.close_fd()
    memory.close_fd()


@pytest.mark.usefixtures("_kind")
def test_doorbells() -> None:
    single, joint = Doorbell.create(one_by_one=True), Doorbell.create()
    for _ in range(3):
        single.ring()
        joint.ring()
    for _ in range(3):
        single.wait()
    joint.wait(take_all=True)
    import select

    assert select.select([single, joint], [], [], 0)[0] == []
    single.close()
    single.close()
    joint.close()


def test_messages_carry_descriptors() -> None:
    mine, socket = Control.create()
    theirs = Control(socket)
    reading, writing = os.pipe()
    big = np.arange(500_000)
    import threading

    sender = threading.Thread(target=lambda: (mine.send(("first", big), [writing]), mine.send("second")))
    sender.start()
    (name, array), fds = theirs.receive()
    sender.join()
    assert name == "first" and (array == big).all() and len(fds) == 1
    os.write(fds[0], b"!")
    assert os.read(reading, 1) == b"!"
    assert theirs.receive() == ("second", [])
    theirs.send([1, 2])
    messages, is_there = mine.receive_ready()
    assert len(messages) == 1 and is_there
    assert mine.receive_ready() == ([], True)
    theirs.close()
    assert mine.receive_ready() == ([], False)
    mine.close()
    for fd in (*fds, reading, writing):
        os.close(fd)


CLIENT = """
import sys
import numpy as np
from windrow.inference import InferenceClient
from windrow.inference.channel import Channel, ChannelFacts
facts = ChannelFacts(**eval(sys.argv[1]))
client = InferenceClient(Channel.attach(facts, [int(fd) for fd in sys.argv[2:]]))
rows = client.allocate((4, facts.num_floats))
rows[:] = np.arange(rows.size).reshape(rows.shape)
logits, values = client.evaluate(rows)
print(logits.tobytes().hex(), values.tobytes().hex())
"""


@pytest.mark.usefixtures("_kind")
def test_a_client_in_another_process() -> None:
    """A program of one's own may be a client: it needs the facts and the descriptors."""
    game = make_game("connect4")
    server = InferenceServer(game, HashEvaluator(4))
    channel = server.open_channel(8)
    arguments = [repr(asdict(channel.facts)), *map(str, channel.fds)]
    with server:
        run = subprocess.run(
            [sys.executable, "-c", CLIENT, *arguments],
            pass_fds=channel.fds,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert run.returncode == 0, run.stderr
    rows: Any = np.arange(4 * channel.facts.num_floats, dtype=np.float32).reshape(4, *game.observation)
    want = HashEvaluator(4).bind(game).evaluate(rows)
    assert run.stdout.split() == [part.tobytes().hex() for part in want]
    assert isinstance(channel.facts.models, tuple) and InferenceClient is not None


# --- Interrupts ---------------------------------------------------------------------------------------------------


def connection() -> tuple[Control, Control]:
    mine, other = Control.create()
    return mine, Control(other)


@pytest.mark.parametrize("with_fds", [False, True])
def test_an_interrupted_send_breaks_the_connection(with_fds: bool) -> None:
    """Wherever an interrupt comes, the connection reports that it is broken, or no message is cut off."""
    num_broken, number = 0, 1
    while True:
        mine, other = connection()
        fds = [0] if with_fds else []
        was_interrupted = is_interrupted_at(lambda mine=mine, fds=fds: mine.send("first" * 100, fds, number=7), number)
        if mine.is_broken:
            num_broken += 1
            with pytest.raises(OSError, match="cut off"):
                mine.send("second")
        else:
            mine.send("second", number=8)
            mine.close()
            received = []
            with pytest.raises(EOFError):
                while True:
                    message, came = other.receive()
                    received.append(message)
                    for fd in came:
                        os.close(fd)
            assert received in (["second"], ["first" * 100, "second"])
            assert was_interrupted or received[0] == "first" * 100
            assert mine.last_number == 8
        for end in (mine, other):
            end.close()
        if not was_interrupted:
            break
        number += 1
    assert num_broken >= 2


def test_an_interrupted_receive_breaks_the_connection() -> None:
    """Bytes that were read and not kept are missed: no later bytes are taken for them."""
    for is_ready in (False, True):
        num_broken, number = 0, 1
        while True:
            mine, other = connection()
            other.send("first")
            other.send("second")
            heard: list[Any] = []

            def hear(mine: Control = mine, heard: list[Any] = heard, is_ready: bool = is_ready) -> None:
                if is_ready:
                    messages, is_there = mine.receive_ready()
                    heard += [*map(pickle.loads, messages), is_there]
                else:
                    heard += [mine.receive()[0], mine.receive()[0], True]

            was_interrupted = is_interrupted_at(hear, number)
            if mine.is_broken:
                num_broken += 1
                assert mine.receive_ready() == ([], False)
                with pytest.raises(EOFError, match="cut off"):
                    mine.receive()
            elif not was_interrupted:
                assert heard == ["first", "second", True]
            for end in (mine, other):
                end.close()
            if not was_interrupted:
                break
            number += 1
        assert num_broken >= 2


def test_a_connection_that_fails_half_way_is_broken() -> None:
    """Not only interrupts break it: here nobody reads, and the rest of a long message cannot be sent."""
    mine, other = socket.socketpair()
    control = Control(mine)
    mine.settimeout(0.05)
    with pytest.raises(OSError):
        control.send(b"x" * (16 << 20))
    assert control.is_broken
    control.close()
    other.close()
