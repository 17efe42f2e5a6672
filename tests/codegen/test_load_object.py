# SPDX-License-Identifier: Apache-2.0
"""Object files come to life without Numba, or are refused before LLVM sees them."""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import ctypes
import platform
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from nfuser.base.system import missing
from nfuser.codegen.numba.llvm import half_support
from nfuser.codegen.objects.elf import read_object
from nfuser.codegen.objects.load_object import is_portable, link_object, load_object
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.codegen.objects.map_object import can_map
from nfuser.errors import CompileError

pytestmark = pytest.mark.skipif(
    "object_files" in missing(), reason=missing().get("object_files", "")
)


def _object(body: str) -> bytes:
    """Compile LLVM IR for the plainest processor of this kind."""
    return _machine().emit_object(llvm.parse_assembly(body))


def _machine(model: str = "jitdefault", reloc: str = "static") -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(reloc=reloc, codemodel=model, jit=True)


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
    assert read_object(code).undefined == ("cbrt",)
    assert read_object(code).defined >= {"kernel"}
    assert is_portable(code)
    address, _owner = load_object(MachineCode(code, "kernel"))
    kernel = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)
    assert np.isclose(kernel(27.0), 3, rtol=1e-15)


def test_rounding_to_f16_is_brought_along() -> None:
    code = _object(ROUNDS)
    assert read_object(code).undefined == (half_support.NAME,)
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


KERNEL = """
@constant = private constant [2 x double] [double 1.5, double 0.25], align 16
@variable = global i64 5
@common = common global i64 0
declare double @cbrt(double)
define double @kernel(double %x, i64 %k) {
  %p = getelementptr [2 x double], ptr @constant, i64 0, i64 %k
  %c = load double, ptr %p
  %n = load i64, ptr @variable
  %m = add i64 %n, 1
  store i64 %m, ptr @variable
  store i64 %m, ptr @common
  %o = load i64, ptr @common
  %f = sitofp i64 %o to double
  %y = call double @cbrt(double %x)
  %s = fadd double %y, %c
  %t = fadd double %s, %f
  ret double %t
}
"""


@pytest.mark.parametrize(
    ("model", "reloc"), [("jitdefault", "static"), ("small", "pic")]
)
def test_either_loader_finds_constants_variables_and_calls(
    model: str, reloc: str
) -> None:
    """A file of the small model asks for distances: LLVM loads it."""
    machine = _machine(model, reloc)
    code = machine.emit_object(llvm.parse_assembly(KERNEL))
    read = read_object(code)
    assert can_map(read) == (model == "jitdefault" and platform.machine() == "x86_64")
    made = MachineCode(code, "kernel")
    for address, _owner in (load_object(made), link_object(made, read)):
        kinds = (ctypes.c_double, ctypes.c_double, ctypes.c_int64)
        kernel = ctypes.CFUNCTYPE(*kinds)(address)
        assert np.allclose([kernel(8.0, 0), kernel(8.0, 1)], [9.5, 9.25], rtol=1e-15)


def test_mapped_code_cannot_be_written_to() -> None:
    code = _object(CALLS.format(name="cbrt"))
    address, _owner = load_object(MachineCode(code, "kernel"))
    rights = [
        row.split()[1]
        for row in Path("/proc/self/maps").read_text().splitlines()
        if int(row.split("-")[0], 16) <= address < int(row.split()[0].split("-")[1], 16)
    ]
    assert rights == ["r-xp"]
