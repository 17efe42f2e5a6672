# SPDX-License-Identifier: Apache-2.0
"""Run a kernel's text on the device, with the interpreter's arguments."""

# cuda.bindings ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes
import re
import warnings
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

from nfuser.codegen.numba.compile_cuda import compile_cuda
from nfuser.execution.interpret import PointerArgument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TYPES: dict[str, Any] = {
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


@cache
def _driver() -> Any:
    """Return the driver API with the first device's context current."""
    from cuda.bindings import driver

    _checked(driver.cuInit(0))
    device = _checked(driver.cuDeviceGet(0))
    _checked(driver.cuCtxSetCurrent(_checked(driver.cuDevicePrimaryCtxRetain(device))))
    return driver


def _checked(result: Any) -> Any:
    code, *values = result
    if int(code) != 0:
        raise RuntimeError(f"the driver answered {code}")
    return values[0] if values else None


@cache
def _capability() -> tuple[int, int]:
    driver = _driver()
    name = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{}"
    kinds = driver.CUdevice_attribute
    device = _checked(driver.cuDeviceGet(0))
    major, minor = (
        _checked(driver.cuDeviceGetAttribute(getattr(kinds, name.format(part)), device))
        for part in ("MAJOR", "MINOR")
    )
    return major, minor


def run_on_device(
    text: str,
    entry: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: Sequence[PointerArgument | float],
) -> None:
    """Do what ``interpret.run`` does, on the device and without its checks."""
    signature = _signature(text)
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    kinds = [kind.strip() for kind in inside.split(",")]
    binary = compile_cuda(text, entry, signature, cc=_capability())
    driver = _driver()
    module = _checked(driver.cuModuleLoadData(binary.cubin))
    function = _checked(driver.cuModuleGetFunction(module, entry.encode()))
    memory = _copied_in(arguments)
    values = [_slot(a, k, memory) for a, k in zip(arguments, kinds, strict=True)]
    slots = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    pointer = ctypes.addressof(slots)
    try:
        _checked(driver.cuLaunchKernel(function, *grid, *block, 0, 0, pointer, 0))
        _checked(driver.cuCtxSynchronize())
        for storage, address in memory.values():
            _checked(driver.cuMemcpyDtoH(storage.ctypes.data, address, storage.nbytes))
    finally:
        for _, address in memory.values():
            _checked(driver.cuMemFree(address))
        _checked(driver.cuModuleUnload(module))


def run_by_numba(
    text: str,
    entry: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: Sequence[PointerArgument | float],
    folder: Path,
) -> None:
    """Do what ``run_on_device`` does as the text says it: ``kernel[grid, block]``."""
    driver = _driver()
    path = folder / f"{entry}.py"
    path.write_text(text)
    spec = spec_from_file_location(f"nfuser_test_{entry}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    memory = _copied_in(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the grid is small
        spec.loader.exec_module(module)
        values = [
            int(memory[id(a.storage)][1]) if isinstance(a, PointerArgument) else a
            for a in arguments
        ]
        getattr(module, entry)[grid, block](*values)
    _checked(driver.cuCtxSynchronize())
    for storage, address in memory.values():
        _checked(driver.cuMemcpyDtoH(storage.ctypes.data, address, storage.nbytes))
        _checked(driver.cuMemFree(address))


def _signature(text: str) -> str:
    """Return the signature string of the decorator, its pieces joined."""
    found = re.search(r"@cuda\.jit\(((?:\s*\"[^\"]*\")+)", text)
    assert found is not None
    return "".join(re.findall(r"\"([^\"]*)\"", found.group(1)))


def _copied_in(
    arguments: Sequence[PointerArgument | float],
) -> dict[int, tuple[Any, Any]]:
    driver = _driver()
    memory: dict[int, tuple[Any, Any]] = {}
    for argument in arguments:
        if isinstance(argument, PointerArgument) and id(argument.storage) not in memory:
            storage = argument.memory
            address = _checked(driver.cuMemAlloc(max(storage.nbytes, 1)))
            _checked(driver.cuMemcpyHtoD(address, storage.ctypes.data, storage.nbytes))
            memory[id(argument.storage)] = storage, address
    return memory


def _slot(
    argument: PointerArgument | float, kind: str, memory: dict[int, tuple[Any, Any]]
) -> Any:
    if not isinstance(argument, PointerArgument):
        return _TYPES[kind](argument)
    storage, address = memory[id(argument.storage)]
    return ctypes.c_void_p(int(address) + argument.offset * storage.itemsize)
