"""Messages of a page, read with suspicion: every field has a kind and bounds, and an error says which one is wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from windrow.web.limits import RequestError


class Request:
    """One message of a page, a JSON object with a `type`."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self.type = self.choice("type", None)

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
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise RequestError(f"{name} must be a whole number from {low} to {high}, not {_short(value)}")
        return value

    def number(self, name: str, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise RequestError(f"{name} must be a number from {low:g} to {high:g}, not {_short(value)}")
        return float(value)

    def text(self, name: str, most: int) -> str:
        """A string of at most `most` characters."""
        value = self._fields.get(name)
        if not isinstance(value, str) or len(value) > most:
            raise RequestError(f"{name} must be a string of at most {most} characters, not {_short(value)}")
        return value

    def choice(self, name: str, known: Sequence[str] | None) -> str:
        """One of some words."""
        value = self._fields.get(name)
        if not isinstance(value, str) or (known is not None and value not in known):
            words = "a string" if known is None else f"one of {', '.join(known)}"
            raise RequestError(f"{name} must be {words}, not {_short(value)}")
        return value

    def integers(self, name: str, most: int) -> list[int]:
        """At most `most` whole numbers."""
        value = self._fields.get(name)
        if not isinstance(value, list) or len(cast("list[Any]", value)) > most:
            raise RequestError(f"{name} must be a list of at most {most} whole numbers, not {_short(value)}")
        for item in cast("list[Any]", value):
            if isinstance(item, bool) or not isinstance(item, int) or not -(2**62) <= item <= 2**62:
                raise RequestError(f"{name} must be a list of whole numbers, but one is {_short(item)}")
        return cast("list[int]", value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
