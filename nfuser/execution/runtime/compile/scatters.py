# SPDX-License-Identifier: Apache-2.0
"""The loops of scatters on a CPU: one for each dtype and for what is done with it."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from typing import TYPE_CHECKING

from nfuser.codegen.printers.source import KernelForm, PlainSource
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.kernel.kernel_ir import LaunchShape
from nfuser.compiler.schedule.facts.target import CPU
from nfuser.execution.host.call.program import ScatterKernels
from nfuser.execution.runtime.compile.executable import KERNELS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.execution.device.cpu.kernel import CpuKernel

_UPDATES = {
    ScatterOp.SET: "new",
    ScatterOp.ADD: "{cast}(old + new)",
    ScatterOp.MULTIPLY: "{cast}(old * new)",
    ScatterOp.MAX: "maximum(old, new)",
    ScatterOp.MIN: "minimum(old, new)",
}
_CASTS = ("to_i64", "to_u64", "to_u8")  # that all loops import
_IMPORTS = """\
from nfuser.codegen.primitives.cpu import (
    i64,
    load,
    maximum,
    minimum,
    select,
    store,
    to_i64,
    to_u64,
    to_u8,
    {others}
)

"""
# One value after another, of the index between ``bounds`` of a piece.
_EACH = (
    _IMPORTS
    + """
def {entry}(start, stop, out, index, value, bounds, step):
    for piece in range(start, stop):
        for k in range(load(bounds, piece), load(bounds, piece + 1)):
            i = load(index, k)
            old = load(out, i)
            new = load(value, k * step)
            store(out, i, {update})
"""
)
# Of an index in order, by how far each place lies behind the one before.
_BY_GAPS = (
    _IMPORTS
    + """
def {entry}(start, stop, out, index, value, bounds, gaps, step):
    for piece in range(start, stop):
        first = load(bounds, piece)
        i = load(index, first) - to_i64(load(gaps, first))
        for k in range(first, load(bounds, piece + 1)):
            i = i + to_i64(load(gaps, k))
            old = load(out, i)
            new = load(value, k * step)
            store(out, i, {update})
"""
)
# Each piece has an array of its own, and looks ahead for places that are not there: a
# block is looked at while the one before it is added, which is done with none that has
# a wrong one. The greatest place is left, as a number without a sign.
_APART = (
    _IMPORTS
    + """
def {entry}(start, stop, out, index, value, bounds, greatest, rows, step):
    last = to_u64(rows - 1)
    for piece in range(start, stop):
        first = load(bounds, piece)
        end = load(bounds, piece + 1)
        base = piece * rows
        most = to_u64(0)
        for k in range(first, minimum(first + 2048, end)):
            most = maximum(most, to_u64(load(index, k)))
        for block in range((end - first + 2047) >> 11):
            begin = first + block * 2048
            until = select(most <= last, minimum(begin + 2048, end), begin)
            ahead = maximum(minimum(until, end - 2048), begin)
            for k in range(begin, ahead):
                most = maximum(most, to_u64(load(index, k + 2048)))
                i = base + load(index, k)
                old = load(out, i)
                new = load(value, k * step)
                store(out, i, {update})
            for k in range(ahead, until):
                i = base + load(index, k)
                old = load(out, i)
                new = load(value, k * step)
                store(out, i, {update})
        store(greatest, piece, to_i64(most))
"""
)
# Where neighbours mostly are for the same place, that stays in a register: a processor
# takes three times as long to read what it has just stored. An index that was not
# looked at is: one that is wrong is for the last row.
_RUNS = (
    _IMPORTS
    + """
def {entry}(start, stop, out, index, value, bounds, greatest, rows, apart, step):
    last_row = to_u64(rows - 1)
    for piece in range(start, stop):
        base = piece * apart
        most = to_u64(0)
        last = i64(-1)
        old = load(value, 0)
        for k in range(load(bounds, piece), load(bounds, piece + 1)):
            most = maximum(most, to_u64(load(index, k)))
            i = to_i64(minimum(to_u64(load(index, k)), last_row))
            if i != last:
                if last >= 0:
                    store(out, base + last, old)
                old = load(out, base + i)
                last = i
            new = load(value, k * step)
            old = {update}
        if last >= 0:
            store(out, base + last, old)
        store(greatest, piece, to_i64(most))
"""
)
# Each piece is of places between ``bounds``, and reads all of the index: at places of
# others it adds ``nothing`` to some of its own, which changes none.
_OWN = (
    _IMPORTS
    + """
def {entry}(start, stop, out, index, value, bounds, nothing, count, step):
    none = load(nothing, 0)
    for piece in range(start, stop):
        first = load(bounds, piece)
        size = to_u64(load(bounds, piece + 1) - first)
        for k in range(count):
            away = load(index, k) - first
            is_own = to_u64(away) < size
            i = first + select(is_own, away, k & 63)
            old = load(out, i)
            new = select(is_own, load(value, k * step), none)
            store(out, i, {update})
"""
)
# Of rows, whose elements are divided among threads.
_COLUMNS = """\
from nfuser.codegen.primitives.cpu import load, maximum, minimum, select, store, {cast}


def {entry}(start, stop, out, index, value, count, rows, inner, step):
    for k in range(count):
        i = load(index, k)
        i = select(i < 0, i + rows, i)
        for j in range(start, stop):
            old = load(out, i * inner + j)
            new = load(value, (k * inner + j) * step)
            store(out, i * inner + j, {update})
"""
# The greatest of each block, as a number without a sign.
_LOOK = """\
from nfuser.codegen.primitives.cpu import load, maximum, minimum, store, to_i64, to_u64


def {entry}(start, stop, index, found, count, block):
    for k in range(start, stop):
        first = k * block
        most = to_u64(0)
        for j in range(first, minimum(first + block, count)):
            most = maximum(most, to_u64(load(index, j)))
        store(found, k, to_i64(most))
"""
# How far each place lies behind the one before, and all of these in one, bit by bit.
_GAPS = """\
from nfuser.codegen.primitives.cpu import i64, load, maximum, minimum, store, to_u8


def {entry}(start, stop, index, gaps, found, count, block):
    for k in range(start, stop):
        first = k * block
        every = i64(0)
        for j in range(maximum(first, i64(1)), minimum(first + block, count)):
            gap = load(index, j) - load(index, j - 1)
            every = every | gap
            store(gaps, j, to_u8(gap))
        store(found, k, every)
"""


def scatter_kernels(op: ScatterOp, dtype: DType) -> ScatterKernels:
    """Return the loops of one scatter; what checks nothing needs a right index."""
    cast = f"to_{dtype.value}"
    update = _UPDATES[op].format(cast=cast)
    own = f"{op.value}_{dtype.value}"
    number = dtype.numpy.name
    whole = "int64"

    def kernel(
        name: str, text: str, pointers: Sequence[str], numbers: int
    ) -> Callable[[], CpuKernel]:
        others = "" if cast in _CASTS else f"{cast},"
        written = text.format(entry=name, cast=cast, others=others, update=update)
        return cache(partial(_compiled, name, written, tuple(pointers), numbers))

    written = (number, whole, number)
    listed = (*written, whole)
    return ScatterKernels(
        kernel(f"scatter_{own}", _EACH, listed, 1),
        kernel(f"scatter_by_gaps_{own}", _BY_GAPS, (*listed, "uint8"), 1),
        kernel(f"scatter_apart_{own}", _APART, (*listed, whole), 2),
        kernel(f"scatter_runs_{own}", _RUNS, (*listed, whole), 3),
        kernel(f"scatter_own_{own}", _OWN, (*listed, number), 2),
        kernel(f"scatter_rows_{own}", _COLUMNS, written, 4),
        kernel("look_at_index", _LOOK, (whole, whole), 2),
        kernel("gaps_of_index", _GAPS, (whole, "uint8", whole), 2),
    )


def _compiled(
    entry: str, text: str, pointers: tuple[str, ...], numbers: int
) -> CpuKernel:
    made, _ = KERNELS.get(_source(entry, text, pointers, numbers), "cpu", 0)
    return made


@cache
def _source(
    entry: str, text: str, pointers: tuple[str, ...], numbers: int
) -> PlainSource:
    listed = ", ".join(f"CPointer({name})" for name in pointers)
    signature = f"void(int64, int64, {listed}, {', '.join(['int64'] * numbers)})"
    digest = hashlib.sha256(repr((text, signature)).encode()).hexdigest()
    kinds = (*("pointer",) * len(pointers), *("i64",) * numbers)
    one = sc.const(1)
    launch = LaunchShape((one, one), (one, one), 1)
    form = KernelForm(digest, signature, kinds, CPU, (), (), (), launch, 0)
    return PlainSource(form, entry, text)
