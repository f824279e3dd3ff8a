"""What was measured, remembered on disk: one small JSON file per question, in the user's cache folder.

A file is written whole or not at all. One that cannot be read, or does not hold what it should, counts as not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from windrow.distribution import NAME
from windrow.files import cache_folder, write_cached

_PACKAGES = (NAME, "numpy", "torch", "onnxruntime", "onnxruntime-gpu", "openvino", "nncf")


def file_for(question: dict[str, Any]) -> Path:
    """The file that holds the answer to `question`."""
    digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:24]
    return cache_folder() / "backends" / f"{digest}.json"


def recall(question: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to `question`, if there is one."""
    try:
        content: Any = json.loads(file_for(question).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict):
        return None
    entry = cast("dict[str, Any]", content)
    answer: Any = entry.get("answer")
    return cast("dict[str, Any]", answer) if entry.get("question") == question and isinstance(answer, dict) else None


def remember(question: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Keep the answer to `question`; False if the folder cannot be written, which is no reason to fail."""
    return write_cached(file_for(question), json.dumps({"question": question, "answer": answer}, indent=1))


def machine_facts() -> dict[str, str]:
    """What makes a measurement hold here and not elsewhere: processor, GPU and versions."""
    return {
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count()),
        "gpu": _gpu_model(),
        "python": platform.python_version(),
        **{package: _version(package) for package in _PACKAGES},
    }


def _cpu_model() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _gpu_model() -> str:
    torch: Any = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None and torch.cuda.is_available() else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
