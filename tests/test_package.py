"""The package as a whole: what importing it loads, which way its imports point, its stub and its version."""

from __future__ import annotations

import ast
import difflib
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import windrow

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "windrow"

# Low to high. A module imports only from its own layer and from layers before it; the package's __init__, which is
# the public API, and the edges are the top.
LAYERS = [
    {"_core", "errors"},
    {"cores", "files", "memory", "numerics", "spelling"},
    {"games"},
    {"settings"},
    {"evaluators"},
    {"engine_registry"},
    {"config"},
    {"capabilities"},
    {"inference"},
    {"gumbel"},
    {"reference"},
    {"tensor"},
    {"search"},
    {"testing"},
    {"nets"},
    {"play"},
    {"train"},
    {"tune"},
    {"protocols"},
    {"cli", "web"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
TOP = len(LAYERS)

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
    "nets/folding.py": {"torch"},
    "search/engines/tensor.py": {"torch"},
    "nets/resnet.py": {"torch"},
    "train/checkpoint.py": {"torch"},
    "train/inference_copy.py": {"torch"},
    "train/learner.py": {"torch"},
    "train/tensor_file.py": {"torch", "safetensors"},
    "train/tensor_learner.py": {"torch"},
    "train/tensor_run.py": {"torch"},
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


def modules() -> list[Path]:
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    """The name in LAYERS under which a module or package directly below windrow stands; "" for windrow itself."""
    first = path.parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imported_names(node: ast.Import | ast.ImportFrom, path: Path) -> list[str]:
    """The absolute dotted names a statement in the module at `path` imports from."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level == 0:
        base = node.module or ""
    else:
        package = ["windrow", *path.parts[:-1]]
        base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
    # `from windrow import errors` imports the module windrow.errors.
    return [f"{base}.{alias.name}" for alias in node.names] if base == "windrow" else [base]


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


def upward_imports(path: Path, tree: ast.Module) -> list[str]:
    """What the module at `path` imports from above its own layer, anywhere in the file."""
    level = LEVEL.get(layer_of(path), TOP)
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in imported_names(node, path):
                parts = name.split(".")
                if parts[0] != "windrow":
                    continue
                # A name that is no layer is one that windrow/__init__ defines: the top.
                target = LEVEL.get(parts[1], TOP) if len(parts) > 1 else TOP
                if target > level:
                    found.append(f"line {node.lineno}: {name}")
    return found


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


def test_every_module_has_a_layer() -> None:
    unknown = {layer_of(path) for path in modules()} - set(LEVEL) - {"", "__main__"}
    assert not unknown, f"add to LAYERS in {__file__}: {sorted(unknown)}"


@pytest.mark.parametrize("path", modules(), ids=str)
def test_imports_point_down(path: Path) -> None:
    assert not upward_imports(path, parse(path))


@pytest.mark.parametrize("path", modules(), ids=str)
def test_module_level_imports_need_numpy_alone(path: Path) -> None:
    assert not foreign_imports(path, parse(path)), "import it inside the function that needs it"


@pytest.mark.parametrize(
    ("path", "code", "count"),
    [
        ("games/connect4.py", "from windrow.search import Search", 1),
        ("games/connect4.py", "from ..search import Search", 1),
        ("games/connect4.py", "from .. import search", 1),
        ("games/connect4.py", "def f():\n    import windrow.search.facade", 1),
        ("games/connect4.py", "from windrow import Search", 1),
        ("games/connect4.py", "import windrow", 1),
        ("games/connect4.py", "from windrow.games import protocol\nfrom . import protocol\nfrom ..errors import E", 0),
        ("search/facade.py", "from windrow import _core, games, config\nimport numpy as np", 0),
        ("cli/main.py", "from windrow.search import Search", 0),
        ("__init__.py", "from windrow.search import Search\nfrom . import cli", 0),
    ],
)
def test_upward_imports_are_seen(path: str, code: str, count: int) -> None:
    assert len(upward_imports(Path(path), ast.parse(code))) == count


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
    assert windrow.__version__ == metadata.version("windrow") == match[1]
