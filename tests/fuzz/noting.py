# SPDX-License-Identifier: Apache-2.0
"""Modules of nfuser whose conditions note which way they go: what ``conditions`` reads.

Of ``a and b and c`` an operand that was false while those before it were true has
decided alone; all have where all were true. One that never was so could be left out.
"""

from __future__ import annotations

import ast
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

HOME = Path(__file__).parents[2]
FLAGS = bytearray(1 << 18)
SITES: list[str] = []
WITHIN: list[int] = []  # of each site that of the function that it is in, or -1
_NOTES = """
def __true__(site, value):  # which way a condition went
    if value:
        __flags__[site] = 1
        return True
    __flags__[site + 1] = 1
    return False

def __kept__(site, value):  # of what may be more than a condition
    __flags__[site + (isinstance(value, __plain__) and not value)] = 1
    return value

def __equal__(site, one, other):  # that sides of a comparison were; holds always
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        __flags__[site] |= one == other
    return True
"""


def _notes() -> dict[str, Any]:
    """Return what conditions call: of nfuser's own, as traces read users' functions."""
    plain = (bool, int, float, str, tuple, list, dict, set, frozenset, type(None))
    names: dict[str, Any] = {"__flags__": FLAGS, "__plain__": plain}
    exec(compile(_NOTES, str(HOME / "nfuser" / "notes.py"), "exec"), names)  # noqa: S102
    return {name: x for name, x in names.items() if name != "__builtins__"}


class _Noting(ast.NodeTransformer):
    """Conditions note which way they go, and blocks that they have run."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source, self._function = name, source, -1

    def _site(self, node: ast.AST, *ways: str) -> ast.Constant:
        text = ast.get_source_segment(self._source, node) or ""
        text = " ".join(text.split())[:90]
        where = f"{self._name}:{getattr(node, 'lineno', 0):>4} {text}"
        SITES.extend(f"{where} | {way}" for way in ways)
        WITHIN.extend([self._function] * len(ways))
        return ast.Constant(len(SITES) - len(ways))

    def _noted(
        self, node: ast.expr, *ways: str, by: str = "__true__", old: Any = None
    ) -> ast.expr:
        site = self._site(old or node, *ways)
        call = ast.Call(ast.Name(by, ast.Load()), [site, node], [])
        return ast.copy_location(call, old or node)

    def condition(self, node: ast.expr, by: str = "__true__") -> ast.expr:
        """Return an operand that notes which way it went."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self.condition(node.operand)
            return node
        if isinstance(node, ast.BoolOp):
            return self._chain(node, by)
        return self._noted(
            self.visit(node), "never true", "never false", by=by, old=node
        )

    def _chain(self, node: ast.BoolOp, by: str) -> ast.expr:
        """Return operands of which each notes that it alone has decided."""
        is_and = isinstance(node.op, ast.And)
        decides = ("", "never false") if is_and else ("never true", "")
        values: list[ast.expr] = []
        for k, value in enumerate(node.values):
            own = by if k == len(node.values) - 1 else "__true__"
            own = "__kept__" if by == "__kept__" else own
            if isinstance(value, ast.BoolOp):
                made = self._chain(value, own)
            elif isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
                ways = ("never false", "") if is_and else ("", "never true")
                value.operand = self._noted(self._inner(value.operand), *ways)
                made = value
            else:
                made = self._noted(self.visit(value), *decides, by=own, old=value)
            values.append(made)
        whole = ("all: never true", "") if is_and else ("", "all: never false")
        node.values = values
        return self._noted(node, *whole, by=by)

    def _inner(self, node: ast.expr) -> ast.expr:
        return (
            self.condition(node) if isinstance(node, ast.BoolOp) else self.visit(node)
        )

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """A value of several: it may be no condition."""
        return self._chain(node, "__kept__")

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Note that both sides were equal, where they can be asked for twice."""
        sides = [node.left, *node.comparators]
        found: list[ast.expr] = []
        for k, op in enumerate(node.ops):
            one, other = sides[k], sides[k + 1]
            if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and all(
                _is_plain(x) for x in (one, other)
            ):
                site = self._site(node, "never equal")
                name = ast.Name("__equal__", ast.Load())
                found.append(ast.Call(name, [site, one, other], []))
        self.generic_visit(node)
        if not found:
            return node
        both = ast.BoolOp(ast.And(), [*found, node])
        return ast.copy_location(both, node)

    def _tested(self, node: Any) -> Any:
        node.test = self.condition(node.test)
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse") and isinstance(node, ast.stmt):
                setattr(node, name, self._many(value))
            elif name != "test" and isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def _many(self, nodes: list[Any]) -> list[Any]:
        return [self.visit(x) for x in nodes]

    def visit_If(self, node: ast.If) -> Any:
        """Its condition, and what it holds."""
        return self._tested(node)

    def visit_While(self, node: ast.While) -> Any:
        """Its condition, and what it holds."""
        return self._tested(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Its condition, and what it holds."""
        return self._tested(node)

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """What must hold is no condition."""
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Each of its conditions."""
        node.iter = self.visit(node.iter)
        node.ifs = [self.condition(x) for x in node.ifs]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """What all or any of some must be."""
        few = node.args[:1]
        is_fold = isinstance(node.func, ast.Name) and node.func.id in ("any", "all")
        if is_fold and few and isinstance(few[0], ast.GeneratorExp):
            made = few[0]
            made.elt = self.condition(made.elt, "__kept__")
            made.generators = self._many(made.generators)
            return node
        return self.generic_visit(node)  # pyright: ignore[reportReturnType]

    def visit_Return(self, node: ast.Return) -> ast.Return:
        """What a function tells that asks one thing."""
        if isinstance(node.value, ast.Compare | ast.UnaryOp):
            node.value = self.condition(node.value, "__kept__")
        elif node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Note that it was called."""
        around, begun = self._function, self._begun(node, f"def {node.name}")
        self._function = len(SITES) - 1
        node.body = [*begun, *self._many(node.body)]
        self._function = around
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        """Note that it was met."""
        if node.guard is not None:
            node.guard = self.condition(node.guard)
        node.body = [*self._begun(node.pattern, ""), *self._many(node.body)]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        """Note that it was met."""
        node.body = [*self._begun(node, "except"), *self._many(node.body)]
        return node

    def _begun(self, node: ast.AST, name: str) -> list[ast.stmt]:
        site = self._site(node, "never run")
        if name:
            where = f"{self._name}:{getattr(node, 'lineno', 0):>4}"
            SITES[-1] = f"{where} {name} | never run"
        flag = ast.Subscript(ast.Name("__flags__", ast.Load()), site, ast.Store())
        return [ast.copy_location(ast.Assign([flag], ast.Constant(1)), node)]


def _is_plain(node: ast.expr) -> bool:
    """Tell whether it costs nothing, and changes nothing, to ask once more."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("len", "abs")
    if isinstance(node, ast.Name | ast.Constant):
        return True
    if isinstance(node, ast.BinOp | ast.Subscript | ast.Attribute | ast.UnaryOp):
        parts = ast.iter_child_nodes(node)
        return all(_is_plain(x) for x in parts if isinstance(x, ast.expr))
    return False


class _Loader(SourceFileLoader):
    """Loads a module whose conditions note."""

    names: ClassVar[dict[str, Any]] = _notes()

    def get_code(self, fullname: str) -> Any:
        """Compile it each time, and keep that nowhere."""
        source = Path(self.path).read_text(encoding="utf-8")
        name = str(Path(self.path).relative_to(HOME / "nfuser"))
        tree = ast.parse(source)
        noting = _Noting(name, source)
        tree.body = [
            noting.visit(x) if isinstance(x, ast.FunctionDef | ast.ClassDef) else x
            for x in tree.body
        ]
        return compile(ast.fix_missing_locations(tree), self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        """Give it what its conditions call."""
        vars(module).update(self.names)
        super().exec_module(module)


class Finder(MetaPathFinder):
    """Finds the modules in some folders, whose conditions note."""

    def __init__(self, rooms: Sequence[str]) -> None:
        self._rooms = [str(HOME / "nfuser" / room) for room in rooms]

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Find the modules in some folders, or of some files."""
        if not name.startswith("nfuser."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        origin = spec.origin if spec is not None else None
        if spec is None or origin is None:
            return None
        if any(origin == x or origin.startswith(f"{x}/") for x in self._rooms):
            spec.loader = _Loader(name, origin)
            return spec
        return None
