"""The package as a whole: what importing it loads, which way its imports point, its stub and its version."""

from __future__ import annotations

import ast
import difflib
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pytest

import windrow

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "windrow"

# Files that exist for an optional package may import it at module level; that nothing loads them before they are used
# is for test_import_is_light to see.
OPTIONAL_IMPORTS = {
    "evaluators/backends/export.py": {"torch"},
    "evaluators/backends/onnx_runtime.py": {"onnxruntime"},
    "evaluators/backends/openvino.py": {"openvino"},
    "evaluators/backends/torch_cpu.py": {"torch"},
    "evaluators/backends/torch_cuda.py": {"torch"},
    "evaluators/jax.py": {"jax"},
    "evaluators/torch.py": {"torch"},
    "nets/checking.py": {"torch"},
    "nets/folding.py": {"torch"},
    "nets/mlp.py": {"torch"},
    "nets/network.py": {"torch"},
    "search/engines/tensor.py": {"torch"},
    "nets/resnet.py": {"torch"},
    "nets/transformer.py": {"torch"},
    "train/checkpoint.py": {"torch"},
    "train/inference_copy.py": {"torch"},
    "train/learner.py": {"torch"},
    "train/rating_games.py": {"torch"},
    "train/rating_log.py": {"torch"},
    "train/tensor_file.py": {"torch", "safetensors"},
    "train/device.py": {"torch"},
    "train/tensor_learner.py": {"torch"},
    "train/tensor_solved.py": {"torch"},
}

# The same for folders.
FOLDER_IMPORTS = {"cli": {"typer", "rich"}, "tensor": {"torch", "triton"}}

HEAVY = [
    "typer",
    "rich",
    *("torch", "safetensors", "tensorboard", "numba", "ray", "triton", "fastapi", "uvicorn", "pyspiel"),
    *("jax", "onnx", "onnxruntime", "openvino", "nncf"),
]


class Order:
    """The rows of a map, low to high: a module imports only from its own row and from rows before it.

    Args:
        rows: names of files, which may have a *, and of folders, from the package's folder on. Of several rows that
            match a module, the one that names it most exactly is its row. A folder's `__init__.py` collects what the
            folder has, so it belongs to the last row that names something in the folder.
        modules: all files of the package, from its folder on.
    """

    def __init__(self, rows: list[list[str]], modules: list[str]) -> None:
        self._rows = rows
        self._modules = set(modules)
        self.levels = {module: self._level(module) for module in modules}

    def _level(self, module: str) -> int | None:
        """The number of a module's row; None if no row names it."""
        folder, _, name = module.rpartition("/")
        parts = [level for level, names in enumerate(self._rows) for part in names if part.startswith(f"{folder}/")]
        if name == "__init__.py" and folder and parts:
            return parts[-1]
        matches = [
            (not pattern.endswith("/"), "*" not in pattern, len(pattern), level)
            for level, names in enumerate(self._rows)
            for pattern in names
            if (module.startswith(pattern) if pattern.endswith("/") else fnmatch(module, pattern))
            and (pattern.endswith("/") or pattern.count("/") == module.count("/"))
        ]
        return max(matches)[-1] if matches else None

    def module_of(self, name: str) -> str | None:
        """The file that the dotted name of a module, or of something in one, stands for; None: the native core."""
        parts = name.split(".")[1:]
        if parts[:1] == ["_core"]:
            return None
        while parts:
            path = "/".join(parts)
            for file in (f"{path}.py", f"{path}/__init__.py"):
                if file in self._modules:
                    return file
            parts.pop()
        return "__init__.py"

    def upward_imports(self, module: str, tree: ast.Module) -> list[str]:
        """What a module imports from rows after its own, anywhere in the file."""
        level = self.levels[module]
        assert level is not None
        found: list[str] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name in imported_names(node, Path(module)):
                    target = self.module_of(name) if name.split(".")[0] == "windrow" else None
                    if target is not None and (self.levels[target] or 0) > level:
                        found.append(f"line {node.lineno}: {name}")
        return found


def read_rows() -> list[list[str]]:
    """The table of src/windrow in docs/map.md. A name lies in the folder of the name before it, or in the package."""
    section = (ROOT / "docs" / "map.md").read_text(encoding="utf-8").split("\n## src/windrow/")[1].split("\n## ")[0]
    rows: list[list[str]] = []
    for line in section.splitlines():
        if line.startswith("| `"):
            rows.append([])
            beside = ""
            for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
                path = next(path for path in (beside + name, name) if list(PACKAGE.glob(path.rstrip("/"))))
                rows[-1].append(path)
                beside = path[: path.rstrip("/").rfind("/") + 1]
    return rows


def modules() -> list[Path]:
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


ORDER = Order(read_rows(), [path.as_posix() for path in modules()])


def imported_names(node: ast.Import | ast.ImportFrom, path: Path) -> list[str]:
    """The absolute dotted names a statement in the module at `path` imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level == 0:
        base = node.module or ""
    else:
        package = ["windrow", *path.parts[:-1]]
        base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def module_level(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements that run when the module is imported: not those in functions or under TYPE_CHECKING."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))


def foreign_imports(path: Path, tree: ast.Module) -> list[str]:
    """Packages outside the standard library, NumPy and windrow that importing the module at `path` loads."""
    optional = FOLDER_IMPORTS.get(path.parts[0], set()) | OPTIONAL_IMPORTS.get(path.as_posix(), set())
    allowed = {"numpy", "windrow", *sys.stdlib_module_names, *optional}
    return [
        f"line {node.lineno}: {name}"
        for node in module_level(tree)
        for name in imported_names(node, path)
        if name.split(".")[0] not in allowed
    ]


def parse(path: Path) -> ast.Module:
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


def test_import_is_light() -> None:
    """`import windrow` needs NumPy alone, whatever else is installed."""
    code = f"import sys, windrow; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_module_has_a_row() -> None:
    assert [module for module, level in ORDER.levels.items() if level is None] == [], "add them to docs/map.md"


@pytest.mark.parametrize("path", modules(), ids=str)
def test_imports_point_up_the_map(path: Path) -> None:
    """Only rows above a module's own in docs/map.md, and its own, are imported from."""
    assert not ORDER.upward_imports(path.as_posix(), parse(path)), "move a row of docs/map.md, or the code"


@pytest.mark.parametrize("path", modules(), ids=str)
def test_module_level_imports_need_numpy_alone(path: Path) -> None:
    assert not foreign_imports(path, parse(path)), "import it inside the function that needs it"


# A package in small: a folder in two rows, with a row of another folder between them.
ROWS = [
    ["errors.py"],
    ["games/protocol.py", "games/native*.py"],
    ["search/engine.py"],
    ["inference/"],
    ["search/engines/", "search/search.py"],
    ["cli/"],
    ["__init__.py", "__main__.py"],
]
MODULES = [
    *("errors.py", "games/__init__.py", "games/protocol.py", "games/native.py", "games/native_words.py"),
    *("search/__init__.py", "search/engine.py", "search/search.py", "search/engines/__init__.py"),
    *("search/engines/ray.py", "inference/__init__.py", "inference/server.py", "cli/main.py", "__init__.py"),
    "__main__.py",
]


@pytest.mark.parametrize(
    ("path", "code", "count"),
    [
        ("games/native.py", "from windrow.search import Search", 1),
        ("games/native.py", "from ..search import search", 1),
        ("games/native.py", "from .. import search", 1),
        ("games/native.py", "def f():\n    import windrow.search.search", 1),
        ("games/native.py", "from windrow import Search", 1),
        ("games/native.py", "import windrow", 1),
        (
            "games/native.py",
            "from windrow.games import protocol\nfrom . import native_words\nfrom ..errors import E",
            0,
        ),
        ("search/engine.py", "from windrow.inference.server import Server", 1),
        ("search/engine.py", "from windrow.search.search import Search", 1),
        ("search/engine.py", "from windrow.search import Search", 1),
        ("search/engine.py", "from windrow import _core\nfrom windrow._core import Forest\nimport numpy as np", 0),
        ("inference/server.py", "from windrow.search.engine import Engine\nfrom windrow.games import Game", 0),
        ("inference/server.py", "from windrow.search.engines.ray import RayEngine", 1),
        ("search/engines/ray.py", "from windrow.inference import Server\nfrom windrow.search.search import Search", 0),
        ("search/__init__.py", "from windrow.search.search import Search", 0),
        ("cli/main.py", "from windrow.search import Search", 0),
        ("__init__.py", "from windrow.search import Search\nfrom . import cli", 0),
    ],
)
def test_imports_against_the_order_are_seen(path: str, code: str, count: int) -> None:
    assert len(Order(ROWS, MODULES).upward_imports(path, ast.parse(code))) == count


def test_modules_without_a_row_are_seen() -> None:
    levels = Order(ROWS, [*MODULES, "new.py", "games/new.py"]).levels
    assert [module for module, level in levels.items() if level is None] == ["new.py", "games/new.py"]


@pytest.mark.parametrize(
    ("path", "code", "count"),
    [
        ("config.py", "import torch", 1),
        ("config.py", "try:\n    import torch.nn\nexcept ImportError:\n    pass", 1),
        ("config.py", "class A:\n    import numba", 1),
        ("config.py", "import numpy as np, json\nfrom numpy.typing import NDArray\nfrom .errors import E", 0),
        ("config.py", "def f():\n    import torch", 0),
        ("config.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", 0),
        ("evaluators/torch.py", "import torch\nfrom torch import nn", 0),
        ("evaluators/torch.py", "import numba", 1),
    ],
)
def test_foreign_imports_are_seen(path: str, code: str, count: int) -> None:
    assert len(foreign_imports(Path(path), ast.parse(code))) == count


def test_stub_is_current(tmp_path: Path) -> None:
    """The committed stub says what the native module has."""
    new = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "windrow._core", "-o", str(new)]
    subprocess.run(command, check=True)
    committed = (PACKAGE / "_core.pyi").read_text(encoding="utf-8").splitlines()
    current = new.read_text(encoding="utf-8").splitlines()
    difference = "\n".join(difflib.unified_diff(committed, current, "committed", "current", lineterm=""))
    assert not difference, f"src/windrow/_core.pyi is out of date: run `make stub`\n{difference}"


def test_version_has_one_source() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'^version = "(.+?)"', project, re.MULTILINE)
    assert match is not None
    assert windrow.__version__ == metadata.version("windrow-mcts") == match[1]
