# SPDX-License-Identifier: Apache-2.0
"""The loops of scatters on a CPU: one for each dtype and for what is done with it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from nfuser.codegen.printers.source import KernelForm, PlainSource
from nfuser.ir import scalar as sc
from nfuser.ir.expr import ScatterOp
from nfuser.lower.kernel.kernel_ir import Launch
from nfuser.runtime.compile.executable import KERNELS
from nfuser.schedule.facts.target import CPU

if TYPE_CHECKING:
    from nfuser.device.cpu.kernel import CpuKernel
    from nfuser.dtypes import DType

_UPDATES = {
    ScatterOp.SET: "new",
    ScatterOp.ADD: "{cast}(old + new)",
    ScatterOp.MULTIPLY: "{cast}(old * new)",
    ScatterOp.MAX: "maximum(old, new)",
    ScatterOp.MIN: "minimum(old, new)",
}
# Where neighbours mostly are for the same place, that stays in a register: a processor
# takes three times as long to read what it has just stored.
_TEXT = """\
from nfuser.codegen.primitives.cpu import (
    i64,
    load,
    maximum,
    minimum,
    select,
    store,
    {cast},
)


def {entry}(start, stop, out, index, value, count, rows, inner, step, has_runs):
    if has_runs:
        last = i64(-1)
        old = load(value, 0)
        for k in range(count):
            i = load(index, k)
            i = select(i < 0, i + rows, i)
            if i != last:
                if last >= 0:
                    store(out, last, old)
                old = load(out, i)
                last = i
            new = load(value, k * step)
            old = {update}
        if last >= 0:
            store(out, last, old)
    elif inner == 1:
        for k in range(count):
            i = load(index, k)
            i = select(i < 0, i + rows, i)
            old = load(out, i)
            new = load(value, k * step)
            store(out, i, {update})
    else:
        for k in range(count):
            i = load(index, k)
            i = select(i < 0, i + rows, i)
            for j in range(start, stop):
                old = load(out, i * inner + j)
                new = load(value, (k * inner + j) * step)
                store(out, i * inner + j, {update})
"""


def scatter_kernel(op: ScatterOp, dtype: DType) -> CpuKernel:
    """Return the loop over an index, which is right: compiled, or found on disk.

    A range is one of the elements of each row.
    """
    cast = f"to_{dtype.value}"
    entry = f"scatter_{op.value}_{dtype.value}"
    update = _UPDATES[op].format(cast=cast)
    text = _TEXT.format(cast=cast, entry=entry, update=update)
    number = dtype.numpy.name
    numbers = ", ".join(["int64"] * 5)
    listed = ", ".join(f"CPointer({n})" for n in (number, "int64", number))
    signature = f"void(int64, int64, {listed}, {numbers})"
    digest = hashlib.sha256(repr((text, signature)).encode()).hexdigest()
    kinds = (*("pointer",) * 3, *("i64",) * 5)
    one = sc.const(1)
    launch = Launch((one, one), (one, one), 1)
    form = KernelForm(digest, signature, kinds, CPU, (), (), (), launch, 0)
    made, _ = KERNELS.get(PlainSource(form, entry, text), "cpu", 0)
    return made
