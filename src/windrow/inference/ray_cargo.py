"""Cargo: objects that are sent to Ray actors together with the source files of the user's modules that they need.

    driver                                         actor
    Cargo(content) ── pickle: sources, content ──► makes the sources importable, then unpickles the content

Pickle names classes by their modules. Actors can import installed modules, and modules in the driver's working
directory, which Ray adds. They cannot import a file that the user named by its path (`--network nets/mynet.py:Net`).
"""

from __future__ import annotations

import importlib.util
import io
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from windrow.inference.ray_cluster import load_ray


class Cargo:
    """A wrapper to pickle content for an actor; unpickling it returns the content itself."""

    def __init__(self, content: Any) -> None:
        self._sources, self._content = find_sources(content), content

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle reads a tuple in order, so the modules can be imported before the content needs them.
        return _second, (_Sources(self._sources), self._content)


def find_sources(content: Any) -> dict[str, tuple[str, bytes]]:
    """Find the user's own files that define the classes and functions in `content`; return path and source by module.

    Modules in the same folder that this process has imported are included. Installed modules and packages are not: they
    must be installed on every node.
    """
    names = {name for name in _modules_in(content) if _file_of(name) is not None}
    folders = {file.parent for name in names if (file := _file_of(name)) is not None}
    files = {name: file for name in list(sys.modules) if (file := _file_of(name)) is not None}
    return {name: (str(file), file.read_bytes()) for name, file in files.items() if file.parent in folders}


def _modules_in(content: Any) -> set[str]:
    """Return the modules that a pickle of `content` names."""
    found: set[str] = set()

    class Pickler(load_ray().cloudpickle.CloudPickler):
        def persistent_id(self, thing: Any) -> object:
            if isinstance(thing, type | FunctionType):
                found.add(thing.__module__)
            elif isinstance(thing, ModuleType):
                found.add(thing.__name__)
            # Arrays and tensors are large, and Ray counts references to its own objects when they are pickled. None of
            # them contains a class of the user's.
            is_opaque = isinstance(thing, np.ndarray) or _is_of_ray(thing) or _is_tensor(thing)
            return 0 if is_opaque else None

    Pickler(io.BytesIO()).dump(content)
    return found


def _is_of_ray(thing: object) -> bool:
    return type(thing).__module__.partition(".")[0] == "ray"


def _is_tensor(thing: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor) and type(thing).__module__.startswith("torch")


def _file_of(name: str) -> Path | None:
    """Return the file of a module of the user's own; None if it is installed, a package, or has no file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__" or "." in name or not isinstance(file, str) or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    is_installed = any(path.is_relative_to(folder) for folder in _installed_folders())
    return None if path.name == "__init__.py" or is_installed or not path.is_file() else path


def _installed_folders() -> Iterable[Path]:
    paths = sysconfig.get_paths()
    return {Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}


# --- Unpickling ---------------------------------------------------------------------------------------------------


class _Sources:
    """Source files. Unpickling them makes them importable."""

    def __init__(self, sources: Mapping[str, tuple[str, bytes]]) -> None:
        self._sources = sources

    def __reduce__(self) -> tuple[Any, ...]:
        return install_sources, (self._sources,)


def install_sources(sources: Mapping[str, tuple[str, bytes]]) -> None:
    """Make these modules importable, except those that can be imported already with the same source."""
    finder = next((one for one in sys.meta_path if isinstance(one, _SentModules)), None)
    if finder is None:
        finder = _SentModules()
        sys.meta_path.insert(0, finder)
    for name, (path, source) in sources.items():
        if name not in sys.modules and not _is_here(name, source):
            finder.sources[name] = path, source


def _is_here(name: str, source: bytes) -> bool:
    try:
        spec = importlib.util.find_spec(name)
        return spec is not None and spec.origin is not None and Path(spec.origin).read_bytes() == source
    except (OSError, ValueError, ImportError):
        return False


class _SentModules(MetaPathFinder, ExecutionLoader):
    """Imports modules from source files that were sent; tracebacks and `inspect` show their source too."""

    def __init__(self) -> None:
        self.sources: dict[str, tuple[str, bytes]] = {}
        """Path on the machine of the sender, and source, by module name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that was sent; None for other modules."""
        return importlib.util.spec_from_loader(fullname, self) if fullname in self.sources else None

    def is_package(self, fullname: str) -> bool:
        return False

    def get_filename(self, fullname: str) -> str:
        return self.sources[fullname][0]

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self.sources[fullname][1])


def _second(first: object, content: Any) -> Any:
    return content
