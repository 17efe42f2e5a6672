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
# Of the index between ``bounds`` of a piece; a piece may have an array of its own, what
# lies ``apart``. A negative index is counted from the end, ``wrap``, unless that is 0.
# Where neighbours mostly are for the same place, that stays in a register: a processor
# takes three times as long to read what it has just stored.
_PIECES = """\
from nfuser.codegen.primitives.cpu import (
    i64,
    load,
    maximum,
    minimum,
    select,
    store,
    to_i64,
    to_u64,
    {others}
)


def {entry}(
    start, stop, out, index, value, bounds, wrongs, rows, apart, step, wrap, has_runs
):
    last_row = to_u64(rows - 1)
    for piece in range(start, stop):
        first = load(bounds, piece)
        end = load(bounds, piece + 1)
        base = piece * apart
        wrong = i64(0)
        if has_runs:
            last = i64(-1)
            old = load(value, 0)
            for k in range(first, end):
                i = load(index, k)
                i = select(i < 0, i + wrap, i)
                {checked}
                if i != last:
                    if last >= 0:
                        store(out, base + last, old)
                    old = load(out, base + i)
                    last = i
                new = load(value, k * step)
                old = {update}
            if last >= 0:
                store(out, base + last, old)
        else:
            for k in range(first, end):
                i = load(index, k)
                i = select(i < 0, i + wrap, i)
                {checked}
                old = load(out, base + i)
                new = load(value, k * step)
                store(out, base + i, {update})
        store(wrongs, piece, wrong)
"""
# An index that was not looked at: one that is wrong is for the last row.
_CHECKED = """\
inside = to_i64(minimum(to_u64(i), last_row))
                wrong |= i ^ inside
                i = inside"""
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
# The least and the greatest of a block, how often it falls, and how often it stays.
_LOOK = """\
from nfuser.codegen.primitives.cpu import i64, load, select, store


def {entry}(start, stop, index, found, count, block):
    for k in range(start, stop):
        first = k * block
        end = select(first + block < count, first + block, count)
        low = load(index, first)
        high = low
        falls = i64(0)
        stays = i64(0)
        for j in range(select(first > 0, first, i64(1)), end):
            i = load(index, j)
            before = load(index, j - 1)
            low = select(i < low, i, low)
            high = select(i > high, i, high)
            falls += select(i < before, i64(1), i64(0))
            stays += select(i == before, i64(1), i64(0))
        store(found, 4 * k, low)
        store(found, 4 * k + 1, high)
        store(found, 4 * k + 2, falls)
        store(found, 4 * k + 3, stays)
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
        others = "" if cast in ("to_i64", "to_u64") else f"{cast},"
        written = text.format(
            entry=name,
            cast=cast,
            others=others,
            update=update,
            checked=_CHECKED if "checked" in name else "",
        )
        return partial(_compiled, name, written, tuple(pointers), numbers)

    written = (number, whole, number)
    listed = (*written, whole, whole)
    return ScatterKernels(
        kernel(f"scatter_{own}", _PIECES, listed, 5),
        kernel(f"scatter_checked_{own}", _PIECES, listed, 5),
        kernel(f"scatter_rows_{own}", _COLUMNS, written, 4),
        kernel("look_at_index", _LOOK, (whole, whole), 2),
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
