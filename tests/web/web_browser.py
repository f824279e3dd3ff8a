"""A real browser for tests: Debian's Chromium, driven by its own DevTools protocol, with real clicks and keys."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PATIENCE_S = 60.0
"""What every wait here is bounded by; each says what it has waited for."""
_BETWEEN_PAGES = ("navigated or closed", "Cannot find context", "context was destroyed")
"""What Chromium answers while one page gives way to the next."""
_UNUSED = ("Network.webSocketFrame", "Network.dataReceived")
"""Events that come with every update, and that nobody asks for: kept, they would grow all session long."""
_KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "Home": (36, ""),
    "End": (35, ""),
}


def find_chromium() -> str | None:
    """The browser's program; $CHROMIUM goes before what is in the path."""
    if named := os.environ.get("CHROMIUM"):
        return named
    return next((found for found in map(shutil.which, _NAMES) if found and _can_run(found)), None)


def _can_run(program: str) -> bool:
    """Whether it starts at all: some systems have a script of that name that only says where to get the browser."""
    try:
        command = [program, "--version"]
        return subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


class Browser:
    """A Chromium without a window. Pages are made by `open`."""

    def __init__(self, program: str, folder: Path) -> None:
        command = [
            *(program, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--disable-gpu"),
            *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage"),
            *("--hide-scrollbars", "--font-render-hinting=none", "--mute-audio"),
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "about:blank",
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._numbers = itertools.count(1)
        self.patience_s = _PATIENCE_S
        self._events: dict[str, list[dict[str, Any]]] = {}
        try:
            port, path = self._read_port(folder / "DevToolsActivePort")
            address = f"ws://127.0.0.1:{port}{path}"
            # Pings would end the connection of a test that is busy elsewhere.
            self._context = connect(
                address, max_size=None, compression=None, open_timeout=_PATIENCE_S, ping_interval=None
            )
            self._socket: ClientConnection = self._context.__enter__()
        except BaseException:
            self._end_process()
            raise

    def _read_port(self, path: Path) -> tuple[int, str]:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            if path.exists() and len(lines := path.read_text().split()) == 2:
                return int(lines[0]), lines[1]
            if self._process.poll() is not None:
                raise RuntimeError(f"Chromium ended with code {self._process.returncode}")
            time.sleep(0.02)
        raise TimeoutError(f"Chromium has not said in {_PATIENCE_S:.0f} s where it listens")

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; what a page reports meanwhile does not prolong the wait for the answer."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._socket.send(json.dumps(message))
        deadline = time.monotonic() + self.patience_s
        while (left := deadline - time.monotonic()) > 0:
            try:
                answer = json.loads(self._socket.recv(timeout=left))
            except TimeoutError:
                break
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._keep(answer)
        code = self._process.poll()
        state = "still runs" if code is None else f"has ended with code {code}"
        asked = json.dumps(parameters)[:300]
        raise TimeoutError(f"no answer in {self.patience_s:.0f} s to {method} {asked}; Chromium {state}")

    def _keep(self, event: dict[str, Any]) -> None:
        method = event.get("method", "")
        if method == "Inspector.targetCrashed":
            raise RuntimeError("the page has crashed in Chromium")
        if method and not method.startswith(_UNUSED):
            self._events.setdefault(event.get("sessionId", ""), []).append(event)

    def events(self, session: str) -> list[dict[str, Any]]:
        """What a page has reported so far."""
        return self._events.get(session, [])

    @contextmanager
    def open(self, address: str, *, has_faults: bool = False, **look: Any) -> Iterator[Page]:
        """A new page; after it, nothing may have gone wrong in its console, unless `has_faults`."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            page = Page(self, session)
            page.set_look(**look)
            page.go(address)
            yield page
            assert has_faults or page.complaints() == []
        finally:
            self.send("Target.disposeBrowserContext", browserContextId=context)
            self._events.pop(session, None)

    def close(self) -> None:
        """End the browser."""
        try:
            self._context.__exit__(None, None, None)
        finally:
            self._end_process()

    def _end_process(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=20)


class Page:
    """One page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        for domain in ("Page", "Runtime", "Log", "Network", "Inspector"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)

    def set_look(self, *, width: int = 1280, height: int = 900, is_dark: bool = False, is_phone: bool = False) -> None:
        """The size of the window and its colours."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if is_phone else 1,
            mobile=is_phone,
        )
        scheme = "dark" if is_dark else "light"
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def go(self, address: str) -> None:
        """Open an address, as if typed."""
        self.send("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true; an element that is not there yet is not true."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            try:
                if self.run(f"(() => {{ try {{ return Boolean({condition}) }} catch {{ return false }} }})()"):
                    return
            except RuntimeError as error:
                if not any(words in str(error) for words in _BETWEEN_PAGES):
                    raise
            time.sleep(0.01)
        message = "document.querySelector('#message')?.innerText"
        state = self.run(f"JSON.stringify({{...document.body.dataset, message: {message}}})")
        raise TimeoutError(f"waited in vain for {condition}; the page says {state}; {self.complaints()}")

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        self.wait(f"document.querySelector({selector!r}).getClientRects().length")
        self.click_at(
            *self._at_rest(
                f"const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}}); "
                "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]"
            )
        )

    def _at_rest(self, place: str) -> list[float]:
        """Where something is in the window, once the page has stopped moving it: nobody clicks at what jumps."""
        return self.run(
            f"(async () => {{ const find = () => {{ {place} }}; let before = find(); "
            "for (let turn = 0; turn < 100; turn++) { "
            # A page in the background draws no frames: it does not move either.
            "await new Promise(done => { "
            "requestAnimationFrame(() => requestAnimationFrame(done)); setTimeout(done, 200) }); "
            "const now = find(); if (Math.hypot(now[0] - before[0], now[1] - before[1]) < 0.5) return now; "
            "before = now } return before })()"
        )

    def click_at(self, x: float, y: float) -> None:
        """Click a point of the window."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def point_at(self, x: float, y: float) -> None:
        """Move the mouse there."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click_cell(self, column: int, row: int, *, board: int = 0) -> None:
        """Click a place of a board of places."""
        self.click_at(*self.cell(column, row, board=board))

    def cell(self, column: int, row: int, *, board: int = 0) -> list[float]:
        """Where in the window a place of a board is."""
        return self._at_rest(
            f"const s = document.querySelectorAll('svg.board')[{board}]; s.scrollIntoView({{block: 'nearest'}}); "
            f"const p = new DOMPoint({column} + .5, {row} + .5).matrixTransform(s.getScreenCTM()); return [p.x, p.y]"
        )

    def press(self, key: str) -> None:
        """Press a key."""
        code, text = _KEYS.get(key, (0, key))
        more = {"windowsVirtualKeyCode": code} if code else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def screenshot(self, path: Path, *, is_whole: bool = True) -> None:
        """Keep what the page looks like."""
        path.parent.mkdir(parents=True, exist_ok=True)
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and what could not be loaded."""
        self.run("0")
        found: list[str] = []
        for event in self._browser.events(self._session):
            method, what = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(what["exceptionDetails"]))
            elif (method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert")) or (
                method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning")
            ):
                found.append(str(what))
        return found

    def requests(self) -> list[str]:
        """The addresses it has asked for."""
        self.run("0")
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events(self._session)
            if event["method"] == "Network.requestWillBeSent"
        ]


if __name__ == "__main__":
    # For the Makefile: is there one?
    raise SystemExit(find_chromium() is None)
