# SPDX-License-Identifier: Apache-2.0
"""Local and shared arrays as pointers to their first element.

Numba's own carry shape and strides, which every access packs and unpacks again: a third
of what compiling a kernel with packets takes, for code that NVVM then removes.
"""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingImports=false
# pyright: reportAttributeAccessIssue=false, reportUnknownParameterType=false

from __future__ import annotations

from functools import lru_cache
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils
from numba.cuda.cudadrv.nvvm import ADDRSPACE_SHARED

from nfuser.codegen.primitives.cuda.define import (
    ANY,
    INTEGER,
    ArrayPointer,
    Site,
    Value,
    primitive,
    types,
)


@lru_cache(1024)
def array_primitive(space: str, length: int, dtype: str) -> Any:
    """Return the primitive that sets aside ``length`` elements and points to them."""
    kind = ArrayPointer(getattr(types, dtype))

    def rule() -> Any:
        return kind()

    def emit(site: Site) -> Value:
        pointer = site.context.get_value_type(kind)
        room = ir.ArrayType(pointer.pointee, length)
        if space == "local":
            address = cgutils.alloca_once(site.builder, room, name="local")
            return site.builder.bitcast(address, pointer)
        return site.builder.addrspacecast(_shared(site, room), pointer, "generic")

    return primitive(f"{space}_array_{length}", rule, emit)


def _shared(site: Site, room: Any) -> Value:
    module = site.builder.module
    # PTX knows no dots, with which llvmlite would tell names apart.
    name = f"_nfuser_smem_{len(module.globals)}"
    made = ir.GlobalVariable(module, room, name, ADDRSPACE_SHARED)
    made.align = site.context.get_abi_alignment(room.element)
    made.initializer = ir.Constant(room, ir.Undefined)
    return made


def _take_rule(a: Any, i: Any) -> Any:
    fits = isinstance(a, ArrayPointer) and i in INTEGER
    return a.dtype(a, i) if fits else None


def _take(site: Site, a: Value, i: Value) -> Value:
    address = site.element(a, i, 1)
    return site.context.unpack_value(site.builder, site.result, address)


def _put_rule(a: Any, i: Any, v: Any) -> Any:
    fits = isinstance(a, ArrayPointer) and i in INTEGER and v in ANY
    return types.void(a, i, v) if fits else None


def _put(site: Site, a: Value, i: Value, v: Value) -> None:
    kind = site.argument(0).dtype
    value = site.context.cast(site.builder, v, site.argument(2), kind)
    address = site.element(a, i, 1)
    site.context.pack_value(site.builder, kind, value, address)


take_element = primitive("take_element", _take_rule, _take)
put_element = primitive("put_element", _put_rule, _put)
