"""Tensors in one safetensors file that describes itself and notices every flipped bit.

The header's metadata has two entries: `windrow`, a description in JSON, and `sha256`, the hash of the whole file as it
is with zeros in the place of the hash.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors
import safetensors.torch
from torch import Tensor

from windrow.errors import CheckpointError
from windrow.train.disk import read_whole

_BLANK = "0" * 64
_KEY = b'"sha256":"'
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LENGTH = struct.Struct("<Q")
_ZIP = b"PK\x03\x04"
_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
"""How files of torch.save begin that are not zip files: pickle's opcode PROTO and its argument."""


def pack_tensors(tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> bytes:
    """The bytes of such a file."""
    plain: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        one = tensor.detach().cpu().contiguous()
        is_tied = any(one.data_ptr() == other.data_ptr() for other in plain.values() if one.numel())
        plain[name] = one.clone() if is_tied else one  # safetensors has no two names for one tensor
    data = safetensors.torch.save(plain, metadata={"windrow": to_json(description), "sha256": _BLANK})
    # Quotes inside the description are escaped, so this is the entry itself.
    place = data.index(_KEY + _BLANK.encode()) + len(_KEY)
    return data[:place] + hashlib.sha256(data).hexdigest().encode() + data[place + len(_BLANK) :]


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description of a file that `pack_tensors` made.

    Raises:
        CheckpointError: it cannot be read, is damaged, or is no such file.
    """
    data = read_whole(path)
    metadata = _metadata(data, path)
    digest, description = metadata.get("sha256"), metadata["windrow"]
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or _hash(data, digest) != digest:
        raise damaged(path, "its contents do not have the hash that they were written with")
    try:
        return safetensors.torch.load(data), parse_object(description)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, reason: str) -> CheckpointError:
    """What to raise when a file is not what was written."""
    return CheckpointError(f"{path} is damaged ({reason}): delete it, and use an earlier checkpoint or another copy")


def parse_object(text: Any) -> dict[str, Any]:
    """The object that JSON in `text` describes.

    Raises:
        ValueError: it is no JSON, nested too deeply, or something else than an object.
    """
    if not isinstance(text, str | bytes):
        raise ValueError(f"JSON is text, not {type(text).__name__}")
    try:
        found: Any = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return cast("dict[str, Any]", found)


def to_json(value: object, *, indent: int | None = None) -> str:
    """JSON, with NumPy's numbers as numbers."""
    return json.dumps(value, indent=indent, default=_plain)


def _hash(data: bytes, digest: str) -> str:
    """The hash of a file with zeros in the place of `digest`."""
    place = data.find(_KEY + digest.encode()) + len(_KEY)
    blank = hashlib.sha256(data[:place])
    blank.update(_BLANK.encode())
    blank.update(memoryview(data)[place + len(_BLANK) :])
    return blank.hexdigest()


def _metadata(data: bytes, path: Path) -> dict[str, Any]:
    """The metadata in the header of a safetensors file."""
    if len(data) < _LENGTH.size:
        raise damaged(path, f"it ends after {len(data)} bytes")
    (length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + length
    try:
        if end > len(data):
            raise ValueError(f"it ends after {len(data)} bytes, within its header")
        metadata: Any = parse_object(data[_LENGTH.size : end]).get("__metadata__")
    except ValueError as error:
        # Only now: the header's length comes first, and any byte can be the first of a length.
        if data.startswith((_ZIP, *_PICKLES)):
            raise CheckpointError(
                f"{path} is not a checkpoint of windrow: name a run's folder, or a model.safetensors in it. A module "
                "that torch.save has saved is used from Python: TorchEvaluator(module)"
            ) from None
        reason = str(error) if end > len(data) else f"its header cannot be read: {error}"
        raise damaged(path, reason) from error
    if not isinstance(metadata, dict) or "windrow" not in metadata:
        raise CheckpointError(f"{path} does not say what it is: only files that windrow has written can be loaded")
    return cast("dict[str, Any]", metadata)


def _plain(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return cast("Any", value).tolist()
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r:.100}")
