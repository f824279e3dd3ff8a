"""Who gets in: hosts, origins, tokens, and what of a message is believed."""

from __future__ import annotations

import pytest

from windrow.web.access import Access, host_name, is_loopback
from windrow.web.limits import Counter, MemoryLedger, RequestError
from windrow.web.requests import Request


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8470", None),
        ("localhost:9000", None),  # through a tunnel that has another port
        ("LOCALHOST", None),
        ("[::1]:8470", None),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("192.168.0.7", 421),
        ("user@127.0.0.1", 400),
        ("127.0.0.1/..", 400),
        ("", 400),
        (None, 400),
        ("[::1", 400),
    ],
)
def test_hosts_of_this_machine(host: str | None, status: int | None) -> None:
    refusal = Access.for_host("127.0.0.1").check_host(host)
    assert (None if refusal is None else refusal.status) == status


def test_all_interfaces_take_addresses_and_named_hosts_but_no_other_names() -> None:
    access = Access.for_host("0.0.0.0", ["Board.Example"])
    assert access.check_host("192.168.0.7:8470") is None and access.check_host("board.example") is None
    assert access.check_host("evil.example") is not None
    assert Access.for_host("192.168.0.7").check_host("192.168.0.8") is not None


def test_a_token_beyond_this_machine_and_only_there() -> None:
    assert Access.for_host("127.0.0.1").token is None and Access.for_host("localhost").check_token(None, None) is None
    one, other = Access.for_host("0.0.0.0"), Access.for_host("0.0.0.0")
    assert one.token is not None and len(one.token) >= 32 and one.token != other.token
    assert one.check_token(one.token, None) is None
    assert one.check_token(None, f"theme=dark; {one.cookie}={one.token}") is None
    for token, cookies in (
        (None, None),
        ("", ""),
        (other.token, None),
        (None, f"{one.cookie}={other.token}"),
        (None, "\x00;;=;"),
        ("é", None),
    ):
        refusal = one.check_token(token, cookies)
        assert refusal is not None and refusal.status == 401


@pytest.mark.parametrize(
    ("origin", "is_let_in"),
    [
        ("http://127.0.0.1:8470", True),
        ("https://127.0.0.1:8470", True),
        ("http://127.0.0.1:8471", False),
        ("http://localhost:8470", False),
        ("http://evil.example", False),
        ("null", False),
        ("file://", False),
        (None, False),
    ],
)
def test_sockets_are_for_the_page_that_was_served(origin: str | None, is_let_in: bool) -> None:
    access = Access.for_host("127.0.0.1")
    assert (access.check_origin(origin, "127.0.0.1:8470", is_needed=True) is None) == is_let_in


def test_an_address_typed_by_a_person_has_no_origin() -> None:
    assert Access.for_host("127.0.0.1").check_origin(None, "127.0.0.1", is_needed=False) is None


def test_names() -> None:
    assert host_name("[::1]:80") == "::1" and host_name("A.b:1") == "a.b" and host_name("a:b:c") is None
    assert is_loopback("127.8.9.1") and is_loopback("::1") and not is_loopback("0.0.0.0") and not is_loopback("board")


# --- Messages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", '"x"', "{}", '{"type": 1}', '{"type": null}', '{"type": NaN}', "[" * 100_000, "\ud800"],
)
def test_what_is_not_a_message(text: str) -> None:
    with pytest.raises(RequestError):
        Request.parse(text)


def test_fields_have_kinds_and_bounds() -> None:
    request = Request(
        {"type": "x", "n": 3, "t": True, "f": 1.5, "s": "abc", "l": [1, 2], "inf": 1e999, "bad": [1, "2"]}
    )
    assert request.integer("n", 0, 3) == 3 and request.number("f", 0, 2) == 1.5 and request.integers("l", 2) == [1, 2]
    for wrong in (
        lambda: request.integer("n", 4, 9),
        lambda: request.integer("t", 0, 9),
        lambda: request.integer("f", 0, 9),
        lambda: request.integer("missing", 0, 9),
        lambda: request.number("inf", 0, 9),
        lambda: request.number("s", 0, 9),
        lambda: request.text("s", 2),
        lambda: request.choice("s", ("x", "y")),
        lambda: request.integers("l", 1),
        lambda: request.integers("bad", 5),
    ):
        with pytest.raises(RequestError):
            wrong()


# --- Limits -------------------------------------------------------------------------------------------------------


def test_the_first_tree_gets_much_memory_and_the_last_one_something() -> None:
    ledger = MemoryLedger(4, 8000)
    # Four pieces of 1000, and a quarter of what is left of the other 4000.
    shares = [ledger.borrow() for _ in range(4)]
    assert shares == [2000, 1750, 1562, 1422]
    with pytest.raises(RequestError, match="no memory left"):
        ledger.borrow()
    for share in shares:
        ledger.give_back(share)
    assert ledger.borrow() == 2000


def test_counters_are_full_once() -> None:
    counter = Counter(2)
    assert [counter.enter() for _ in range(3)] == [True, True, False]
    counter.leave()
    assert counter.enter() and counter.now == 2
