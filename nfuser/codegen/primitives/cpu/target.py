# SPDX-License-Identifier: Apache-2.0
"""What a kernel asks of the processor that it is compiled for."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from llvmlite.binding import llvm_version_info
from numba.core import types
from numba.core.typing.templates import signature

import nfuser.codegen.primitives.cpu.features as cpu_features
from nfuser.codegen.numba.llvm.loop_lanes import mark_loop
from nfuser.codegen.primitives.cpu.apart import set_apart
from nfuser.codegen.primitives.cpu.define import register
from nfuser.codegen.primitives.cpu.math.value import Value, call

_NO_STRIDE = -(1 << 62)  # no distance in memory is as far down
_WIDE = '"prefer-vector-width"="512"'


def has_ldexp() -> bool:
    """Whether one instruction multiplies by a power of two, in vectors as well."""
    return llvm_version_info >= (22, 0, 0) and cpu_features.has("avx512vl")


def _wide_vectors_rule(_typing: Any) -> Any:
    def emit(context: Any, builder: Any, _typed: Any, _arguments: Any) -> Any:
        if cpu_features.keeps_its_clock():
            # llvmlite knows no attributes with values, but prints what it holds.
            set.add(builder.function.attributes, _WIDE)
        return context.get_dummy_value()

    return signature(types.void), emit


def _lanes_of_32_rule(_typing: Any) -> Any:
    """Ask for as many lanes in the loop around it as a vector has of 32 bits."""

    def emit(context: Any, builder: Any, _typed: Any, _arguments: Any) -> Any:
        if lanes := cpu_features.vector_bits() // 32:
            mark_loop(builder, "vectorize.width", lanes)
        return context.get_dummy_value()

    return signature(types.void), emit


def _functions_apart_rule(_typing: Any) -> Any:
    """Let a kernel call its functions, of which it has too many to hold them all."""

    def emit(context: Any, builder: Any, _typed: Any, _arguments: Any) -> Any:
        set_apart(builder)
        return context.get_dummy_value()

    return signature(types.void), emit


def _interleave_rule(_typing: Any, count: Any) -> Any:
    """Ask for ``count`` vectors, a power of two, side by side in the loop around it."""
    if not isinstance(count, types.IntegerLiteral):
        return None

    def emit(context: Any, builder: Any, _typed: Any, _arguments: Any) -> Any:
        mark_loop(builder, "interleave.count", count.literal_value)
        return context.get_dummy_value()

    return signature(types.void, count), emit


def _rolled_rule(_typing: Any) -> Any:
    """Ask for vectors in the loop around it, of which LLVM would write out all turns.

    It does that to short loops before it looks for vectors.
    """

    def emit(context: Any, builder: Any, _typed: Any, _arguments: Any) -> Any:
        mark_loop(builder, "unroll.disable")
        mark_loop(builder, "vectorize.enable")
        return context.get_dummy_value()

    return signature(types.void), emit


def _stride_rule(_typing: Any, number: Any) -> Any:
    """Return a stride in a form that LLVM does not take to be 1.

    It vectorizes a loop over elements a run-time stride apart for a stride of 1 alone,
    and leaves all other strides to scalar code. A maximum is not looked through.
    """

    def emit(_context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
        given = Value(builder, arguments[0])
        return call("llvm.smax", given, given.constant(_NO_STRIDE)).ir

    return signature(number, number), emit


functions_apart = register("functions_apart", _functions_apart_rule)
interleave = register("interleave", _interleave_rule)
lanes_of_32 = register("lanes_of_32", _lanes_of_32_rule)
rolled = register("rolled", _rolled_rule)
stride = register("stride", _stride_rule)
wide_vectors = register("wide_vectors", _wide_vectors_rule)
