"""The board page: how soon a click has its first numbers, how large the page is, how many updates come.

What is measured is the server as the page uses it, through its socket: from sending the move to the first update about
the new position. With a browser it is the same and a frame more.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

from report import Figure, run_alone
from websockets.sync.client import connect

from windrow.web.app import PAGES, read_files

MAX_FIRST_MS = 300.0
MAX_PAGE_KB = 300.0
MAX_UPDATES = 20.0
NUM_SOCKETS = 50
PATIENCE_S = 120.0
"""How long anything may take before it is taken for a hang."""


class Page:
    """A page without a browser: it asks, and keeps what comes in between."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._number = socket, 0
        self.updates: list[tuple[float, dict[str, Any]]] = []
        self._receive()

    def _receive(self) -> dict[str, Any]:
        return json.loads(self._socket.recv(timeout=60))

    def ask(self, **message: Any) -> dict[str, Any]:
        """The answer to a message."""
        self._number += 1
        self._socket.send(json.dumps({**message, "id": self._number}))
        end = monotonic() + PATIENCE_S
        while (answer := self._receive()).get("id") != self._number:
            self.updates.append((perf_counter(), answer))
            assert monotonic() < end, f"no answer in {PATIENCE_S:.0f} s to {message}"
        return answer

    def next_update(self) -> dict[str, Any]:
        """What the server says by itself."""
        if not self.updates:
            self.updates.append((perf_counter(), self._receive()))
        return self.updates.pop(0)[1]

    def click(self, moves: list[int]) -> float:
        """Play a move and let it be analysed; the seconds until the first numbers are there."""
        start = perf_counter()
        self.ask(type="position", moves=moves)
        self.updates.clear()
        self.ask(type="think", side="a", analysis=True)
        self.next_update()
        return perf_counter() - start


@contextmanager
def server(game: str, *more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`windrow play` on a free port: where it is, and its process."""
    command = [sys.executable, "-m", "windrow", "play", game, *more, "--no-open", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        link = re.fullmatch(r"http://(\S+)/\s*", process.stdout.readline())
        assert link is not None, "the server did not start"
        yield link[1], process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=20)
            raise


def open_page(stack: ExitStack, host: str) -> Page:
    """A page that is ready to think."""
    options: dict[str, Any] = {"compression": None, "max_size": None, "ping_interval": None}
    page = Page(stack.enter_context(connect(f"ws://{host}/socket", origin=f"http://{host}", **options)))
    page.ask(type="settings", side="a", evaluator=0, simulations=1000)
    return page


def measure_clicks(host: str, count: int) -> list[float]:
    """Seconds to the first numbers, of `count` moves into different openings."""
    with ExitStack() as stack:
        page = open_page(stack, host)
        return [page.click([number % 7, number // 7 % 7][: 1 + number % 2]) for number in range(count)]


def resident(process: subprocess.Popen[str]) -> int:
    """Bytes of memory that a process has in use."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def measure_load(host: str, process: subprocess.Popen[str], seconds: float, clicks: int) -> dict[str, float]:
    """Many pages that analyse: updates, lost updates, memory, and how long a click of one more page takes."""
    with ExitStack() as stack:
        pages = [open_page(stack, host) for _ in range(NUM_SOCKETS)]
        counts, lost, is_over = [0] * len(pages), [0] * len(pages), threading.Event()

        def read(index: int) -> None:
            page, expected = pages[index], None
            # A bounded tree, so that memory which still grows is not the tree's.
            page.ask(type="think", side="a", analysis=True, simulations=2000)
            while not is_over.is_set():
                update = page.next_update()
                lost[index] += expected is not None and update["update"] != expected
                expected = update["update"] + 1
                counts[index] += 1
                if update["last"]:
                    page.ask(type="position", moves=[] if update["turn"] else [3])
                    page.ask(type="think", side="a", simulations=2000)

        threads = [threading.Thread(target=read, args=(index,), daemon=True) for index in range(len(pages))]
        for thread in threads:
            thread.start()
        sleep(seconds / 2)
        before, start = resident(process), monotonic()
        counted = sum(counts)
        sleep(seconds)
        rate = (sum(counts) - counted) / (monotonic() - start)
        grown = resident(process) - before
        waits = measure_clicks(host, clicks)
        is_over.set()
        for thread in threads:
            thread.join(timeout=60)
    return {"rate": rate, "lost": sum(lost), "grown": grown / 2**20, "wait": statistics.median(waits)}


def measure_tree(host: str, num_nodes: int) -> tuple[int, float]:
    """Nodes of a large tree, and the seconds that opening its root and then its most visited moves takes at most."""
    with ExitStack() as stack:
        page = open_page(stack, host)
        page.click([])
        end = monotonic() + PATIENCE_S
        while (update := page.next_update())["stats"]["nodes"] < num_nodes:
            assert not update["last"], "the tree does not get that large"
            assert monotonic() < end, f"the tree has {update['stats']['nodes']} nodes after {PATIENCE_S:.0f} s"
        page.ask(type="stop")
        path: list[int] = []
        waits: list[float] = []
        for _ in range(10):
            start = perf_counter()
            node = page.ask(type="node", side="a", path=path, count=20)
            waits.append(perf_counter() - start)
            if node["type"] == "error" or not node["moves"]:
                break
            path = [*path, node["moves"][0]["action"]]
        return update["stats"]["nodes"], max(waits)


def measure_updates(host: str, seconds: float) -> float:
    """Updates a second of one analysis."""
    with ExitStack() as stack:
        page = open_page(stack, host)
        page.click([])
        count, start = 0, monotonic()
        while monotonic() < start + seconds:
            page.next_update()
            count += 1
        return count / (monotonic() - start)


def run(is_smoke: bool) -> list[Figure]:
    """Measure and print."""
    clicks, seconds = (5, 1.0) if is_smoke else (40, 6.0)
    figures: list[Figure] = []
    for page in PAGES:
        size = sum(len(content) for content, _ in read_files(page).values()) / 1000
        print(f"the {page} page: {size:.0f} kB in {len(read_files(page))} files")
        figures.append(Figure(name=f"web_{page}_page", value=size, unit="kB", at_most=MAX_PAGE_KB))
    for game in ("connect4", "gomoku"):
        with server(game) as (host, _):
            waits = [1000 * wait for wait in measure_clicks(host, clicks)]
            first, worst = statistics.median(waits), max(waits)
            print(f"{game}: first numbers {first:.0f} ms after a click (median of {clicks}), {worst:.0f} ms at worst")
            figures.append(
                Figure(name=f"web_first_{game}", value=first, unit="ms", at_most=MAX_FIRST_MS, note="median")
            )
            if game == "connect4":
                rate = measure_updates(host, seconds)
                print(f"one page: {rate:.1f} updates a second")
                figures.append(Figure(name="web_updates", value=rate, unit="/s", at_most=MAX_UPDATES + 0.5))
    with server("connect4") as (host, process):
        nodes, wait = measure_tree(host, 20_000 if is_smoke else 1_000_000)
        print(f"a tree of {nodes:,} nodes: a node opens in {1000 * wait:.1f} ms at most")
        load = measure_load(host, process, seconds, clicks)
    print(
        f"{NUM_SOCKETS} pages: {load['rate']:.0f} updates a second, {load['lost']:.0f} lost, {load['grown']:+.1f} MiB, "
        f"first numbers of one more page after {1000 * load['wait']:.0f} ms"
    )
    figures.append(Figure(name="web_lost_updates", value=load["lost"], at_most=0.0))
    figures.append(Figure(name="web_first_loaded", value=1000 * load["wait"], unit="ms", note="median"))
    return figures


if __name__ == "__main__":
    run_alone(run, __doc__ or "")
