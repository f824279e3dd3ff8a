"""For the reference: gives fields that are described in lines of their class's docstring a description of their own.

`policy: [B, A] target; sums to 1.` in the docstring of `Batch` becomes the docstring of `Batch.policy`.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*): (?P<text>.+(?:\n[ \t]+.+)*)\n?", re.MULTILINE)


class FieldDocs(griffe.Extension):
    """Moves such lines from classes to their attributes."""

    def on_class_members(self, *, cls: griffe.Class, **more: Any) -> None:
        """Called when a class and what is in it has been read."""
        if cls.docstring is None:
            return

        def move(entry: re.Match[str]) -> str:
            fields = [cls.members.get(name) for name in entry["names"].split(", ")]
            if not all(isinstance(field, griffe.Attribute) for field in fields):
                return entry[0]
            text = re.sub(r"\n[ \t]+", " ", entry["text"])
            for field in fields:
                if field is not None and field.docstring is None:
                    field.docstring = griffe.Docstring(text[0].upper() + text[1:], parent=field)
            return ""

        cls.docstring.value = ENTRY.sub(move, cls.docstring.value).strip()
