"""In front of the app: refuses, in words, what must not get through (see `windrow.web.access`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from windrow.web.access import Access, Refusal
from windrow.web.limits import Counter

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
]
"""Sent with every page: it uses what is served here, and asks nobody else."""


class Guard:
    """An ASGI app around another."""

    def __init__(self, app: App, access: Access, connections: Counter) -> None:
        self._app, self._access, self._connections = app, access, connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "http":
            await self._answer_http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._answer_socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers_of(scope)
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [None])[0]
        refusal = self._access.check_host(headers.get("host"))
        refusal = refusal or self._access.check_origin(headers.get("origin"), headers.get("host"), is_needed=False)
        refusal = refusal or _check_form(scope["method"], headers)
        refusal = refusal or self._access.check_token(token, headers.get("cookie"))
        if refusal is not None:
            await _refuse(refusal, send)
        elif token is not None and self._access.token is not None:
            # Once in the cookie, the token needs to be neither in the address nor in the history.
            cookie = f"{self._access.cookie}={self._access.token}; Path=/; HttpOnly; SameSite=Strict"
            # Always to the page itself: a path that came with the request could name another server.
            more = [(b"location", b"/"), (b"set-cookie", cookie.encode())]
            await _respond(303, b"", [*_HEADERS, *more], send)
        else:
            await self._app(scope, receive, _adding_headers(send))

    async def _answer_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers_of(scope)
        refusal = self._access.check_host(headers.get("host"))
        refusal = refusal or self._access.check_origin(headers.get("origin"), headers.get("host"), is_needed=True)
        refusal = refusal or self._access.check_token(None, headers.get("cookie"))
        if refusal is None and not self._connections.enter():
            refusal = Refusal(503, f"{self._connections.now} pages are open already: close one of them")
        if refusal is not None:
            await _refuse_socket(refusal, scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._connections.leave()


def _headers_of(scope: Scope) -> dict[str, str]:
    """By name; of a header that came more than once all values, which then is no host, origin or length."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _check_form(method: str, headers: dict[str, str]) -> Refusal | None:
    """There is nothing to send here but questions without a body."""
    if method not in ("GET", "HEAD"):
        return Refusal(405, f"{method} is not answered here, only GET")
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        return Refusal(413, "a request has no body here")
    return None


def _adding_headers(send: Send) -> Send:
    async def add(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_HEADERS]
        await send(message)

    return add


async def _refuse(refusal: Refusal, send: Send) -> None:
    await _respond(refusal.status, f"{refusal.reason}\n".encode(), _HEADERS, send)


async def _respond(
    status: int, body: bytes, headers: list[tuple[bytes, bytes]], send: Send, kind: str = "http"
) -> None:
    own = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": f"{kind}.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": f"{kind}.response.body", "body": body})


async def _refuse_socket(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer the handshake with an HTTP error that says why."""
    await receive()  # websocket.connect
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.reason[:120]})
        return
    await _respond(refusal.status, f"{refusal.reason}\n".encode(), [], send, "websocket.http")
