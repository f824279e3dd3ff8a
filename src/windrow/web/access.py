"""Who may talk to the server: which names it answers to, from which pages, with which token.

A page of another site cannot read what is here, but without these checks it could talk to the socket, or have a name of
its own point at 127.0.0.1. So the Host must be a name of this server, the Origin must be the page that it served, and
beyond this machine a secret token must have been in the link.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")
"""A Host header in lower case: a name or an address, in brackets if it has colons, and perhaps a port."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered: an HTTP status and a sentence."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server.

    hosts: names it answers to, lower case, without the port.
    takes_addresses: whether any address of numbers will do as well. Only a name can be made to point elsewhere, so this
        is safe, and a server on all interfaces has addresses that it does not know.
    token: what the link must carry; None where nobody but this machine can connect.
    """

    hosts: frozenset[str]
    takes_addresses: bool = False
    token: str | None = None

    @classmethod
    def for_host(cls, host: str, extra: Iterable[str] = ()) -> Access:
        """The rules for a server that listens on `host`."""
        names = {name.lower() for name in extra}
        if is_loopback(host):
            return cls(frozenset({*LOOPBACK_NAMES, host.lower(), *names}))
        names |= {host.lower(), socket.gethostname().lower(), *LOOPBACK_NAMES}
        return cls(frozenset(names), takes_addresses=is_wildcard(host), token=secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """The name of the cookie that holds the token: its own for every token, as cookies do not know ports."""
        return "windrow_" + hashlib.sha256((self.token or "").encode()).hexdigest()[:12]

    def check_host(self, host: str | None) -> Refusal | None:
        """Whether the Host header names this server."""
        name = host_name(host)
        if name is None:
            return Refusal(400, "the request does not say which host it is for")
        if name in self.hosts or (self.takes_addresses and _address(name) is not None):
            return None
        return Refusal(421, f"this server does not answer to {name!r}: start it with --allow-host {name} if it should")

    def check_origin(self, origin: str | None, host: str | None, *, is_needed: bool) -> Refusal | None:
        """Whether the request comes from a page of this server."""
        if origin is None:
            return Refusal(403, "a socket is opened by a page, and this request has no Origin") if is_needed else None
        # Compared as text: a browser writes the origin of a page exactly so, and what need not be parsed cannot fail.
        if host_name(host) is not None and origin.lower() in (f"{kind}://{host}".lower() for kind in ("http", "https")):
            return None
        return Refusal(403, f"requests from {origin!r:.100} are not answered")

    def check_token(self, token: str | None, cookies: str | None) -> Refusal | None:
        """Whether the token is in the link or in the cookie that the link left."""
        if self.token is None:
            return None
        for given in (token, self._token_of(cookies)):
            if given is not None and secrets.compare_digest(given.encode(), self.token.encode()):
                return None
        return Refusal(401, "open the link with the token that windrow printed when it started")

    def _token_of(self, cookies: str | None) -> str | None:
        try:
            found = SimpleCookie(cookies or "").get(self.cookie)
        except CookieError:
            return None
        return None if found is None else found.value


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect there."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def is_wildcard(host: str) -> bool:
    """Whether it stands for all interfaces."""
    address = _address(host)
    return address is not None and address.is_unspecified


def host_name(host: str | None) -> str | None:
    """The name in a Host header, lower case, without port and brackets; None if it is none."""
    found = _HOST.fullmatch((host or "").lower())
    return None if found is None else found[1] or found[2]


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
