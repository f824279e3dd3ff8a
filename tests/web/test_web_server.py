"""The server as clients see it: what it answers, what it refuses and how, and that it is there afterwards."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from web_server import Client, Served, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from windrow.play.specs import parse_game
from windrow.web.session import Table

SETTINGS: dict[str, Any] = {"type": "settings", "side": "a", "evaluator": 0, "simulations": 200}


@pytest.fixture
def client(connect4: Served) -> Iterator[Client]:
    with connect4.socket() as opened:
        yield Client(opened)


def fetch(served: Served, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(served.host, timeout=60)
    try:
        connection.request(
            method, path, body=body, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def is_alive(served: Served) -> bool:
    with served.socket() as opened:
        return fetch(served, "/")[0] == 200 and Client(opened).welcome["type"] == "welcome"


def wait_for_searches(client: Client, count: int) -> None:
    """Until so many searches run; a page that is gone has none after a moment."""
    for _ in range(600):
        if client.ask(type="status")["searches"] == count:
            return
        time.sleep(0.05)
    raise AssertionError(f"there are {client.ask(type='status')['searches']} searches, not {count}")


# --- What it does -------------------------------------------------------------------------------------------------


def test_a_position_a_move_and_the_tree_that_stays(client: Client) -> None:
    assert client.welcome["evaluators"] == ["rollout", "uniform"]
    assert client.ask(**SETTINGS)["type"] == "done"
    position = client.ask(type="position", text="44")
    assert (position["moves"], position["turn"], len(position["legal"])) == ([3, 3], 0, 7)
    number = client.ask(type="think", side="a")["id"]
    found = client.last_update()
    assert (found["request"], found["visits"]) == (number, 200)
    assert found["stats"]["stopped_by"] == "budget" and sum(row[1] for row in found["moves"]) == 200
    root = client.ask(type="node", side="a", path=[])
    assert root["visits"] == 201 and [move["visits"] for move in root["moves"]] == [row[1] for row in found["moves"]]
    best = found["best"]
    kept = client.ask(type="node", side="a", path=[best])["visits"]
    client.ask(type="position", moves=[3, 3, best])
    assert client.ask(type="node", side="a", path=[])["visits"] == kept  # the subtree is used again
    tree = client.ask(type="tree", side="a", path=[], count=10)
    assert tree["shown"] == 10 == _size(tree)
    line = client.ask(type="line", side="a", path=[root["moves"][0]["action"]])
    assert line["line"][0] == root["moves"][0]["action"] and len(line["names"]) == len(line["line"])


def test_what_is_proven_is_told(client: Client) -> None:
    """The player to move has three in column 1."""
    client.ask(**SETTINGS)
    client.ask(type="position", text="121213")
    client.ask(type="think", side="a")
    found = client.last_update()
    assert (found["best"], found["proven"], found["stats"]["stopped_by"]) == (0, "win in 1", "proven")
    assert found["proofs"]["0"] == "win in 1" and found["moves"][0][0] == 0


def _size(node: dict[str, Any]) -> int:
    return 1 + sum(map(_size, node["children"]))


def test_an_analysis_goes_on_until_it_is_stopped(client: Client) -> None:
    client.ask(**SETTINGS)
    client.ask(type="position", moves=[])
    client.ask(type="think", side="a", analysis=True)
    updates = [client.next_update() for _ in range(6)]
    visits = [update["visits"] for update in updates]
    assert visits == sorted(visits) and visits[0] < visits[-1] and not any(update["last"] for update in updates)
    assert all(update["stats"]["stopped_by"] == "running" for update in updates)
    numbers = [update["update"] for update in updates]
    assert numbers == list(range(numbers[0], numbers[0] + 6))  # none is missing
    client.ask(type="finish", side="a")
    assert client.last_update()["stats"]["stopped_by"] == "stop"
    assert client.ask(type="stop")["type"] == "done"


def test_what_is_in_flight_shows_while_it_thinks(client: Client) -> None:
    client.ask(**{**SETTINGS, "engine": "batched", "leaves": 16})
    client.ask(type="position", moves=[])
    client.ask(type="think", side="a", analysis=True)
    client.next_update()
    seen: list[int] = []
    while max(seen, default=0) < 2 and len(seen) < 500:  # a batch that collisions cut short has few
        seen.append(client.ask(type="node", side="a", path=[])["in_flight"])
    assert 2 <= max(seen) <= 16
    client.ask(type="stop")
    assert client.ask(type="node", side="a", path=[])["in_flight"] == 0


def test_the_page_begins_with_the_network_that_comes_with_windrow() -> None:
    pytest.importorskip("torch")
    with serve("connect4", "--backend", "torch", evaluator=None) as served, served.socket() as opened:
        assert Client(opened).welcome["evaluators"] == ["pretrained (torch)", "rollout", "uniform"]


def test_two_sides_think_of_the_same_position(client: Client) -> None:
    client.ask(**SETTINGS)
    client.ask(**{**SETTINGS, "side": "b", "evaluator": 1, "in_flight": "loss", "seconds": 0.05})
    client.ask(type="position", text="4")
    for side in ("a", "b"):
        client.ask(type="think", side=side)
    found = {update["side"]: update for update in (client.last_update(), client.last_update())}
    assert found["a"]["evaluator"] == "rollout" and found["b"]["evaluator"] == "uniform"
    assert found["b"]["stats"]["stopped_by"] == "time"


def test_a_game_starts_at_a_position(client: Client) -> None:
    """Moves are played from it, chance and searches follow, and a tree of another start is not used again."""
    assert client.welcome["has_notation"] and client.welcome["position"] == ""
    client.ask(**SETTINGS)
    position = client.ask(type="position", moves=[], position="7/7/7/7/3o3/3x3 x")
    assert (position["start"], position["here"], position["text"]) == (*["7/7/7/7/3o3/3x3 x"] * 2, "")
    client.ask(type="think", side="a")
    assert client.last_update()["visits"] == 200
    later = client.ask(type="position", text="45", position=position["start"])
    assert later["moves"] == [3, 4] and later["here"] == "7/7/7/3x3/3o3/3xo2 x" and later["names"] == ["4", "5"]
    again = client.ask(type="position", moves=[3, 4])
    assert again["start"] == "" and again["here"] == "7/7/7/7/7/3xo2 x"
    client.ask(type="think", side="a")
    client.last_update()
    assert client.ask(type="node", side="a", path=[])["visits"] == 201  # nothing was there
    assert client.ask(type="position", moves=[], position="7/7/7/7/7/7 x")["start"] == ""  # as every game begins


def test_dice_are_rolled_from_a_position_on() -> None:
    with serve("pig", "--position", "34-51 +12 x") as served, served.socket() as opened:
        client = Client(opened)
        assert (client.welcome["position"], client.welcome["start"]) == ("34-51 +12 x", "")
        position = client.ask(type="position", text="roll", position="34-51 +12 x")
        assert position["turn"] == "chance" and position["here"] == "34-51 +12 x rolls"
        rolled = client.ask(type="roll")
        assert rolled["start"] == "34-51 +12 x" and rolled["text"].startswith("roll ")


def test_dice_are_rolled_by_the_server() -> None:
    with serve("pig") as served, served.socket() as opened:
        client = Client(opened)
        assert client.ask(type="roll")["type"] == "error"
        assert client.ask(type="position", text="roll")["turn"] == "chance"
        assert client.ask(type="think", side="a")["type"] == "error"
        rolled = client.ask(type="roll")
        assert rolled["moves"][0] == 0 and rolled["names"][1] in "123456"


def test_a_search_ends_when_its_page_is_gone(connect4: Served, client: Client) -> None:
    wait_for_searches(client, 0)
    with connect4.socket() as opened:
        other = Client(opened)
        other.ask(**SETTINGS)
        other.ask(type="position", moves=[])
        other.ask(type="think", side="a", analysis=True)
        wait_for_searches(client, 1)
    wait_for_searches(client, 0)


# --- What it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"type": "dance"}, "no request of type 'dance'"),
        ({"type": "position"}, "moves must be a list"),
        ({"type": "position", "moves": [99]}, "action 99"),
        ({"type": "position", "moves": [0] * 5000}, "at most 4096"),
        ({"type": "position", "moves": ["4"]}, "whole numbers"),
        ({"type": "position", "text": "4 9"}, "move 2, '9'"),
        ({"type": "position", "text": "../../etc/passwd"}, "move 1"),
        ({"type": "position", "moves": [], "position": "7 x"}, "has 6 rows, not 1"),
        ({"type": "position", "moves": [], "position": 7}, "position must be a string"),
        ({"type": "position", "text": "4", "position": "7/7/7/7/3x3/7 o"}, "has nothing below it"),
        ({"type": "settings", "side": "c"}, "one of a, b"),
        ({**SETTINGS, "evaluator": 7}, "evaluator must be"),
        ({**SETTINGS, "evaluator": "/etc/passwd"}, "evaluator must be a whole number"),
        ({**SETTINGS, "simulations": 10**9}, "simulations must be a whole number from 1 to 5000000"),
        ({**SETTINGS, "seconds": 1e9}, "seconds must be a number"),
        ({**SETTINGS, "engine": "multiprocess"}, "engine must be one of"),
        ({**SETTINGS, "leaves": 0}, "leaves must be"),
        ({"type": "think", "side": "a", "simulations": 10**12}, "simulations must be"),
        ({"type": "node", "side": "b", "path": []}, "no tree yet"),
        ({"type": "node", "side": "a", "path": [1.5]}, "whole numbers"),
        ({"type": "tree", "side": "a", "path": [], "count": 10**7}, "count must be"),
    ],
)
def test_impossible_requests_are_answered_with_an_error(client: Client, message: dict[str, Any], words: str) -> None:
    answer = client.ask(**message)
    assert answer["type"] == "error" and words in answer["message"]
    assert client.ask(type="position", moves=[3])["moves"] == [3]


def test_malformed_messages_are_answered_and_too_many_end_the_connection(connect4: Served) -> None:
    with connect4.socket() as opened:
        client = Client(opened)
        for nonsense in ("{", "[]", "null", '{"type": [1]}', b"\x00\xff", '{"type": "stop", "id": "x"}', "[" * 60_000):
            opened.send(nonsense)
            assert client.receive()["type"] == "error"
        assert client.ask(type="status")["type"] == "status"
        with pytest.raises(ConnectionClosed) as closed:
            for _ in range(60):
                opened.send("{")
                client.receive()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
    assert is_alive(connect4)


def test_a_message_that_is_too_long_ends_the_connection(connect4: Served) -> None:
    with connect4.socket() as opened:
        client = Client(opened)
        with pytest.raises(ConnectionClosed) as closed:
            opened.send(json.dumps({"type": "position", "text": "4" * 100_000}))
            client.receive()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
    assert is_alive(connect4)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", None])
def test_sockets_of_other_pages_are_refused(connect4: Served, origin: str | None) -> None:
    with pytest.raises(InvalidStatus) as refused, connect4.socket(origin=origin):
        pass
    assert refused.value.response.status_code == 403
    assert b"Origin" in refused.value.response.body or b"not answered" in refused.value.response.body
    assert is_alive(connect4)


def test_requests_for_other_hosts_are_refused(connect4: Served) -> None:
    status, text = fetch(connect4, "/", Host="evil.example")
    assert status == 421 and "--allow-host evil.example" in text
    with pytest.raises(InvalidStatus) as refused, connect4.socket(additional_headers={"Host": "evil.example"}):
        pass
    assert refused.value.response.status_code in (400, 403, 421)
    assert fetch(connect4, "/", Origin="http://evil.example")[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        *("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "//etc/passwd"),
        *("/static/../app.py", "/app.py", "/index.html/../../app.py", "/%00", "/docs", "/openapi.json", "/style.css/"),
        *("/style.css%00.html", "/?file=/etc/passwd&token=x/../.."),
    ],
)
def test_there_is_no_way_to_files(connect4: Served, path: str) -> None:
    status, text = fetch(connect4, path)
    assert "root:" not in text and "import" not in text.partition("<script")[0]
    assert status == (200 if path.startswith("/?") else 404)


def test_only_questions_without_a_body(connect4: Served) -> None:
    assert fetch(connect4, "/", "POST", body="x")[0] == 405
    assert fetch(connect4, "/", "DELETE")[0] == 405
    assert fetch(connect4, "/", "GET", body="x" * 1_000_000)[0] == 413
    assert is_alive(connect4)


def test_what_every_page_carries(connect4: Served) -> None:
    connection = http.client.HTTPConnection(connect4.host, timeout=60)
    connection.request("GET", "/")
    answer = connection.getresponse()
    page = answer.read().decode()
    connection.close()
    policy = answer.getheader("content-security-policy") or ""
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.getheader("x-content-type-options") == "nosniff" and answer.getheader("server") is None
    assert "http://" not in page and "https://" not in page and "style=" not in page


def test_beyond_this_machine_the_token_is_needed() -> None:
    with serve("tictactoe", "--host", "0.0.0.0", "--allow-host", "board.example") as served:
        token = served.link.partition("?token=")[2]
        port = served.host.rpartition(":")[2]
        local = Served(f"http://127.0.0.1:{port}/", served.process)
        assert len(token) >= 32
        for path in ("/", "/play.js", "/?token=wrong"):
            status, text = fetch(local, path)
            assert status == 401 and "link with the token" in text
        for headers in ({}, {"Cookie": "windrow=guess"}):
            with pytest.raises(InvalidStatus) as refused, local.socket(additional_headers=headers):
                pass
            assert refused.value.response.status_code == 401
        connection = http.client.HTTPConnection(local.host, timeout=60)
        connection.request("GET", f"/?token={token}")
        answer = connection.getresponse()
        answer.read()
        cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        assert answer.status == 303 and answer.getheader("location") == "/" and token in cookie
        assert "HttpOnly" in (answer.getheader("set-cookie") or "")
        connection.close()
        assert fetch(local, "/", Cookie=cookie)[0] == 200
        assert fetch(local, "/", Cookie=cookie, Host="board.example")[0] == 200
        assert fetch(local, "/", Cookie=cookie, Host="evil.example")[0] == 421
        with local.socket(additional_headers={"Cookie": cookie}) as opened:
            assert Client(opened).welcome["game"] == "tictactoe"


def test_a_page_that_asks_and_does_not_read_is_not_answered_without_end() -> None:
    async def flood() -> None:
        table, gate = Table(parse_game("tictactoe"), []), asyncio.Event()

        async def send(text: str) -> None:
            await gate.wait()

        session = table.open_session(send)

        async def ask(times: int) -> int:
            for _ in range(times):
                await session.handle('{"type": "position", "moves": []}')
            return times

        try:
            asking = asyncio.create_task(ask(1000))
            await asyncio.sleep(0.5)
            assert not asking.done() and session._outbox.qsize() <= 66
            gate.set()
            assert await asyncio.wait_for(asking, 60) == 1000
            await session.close()
        finally:
            table.close()

    asyncio.run(flood())


def test_silent_and_broken_connections_are_let_go(connect4: Served) -> None:
    host, _, port = connect4.host.partition(":")
    with ExitStack() as stack:
        for start in (
            b"",
            b"GET / HT",
            b"\x00\x01\x02\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 20_000,
        ):
            raw = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            try:
                raw.sendall(start)
            except OSError:
                continue
        assert is_alive(connect4)


@pytest.mark.slow
def test_a_thousand_connections(connect4: Served) -> None:
    """As many sockets as there may be are served; the rest is told so, and afterwards everything is as before."""
    answers: list[int] = []
    hold = threading.Event()

    def knock() -> None:
        try:
            with connect4.socket(open_timeout=120) as opened:
                Client(opened)
                answers.append(101)
                hold.wait(120)
        except InvalidStatus as refused:
            answers.append(refused.response.status_code)
        except (OSError, EOFError, ConnectionClosed, TimeoutError):
            answers.append(0)

    threads = [threading.Thread(target=knock) for _ in range(1000)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 150
    while len(answers) < 1000 and time.monotonic() < end:
        time.sleep(0.1)
    hold.set()
    for thread in threads:
        thread.join(timeout=150)
    assert len(answers) == 1000, "some connections were neither served nor refused"
    assert answers.count(101) == 128 and answers.count(101) + answers.count(503) == 1000
    assert is_alive(connect4)


@pytest.mark.slow
def test_searches_beyond_the_limit_are_refused(connect4: Served) -> None:
    with ExitStack() as stack:
        clients = [Client(stack.enter_context(connect4.socket())) for _ in range(40)]
        answers: list[dict[str, Any]] = []
        for one in clients:
            for side in ("a", "b"):
                one.ask(**{**SETTINGS, "side": side})
                answers.append(one.ask(type="think", side=side, analysis=True))
        refused = [answer["message"] for answer in answers if answer["type"] == "error"]
        assert len(refused) == 16 and all("64 searches run already" in message for message in refused)
    assert is_alive(connect4)


@pytest.mark.slow
def test_fifty_analyses_without_a_lost_update_or_growing_memory(connect4: Served) -> None:
    with ExitStack() as stack:
        clients = [Client(stack.enter_context(connect4.socket())) for _ in range(50)]
        updates: list[list[int]] = [[] for _ in clients]
        errors: list[BaseException] = []

        def analyse(client: Client, numbers: list[int], seconds: float) -> None:
            try:
                client.ask(**SETTINGS)
                client.ask(type="position", moves=[])
                assert client.ask(type="think", side="a", analysis=True, simulations=2000)["type"] == "done"
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    update = client.next_update()
                    numbers.append(update["update"])
                    if update["last"]:  # the same tree again and again: what grows now is no tree
                        client.ask(type="position", moves=[3] if update["turn"] == 0 else [])
                        client.ask(type="think", side="a", simulations=2000)
            except BaseException as error:
                errors.append(error)

        def run(seconds: float) -> None:
            threads = [
                threading.Thread(target=analyse, args=(client, numbers, seconds))
                for client, numbers in zip(clients, updates, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=120)
            assert not any(thread.is_alive() for thread in threads), "an analysis has stopped sending"

        run(4)
        before = connect4.rss
        run(10)
        grown = connect4.rss - before
        assert not errors
        for numbers in updates:
            assert len(numbers) >= 3 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert grown < 64 << 20
