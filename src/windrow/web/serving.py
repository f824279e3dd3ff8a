"""Listening: a port on this machine, or by request on others' too, and a link to open."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterable
from typing import Any

from windrow.errors import ConfigError
from windrow.web.access import Access, is_wildcard
from windrow.web.app import require_extra
from windrow.web.guard import App
from windrow.web.limits import Limits

DEFAULT_PORT = 8470
_SWITCH_INTERVAL_S = 0.001

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 30\r\n\r\n"
    b"too many connections are open\n"
)
_BAD_HANDSHAKE = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_MAX_FRAGMENTS = 1024
"""Parts in which one message may come."""


def open_port(host: str, port: int | None) -> socket.socket:
    """A listening socket.

    Args:
        host: an address or a name of this machine.
        port: 0 for any; None for `DEFAULT_PORT`, or any if that is taken.

    Raises:
        ConfigError: it is taken, or the host is none of this machine's.
    """
    for number in (DEFAULT_PORT, 0) if port is None else (port,):
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listener = socket.socket(family, kind, protocol)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}: {error.strerror or error}") from None
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1024)
        except (OSError, OverflowError) as error:
            listener.close()
            if port is not None or number == 0:
                reason = getattr(error, "strerror", None) or error
                raise ConfigError(f"cannot listen on {host} port {number}: {reason}. Choose another --port") from None
            continue
        return listener
    raise AssertionError("the last port either opens or raises")


def link_to(listener: socket.socket, access: Access, host: str) -> str:
    """The address to open in a browser."""
    name = socket.gethostname() if is_wildcard(host) else host
    name = f"[{name}]" if ":" in name else name
    token = f"?token={access.token}" if access.token is not None else ""
    return f"http://{name}:{listener.getsockname()[1]}/{token}"


def serve(
    app: App,
    listener: socket.socket,
    *,
    limits: Limits | None = None,
    on_start: Iterable[Callable[[], None]] = (),
) -> None:
    """Answer until interrupted; functions in `on_start` are called once connections are taken.

    Raises:
        MissingExtraError: uvicorn is not installed.
    """
    server = make_server(app, limits or Limits())
    for function in on_start:
        function()
    # Threads that think hand the interpreter over this often at the latest: it is what a click waits for.
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with listener:
        asyncio.run(server.serve(sockets=[listener]))


def open_browser(link: str) -> Callable[[], None]:
    """What opens the link in the browser, without waiting for it."""
    return threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start


def make_server(app: App, limits: Limits) -> Any:
    """A uvicorn server that keeps the limits."""
    require_extra()
    import uvicorn

    config = uvicorn.Config(
        app,
        http=_limited_protocol(limits),
        ws=_limited_socket(),
        ws_max_size=limits.max_message_bytes,
        ws_ping_interval=limits.ping_s,
        ws_ping_timeout=limits.ping_s,
        # Updates are small and the wire is short: packing them would cost more than it saves.
        ws_per_message_deflate=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=32 << 10,
        access_log=False,
        log_level="error",
        lifespan="off",
        server_header=False,
    )
    return uvicorn.Server(config)


def _limited_socket() -> Any:
    """Uvicorn's sockets, with an end for those that would stay open without a page at the other end."""
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    class LimitedSocket(WebSocketsSansIOProtocol):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.handshake_exc is not None and not self.handshake_initiated:  # no request that can be read
                self.transport.write(_BAD_HANDSHAKE)
                self.transport.close()

        def handle_cont(self, event: Any) -> None:
            if len(self.frames) < _MAX_FRAGMENTS:
                super().handle_cont(event)
            else:  # they may be empty, so that the limit on the length of a message is never reached
                self.transport.abort()

        def keepalive_timeout(self) -> None:
            super().keepalive_timeout()
            self.transport.abort()  # closing would wait for the page to read the rest

    return LimitedSocket


def _limited_protocol(limits: Limits) -> Any:
    """Uvicorn's HTTP with a bound on connections, and on how long one may be silent before it has asked anything."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class LimitedProtocol(H11Protocol):
        _silence: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.max_sockets:
                transport.write(_TOO_MANY)
                transport.close()
                return
            self._wait_for_request()

        def data_received(self, data: bytes) -> None:
            self._wait_for_request()
            super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            self._hush()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            cycle: Any = self.cycle
            if cycle is not None and not cycle.response_complete:  # a whole request has come
                self._hush()

        def handle_websocket_upgrade(self, event: Any) -> None:
            self._hush()
            super().handle_websocket_upgrade(event)

        def _wait_for_request(self) -> None:
            if self._silence is None:
                self._silence = self.loop.call_later(limits.request_timeout_s, self._end_silence)

        def _end_silence(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

        def _hush(self) -> None:
            if self._silence is not None:
                self._silence.cancel()
                self._silence = None

    return LimitedProtocol
