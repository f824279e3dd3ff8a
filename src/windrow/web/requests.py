"""Messages of a page, read with suspicion: every field has a kind and bounds, and an error says which one is wrong."""

from __future__ import annotations

import json
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from windrow.errors import WindrowError
from windrow.web.limits import RequestError


class Request:
    """One message of a page, a JSON object with a `type`."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self.type: str = self._read("type", lambda value: isinstance(value, str), "a string")

    @classmethod
    def parse(cls, text: str) -> Request:
        """Read a message.

        Raises:
            RequestError: it is not a JSON object with a `type`.
        """
        try:
            # NaN and its like are not JSON, and a number of a million digits is nobody's honest wish.
            fields: Any = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            raise RequestError("this message is nested too deeply") from None
        except ValueError as error:
            raise RequestError(f"this message is not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise RequestError('a message is a JSON object, such as {"type": "stop"}')
        return cls(cast("dict[str, Any]", fields))

    @property
    def id(self) -> int | None:
        """What the answer is to carry, so that the page knows what it is about."""
        return self.integer("id", 0, 2**53) if "id" in self._fields else None

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._fields.get(name) is not None

    def integer(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        return self._read(name, lambda value: _is_integer(value, low, high), f"a whole number from {low} to {high}")

    def number(self, name: str, low: float, high: float) -> float:
        """A number from `low` to `high`."""

        def is_right(value: Any) -> bool:
            return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high

        return float(self._read(name, is_right, f"a number from {low:g} to {high:g}"))

    def text(self, name: str, most: int) -> str:
        """A string of at most `most` characters."""

        def is_right(value: Any) -> bool:
            return isinstance(value, str) and len(value) <= most

        return self._read(name, is_right, f"a string of at most {most} characters")

    def choice(self, name: str, known: Sequence[str]) -> str:
        """One of some words."""
        return self._read(name, lambda value: isinstance(value, str) and value in known, f"one of {', '.join(known)}")

    def integers(self, name: str, most: int) -> list[int]:
        """At most `most` whole numbers."""

        def is_right(value: Any) -> bool:
            return isinstance(value, list) and len(cast("list[Any]", value)) <= most

        found: list[Any] = self._read(name, is_right, f"a list of at most {most} whole numbers")
        for item in found:
            if not _is_integer(item, -(2**62), 2**62):
                raise RequestError(f"{name} must be a list of whole numbers, but one is {_short(item)}")
        return found

    def _read(self, name: str, is_right: Callable[[Any], bool], what: str) -> Any:
        value = self._fields.get(name)
        if not is_right(value):
            raise RequestError(f"{name} must be {what}, not {_short(value)}")
        return value


async def answer(text: str, respond: Callable[[Request], Awaitable[dict[str, Any]]]) -> tuple[str, bool]:
    """What a page is told about its message, in JSON and with the message's id; and whether that was a mistake."""
    number: int | None = None
    try:
        request = Request.parse(text)
        number = request.id
        return json.dumps({**await respond(request), "id": number}, allow_nan=False), False
    except WindrowError as error:
        message, is_mistake = str(error), isinstance(error, RequestError)
    except Exception as error:  # a fault of ours, or of somebody's own game: the page is told, the server goes on
        traceback.print_exc()
        message, is_mistake = f"the server failed at this: {type(error).__name__}: {error}", True
    return json.dumps({"type": "error", "id": number, "message": message}), is_mistake


def _is_integer(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
