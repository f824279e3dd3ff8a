"""A page that floods and leaves, headers that are none, and links that would lead elsewhere."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from web_server import Client, Served, read_line, serve
from websockets.exceptions import ConnectionClosed

from windrow.web.access import Access
from windrow.web.app import make_app
from windrow.web.guard import Guard
from windrow.web.limits import Counter, Limits

SETTINGS: dict[str, Any] = {"type": "settings", "side": "a", "evaluator": 0, "simulations": 200}


def wait_for_no_search(client: Client) -> None:
    """Until the server counts no search; one that goes on for as long as it is asked to would go on for ten minutes."""
    for _ in range(600):
        if client.ask(type="status")["searches"] == 0:
            return
        time.sleep(0.1)
    raise AssertionError("a search goes on that nobody waits for")


def think(client: Client) -> None:
    client.ask(**SETTINGS)
    client.ask(type="position", moves=[])
    assert client.ask(type="think", side="a", analysis=True)["type"] == "done"


# --- Pages that leave ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_requests", [900, 5000])
def test_a_search_ends_with_its_page_whatever_the_page_has_asked_for(connect4: Served, num_requests: int) -> None:
    """Fewer requests than may wait, and more: they are dropped when the page leaves, or is sent away."""
    request = json.dumps({"type": "tree", "side": "a", "path": [], "count": 5000})
    with connect4.socket() as opened:
        observer = Client(opened)
        wait_for_no_search(observer)
        with connect4.socket() as flooding:
            think(Client(flooding))
            assert observer.ask(type="status")["searches"] == 1
            with suppress(ConnectionClosed):
                for _ in range(num_requests):
                    flooding.send(request)
            flooding.socket.close()  # without a word, as a browser that is killed
        wait_for_no_search(observer)


def test_a_page_that_no_longer_reads_is_cut_off() -> None:
    """Its requests wait, its answers fill the wire, and it never says that it has left."""
    code = (
        "from windrow.play.specs import parse_game; from windrow.web import access, app, evaluation, limits, serving\n"
        "from windrow.evaluators import UniformEvaluator; from windrow.web.session import Table\n"
        "bounds, uniform = limits.Limits(ping_s=3.0), evaluation.NamedEvaluator('uniform', UniformEvaluator(), "
        "is_network=False)\n"
        "table, rules = Table(parse_game('connect4'), [uniform], limits=bounds), "
        "access.Access.for_host('127.0.0.1')\n"
        "listener = serving.open_port('127.0.0.1', 0)\n"
        "print(serving.link_to(listener, rules, '127.0.0.1'), flush=True)\n"
        "serving.serve(app.make_app('play', table.open_session, access=rules, limits=bounds), listener, limits=bounds)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            served = Served(read_line(process).strip(), process)
            with served.socket() as opened:
                observer = Client(opened)
                name, _, port = served.host.rpartition(":")
                narrow = socket.socket()
                narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                narrow.connect((name, int(port)))
                with served.socket(sock=narrow, max_queue=1, close_timeout=0.1) as stuck:
                    client = Client(stuck)
                    think(client)
                    while client.next_update()["visits"] < 5000:
                        pass
                    for _ in range(400):
                        client.send(type="tree", side="a", path=[], count=5000)
                    wait_for_no_search(observer)
        finally:
            process.terminate()
            process.communicate(timeout=60)


class Slow:
    """Answers the first message for ever."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.is_closed = False

    def open(self) -> None: ...

    async def handle(self, text: str) -> bool:
        self.heard.append(text)
        await asyncio.Event().wait()
        return True

    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("messages", "code"),
    [(["x"] * 4, None), (["x"] * 10, 1008), (["x" * 60] * 3, 1008)],
    ids=["few", "many", "long"],
)
def test_what_waits_is_bounded_and_dropped_at_the_end(messages: list[str], code: int | None) -> None:
    slow, sent = Slow(), list[Any]()
    limits = Limits(max_waiting=4, max_waiting_bytes=100)
    app = make_app("play", lambda send: slow, access=Access.for_host("127.0.0.1"), limits=limits)
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    events: list[dict[str, Any]] = [{"type": "websocket.connect"}]
    events += [{"type": "websocket.receive", "text": text} for text in messages]

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0)
        if events:
            return events.pop(0)
        return {"type": "websocket.disconnect", "code": 1006}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/socket", "headers": headers, "query_string": b"", "extensions": {}}
    asyncio.run(asyncio.wait_for(app(scope, receive, send), 60))
    assert slow.heard == messages[:1] and slow.is_closed
    assert [message["code"] for message in sent if message["type"] == "websocket.close"] == [code] * (code is not None)


# --- Headers -------------------------------------------------------------------------------------------------------

BYTES = st.text(st.characters(max_codepoint=255), max_size=30)
PIECES = [*("http:", "https:", "//", "localhost", "127.0.0.1", "[::1]", "80", "evil"), *"[]:@/\\?#%.\t é\x00"]
TEXTS = st.one_of(BYTES, st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
OWN = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


def statuses(guard: Guard, kind: str, headers: list[tuple[bytes, bytes]], path: str = "/") -> list[int]:
    """What a request is answered with."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Any = {"type": kind, "method": "GET", "path": path, "headers": headers, "query_string": b""}
    asyncio.run(guard({**scope, "extensions": {"websocket.http.response": {}}}, receive, send))
    return [message["status"] for message in sent if "status" in message]


async def let_in(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


@given(TEXTS, st.one_of(st.none(), TEXTS), st.sampled_from(["http", "websocket"]))
@example("localhost", "http://[", "http")
@example("localhost", "http://[", "websocket")
@example("[", None, "http")
@example("localhost:80", "http://localhost:80", "websocket")
@example("LOCALHOST", "HTTPS://localhost", "websocket")
@example("local\thost", "http://local\thost", "websocket")
@example("127.0.0.1?", "http://127.0.0.1?", "websocket")
@example("localhost", "http://localhost/", "http")
def test_only_the_servers_own_names_and_pages_get_in(host: str, origin: str | None, kind: str) -> None:
    guard = Guard(let_in, Access.for_host("127.0.0.1"), Counter(1))
    headers = [(b"host", host.encode("latin-1"))]
    if origin is not None:
        headers.append((b"origin", origin.encode("latin-1")))
    (status,) = statuses(guard, kind, headers)
    is_own = OWN.fullmatch(host) is not None
    if origin is not None:
        is_own = is_own and origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")
    elif kind == "websocket":
        is_own = False
    assert status == 200 if is_own else status in (400, 403, 421)


@given(st.lists(st.tuples(st.sampled_from([b"host", b"origin", b"cookie", b"x"]), st.binary(max_size=30)), max_size=6))
def test_no_headers_break_it(headers: list[tuple[bytes, bytes]]) -> None:
    guard = Guard(let_in, Access.for_host("0.0.0.0"), Counter(1))
    for kind in ("http", "websocket"):
        (status,) = statuses(guard, kind, headers)
        assert status in (400, 401, 403, 421)  # never without the token


def test_a_header_that_comes_twice_is_none() -> None:
    guard = Guard(let_in, Access.for_host("127.0.0.1"), Counter(1))
    good, bad = (b"origin", b"http://localhost"), (b"origin", b"http://evil.example")
    for origins in ([bad, good], [good, bad]):
        assert statuses(guard, "websocket", [(b"host", b"localhost"), *origins]) == [403]
    assert statuses(guard, "http", [(b"host", b"localhost"), (b"host", b"localhost")]) == [400]


# --- Raw requests --------------------------------------------------------------------------------------------------


def exchange(served: Served, request: bytes) -> tuple[int, dict[str, str]]:
    """Status and headers of the answer to a request, sent as it is."""
    name, _, port = served.host.rpartition(":")
    with socket.create_connection((name, int(port)), timeout=60) as raw:
        raw.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer and (part := raw.recv(65536)):
            answer += part
    first, *lines = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    return int(first.split()[1]), {key.lower(): text for key, _, text in (line.partition(": ") for line in lines)}


@pytest.mark.parametrize(
    "origin",
    [
        *(b"http://[", b"http://[::1", b"http://]", b"//", b"", b"\xff", b"http://[v1.x]", b"http://a\xbdb", b"null"),
        *(b"http://evil\\@127.0.0.1", b"javascript:alert(1)", b"[" * 9000),  # the last is too long for a socket
    ],
)
def test_malformed_origins_are_refused(connect4: Served, origin: bytes) -> None:
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " + b"A" * 22 + b"==\r\n"
    for path, more in ((b"/", b""), (b"/socket", upgrade + b"Sec-WebSocket-Version: 13\r\n")):
        head = b"GET %b HTTP/1.1\r\nHost: %b\r\n%b" % (path, connect4.host.encode(), more)
        assert exchange(connect4, head + b"Origin: %b\r\n\r\n" % origin)[0] in (400, 403)


@pytest.mark.parametrize("host", [b"[", b"]", b"[::1", b"a b", b"\xff", b"http://127.0.0.1", b"127.0.0.1:x", b"@", b""])
def test_malformed_hosts_are_refused(connect4: Served, host: bytes) -> None:
    assert exchange(connect4, b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)[0] in (400, 421)


def test_the_token_leads_to_a_page_of_this_server_and_nowhere_else() -> None:
    with serve("tictactoe", "--host", "0.0.0.0") as served:
        token = served.link.partition("?token=")[2].encode()
        local = Served(f"http://127.0.0.1:{served.host.rpartition(':')[2]}/", served.process)
        for target in (
            *(b"/", b"//evil.example", b"//evil.example/", b"///evil.example", b"/\\evil.example", b"\\\\evil.example"),
            *(b"/%2f/evil.example", b"/%2fevil.example", b"/%5cevil.example", b"/%0d%0aX-Evil:%20yes", b"/%0aevil"),
            *(b"/.//evil.example", b"/%09/evil.example", b"http://evil.example/", b"https:evil.example", b"*"),
            *(b"evil.example", b"/%e9", b"/%ff%00", b"/play.js"),
        ):
            status, headers = exchange(local, b"GET %b?token=%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % (target, token))
            assert (status, headers.get("location")) in ((303, "/"), (400, None)), target
            assert "x-evil" not in headers


def test_a_message_in_endless_parts_ends_the_connection(connect4: Served) -> None:
    with connect4.socket() as opened:
        Client(opened)
        with pytest.raises((ConnectionClosed, OSError)):
            opened.send("" for _ in range(1_000_000))
