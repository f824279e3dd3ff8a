"""Every public name says what it is; what carries arrays says their shapes, and what carries values whose they are.

ruff demands a docstring of every module, class and function. Beyond that, here: methods have one too, or override one
that has; attributes and constants are described, shapes stand in brackets, and the reference in docs/api has all of it.
"""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
API = {
    page.stem: match[1]
    for page in sorted((ROOT / "docs" / "api").glob("*.md"))
    if (match := re.search(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE))
}
"""Pages of the reference, and the module of each."""
PACKAGES = [
    "windrow",
    *(
        f"windrow.{path.stem}"
        for path in sorted(ROOT.glob("src/windrow/[a-z]*.py"))
        if "__all__ = " in path.read_text("utf-8")
    ),
    *(
        f"windrow.{path.parent.name}"
        for path in sorted(ROOT.glob("src/windrow/*/__init__.py"))
        if "__all__ = " in path.read_text("utf-8")
    ),
]
"""Whatever says by `__all__` what is public, and the law itself."""

ARRAY = re.compile(r"\b(NDArray|FloatArray|IntArray|BoolArray|ndarray|Tensor)\b")
SHAPE = re.compile(r"\[[\w*][^\]]*\]|\bshape\b")
VALUES = re.compile(r"(^|_)(value|values|q|returns)$")
PERSPECTIVE = re.compile(r"player|mover|whoever|own\b")


@dataclass(frozen=True)
class Item:
    """Something public: where it is, what is said about it (its class's words included), what its types are."""

    name: str
    own_words: str
    words: str
    types: str


@cache
def source_of(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(module)))


def is_variant(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a signature of something that is defined elsewhere: an overload, or a property's setter."""
    return any(re.search(r"overload|\.setter", ast.unparse(decorator)) for decorator in definition.decorator_list)


def definition_of(module: str, name: str) -> tuple[ast.stmt, ast.stmt | None] | None:
    """The statement that defines a name in a module, and the one after it, which may describe it."""
    body = source_of(module).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.FunctionDef) and is_variant(statement):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if getattr(statement, "name", None) == name or any(getattr(target, "id", None) == name for target in targets):
            return statement, after
    return None


def text_after(after: ast.stmt | None) -> str:
    """The string that stands below an attribute and describes it."""
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return after.value.value
    return ""


def is_method(thing: object) -> bool:
    return isinstance(thing, property | classmethod | staticmethod) or inspect.isfunction(thing)


def words_of(kind: type | None, member: str) -> str:
    """What is said of a method or a property, by the class or by those it derives from."""
    return "" if kind is None else inspect.getdoc(getattr(kind, member)) or ""


def members_of(name: str, definition: ast.ClassDef, kind: type | None = None) -> list[Item]:
    """The public attributes and methods that a class defines."""
    about = ast.get_docstring(definition) or ""
    found: list[Item] = []
    for statement, after in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not is_variant(statement):
            member = statement.name
            words = ast.get_docstring(statement) or words_of(kind, member)
            types = ast.unparse(statement.returns or ast.Constant(None))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            member, words, types = statement.target.id, text_after(after), ast.unparse(statement.annotation)
            # A field may be described by a line of its class: `policy: [B, A] target`.
            line = re.search(rf"^\s*(?:\w+, )*{member}(?:, \w+)*: (.+(?:\n\s+.+)*)", about, re.MULTILINE)
            words = words or (line[1] if line else "")
        else:
            continue
        if not member.startswith("_"):
            found.append(Item(f"{name}.{member}", words, words + about, types))
    return found


@cache
def public_items() -> tuple[Item, ...]:
    found: dict[str, Item] = {}
    for package in PACKAGES:
        module = import_module(package)
        names = getattr(module, "__all__", None) or [
            name
            for name, thing in vars(module).items()
            if getattr(thing, "__module__", "") == package and name[0] != "_"
        ]
        for name in names:
            thing: Any = getattr(module, name)
            if inspect.ismodule(thing):
                continue
            home = getattr(thing, "__module__", None) or package
            place = definition_of(home, name) if home.startswith("windrow") else None
            if place is None:  # a constant, or an alias of a type, that other modules define
                found.update(constant_items(package, name))
                continue
            statement, after = place
            words = text_after(after)
            if isinstance(statement, ast.ClassDef | ast.FunctionDef):
                words = ast.get_docstring(statement) or ""
            types = ast.unparse(getattr(statement, "returns", None) or ast.Constant(None))
            found[f"{home}.{name}"] = Item(f"{home}.{name}", words, words, types)
            if isinstance(statement, ast.ClassDef):
                found.update({item.name: item for item in members_of(f"{home}.{name}", statement, thing)})
    return tuple(found.values())


def constant_items(package: str, name: str) -> dict[str, Item]:
    """The item of a name that is no class and no function, found by following the imports of its package."""
    for statement in ast.walk(source_of(package)):
        if isinstance(statement, ast.ImportFrom) and any(alias.name == name for alias in statement.names):
            place = definition_of(statement.module or "", name)
            if place is not None:
                words = text_after(place[1])
                return {f"{statement.module}.{name}": Item(f"{statement.module}.{name}", words, words, "")}
            return constant_items(statement.module or "", name)
    raise AssertionError(f"where is {package}.{name} defined?")


def test_the_reference_has_a_page_for_every_public_module() -> None:
    assert sorted(API.values()) == sorted(PACKAGES)
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert not [page for page in API if f"api/{page}.md" not in config]


def test_every_public_name_is_described() -> None:
    items = public_items()
    assert len(items) > 600  # the walk itself works
    assert not [item.name for item in items if not item.own_words.strip()]


def test_every_method_is_described_where_it_is_or_by_what_it_overrides() -> None:
    undescribed: list[str] = []
    num_methods = 0
    for path in sorted(ROOT.glob("src/windrow/**/[a-z]*.py")):  # without __main__, which runs
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        try:
            members = vars(import_module(name)).values()
        except ImportError:  # an optional package is missing
            continue
        for kind in members:
            if inspect.isclass(kind) and kind.__module__ == name and not kind.__name__.startswith("_"):
                methods = [member for member, thing in vars(kind).items() if member[0] != "_" and is_method(thing)]
                num_methods += len(methods)
                undescribed += [f"{name}.{kind.__name__}.{member}" for member in methods if not words_of(kind, member)]
    assert num_methods > 1000  # the walk itself works
    assert not undescribed


def test_arrays_have_shapes() -> None:
    assert not [item.name for item in public_items() if ARRAY.search(item.types) and not SHAPE.search(item.words)]


def test_values_say_whose_they_are() -> None:
    valued = [item for item in public_items() if VALUES.search(item.name.rpartition(".")[2])]
    assert len(valued) > 15
    assert not [item.name for item in valued if not PERSPECTIVE.search(item.words)]


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        ("class A:\n    '''A.'''\n    value: float\n", "A.value"),
        ("class A:\n    '''A.'''\n    value: float\n    '''For the player to move.'''\n", ""),
        ("class A:\n    '''A.\n\n    value: for the player to move\n    '''\n    value: float\n", ""),
        ("class A:\n    '''A.'''\n    def f(self): ...\n", "A.f"),
    ],
)
def test_what_is_not_described_is_seen(source: str, lacks: str) -> None:
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    assert "".join(item.name for item in members_of("A", definition) if not item.own_words) == lacks
