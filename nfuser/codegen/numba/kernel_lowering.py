# SPDX-License-Identifier: Apache-2.0
"""From the source of a CPU kernel to LLVM's language, in one walk over its syntax.

Numba reads a function's bytecode, follows its variables, types its statements until
nothing changes any more, and lowers them then. In a kernel as it is printed, each
statement says what it needs: it is typed and lowered where it stands. What a call or an
operator means is asked of Numba all the same, once for the types of its operands.
"""

# Numba and llvmlite carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ast
import operator
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.funcdesc import FunctionDescriptor
from numba.core.target_extension import target_override

from nfuser.codegen.numba.kernel_target import NAME, contexts_of_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MOST = 10_000  # kinds of calls: numbers that a source spells out are among the types
_NUMBER = ir.IntType(64)
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_known: dict[Any, tuple[Any, Any]] = {}  # calls and operators with their lowering


class NotPrintedError(Exception):
    """Something that no printed kernel says; Numba may know what it means."""


class LoweredKernel(NamedTuple):
    """What ``library.optimize`` goes on from, and the name of the function in it."""

    library: Any
    name: str


class _Value(NamedTuple):
    """A value of one of Numba's types, or a number that the source spells out."""

    kind: Any
    ir: Any
    is_spelled: bool = False


def lower_source(text: str, entry: str, arguments: tuple[Any, ...]) -> LoweredKernel:
    """Lower the function ``entry`` of a module that imports what it names."""
    objects: dict[str, Any] = {}
    found: ast.FunctionDef | None = None
    for statement in ast.parse(text).body:
        match statement:
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    made = getattr(import_module(module), alias.name)
                    objects[alias.asname or alias.name] = made
            case ast.FunctionDef(name=name) if name == entry and found is None:
                found = statement
            case _:
                raise NotPrintedError(ast.unparse(statement))
    if found is None:
        raise NotPrintedError(entry)
    return lower_function(found, objects, arguments)


def lower_function(
    function: ast.FunctionDef, objects: Mapping[str, Any], arguments: tuple[Any, ...]
) -> LoweredKernel:
    """Lower a function that names these ``objects``, for arguments of these types."""
    names = [x.arg for x in function.args.args]
    if len(names) != len(arguments) or ast.unparse(function.args) != ", ".join(names):
        raise NotPrintedError(ast.unparse(function.args))
    with global_compiler_lock, target_override(NAME):
        typing, target = contexts_of_kernels()
        described = FunctionDescriptor(
            native=True,
            modname=None,
            qualname=function.name,
            unique_name=function.name,
            doc="",
            typemap=None,
            restype=types.void,
            calltypes=None,
            args=names,
            kws=(),
            argtypes=arguments,
            noalias=True,
        )
        library = target.codegen().create_library(function.name)
        module = library.create_ir_module(function.name)
        made = target.declare_function(module, described)
        builder = ir.IRBuilder(made.append_basic_block("entry"))  # of the stack
        target.call_conv.init_call_helper(builder)
        given = target.call_conv.decode_arguments(builder, arguments, made)
        read = builder.block  # where all arguments are: truth values are compared
        begin = made.append_basic_block("begin")
        builder.position_at_end(begin)
        walk = _Walk(typing, target, builder, objects)
        with target.push_code_library(library):
            walk.function(function, zip(names, arguments, given, strict=True))
        none = target.get_constant_generic(builder, types.none, None)
        target.call_conv.return_value(builder, none)
        builder.position_at_end(read)
        builder.branch(begin)
        target.post_lowering(module, library)
        library.add_ir_module(module)
        library.finalize()
    return LoweredKernel(library, described.llvm_func_name)


class _Walk:
    """Lowers one function, statement by statement."""

    def __init__(
        self, typing: Any, target: Any, builder: Any, objects: Mapping[str, Any]
    ) -> None:
        self._typing = typing
        self._target = target
        self._builder = builder
        self._objects = objects
        self._names: dict[str, _Value] = {}  # that are assigned once, while they last
        self._slots: dict[str, _Value] = {}  # of names that are assigned again
        self._again: set[str] = set()
        self._ends: list[Any] = []  # of the loops around, where ``break`` leads

    def function(self, function: ast.FunctionDef, parameters: Any) -> None:
        stored = Counter(_stored(function.body))
        stored.update(x.arg for x in function.args.args)
        self._again = {name for name, count in stored.items() if count > 1}
        for name, kind, value in parameters:
            self._assign(name, _Value(kind, value))
        self._block(function.body)

    # -- statements ----------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        """Lower statements; what is named inside once is not known outside."""
        outside = self._names
        self._names = dict(outside)
        for statement in body:
            if self._builder.block.is_terminated:
                raise NotPrintedError(ast.unparse(statement))
            self._statement(statement)
        self._names = outside

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, self._value(value))
            case ast.Expr(value=ast.Call() as call):
                self._value(call)
            case ast.If(test=test, body=body, orelse=[]):
                self._if(test, body)
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]),
                body=body,
                orelse=[],
            ) if "range" not in self._objects and len(bounds) in (1, 2):
                self._for(name, bounds, body)
            case ast.Break() if self._ends:
                self._builder.branch(self._ends[-1])
            case ast.Pass():
                pass
            case _:
                raise NotPrintedError(ast.unparse(statement))

    def _assign(self, name: str, value: _Value) -> None:
        if name not in self._again:
            self._names[name] = value
            return
        kind = types.unliteral(value.kind)
        if name not in self._slots:
            place = cgutils.alloca_once(
                self._builder, self._target.get_value_type(kind), name=name
            )
            self._slots[name] = _Value(kind, place)
        slot = self._slots[name]
        if slot.kind != kind:
            message = f"{name} is {slot.kind}, and {kind} later"
            raise NotPrintedError(message)
        self._builder.store(self._as(value, kind), slot.ir)

    def _if(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        condition = self._value(test)
        if types.unliteral(condition.kind) != types.boolean:
            raise NotPrintedError(ast.unparse(test))
        builder = self._builder
        inside = builder.append_basic_block("then")
        after = builder.append_basic_block("after")
        builder.cbranch(self._as(condition, types.boolean), inside, after)
        builder.position_at_end(inside)
        self._block(body)
        if not builder.block.is_terminated:
            builder.branch(after)
        builder.position_at_end(after)

    def _for(
        self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]
    ) -> None:
        """Lower a loop that counts up by one, as C compilers do: LLVM knows it best.

        Numba's own serves any step: it writes some 75 instructions for each loop.
        """
        builder = self._builder
        given = [self._value(x) for x in bounds]
        if any(types.unliteral(x.kind) != types.int64 for x in given):
            raise NotPrintedError(", ".join(map(ast.unparse, bounds)))
        start, stop = (_NUMBER(0), *(self._as(x, types.int64) for x in given))[-2:]
        before = builder.block
        head, inside, after = map(builder.append_basic_block, ("head", "turn", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(_NUMBER)
        index.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", index, stop), inside, after)
        builder.position_at_end(inside)
        outside = dict(self._names)
        self._assign(name, _Value(types.int64, index))
        self._ends.append(after)
        self._block(body)
        self._ends.pop()
        self._names = outside
        if builder.block.is_terminated:  # a loop of one turn at most
            raise NotPrintedError(name)
        following = builder.add(index, _NUMBER(1), flags=("nsw",))
        index.add_incoming(following, builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    # -- values --------------------------------------------------------------

    def _value(self, x: ast.expr) -> _Value:
        match x:
            case ast.Name(id=name) if name in self._names:
                return self._names[name]
            case ast.Name(id=name) if name in self._slots:
                slot = self._slots[name]
                return _Value(slot.kind, self._builder.load(slot.ir))
            case ast.Constant(value=number) if isinstance(number, bool | int | float):
                return self._spelled(number)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if (
                name in self._objects
            ):
                return self._call(self._objects[name], [self._value(a) for a in args])
            case ast.BinOp(left=left, op=op, right=right):
                return self._operator(op, (left, right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._operator(op, (left, right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._operator(op, (operand,))
            case _:
                raise NotPrintedError(ast.unparse(x))

    def _spelled(self, number: float) -> _Value:
        kind = types.maybe_literal(number) or self._typing.resolve_value_type(number)
        return _Value(kind, number, is_spelled=True)

    def _operator(self, op: ast.AST, operands: tuple[ast.expr, ...]) -> _Value:
        function = _OPERATORS.get(type(op))
        if function is None:
            raise NotPrintedError(type(op).__name__)
        values = [self._value(x) for x in operands]
        if all(x.is_spelled for x in values):  # as Python would
            return self._spelled(function(*(x.ir for x in values)))
        return self._call(function, values)

    def _call(self, function: Any, values: list[_Value]) -> _Value:
        kinds = tuple(x.kind for x in values)
        if isinstance(function, types.Number | types.Boolean):
            (value,) = values
            return _Value(function, self._as(value, function))
        key = function, kinds
        if key not in _known:
            if len(_known) >= _MOST:
                _known.clear()
            _known[key] = self._found(function, kinds)
        signature, lowered = _known[key]
        given = [
            self._as(x, kind) for x, kind in zip(values, signature.args, strict=True)
        ]
        return _Value(signature.return_type, lowered(self._builder, given))

    def _found(self, function: Any, kinds: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the signature of a call, and what emits it."""
        typed = self._typing.resolve_value_type(function)
        signature = typed.get_call_type(self._typing, kinds, {})
        return signature, self._target.get_function(typed, signature)

    def _as(self, value: _Value, kind: Any) -> Any:
        """Return what LLVM calls a value, as one of another type."""
        made, own = value.ir, types.unliteral(value.kind)
        if value.is_spelled:
            made = self._target.get_constant_generic(self._builder, own, made)
        if kind in (own, value.kind):
            return made
        return self._target.cast(self._builder, made, own, kind)


def _stored(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Give the names that statements assign to, each as often as they do."""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.For(target=ast.Name(id=name), body=inside):
                yield name
                yield from _stored(inside)
            case ast.If(body=inside):
                yield from _stored(inside)
            case _:
                pass
