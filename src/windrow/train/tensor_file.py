"""Tensors in one safetensors file that describes itself and notices every flipped bit.

The header's metadata has two entries: `windrow`, a description in JSON, and `sha256`, the hash of the whole file as it
is with zeros in the place of the hash.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors
import safetensors.torch
from torch import Tensor

from windrow.errors import CheckpointError

_BLANK = "0" * 64
_KEY = b'"sha256":"'
_LENGTH = struct.Struct("<Q")
_PICKLES = (b"PK\x03\x04", b"\x80")
"""How files of torch.save begin, new ones and old ones."""


def pack_tensors(tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> bytes:
    """The bytes of such a file."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data = safetensors.torch.save(plain, metadata={"windrow": to_json(description), "sha256": _BLANK})
    # Quotes inside the description are escaped, so this is the entry itself.
    place = data.index(_KEY + _BLANK.encode()) + len(_KEY)
    return data[:place] + hashlib.sha256(data).hexdigest().encode() + data[place + len(_BLANK) :]


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description of a file that `pack_tensors` made.

    Raises:
        CheckpointError: it cannot be read, is damaged, or is no such file.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    metadata = _metadata(data, path)
    digest = str(metadata.get("sha256", ""))
    place = data.find(_KEY + digest.encode()) + len(_KEY)
    blank = hashlib.sha256(data[:place])
    blank.update(_BLANK.encode())
    blank.update(memoryview(data)[place + len(_BLANK) :])
    if len(digest) != len(_BLANK) or blank.hexdigest() != digest:
        raise damaged(path, "its contents do not have the hash that they were written with")
    try:
        return safetensors.torch.load(data), json.loads(metadata["windrow"])
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, reason: str) -> CheckpointError:
    """What to raise when a file is not what was written."""
    return CheckpointError(f"{path} is damaged ({reason}): delete it, and use an earlier checkpoint or another copy")


def to_json(value: object, *, indent: int | None = None) -> str:
    """JSON, with NumPy's numbers as numbers."""
    return json.dumps(value, indent=indent, default=_plain)


def _metadata(data: bytes, path: Path) -> dict[str, Any]:
    if len(data) < _LENGTH.size:
        raise damaged(path, f"it ends after {len(data)} bytes")
    if data.startswith(_PICKLES):
        raise CheckpointError(
            f"{path} is not a checkpoint of windrow: name a run's folder, or a model.safetensors in it. A module that "
            "torch.save has saved is used from Python: TorchEvaluator(module)"
        )
    (length,) = _LENGTH.unpack_from(data)
    if length > len(data) - _LENGTH.size:
        raise damaged(path, f"it ends after {len(data)} bytes, within its header")
    try:
        header: Any = json.loads(data[_LENGTH.size : _LENGTH.size + length])
    except ValueError as error:
        raise damaged(path, "its header cannot be read") from error
    metadata: Any = cast("dict[str, Any]", header).get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or "windrow" not in metadata:
        raise CheckpointError(f"{path} does not say what it is: only files that windrow has written can be loaded")
    return cast("dict[str, Any]", metadata)


def _plain(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return cast("Any", value).tolist()
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r:.100}")
