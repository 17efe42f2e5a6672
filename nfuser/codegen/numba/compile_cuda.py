# SPDX-License-Identifier: Apache-2.0
"""Compile one emitted CUDA kernel to a cubin, with no driver and no device.

Numba turns the source into PTX and nvJitLink turns that into machine code. PTX never
reaches the driver: it may be newer than the driver understands.
"""

# numba-cuda and cuda-core ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportMissingImports=false
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from nfuser.base.collector import no_collection
from nfuser.codegen.load import load_function
from nfuser.codegen.numba.compiler_lock import COMPILER
from nfuser.codegen.numba.which_parts import compiled
from nfuser.errors import CompileError

_ENTRY = re.compile(r"\.visible \.entry ([\w$]+)\(")
_ENVIRONMENT = re.compile(r"^\.common \.global .*NumbaEnv.*\n", re.MULTILINE)
_SHARED_NAME = re.compile(r"_(?:cudapy|nfuser)_smem_\d+")
_SHARED = re.compile(r"\.shared .*\[(\d+)\];")
_ORDERED = re.compile(r"setp\.(gt|ge|lt|le)\.f32\s+(%p\d+), ([^;]*);")
_OPPOSITE = {"gt": "leu", "ge": "ltu", "lt": "geu", "le": "gtu"}


@dataclass(frozen=True, slots=True)
class CudaBinary:
    """Machine code of one kernel, and what it uses."""

    cubin: bytes
    entry: str
    registers: int
    spills: int  # bytes stored to and loaded from local memory for want of registers
    local_bytes: int  # stack frame: spills, and local arrays that stayed in memory
    shared_bytes: int  # static shared memory
    ptx: str


def compile_cuda(
    source_text: str,
    entry: str,
    signature: str,
    cc: tuple[int, int] = (9, 0),
    launch_bounds: int | tuple[int, ...] | None = None,
    max_registers: int | None = None,
) -> CudaBinary:
    """Compile the function ``entry`` of ``source_text`` for compute capability ``cc``.

    Parameters
    ----------
    source_text
        A module. The decorator of ``entry`` is not executed.
    entry
        The function's name, which is also the kernel's name in the cubin.
    signature
        As in the decorator: ``"void(CPointer(float32), int32)"``.
    cc
        Compute capability, at least (8, 0).
    launch_bounds
        Largest number of threads of a block, and what Numba takes beside it; as in the
        decorator if left out.
    max_registers
        A limit on registers of one thread.
    """
    with COMPILER, no_collection():
        try:
            ptx = _ptx(source_text, entry, signature, cc, launch_bounds)
            return _link(ptx, entry, cc, max_registers)
        except Exception as error:
            message = f"kernel {entry} did not compile for sm_{cc[0]}{cc[1]}: {error}"
            raise CompileError(message) from error


@lru_cache(256)
def _arguments(signature: str) -> tuple[Any, ...]:
    from numba.cuda.core.sigutils import normalize_signature

    arguments, _ = normalize_signature(signature)
    return tuple(arguments)


def _ptx(
    source_text: str,
    entry: str,
    signature: str,
    cc: tuple[int, int],
    launch_bounds: int | tuple[int, ...] | None,
) -> str:
    from nfuser.codegen.numba.abridge_cuda import abridge

    function, keywords = load_function(source_text, entry, abridge)
    bounds = launch_bounds or keywords.get("launch_bounds")
    cluster = keywords.get("cluster")
    ptx = compiled(
        partial(_by_private, function, signature, cc, bounds),
        partial(_by_public, function, signature, cc, bounds),
    )
    mangled = _ENTRY.search(ptx)
    if mangled is None:
        raise CompileError(f"the PTX of {entry} has no entry")
    ptx = _guarded(_canonical(ptx.replace(mangled.group(1), entry)))
    return _in_clusters(ptx, cluster) if cluster else ptx


def _by_private(function: Any, signature: str, *form: Any) -> str:
    from nfuser.codegen.numba.kernel_passes_cuda import compile_ptx

    return compile_ptx(function, _arguments(signature), *form)


def _by_public(function: Any, signature: str, *form: Any) -> str:
    from nfuser.codegen.numba.public import public_ptx

    return public_ptx(function, signature, *form)


def _canonical(ptx: str) -> str:
    """Take out what depends on the kernels compiled before: the text decides alone."""
    names = dict.fromkeys(_SHARED_NAME.findall(ptx))
    numbers = {name: f"shared_{number}" for number, name in enumerate(names)}
    ptx = _SHARED_NAME.sub(lambda found: numbers[found.group()], ptx)
    return _ENVIRONMENT.sub("", ptx)  # Numba's tracebacks would use it


def _guarded(ptx: str) -> str:
    """Compare f32 by what is not so.

    The assembler knows that ``x * x``, ``abs(x)`` or ``exp(x)`` is never negative,
    forgets that it may be NaN, and takes ``x * x >= -1`` for always true. The opposite,
    which holds for NaN, it leaves alone; the ``not`` costs no instruction.
    """
    return _ORDERED.sub(_opposite, ptx)


def _in_clusters(ptx: str, cluster: tuple[int, int]) -> str:
    """Let blocks of a kernel run in clusters of this shape, which Numba does not know.

    What is fixed here needs no word at the launch.
    """
    if ".maxntid" not in ptx:
        raise CompileError("a kernel in clusters says its launch bounds")
    x, y = cluster
    said = f".explicitcluster\n.reqnctapercluster {x}, {y}, 1\n.maxntid"
    return ptx.replace(".maxntid", said, 1)


def _opposite(found: re.Match[str]) -> str:
    relation, truth, operands = found.groups()
    opposite = f"setp.{_OPPOSITE[relation]}.f32 {truth}, {operands};"
    return f"{opposite}\n\tnot.pred {truth}, {truth};"


def _link(
    ptx: str, entry: str, cc: tuple[int, int], max_registers: int | None
) -> CudaBinary:
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(
        arch=f"sm_{cc[0]}{cc[1]}",
        max_register_count=max_registers,
        ptxas_options=["-v"],
    )
    linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=options)
    cubin = bytes(linker.link("cubin").code)
    report = linker.get_info_log()
    return CudaBinary(
        cubin,
        entry,
        registers=_number(r"Used (\d+) registers", report),
        spills=_number(r"(\d+) bytes spill stores", report)
        + _number(r"(\d+) bytes spill loads", report),
        local_bytes=_number(r"(\d+) bytes stack frame", report),
        shared_bytes=sum(int(size) for size in _SHARED.findall(ptx)),
        ptx=ptx,
    )


def _number(pattern: str, report: str) -> int:
    found = re.search(pattern, report)
    return int(found.group(1)) if found else 0
