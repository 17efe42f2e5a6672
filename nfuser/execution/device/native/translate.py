# SPDX-License-Identifier: Apache-2.0
"""From native source, a small part of Python, to the text of an LLVM module.

A value is an integer of 64 bits. There are assignments to names, ``if``, ``while``,
``return``, arithmetic that wraps, comparisons, ``and``, ``or`` and ``not`` of truths,
calls of other native functions, of C functions by name, and of addresses. Names that
``constants`` holds are numbers; ``space(n)`` is memory of n words in the frame.
"""

from __future__ import annotations

import ast
import inspect
import operator
import sys
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Signature: TypeAlias = "tuple[str, tuple[str, ...]]"

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "ashr",
}
_FOLDED = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
}


def translate(
    functions: Sequence[Callable[..., int]],
    *,
    c_functions: Mapping[str, Signature],
    by_address: Mapping[str, Signature],
    constants: Mapping[str, int],
) -> str:
    """Return a module with ``functions``, which may call one another.

    ``c_functions`` are found by their names when the module is loaded; a word of
    ``by_address`` calls its first argument. Signatures are (result, parameters) in
    LLVM's types, of integers.
    """
    own = {f.__name__ for f in functions}
    known = _Known(own, dict(c_functions), dict(by_address), dict(constants))
    lines = [
        f"declare {result} @{name}({', '.join(parameters)})"
        for name, (result, parameters) in c_functions.items()
    ]
    for function in functions:
        lines += _Function(known, function).lines()
    return "\n".join(lines) + "\n"


class _Known:
    def __init__(
        self,
        own: set[str],
        c_functions: Mapping[str, Signature],
        by_address: Mapping[str, Signature],
        constants: Mapping[str, int],
    ) -> None:
        self.own = own
        self.c_functions = c_functions
        self.by_address = by_address
        self.constants = constants
        self._modules: dict[str, dict[str, ast.FunctionDef]] = {}

    def definition(self, function: Callable[..., int]) -> ast.FunctionDef:
        """Return the tree of a function; a module is read once."""
        name = function.__module__
        if name not in self._modules:
            body = ast.parse(inspect.getsource(sys.modules[name])).body
            found = (s for s in body if isinstance(s, ast.FunctionDef))
            self._modules[name] = {s.name: s for s in found}
        return self._modules[name][function.__name__]


class _Function:
    """One function on its way: a variable is memory, which LLVM then removes."""

    def __init__(self, known: _Known, function: Callable[..., int]) -> None:
        self._known = known
        self._definition = known.definition(function)
        self._body: list[str] = []
        self._frame: list[str] = []
        self._variables: set[str] = set()
        self._numbers = count()
        self._is_open = True

    def lines(self) -> list[str]:
        definition = self._definition
        names = [a.arg for a in definition.args.args]
        for name in names:
            self._variable(name)
            self._put(f"store i64 %a.{name}, ptr %v.{name}")
        self._block(definition.body)
        if self._is_open:
            self._put("ret i64 0")
        parameters = ", ".join(f"i64 %a.{name}" for name in names)
        is_public = not definition.name.startswith("_")
        linkage = "" if is_public else "internal "
        head = f"define {linkage}i64 @{definition.name}({parameters}) {{"
        return [head, "entry:", *self._frame, *self._body, "}"]

    # -- statements ----------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for stmt in body:
            self._statement(stmt)

    def _statement(self, stmt: ast.stmt) -> None:
        match stmt:
            case ast.Assign([ast.Name(name)], value):
                self._set(name, self._value(value))
            case ast.AugAssign(ast.Name(name), op, value):
                left = self._value(ast.Name(name, ast.Load()))
                right = self._value(value)
                self._set(name, self._new(f"{_BINARY[type(op)]} i64 {left}, {right}"))
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                self._value(value)
            case ast.Return(value):
                assert value is not None
                self._put(f"ret i64 {self._value(value)}")
                self._is_open = False
            case ast.If(test, body, other):
                self._if(test, body, other)
            case ast.While(test, body, []):
                self._while(test, body)
            case _:
                raise NotImplementedError(ast.unparse(stmt))

    def _if(
        self, test: ast.expr, body: Sequence[ast.stmt], other: Sequence[ast.stmt]
    ) -> None:
        then, otherwise, end = self._labels("then", "else", "end")
        self._branch(test, then, otherwise)
        for label, part in ((then, body), (otherwise, other)):
            self._begin(label)
            self._block(part)
            self._jump(end)
        self._begin(end)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        again, loop, done = self._labels("again", "loop", "done")
        self._jump(again)
        self._begin(again)
        self._branch(test, loop, done)
        self._begin(loop)
        self._block(body)
        self._jump(again)
        self._begin(done)

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Go to ``yes`` if ``test`` holds, else to ``no``; what is known is skipped."""
        match test:
            case ast.BoolOp(op, values):
                is_and = isinstance(op, ast.And)
                for part in values[:-1]:
                    (further,) = self._labels("further")
                    if is_and:
                        self._branch(part, further, no)
                    else:
                        self._branch(part, yes, further)
                    self._begin(further)
                self._branch(values[-1], yes, no)
            case ast.UnaryOp(ast.Not(), operand):
                self._branch(operand, no, yes)
            case ast.Compare(left, [ast.In()], [ast.Tuple(found)]):
                equal: list[ast.expr] = [
                    ast.Compare(left, [ast.Eq()], [one]) for one in found
                ]
                self._branch(ast.BoolOp(ast.Or(), equal), yes, no)
            case _:
                truth = self._new(f"icmp ne i64 {self._value(test)}, 0")
                self._put(f"br i1 {truth}, label %{yes}, label %{no}")
                self._is_open = False

    # -- expressions ---------------------------------------------------------

    def _value(self, expr: ast.expr) -> str:
        match expr:
            case ast.Constant(int() as number):
                return str(int(number))
            case ast.Name(name) if name in self._known.constants:
                return str(self._known.constants[name])
            case ast.Name(name):
                if name not in self._variables:
                    raise NameError(name)
                return self._new(f"load i64, ptr %v.{name}")
            case ast.UnaryOp(ast.USub(), ast.Constant(int() as number)):
                return str(-int(number))
            case ast.UnaryOp(ast.Not(), operand):
                truth = self._new(f"icmp eq i64 {self._value(operand)}, 0")
                return self._new(f"zext i1 {truth} to i64")
            case ast.BinOp(left, op, right):
                return self._binary(_BINARY[type(op)], left, right)
            case ast.Compare(left, [op], [right]):
                operands = f"{self._value(left)}, {self._value(right)}"
                truth = self._new(f"icmp {_COMPARE[type(op)]} i64 {operands}")
                return self._new(f"zext i1 {truth} to i64")
            case ast.Call(ast.Name(name), arguments, []):
                return self._call(name, arguments)
            case _:
                raise NotImplementedError(ast.unparse(expr))

    def _binary(self, name: str, left: ast.expr, right: ast.expr) -> str:
        one, other = self._value(left), self._value(right)
        if name in _FOLDED and one.isdecimal() and other.isdecimal():
            return str(_FOLDED[name](int(one), int(other)))
        return self._new(f"{name} i64 {one}, {other}")

    def _call(self, name: str, arguments: Sequence[ast.expr]) -> str:
        if name == "space":
            return self._space(arguments)
        if name == "table":
            return self._new("ptrtoint ptr @table to i64")
        values = [self._value(a) for a in arguments]
        known = self._known
        if name in known.own:
            given = ", ".join(f"i64 {v}" for v in values)
            return self._new(f"call i64 @{name}({given})")
        if name in known.c_functions:
            return self._foreign(f"@{name}", known.c_functions[name], values)
        if name in known.by_address:
            target = self._pointer(values[0])
            return self._foreign(target, known.by_address[name], values[1:])
        return getattr(self, f"_word_{name}")(*values)

    def _foreign(self, target: str, signature: Signature, values: list[str]) -> str:
        result, parameters = signature
        given: list[str] = []
        for kind, value in zip(parameters, values, strict=True):
            if kind == "double":
                value = self._new(f"bitcast i64 {value} to double")
            elif kind != "i64":
                value = self._new(f"trunc i64 {value} to {kind}")
            given.append(f"{kind} {value}")
        call = f"call {result} {target}({', '.join(given)})"
        if result == "void":
            self._put(call)
            return "0"
        found = self._new(call)
        if result == "i64":
            return found
        change = "bitcast" if result == "double" else "sext"
        return self._new(f"{change} {result} {found} to i64")

    def _space(self, arguments: Sequence[ast.expr]) -> str:
        (size,) = arguments
        name = f"%m.{next(self._numbers)}"
        self._frame.append(f"  {name} = alloca [{self._value(size)} x i64], align 16")
        return self._new(f"ptrtoint ptr {name} to i64")

    def _word_word(self, address: str) -> str:
        return self._new(f"load i64, ptr {self._pointer(address)}, align 8")

    def _word_word32(self, address: str) -> str:
        found = self._new(f"load i32, ptr {self._pointer(address)}, align 4")
        return self._new(f"sext i32 {found} to i64")

    def _word_store(self, address: str, value: str) -> str:
        self._put(f"store i64 {value}, ptr {self._pointer(address)}, align 8")
        return "0"

    def _word_add_atomically(self, address: str, value: str) -> str:
        pointer = self._pointer(address)
        return self._new(f"atomicrmw add ptr {pointer}, i64 {value} seq_cst")

    def _word_look(self, address: str) -> str:
        pointer = self._pointer(address)
        return self._new(f"load atomic i64, ptr {pointer} acquire, align 8")

    def _word_single(self, bits: str) -> str:
        value = self._new(f"bitcast i64 {bits} to double")
        rounded = self._new(f"fptrunc double {value} to float")
        pattern = self._new(f"bitcast float {rounded} to i32")
        return self._new(f"zext i32 {pattern} to i64")

    def _word_double(self, number: str) -> str:
        value = self._new(f"sitofp i64 {number} to double")
        return self._new(f"bitcast double {value} to i64")

    def _word_quotient(self, left: str, right: str) -> str:
        return self._new(f"sdiv i64 {left}, {right}")

    def _word_high_product(self, left: str, right: str) -> str:
        wide = [self._new(f"sext i64 {x} to i128") for x in (left, right)]
        whole = self._new(f"mul i128 {wide[0]}, {wide[1]}")
        high = self._new(f"ashr i128 {whole}, 64")
        return self._new(f"trunc i128 {high} to i64")

    def _word_add_floats(self, left: str, right: str) -> str:
        return self._of_floats("fadd", left, right)

    def _word_subtract_floats(self, left: str, right: str) -> str:
        return self._of_floats("fsub", left, right)

    def _word_multiply_floats(self, left: str, right: str) -> str:
        return self._of_floats("fmul", left, right)

    def _word_divide_floats(self, left: str, right: str) -> str:
        return self._of_floats("fdiv", left, right)

    def _of_floats(self, name: str, left: str, right: str) -> str:
        given = [self._new(f"bitcast i64 {x} to double") for x in (left, right)]
        found = self._new(f"{name} double {given[0]}, {given[1]}")
        return self._new(f"bitcast double {found} to i64")

    # -- text ----------------------------------------------------------------

    def _pointer(self, address: str) -> str:
        return self._new(f"inttoptr i64 {address} to ptr")

    def _set(self, name: str, value: str) -> None:
        self._variable(name)
        self._put(f"store i64 {value}, ptr %v.{name}")

    def _variable(self, name: str) -> None:
        if name not in self._variables:
            self._variables.add(name)
            self._frame.append(f"  %v.{name} = alloca i64")

    def _new(self, operation: str) -> str:
        name = f"%t.{next(self._numbers)}"
        self._put(f"{name} = {operation}")
        return name

    def _labels(self, *names: str) -> list[str]:
        number = next(self._numbers)
        return [f"{name}.{number}" for name in names]

    def _begin(self, label: str) -> None:
        self._body.append(f"{label}:")
        self._is_open = True

    def _jump(self, label: str) -> None:
        if self._is_open:
            self._put(f"br label %{label}")

    def _put(self, line: str) -> None:
        if not self._is_open:  # unreachable, but LLVM wants it in a block
            self._begin(self._labels("never")[0])
        self._body.append(f"  {line}")
