# SPDX-License-Identifier: Apache-2.0
"""Object files come to life without Numba, or are refused before LLVM sees them."""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from nfuser.codegen import half_support
from nfuser.codegen.load_object import (
    defined_symbols,
    is_portable,
    load_object,
    undefined_symbols,
)
from nfuser.codegen.machine_code import MachineCode
from nfuser.errors import CompileError


def _object(body: str) -> bytes:
    """Compile LLVM IR for the plainest processor of this kind."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return machine.emit_object(llvm.parse_assembly(body))


CALLS = """
declare double @{name}(double)
define double @kernel(double %x) {{
  %y = call double @{name}(double %x)
  ret double %y
}}
"""
ROUNDS = """
define i16 @kernel(double %x) {
  %y = fptrunc double %x to half
  %z = bitcast half %y to i16
  ret i16 %z
}
"""


def test_an_object_that_calls_the_c_library_runs() -> None:
    code = _object(CALLS.format(name="cbrt"))
    assert undefined_symbols(code) == ("cbrt",)
    assert defined_symbols(code) >= {"kernel"}
    assert is_portable(code)
    address, _owner = load_object(MachineCode(code, "kernel"))
    kernel = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)
    assert np.isclose(kernel(27.0), 3, rtol=1e-15)


def test_rounding_to_f16_is_brought_along() -> None:
    code = _object(ROUNDS)
    assert undefined_symbols(code) == (half_support.NAME,)
    assert is_portable(code)
    _, owner = load_object(MachineCode(code, "kernel"))
    assert owner is not None


def test_a_symbol_that_is_not_there_is_an_error_and_not_the_end() -> None:
    code = _object(CALLS.format(name="numba_has_no_such_helper"))
    assert not is_portable(code)
    with pytest.raises(CompileError, match="numba_has_no_such_helper, which is not"):
        load_object(MachineCode(code, "kernel"))


def test_what_is_no_object_file_is_refused() -> None:
    code = _object(CALLS.format(name="cbrt"))
    with pytest.raises(CompileError, match="has no function other"):
        load_object(MachineCode(code, "other"))
    for bad in (b"", b"no object", code[:70], code[: len(code) // 2]):
        assert not is_portable(bad)
        with pytest.raises(CompileError):
            load_object(MachineCode(bad, "kernel"))


def test_two_objects_may_give_one_name_different_code() -> None:
    functions: list[float] = []
    for name in ("cbrt", "sqrt"):
        code = _object(CALLS.format(name=name))
        address, owner = load_object(MachineCode(code, "kernel"))
        kernel = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)
        functions.append(kernel(64.0))
        del owner
    assert np.allclose(functions, [4, 8], rtol=1e-15)
