# SPDX-License-Identifier: Apache-2.0
"""A program that shows a fault of nfuser's own: the definition, and inputs like those.

``NFUSER_REPRO=DIR`` names the folder in which they are written.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.config as config
from nfuser.compiler.dtypes import as_dtype
from nfuser.errors import CompileError, NfuserError, VerifyError
from nfuser.execution.device.describe.descriptor import Library, describe, is_array
from nfuser.execution.device.describe.libraries import module
from nfuser.frontend.definition.execution.text import literal
from nfuser.frontend.definition.operations.stored import bytes_of, format_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULES = {library: library.value for library in Library} | {
    Library.NUMBA: "numba.cuda"
}
_ALIGNMENT = 16  # of addresses, as plans see them


def is_fault(error: Exception) -> bool:
    """Tell whether ``error`` is nfuser's own fault, and neither memory nor the user's.

    >>> is_fault(AssertionError()), is_fault(MemoryError()), is_fault(NfuserError())
    (True, False, False)
    """
    if isinstance(error, NfuserError):
        return isinstance(error, (CompileError, VerifyError))
    names = {cls.__name__ for cls in type(error).__mro__}
    return names.isdisjoint({"MemoryError", "OutOfMemoryError"})


def note_fault(error: Exception, definition: str, inputs: Sequence[Any]) -> None:
    """Write a program that shows ``error``, and say in its notes where."""
    folder = config.current().repro_dir
    if folder is None:
        error.add_note("NFUSER_REPRO=DIR writes a program that shows this fault")
        return
    try:
        path = _written(Path(folder), _script(error, definition, inputs))
    except (OSError, NfuserError) as problem:
        error.add_note(f"no program that shows this fault was written: {problem}")
        return
    error.add_note(f"{path} is a program that shows this fault")


def _written(folder: Path, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    path = folder / f"nfuser_repro_{digest}.py"
    path.write_text(script)
    return path


def _script(error: Exception, definition: str, inputs: Sequence[Any]) -> str:
    first = (str(error).splitlines() or [""])[0]
    head = f"# Shows: {type(error).__name__}: {first}\n"
    return head + script_for(definition, inputs)


def script_for(definition: str, inputs: Sequence[Any]) -> str:
    """Return a program that calls ``definition`` with arrays like ``inputs``."""
    arrays = [_plain(x) for x in inputs if is_array(x)]
    found = {describe(x, "an input").library for x in arrays}
    used = sorted(_MODULES[library] for library in found)
    imports = "".join(f"import {name}\n" for name in used)
    if any(format_of(x) for x in inputs):
        room = "nfuser.frontend.definition.operations.stored"
        imports += f"from {room} import FORMATS, floats_of\n"
    lines = ",\n".join(f"    {_input(item)}" for item in inputs)
    return (
        f"{imports}"
        "from nfuser.frontend.definition.execution.repro import array_like\n"
        f"{definition}\n\n"
        f"inputs = [\n{lines}{',' if lines else ''}\n]\n"
        "fd.execute(inputs)\n"
    )


def _input(item: Any) -> str:
    if isinstance(item, np.generic) or not is_array(item):
        return literal(item)
    if (form := format_of(item)) is not None:
        return f"floats_of({_input(bytes_of(item))}, FORMATS[{form.name!r}])"
    d = describe(item, "an input")
    offset = d.pointer % _ALIGNMENT // d.dtype.itemsize
    listed = (d.library.value, str(d.device), d.dtype.numpy.name, d.shape, d.strides)
    return f"array_like{(*listed, offset)!r}"


def _plain(item: Any) -> Any:
    """Return an array whose dtype nfuser computes with: of 8-bit floats the bytes."""
    return item if format_of(item) is None else bytes_of(item)


def array_like(
    library: str,
    device: str,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int = 0,
) -> Any:
    """Return an array of small numbers, laid out in memory as described.

    ``strides`` and ``offset``, from an aligned address, count elements.

    >>> array_like("numpy", "cpu", "float32", (2, 3), (1, 2)).strides
    (4, 8)
    """
    kind = as_dtype(dtype)
    pairs = list(zip(shape, strides, strict=True))
    if 0 in shape:
        pairs = []
    below = -sum((n - 1) * s for n, s in pairs if s < 0)
    above = sum((n - 1) * s for n, s in pairs if s > 0)
    packet = _ALIGNMENT // kind.itemsize
    start, size = -(-below // packet) * packet + offset, 1 + above
    data = np.random.default_rng(0).integers(0, 4, start + size)
    held = Library(library)
    if held is Library.NUMPY:
        return _strided(np, data.astype(kind.numpy)[start:], shape, strides)
    if held is Library.TORCH:
        torch = module(held)
        plain = torch.from_numpy(data).to(getattr(torch, kind.numpy.name))
        return plain.to(device).as_strided(shape, strides, start)
    return _of_others(held, data.astype(kind.numpy)[start:], shape, strides)


def _strided(np_or_cupy: Any, flat: Any, shape: Any, strides: Any) -> Any:
    steps = tuple(s * flat.dtype.itemsize for s in strides)
    return np_or_cupy.lib.stride_tricks.as_strided(flat, shape, steps)


def _of_others(library: Library, flat: Any, shape: Any, strides: Any) -> Any:
    if library is Library.CUPY:
        cupy = module(library)
        return _strided(cupy, cupy.asarray(flat), shape, strides)
    plain = np.ascontiguousarray(_strided(np, flat, shape, strides))
    if library is Library.JAX:
        return module(library).numpy.asarray(plain)
    return module(library).to_device(plain)
