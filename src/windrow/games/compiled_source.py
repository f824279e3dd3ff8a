"""The methods of an object as functions without `self`, and a digest of all they depend on.

    def apply(self, state, action):               def apply(state, action):
        state.stones |= self.cells[action]   ->       state.stones |= `self.cells`[action]
        self._end_turn(state)                         `self._end_turn`(state)

`self.cells` becomes a global variable of that very name, dot included, which no other variable can have. Its value is
what the object has there now: a number, a tuple or an array, or another method made a function in the same way. Files
and line numbers stay those of the class, so that errors point to what its author wrote.
"""

from __future__ import annotations

import ast
import builtins
import dis
import hashlib
import linecache
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from windrow.errors import GameError

_KNOWN_PACKAGES = {"numpy", "numba", *sys.stdlib_module_names}
"""What these bring along is numba's business, and changes only with their versions."""
_MUTABLE = (list, dict, set, bytearray)


class FrozenMethods:
    """The methods of `rules`, each made a function and handed to `jit` when it is first asked for.

    Args:
        rules: the object; what its methods use of it must not change any more.
        jit: what makes a function a compiled one. Functions that a method calls, of the object or of its module, are
            handed to it too.
    """

    def __init__(self, rules: object, jit: Callable[[FunctionType], Any]) -> None:
        self._rules = rules
        self._label = type(rules).__name__
        self._jit = jit
        self._made: dict[object, Any] = {}
        self._described: set[object] = set()
        self._digest = hashlib.sha256()

    def method(self, name: str) -> Any:
        """The method `name` of the object, by `jit`.

        Raises:
            GameError: its source cannot be found, or uses `self` in a way that cannot be compiled.
        """
        return self._attribute(name, "")

    def digest(self, *more: object) -> str:
        """Names the methods asked for so far: their code, what they call, every value they use; and `more`."""
        digest = self._digest.copy()
        digest.update(repr(more).encode())
        return digest.hexdigest()[:24]

    def _attribute(self, name: str, user: str) -> Any:
        """What a method sees as `self.name`; `user` says who asks, for errors."""
        key = f"self.{name}"
        if key in self._made:
            return self._made[key]
        try:
            value: Any = getattr(self._rules, name)
        except AttributeError:
            raise GameError(
                f"{user} uses {key}, which {self._label} does not have: define it in the class or in __init__"
            ) from None
        if isinstance(value, MethodType):
            function: Any = value.__func__
            return self._compile(key, getattr(function, "py_func", function), is_method=True)
        self._note("is", key)
        self._made[key] = self._freeze(value, f"{user} uses {key}, which")
        return self._made[key]

    def _compile(self, key: object, function: FunctionType, *, is_method: bool = False) -> Any:
        if key in self._made:
            return self._made[key]
        code, closure = (without_self(function), None) if is_method else (function.__code__, function.__closure__)
        variables: dict[str, Any] = dict(function.__globals__)
        if is_method:
            variables |= _enclosed(function)
        variables["__name__"] = __name__  # numba keeps code on disk only for modules that can be imported
        made = FunctionType(code, variables, function.__name__, function.__defaults__, closure)
        made.__qualname__ = function.__qualname__
        made.__kwdefaults__ = function.__kwdefaults__
        # Before what it uses is looked at: that may be the function itself.
        self._made[key] = compiled = self._jit(made)
        self._note("code", function.__name__, code_words(code))
        self._describe(function.__defaults__)
        if not is_method:
            self._describe(tuple(_enclosed(function).values()))
        for name, line in _global_names(code).items():
            user = title(function, line)
            if name.startswith("self."):
                variables[name] = self._attribute(name.removeprefix("self."), user)
            elif name not in variables:
                if not hasattr(builtins, name):
                    raise GameError(f"{user} uses {name}, which is not defined")
            else:
                self._note("is", name)
                variables[name] = self._freeze(variables[name], f"{user} uses {name}, which", code.co_names)
        return compiled

    def _freeze(self, value: Any, label: str, attributes: tuple[str, ...] = ()) -> Any:
        """The value as compiled code takes it."""
        if isinstance(value, _MUTABLE):
            raise GameError(
                f"{label} is a {type(cast('object', value)).__name__}; compiled methods can use numbers, strings, "
                "tuples and NumPy arrays"
            )
        if isinstance(value, FunctionType) and _package_of(value) not in _KNOWN_PACKAGES:
            return self._compile(value, value)
        if isinstance(value, ModuleType):
            # Which of its attributes are used, the code tells only by their names.
            self._describe(value)
            if value.__name__.partition(".")[0] not in _KNOWN_PACKAGES:
                for name in attributes:
                    self._describe(getattr(value, name, None))
            return value
        self._describe(value)
        return np.ascontiguousarray(cast("Any", value)) if isinstance(value, np.ndarray) else cast("Any", value)

    def _describe(self, value: Any) -> None:
        """Note a value in the digest."""
        function: Any = getattr(value, "py_func", value)  # compiled by numba
        if isinstance(value, np.ndarray | np.generic):
            array = cast("np.ndarray[Any, Any]", value)
            self._note(str(array.dtype), array.shape, array.tobytes())
        elif isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            self._note(type(items).__qualname__, len(items))
            for item in items:
                self._describe(item)
        elif isinstance(value, bool | int | float | complex | str | bytes | np.dtype) or value is None:
            self._note(type(cast("object", value)).__qualname__, repr(cast("object", value)))
        elif isinstance(value, ModuleType):
            self._note(value.__name__)
        elif isinstance(function, FunctionType) and _package_of(function) not in _KNOWN_PACKAGES:
            self._describe_function(function)
        elif isinstance(getattr(value, "__qualname__", None), str):  # a class, or a function that is not Python's
            self._note(getattr(value, "__module__", ""), value.__qualname__)
        else:
            try:
                self._note(type(value).__qualname__, pickle.dumps(value, protocol=4))
            except Exception:  # whatever a class may raise; such a value is equal to nothing but itself
                self._note(type(value).__qualname__, id(value))

    def _describe_function(self, function: FunctionType) -> None:
        if function in self._described:
            return
        self._described.add(function)
        self._note("code", function.__name__, code_words(function.__code__))
        self._describe(function.__defaults__)
        self._describe(tuple(_enclosed(function).values()))
        for name in _global_names(function.__code__):
            if name in function.__globals__:
                self._note("is", name)
                self._describe(function.__globals__[name])

    def _note(self, *words: object) -> None:
        self._digest.update(repr(words).encode())


@cache
def without_self(function: FunctionType) -> CodeType:
    """The code of a method with `self` taken out of its parameters, and every `self.name` a global variable.

    Raises:
        GameError: there is no source, or it changes `self` or hands it on.
    """
    node = _find_source(function)
    parameters = [*node.args.posonlyargs, *node.args.args]
    if not parameters:
        raise GameError(f"{title(function, node.lineno)} has no parameter self")
    (node.args.posonlyargs or node.args.args).pop(0)
    changed = ast.fix_missing_locations(_TakeSelf(function, parameters[0].arg).visit(node))
    # What stands in the head of the function is evaluated where the class is defined, not here.
    changed.args.defaults = [ast.Constant(None, lineno=node.lineno, col_offset=0) for _ in node.args.defaults]
    changed.args.kw_defaults = [None for _ in node.args.kw_defaults]
    changed.decorator_list, changed.returns = [], None
    for argument in ast.walk(changed.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    module = ast.fix_missing_locations(ast.Module([changed], []))
    space: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec", dont_inherit=True), space)
    return cast("FunctionType", space[node.name]).__code__


class _TakeSelf(ast.NodeTransformer):
    def __init__(self, function: FunctionType, name: str) -> None:
        self._function = function
        self._name = name
        self._owner = function.__qualname__.split(".")[-2].lstrip("_") if "." in function.__qualname__ else ""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.value, ast.Name) or node.value.id != self._name:
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            raise GameError(
                f"{title(self._function, node.lineno)} changes self.{node.attr}: what self has stays as it was when "
                "the game was made. What changes from position to position belongs into the state"
            )
        is_private = node.attr.startswith("__") and not node.attr.endswith("__")
        name = f"_{self._owner}{node.attr}" if is_private else node.attr
        return ast.copy_location(ast.Name(f"self.{name}", ast.Load()), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == self._name:
            raise GameError(
                f"{title(self._function, node.lineno)} uses self as such; compiled methods can only use self.something"
            )
        if node.id in ("super", "__class__"):
            raise GameError(
                f"{title(self._function, node.lineno)} uses {node.id}, which cannot be compiled; call self.something"
            )
        return node


def _find_source(function: FunctionType) -> ast.FunctionDef:
    """A new tree of the function's definition, with the line numbers of its file."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    try:
        nodes = ast.walk(ast.parse(text))
    except SyntaxError:
        nodes = iter(())
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    reason = "is not what was loaded" if text else "cannot be found"
    raise GameError(
        f"{title(function, code.co_firstlineno)} cannot be compiled: its source {reason}. A compiled game is a class "
        "in a file or a notebook, with methods written with def"
    )


def title(function: FunctionType, line: int) -> str:
    """A function and a line of its file, for errors."""
    name = function.__qualname__.rpartition("<locals>.")[2]
    return f"{name} ({function.__code__.co_filename}:{line})"


def _enclosed(function: FunctionType) -> dict[str, Any]:
    """The variables of enclosing functions, with what they hold now."""
    variables: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            variables[name] = cell.cell_contents
    return variables


def _codes(code: CodeType) -> list[CodeType]:
    """The code and that of the functions and comprehensions inside it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return [code, *(nested for each in inner for nested in _codes(each))]


def _global_names(code: CodeType) -> dict[str, int]:
    """The global variables that code reads, and the line of the first use."""
    names: dict[str, int] = {}
    for part in _codes(code):
        lines = {start: line for start, _, line in part.co_lines()}
        line = part.co_firstlineno
        for instruction in dis.get_instructions(part):
            line = lines.get(instruction.offset) or line
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.setdefault(instruction.argval, line)
    return names


def code_words(code: CodeType) -> tuple[object, ...]:
    """All that decides what code does: not its file, its lines and its addresses."""
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, [_constant_words(c) for c in code.co_consts]


def _constant_words(constant: object) -> object:
    if isinstance(constant, frozenset):  # a set in the source; its order changes from process to process
        return sorted(repr(item) for item in cast("frozenset[object]", constant))
    return code_words(constant) if isinstance(constant, CodeType) else repr(constant)


def _package_of(function: FunctionType) -> str:
    return (function.__module__ or "").partition(".")[0]
