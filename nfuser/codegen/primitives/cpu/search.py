# SPDX-License-Identifier: Apache-2.0
"""Search memory on the CPU for the first element that is like a given one.

LLVM makes no vectors of a loop that may end early. So the vectors are written here, in
a function of their own, several at a turn: one comparison, and one bit for each lane.

Mostly a row is searched that was read before, and the next one lies behind it. That is
asked for meanwhile, as no processor looks for it beyond the end of a loop.
"""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature

from nfuser.codegen.primitives.cpu.define import NUMBER, register
from nfuser.codegen.primitives.cpu.features import vector_bits
from nfuser.codegen.primitives.cpu.math.value import I32, I64, Value
from nfuser.codegen.primitives.cpu.memory import (
    STACK_ALIGNMENT,
    ask_for,
    to_bfloat,
    to_half,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Hits = Callable[[Any, Any], Any]
    """From a builder and a vector to one bit for each lane."""
    Ways = Callable[[Any, Any, int], tuple[Any, Hits, Hits] | Hits]
    """From a builder, what is wanted and how many lanes there are to what hits.

    That may be one thing on a condition, and another without it.
    """

_AT_ONCE = 4  # vectors, of no more lanes than a machine word has bits
_MOST_LANES = 64
_SIZE = 0x7FFF  # of a 16-bit float: all of its bits but the sign


def _search(name: str, storage: Any, value: Any, narrow: Any, ways: Ways) -> Any:
    """Return the primitive over elements stored as ``storage``, wanted as ``value``.

    ``narrow`` makes of what is wanted what is stored of it.
    """

    def rule(_typing: Any, pointer: Any, _index: Any, _count: Any, wanted: Any) -> Any:
        if not isinstance(pointer, types.CPointer):
            return None
        kind = value or pointer.dtype
        fits = pointer.dtype == storage if storage else pointer.dtype in NUMBER
        if not fits or types.unliteral(wanted) != kind:
            return None

        def emit(_context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
            pointer, index, count, wanted = arguments
            first = builder.gep(pointer, [index], inbounds=True)
            like = narrow(Value(builder, wanted)).ir if narrow else wanted
            function = _function(builder.module, name, first.type, like.type, ways)
            return builder.call(function, [first, count, like])

        return signature(types.int64, pointer, types.int64, types.int64, kind), emit

    return register(name, rule)


def _function(module: Any, name: str, place: Any, kind: Any, ways: Ways) -> Any:
    """Return the function of a place, a count and what is wanted."""
    stem = f"{name}.{place.pointee.intrinsic_name}"
    if stem in module.globals:
        return module.globals[stem]
    function: Any = ir.Function(module, ir.FunctionType(I64, [place, I64, kind]), stem)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        function.attributes.add(attribute)
    most = _AT_ONCE * (vector_bits() or 128) // _bits(place.pointee)
    lanes = min(most, _MOST_LANES)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    found = ways(builder, function.args[2], lanes)
    if isinstance(found, tuple):
        condition, first, hits = found
        with builder.if_then(condition):
            _scan(builder, lanes, first)
    else:
        hits = found
    _scan(builder, lanes, hits)
    return function


def _scan(builder: Any, lanes: int, hits: Hits) -> None:
    """Return the number of the first element that ``hits``, or that of them all."""
    function, before = builder.function, builder.block
    place, count, _ = function.args
    element = place.type.pointee
    vector, word = ir.VectorType(element, lanes), ir.IntType(lanes)
    zero, size = ir.Constant(I64, 0), _bits(element) // 8
    names = ("loop", "following", "last", "found", "none")
    blocks = [function.append_basic_block(name) for name in names]
    loop, following, last, found, none = blocks
    whole = builder.and_(count, ir.Constant(I64, -lanes))
    builder.cbranch(builder.icmp_signed(">", whole, zero), loop, last)

    def part(at: Any) -> Any:
        address = builder.gep(place, [at], inbounds=True)
        return builder.bitcast(address, vector.as_pointer())

    def go_if_any(bits: Any, otherwise: Any) -> Any:
        packed = builder.bitcast(bits, word)
        is_any = builder.icmp_unsigned("!=", packed, ir.Constant(word, 0))
        builder.cbranch(is_any, found, otherwise)
        return packed

    builder.position_at_end(loop)
    at = builder.phi(I64)
    in_loop = go_if_any(hits(builder, builder.load(part(at), align=size)), following)
    builder.position_at_end(following)
    for k in range(0, lanes, STACK_ALIGNMENT // size):
        behind = builder.add(builder.add(at, count), ir.Constant(I64, k))
        ask_for(builder, builder.gep(place, [behind]))
    after = builder.add(at, ir.Constant(I64, lanes))
    _meet(at, (zero, before), (after, following))
    builder.cbranch(builder.icmp_signed("<", after, whole), loop, last)

    builder.position_at_end(last)
    mask = _first_lanes(builder, builder.sub(count, whole), lanes)
    elements = _load_masked(builder, part(whole), mask, size)
    in_rest = go_if_any(builder.and_(hits(builder, elements), mask), none)

    builder.position_at_end(found)
    begin, bits = builder.phi(I64), builder.phi(word)
    _meet(begin, (at, loop), (whole, last))
    _meet(bits, (in_loop, loop), (in_rest, last))
    lane = builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
    lane = lane if lanes == _MOST_LANES else builder.zext(lane, I64)
    builder.ret(builder.add(begin, lane))
    builder.position_at_end(none)
    builder.ret(count)


def _meet(phi: Any, *ways: tuple[Any, Any]) -> None:
    for value, block in ways:
        phi.add_incoming(value, block)


def _first_lanes(builder: Any, count: Any, lanes: int) -> Any:
    """Return a bit for each lane: those of the first ``count`` are set."""
    numbers = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
    spread = _spread(builder, builder.trunc(count, I32), lanes)
    return builder.icmp_signed("<", numbers, spread)


def _load_masked(builder: Any, place: Any, mask: Any, size: int) -> Any:
    vector = place.type.pointee
    name = f"llvm.masked.load.v{vector.count}{vector.element.intrinsic_name}.p0"
    load = builder.module.globals.get(name)
    if load is None:
        kind = ir.FunctionType(vector, [place.type, I32, mask.type, vector])
        load = ir.Function(builder.module, kind, name)
    nothing = ir.Constant(vector, ir.Undefined)
    return builder.call(load, [place, ir.Constant(I32, size), mask, nothing])


def _spread(builder: Any, x: Any, lanes: int) -> Any:
    """Return a vector with ``x`` in each of its lanes."""
    vector = ir.VectorType(x.type, lanes)
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, x, ir.Constant(I32, 0))
    zeros = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
    return builder.shuffle_vector(first, nothing, zeros)


def _bits(kind: Any) -> int:
    if isinstance(kind, ir.IntType):
        return kind.width
    return 32 if isinstance(kind, ir.FloatType) else 64


# -- what is like another --------------------------------------------------------------


def _numbers(builder: Any, wanted: Any, lanes: int) -> tuple[Any, Hits, Hits] | Hits:
    like = _spread(builder, wanted, lanes)
    if isinstance(wanted.type, ir.IntType):
        return lambda b, x: b.icmp_signed("==", x, like)
    return (
        builder.fcmp_unordered("uno", wanted, wanted),
        lambda b, x: b.fcmp_unordered("uno", x, x),
        lambda b, x: b.fcmp_ordered("==", x, like),
    )


def _truths(_builder: Any, wanted: Any, _lanes: int) -> tuple[Any, Hits, Hits]:
    def compared(operator: str) -> Hits:
        return lambda b, x: b.icmp_unsigned(operator, x, ir.Constant(x.type, None))

    return wanted, compared("!="), compared("==")


def _halves(infinity: int) -> Ways:
    """Return what 16-bit floats are like, by bits: zeros have any sign."""

    def ways(builder: Any, wanted: Any, lanes: int) -> tuple[Any, Hits, Hits]:
        def constant(kind: Any, number: int) -> Any:
            is_one = kind is wanted.type
            return ir.Constant(kind, number if is_one else [number] * lanes)

        def size(b: Any, x: Any) -> Any:
            return b.and_(x, constant(x.type, _SIZE))

        def is_none(b: Any, x: Any) -> Any:
            return b.icmp_signed(">", size(b, x), constant(x.type, infinity))

        def one_zero(b: Any, x: Any) -> Any:
            zero = constant(x.type, 0)
            return b.select(b.icmp_signed("==", size(b, x), zero), zero, x)

        like = _spread(builder, one_zero(builder, wanted), lanes)
        return (
            is_none(builder, wanted),
            is_none,
            lambda b, x: b.icmp_signed("==", one_zero(b, x), like),
        )

    return ways


first_like = _search("first_like", None, None, None, _numbers)
first_like_bool = _search("first_like_bool", types.uint8, types.boolean, None, _truths)
first_like_f16 = _search(
    "first_like_f16", types.uint16, types.float32, to_half, _halves(0x7C00)
)
first_like_bf16 = _search(
    "first_like_bf16", types.uint16, types.float32, to_bfloat, _halves(0x7F80)
)
