# SPDX-License-Identifier: Apache-2.0
"""Compile the source of a CPU kernel, as dumped or changed, and launch it by hand."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.codegen.numba.compile_cpu import compile_cpu
from nfuser.codegen.objects.load_object import load_object
from nfuser.errors import ArgumentError
from nfuser.execution.device.cpu.kernel import CpuKernel

if TYPE_CHECKING:
    import os

_LAUNCHED = re.compile(r"^# launched as (void\(.*\))$", re.MULTILINE)
_TYPE = re.compile(r"CPointer\((\w+)\)|(\w+)")


class HandKernel:
    """A compiled CPU kernel: call it with a range, and what its source names.

    Arrays stand for pointers to their first elements, and have to lie as the kernel
    expects: nothing is checked but their dtypes.
    """

    def __init__(self, text: str, entry: str, signature: str) -> None:
        types = _TYPE.findall(signature.removeprefix("void"))[2:]
        self.name = entry
        self._dtypes = [np.dtype(element) if element else None for element, _ in types]
        kinds = ["pointer" if e else _kind(number) for e, number in types]
        address, owner = load_object(compile_cpu(text, entry, signature))
        self._kernel = CpuKernel(address, kinds, keep=owner)

    def __call__(self, start: int, stop: int, *arguments: Any) -> None:
        """Run the rows, or whatever the kernel counts, from ``start`` to ``stop``."""
        if len(arguments) != len(self._dtypes):
            message = (
                f"pass {len(self._dtypes)} arguments after start and stop, as the def "
                f"of {self.name} names them; found {len(arguments)}"
            )
            raise ArgumentError(message)
        pairs = zip(arguments, self._dtypes, strict=True)
        given = [_argument(item, dtype) for item, dtype in pairs]
        self._kernel.run(start, stop, given)

    def __repr__(self) -> str:
        return f"<CPU kernel {self.name}>"


def load_kernel(source: str | os.PathLike[str]) -> HandKernel:
    """Return the CPU kernel of a module: its text, or the file that holds it."""
    text = source if isinstance(source, str) and "\n" in source else _read(source)
    signature = _LAUNCHED.search(text)
    if signature is None:
        message = (
            "pass the source of a CPU kernel, with its head: expected a line "
            "`# launched as void(...)`, found none; numba.cuda launches those for GPUs"
        )
        raise ArgumentError(message)
    functions = [x for x in ast.parse(text).body if isinstance(x, ast.FunctionDef)]
    return HandKernel(text, functions[-1].name, signature[1])


def _read(source: str | os.PathLike[str]) -> str:
    return Path(source).read_text()


def _kind(number: str) -> str:
    return re.sub(r"^(int|uint|float)", lambda found: found[0][0], number)


def _argument(item: Any, dtype: np.dtype[Any] | None) -> Any:
    if dtype is None:
        return item
    is_array = isinstance(item, np.ndarray)
    if not is_array or item.dtype.itemsize != dtype.itemsize:  # pyright: ignore[reportUnknownMemberType]
        message = f"pass an array of {dtype.name}, found {type(item).__name__}"  # pyright: ignore[reportUnknownArgumentType]
        raise ArgumentError(message)
    return item.__array_interface__["data"][0]
