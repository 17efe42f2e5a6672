# SPDX-License-Identifier: Apache-2.0
"""Native kernels for tests, made without Numba: C callbacks, and LLVM IR."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import llvmlite.binding as untyped_llvm

from nfuser.execution.device.cpu.kernel import CpuKernel

if TYPE_CHECKING:
    from collections.abc import Callable

llvm: Any = untyped_llvm
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)

_TEXT = """
define i32 @kernel(ptr %result, ptr %exception, i64 %start, i64 %stop,
                   ptr %x, ptr %o, double %factor) {
entry:
  %some = icmp slt i64 %start, %stop
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %start, %entry ], [ %next, %loop ]
  %from = getelementptr double, ptr %x, i64 %i
  %value = load double, ptr %from
  %scaled = fmul double %value, %factor
  %more = fadd double %scaled, 1.0
  %to = getelementptr double, ptr %o, i64 %i
  store double %more, ptr %to
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %stop
  br i1 %again, label %loop, label %done
done:
  ret i32 0
}
"""


_INTERRUPTING = """
declare i32 @getpid()
declare i32 @kill(i32, i32)
declare i32 @usleep(i32)
define i32 @kernel(ptr %result, ptr %exception, i64 %start, i64 %stop, ptr %done) {
  %first = icmp eq i64 %start, 0
  br i1 %first, label %interrupt, label %wait
interrupt:
  %own = call i32 @getpid()
  %sent = call i32 @kill(i32 %own, i32 2)
  br label %wait
wait:
  %length = sub i64 %stop, %start
  %count = trunc i64 %length to i32
  %time = mul i32 %count, 10000
  %slept = call i32 @usleep(i32 %time)
  %before = atomicrmw add ptr %done, i64 %length seq_cst
  ret i32 0
}
"""


def python_kernel(function: Callable[[int, int], int]) -> CpuKernel:
    """A kernel that calls back into Python with its range."""

    def body(_result: Any, _exception: Any, start: int, stop: int) -> int:
        return function(start, stop)

    callback = _CALLBACK(body)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    return CpuKernel(address, (), keep=callback)


@cache
def scale_kernel() -> CpuKernel:
    """Machine code for ``o[i] = x[i] * factor + 1`` on float64."""
    return _compiled(_TEXT, ("pointer", "pointer", "f64"))


@cache
def interrupting_kernel() -> CpuKernel:
    """Machine code that sleeps 10 ms an index, then counts it where its argument is.

    At the first index it sends the process what Ctrl-C sends.
    """
    return _compiled(_INTERRUPTING, ("pointer",))


def _compiled(text: str, kinds: tuple[str, ...]) -> CpuKernel:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return CpuKernel(engine.get_function_address("kernel"), kinds, keep=engine)
