"""Markup whose text is escaped unless it says that it is markup, so that nothing is forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias


class Html(str):
    """Markup; put into a page as it is."""

    __slots__ = ()


Content: TypeAlias = "str | Iterable[str] | None"
Attribute: TypeAlias = "str | float | bool | None"


def tag(name: str, /, *content: Content, **attributes: Attribute) -> Html:
    """An element. Text in `content` and in attributes is escaped, `Html` is not.

    Args:
        name: of the element.
        content: texts and markup, or several of them; None is nothing.
        attributes: `class_` is written class, `aria_label` aria-label. True is an attribute without a value; None and
            False are none.
    """
    shown = "".join(
        f" {_spell(key)}" if value is True else f' {_spell(key)}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{shown}>{join(*content)}</{name}>")


def join(*content: Content) -> Html:
    """One behind the other."""
    parts: list[str] = []
    for piece in content:
        if isinstance(piece, Html):
            parts.append(piece)
        elif isinstance(piece, str):
            parts.append(escape(piece, quote=False))
        elif piece is not None:
            parts.append(join(*piece))
    return Html("".join(parts))


def _spell(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _text(value: Attribute) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
