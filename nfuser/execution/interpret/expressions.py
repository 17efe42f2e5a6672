# SPDX-License-Identifier: Apache-2.0
"""Translate one expression of a kernel to NumPy source, with Numba's dtypes.

Infix arithmetic on integers is 64-bit, as in Numba; a dtype's constructor brings it
back. Operands of a primitive must agree in dtype, as on the device.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from nfuser.errors import InterpreterError
from nfuser.execution.interpret.formats import FORMATS
from nfuser.execution.interpret.primitives import (
    ANY,
    BOOL,
    ELEMENTWISE,
    FLOAT,
    INTEGER,
    UNSIGNED,
)

DTYPES = {name: name for name in INTEGER | FLOAT} | {"boolean": "bool"}
COORDINATES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
SHUFFLES = ("shuffle", "shuffle_down", "shuffle_xor")

_UFUNCS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("np.add", "+"),
    ast.Sub: ("np.subtract", "-"),
    ast.Mult: ("np.multiply", "*"),
    ast.FloorDiv: ("np.floor_divide", "//"),
    ast.Mod: ("np.remainder", "%"),
    ast.LShift: ("np.left_shift", "<<"),
    ast.RShift: ("np.right_shift", ">>"),
    ast.BitAnd: ("np.bitwise_and", "&"),
    ast.BitOr: ("np.bitwise_or", "|"),
    ast.BitXor: ("np.bitwise_xor", "^"),
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


@dataclass(frozen=True, slots=True)
class Term:
    """NumPy source of a value, its dtype, and whether it is a plain Python integer."""

    code: str
    kind: str
    static: bool = False


@dataclass(frozen=True, slots=True)
class PointerKind:
    """A parameter that points to elements of one dtype."""

    element: str


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """A local or shared array."""

    element: str


Kind: TypeAlias = str | PointerKind | ArrayKind  # a str is a number's dtype


@dataclass(slots=True)
class KnownNames:
    """What is known of names at one point of the kernel."""

    source: list[str]
    kinds: dict[str, Kind] = field(default_factory=dict[str, Kind])
    constants: dict[str, Term] = field(default_factory=dict[str, Term])
    static: set[str] = field(default_factory=set[str])  # counters of static loops
    defined: set[str] = field(default_factory=set[str])  # assigned on every way here
    checked: set[str] = field(
        default_factory=set[str]
    )  # assigned on some: check when run
    coordinates: set[str] = field(default_factory=set[str])
    mask: str = "None"

    def place(self, node: ast.expr | ast.stmt) -> str:
        """Return which threads are active at ``node``, and its line."""
        return f"{self.mask}, {node.lineno}"

    def here(self, node: ast.expr | ast.stmt) -> str:
        """Return what accesses of memory are told of ``node``."""
        return f"w.at({self.place(node)})"

    def refusal(self, node: ast.AST, reason: str) -> InterpreterError:
        """Return an error that shows the line of ``node``."""
        line = getattr(node, "lineno", 0)
        text = self.source[line - 1].strip() if 0 < line <= len(self.source) else ""
        return InterpreterError(f"line {line}: {text}\n  {reason}")


def expression(node: ast.expr, names: KnownNames) -> Term:
    """Return the NumPy source of ``node``."""
    match node:
        case ast.Constant(value=value):
            return _constant(node, value, names)
        case ast.Name(id=name):
            return _name(node, name, names)
        case ast.Attribute():
            return _coordinate(node, names)
        case ast.BinOp(left=left, op=operator, right=right):
            left, right = expression(left, names), expression(right, names)
            return _binary(node, operator, left, right, names)
        case ast.UnaryOp(op=operator, operand=operand):
            return _unary(node, operator, expression(operand, names), names)
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            left, right = expression(left, names), expression(right, names)
            return _compare(node, operator, left, right, names)
        case ast.Subscript(value=ast.Name(id=array), slice=index):
            return _element(node, array, index, names)
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            return _call(node, function, arguments, names)
        case _:
            raise names.refusal(
                node, f"{ast.unparse(node)} is outside the kernel language"
            )


def pointer(node: ast.expr, names: KnownNames) -> tuple[str, str]:
    """Return the source and the element dtype of a pointer argument."""
    kind = names.kinds.get(node.id) if isinstance(node, ast.Name) else None
    if not isinstance(kind, PointerKind):
        raise names.refusal(node, f"{ast.unparse(node)} is not a pointer")
    return f"v_{ast.unparse(node)}", kind.element


def integer(node: ast.expr, names: KnownNames) -> str:
    """Return the source of an index."""
    term = expression(node, names)
    if term.kind not in INTEGER:
        raise names.refusal(node, f"an index is an integer, not {term.kind}")
    return term.code


def access_suffix(name: str, prefix: str) -> str | None:
    """Return the format part of ``name`` if it is ``prefix`` and a format."""
    rest = name.removeprefix(prefix)
    return rest if name.startswith(prefix) and rest in FORMATS else None


def stored_kind(suffix: str, element: str, node: ast.AST, names: KnownNames) -> str:
    """Return the dtype of the values of a format, or refuse its storage."""
    storage, value = FORMATS[suffix]
    if storage is not None and storage != element:
        raise names.refusal(
            node, f"the pointer is to {element}, the format is over {storage}"
        )
    return value or element


def _constant(node: ast.expr, value: object, names: KnownNames) -> Term:
    if isinstance(value, bool):
        return Term(repr(value), "bool")
    if isinstance(value, int):
        return Term(repr(value), "int64", static=True)
    if isinstance(value, float):
        return Term(f"np.float64({_float(value)})", "float64")
    raise names.refusal(node, f"{value!r} is not a number")


def _float(value: float) -> str:
    return f"float({repr(value)!r})" if value - value != 0 else repr(value)


def _name(node: ast.expr, name: str, names: KnownNames) -> Term:
    kind = names.kinds.get(name)
    if kind is None and name in names.constants:
        return names.constants[name]
    if not isinstance(kind, str):
        reason = "is not assigned" if kind is None else "is not a number"
        raise names.refusal(node, f"{name} {reason}")
    if name in names.static:
        return Term(f"v_{name}", kind, static=True)
    if name in names.defined:
        return Term(f"v_{name}", kind)
    names.checked.add(name)
    line = node.lineno
    code = f"w.defined(v_{name}, d_{name}, {names.mask}, {line}, {name!r})"
    return Term(code, kind)


def _coordinate(node: ast.Attribute, names: KnownNames) -> Term:
    match node.value:
        case ast.Attribute(value=ast.Name(id="cuda"), attr=name) if (
            name in COORDINATES and node.attr in ("x", "y", "z")
        ):
            names.coordinates.add(f"{name}_{node.attr}")
            return Term(f"{name}_{node.attr}", "int32")
        case _:
            raise names.refusal(
                node, f"{ast.unparse(node)} is outside the kernel language"
            )


def _binary(
    node: ast.expr, operator: ast.operator, left: Term, right: Term, names: KnownNames
) -> Term:
    entry = _UFUNCS.get(type(operator))
    if entry is None:
        raise names.refusal(node, "this operator is outside the kernel language")
    function, symbol = entry
    kinds = {left.kind, right.kind}
    infix = f"({left.code} {symbol} {right.code})"
    if kinds <= INTEGER:
        kind = _integer_result(node, kinds, names)
        if left.static and right.static:
            return Term(infix, kind, static=True)
        return Term(f"{function}({left.code}, {right.code}, dtype=np.{kind})", kind)
    if kinds <= FLOAT and symbol in "+-*":
        return Term(infix, "float64" if "float64" in kinds else "float32")
    if kinds <= BOOL and symbol in "&|^":
        return Term(infix, "bool")
    raise names.refusal(node, f"{left.kind} {symbol} {right.kind} has no exact meaning")


def _integer_result(node: ast.expr, kinds: set[str], names: KnownNames) -> str:
    if kinds <= UNSIGNED:
        return "uint64"
    if "uint64" in kinds:
        raise names.refusal(node, "uint64 with a signed integer is a float64 in Numba")
    return "int64"


def _unary(
    node: ast.expr, operator: ast.unaryop, operand: Term, names: KnownNames
) -> Term:
    if isinstance(operator, ast.Not) and operand.kind in BOOL:
        return Term(f"np.logical_not({operand.code})", "bool")
    if isinstance(operator, ast.USub):
        if operand.static:
            return Term(f"(-{operand.code})", operand.kind, static=True)
        if operand.kind in FLOAT:
            return Term(f"(-{operand.code})", operand.kind)
        if operand.kind in INTEGER - UNSIGNED:
            return Term(f"np.negative({operand.code}, dtype=np.int64)", "int64")
    raise names.refusal(node, f"this operator does not take {operand.kind}")


def _compare(
    node: ast.expr, operator: ast.cmpop, left: Term, right: Term, names: KnownNames
) -> Term:
    symbol = _COMPARISONS.get(type(operator))
    kinds = {left.kind, right.kind}
    if symbol is None or not (kinds <= INTEGER or kinds <= FLOAT or kinds <= BOOL):
        raise names.refusal(node, f"{left.kind} and {right.kind} are not compared")
    return Term(f"({left.code} {symbol} {right.code})", "bool")


def _element(node: ast.expr, array: str, index: ast.expr, names: KnownNames) -> Term:
    kind = names.kinds.get(array)
    if not isinstance(kind, ArrayKind):
        raise names.refusal(node, f"{array} is not an array")
    where = f"{names.here(node)}, {integer(index, names)}"
    return Term(f"v_{array}.read({where})", kind.element)


def _call(
    node: ast.Call, function: str, arguments: list[ast.expr], names: KnownNames
) -> Term:
    if function in DTYPES:
        return _constructor(node, DTYPES[function], arguments, names)
    if function in ELEMENTWISE:
        return _elementwise(node, function, arguments, names)
    here = names.here(node)
    if function == "select" and len(arguments) == 3:
        return _select(node, [expression(a, names) for a in arguments], names)
    if function in SHUFFLES and len(arguments) == 2:
        value = expression(arguments[0], names)
        lane = integer(arguments[1], names)
        return Term(
            f"w.{function}({value.code}, {lane}, {names.place(node)})", value.kind
        )
    if function == "ticket" and len(arguments) == 2:
        source, element = pointer(arguments[0], names)
        stored_counter(element, node, names)
        index = integer(arguments[1], names)
        return Term(f"{source}.ticket({here}, {index})", "int32")
    if function == "receive" and len(arguments) == 3:
        return _receive(node, arguments, names)
    if function == "cluster_receive" and len(arguments) == 4:
        kind = expression(arguments[2], names).kind
        return Term(f"w.cluster.receive({here}, {sent(node, names)})", kind)
    suffix = access_suffix(function, "load")
    volatile = function == "load_volatile"
    if (suffix is not None or volatile) and len(arguments) == 2:
        source, element = pointer(arguments[0], names)
        kind = stored_kind(suffix or "", element, node, names)
        index = integer(arguments[1], names)
        call = f"{source}.load({here}, {index}, {suffix or ''!r}, {volatile})"
        return Term(call, kind)
    raise names.refusal(
        node, f"{function} is not a primitive of {len(arguments)} arguments"
    )


def _receive(node: ast.Call, arguments: list[ast.expr], names: KnownNames) -> Term:
    source, element = pointer(arguments[0], names)
    stored_box(element, node, names)
    kind = expression(arguments[2], names).kind
    index = integer(arguments[1], names)
    return Term(f"{source}.receive({names.here(node)}, {index}, {kind!r})", kind)


def sent(node: ast.Call, names: KnownNames) -> str:
    """Return how to find what ``node`` receives of a block of the cluster."""
    boxes, index, like, turn = node.args
    array = ast.unparse(boxes)
    kind = names.kinds.get(array)
    if not isinstance(kind, ArrayKind):
        raise names.refusal(node, f"{array} is not an array")
    stored_box(kind.element, node, names)
    where = f"v_{array}.name, {integer(index, names)}"
    return f"{where}, {expression(like, names).kind!r}, {integer(turn, names)}"


def stored_box(element: str, node: ast.AST, names: KnownNames) -> None:
    """Refuse a box that is not a uint64."""
    if element != "uint64":
        raise names.refusal(node, f"a box is a uint64, not a {element}")


def stored_counter(element: str, node: ast.AST, names: KnownNames) -> None:
    """Refuse a counter that is not a uint32."""
    if element != "uint32":
        raise names.refusal(node, f"a counter is a uint32, not a {element}")


def _constructor(
    node: ast.Call, kind: str, arguments: list[ast.expr], names: KnownNames
) -> Term:
    if len(arguments) != 1:
        raise names.refusal(node, f"{kind} takes one argument")
    if (literal := _literal(arguments[0])) is not None and _fits(literal, kind):
        return Term(f"np.{kind}({_float(literal)})", kind)
    term = expression(arguments[0], names)
    if kind in INTEGER and term.kind in INTEGER:
        if term.kind == kind and not term.static:
            return term
        place = names.place(node)
        return Term(f"w.integer({term.code}, {kind!r}, {place})", kind)
    if kind == "bool":
        return Term(f"p_to_bool({term.code})", kind)
    if term.static:
        return Term(f"np.{kind}({term.code})", kind)
    return Term(f"np.asarray({term.code}).astype(np.{kind})[()]", kind)


def _literal(node: ast.expr) -> float | None:
    """Return the number that ``node`` spells, if it does."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(value))):
            return -value
        case _:
            return None


def _fits(value: float, kind: str) -> bool:
    if kind in FLOAT or kind == "bool":
        return True
    limits = np.iinfo(kind)
    return isinstance(value, int) and limits.min <= value <= limits.max


def _elementwise(
    node: ast.Call, function: str, arguments: list[ast.expr], names: KnownNames
) -> Term:
    rule = ELEMENTWISE[function]
    if len(arguments) != rule.arity:
        raise names.refusal(node, f"{function} takes {rule.arity} arguments")
    terms = [expression(argument, names) for argument in arguments]
    kinds = {term.kind for term in terms}
    agree = len(kinds) == 1
    if function == "fast_divide":  # its prepared factor uses all 32 bits
        agree = terms[0].kind == "int32"
    if not agree or not kinds <= rule.takes:
        given = ", ".join(term.kind for term in terms)
        raise names.refusal(node, f"{function} does not take ({given})")
    code = ", ".join(term.code for term in terms)
    return Term(f"p_{function}({code})", rule.gives or terms[0].kind)


def _select(node: ast.Call, terms: list[Term], names: KnownNames) -> Term:
    condition, one, other = terms
    if condition.kind not in BOOL or one.kind != other.kind or one.kind not in ANY:
        given = ", ".join(term.kind for term in terms)
        raise names.refusal(node, f"select does not take ({given})")
    code = f"np.where({condition.code}, {one.code}, {other.code})[()]"
    return Term(code, one.kind)
