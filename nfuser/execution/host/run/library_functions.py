# SPDX-License-Identifier: Apache-2.0
"""Functions of linalg and fft as each array library has them, with NumPy's options.

A library that has a function under NumPy's name, with NumPy's options, needs no row.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from nfuser.execution.device.describe.libraries import Library, module

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CUTOFF = 1e-15  # of NumPy's pinv, where none is given


def library_function(library: Library, name: str) -> Callable[..., Any]:
    """Return what computes ``name`` from arrays of ``library``, options by keyword."""
    held, own = module(library), _OWN.get(library, CHECKS).get(name, CHECKS.get(name))
    call = attrgetter(name)(held) if own is None else partial(own, held)
    return _raising(call) if library is Library.CUPY else call


def _raising(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of CuPy's that looks whether its solver failed."""
    errors = import_module("cupyx").errstate

    def looking(*given: Any, **options: Any) -> Any:
        with errors(linalg="raise"):
            return call(*given, **options)

    return looking


def lacks_function(library: Library, name: str) -> str:
    """Return what to write where ``library`` has no such function on CUDA, or ''."""
    if library is Library.TORCH and name == "linalg.lstsq":
        return "write np.linalg.pinv(a) @ b: torch's takes matrices of full rank alone"
    return ""


def _torch_svd(
    torch: Any, a: Any, full_matrices: bool, compute_uv: bool, hermitian: bool
) -> Any:
    del hermitian  # its decomposition is one of all matrices, too
    if not compute_uv:
        return torch.linalg.svdvals(a)
    return tuple(torch.linalg.svd(a, full_matrices=full_matrices))


def _torch_qr(torch: Any, a: Any, mode: str) -> Any:
    found = tuple(torch.linalg.qr(a, mode=mode))
    return found[1] if mode == "r" else found


def _torch_pinv(torch: Any, a: Any, hermitian: bool, **cutoffs: Any) -> Any:
    cutoff = _cutoff(cutoffs, max(a.shape[-2:]) * torch.finfo(a.dtype).eps)
    return torch.linalg.pinv(a, rtol=cutoff, hermitian=hermitian)


def _cutoff(given: Mapping[str, Any], usual: float) -> float:
    """Return below which share of the greatest one NumPy takes values for zero."""
    if "rtol" in given:
        return usual if given["rtol"] is None else given["rtol"]
    return given.get("rcond", _CUTOFF)


def _torch_rank(
    torch: Any, a: Any, hermitian: bool, tol: Any = None, rtol: Any = None
) -> Any:
    limits = {"rtol": rtol} if tol is None else {"atol": tol, "rtol": 0.0}
    return torch.linalg.matrix_rank(a, **limits, hermitian=hermitian)


def _torch_solve(torch: Any, a: Any, y: Any) -> Any:
    if y.ndim == 1:
        return torch.linalg.solve(a, y[:, None].expand(*a.shape[:-1], 1))[..., 0]
    for _ in range(a.ndim - y.ndim):  # or torch takes a matrix for a stack of vectors
        y = y[None]
    return torch.linalg.solve(a, y)


def _torch_wave(name: str) -> Callable[..., Any]:
    def call(
        torch: Any,
        a: Any,
        norm: str | None,
        axis: int | None = None,
        axes: tuple[int, ...] | None = None,
        **size: int,
    ) -> Any:
        dim = axis if axes is None else axes
        return getattr(torch.fft, name)(a, dim=dim, norm=norm, **size)

    return call


def _cupy_cholesky(cupy: Any, a: Any, upper: bool) -> Any:
    if not upper:
        return cupy.linalg.cholesky(a)
    return cupy.linalg.cholesky(a.swapaxes(-1, -2)).swapaxes(-1, -2)


def _cupy_svd(
    cupy: Any, a: Any, full_matrices: bool, compute_uv: bool, hermitian: bool
) -> Any:
    del hermitian
    found = cupy.linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def _cupy_pinv(cupy: Any, a: Any, hermitian: bool, **cutoffs: Any) -> Any:
    del hermitian
    usual = max(a.shape[-2:]) * cupy.finfo(a.dtype).eps
    return cupy.linalg.pinv(a, _cutoff(cutoffs, usual))


def _cupy_lstsq(cupy: Any, a: Any, y: Any, rcond: Any = None) -> Any:
    return cupy.linalg.lstsq(a, y, rcond)


def _cupy_rank(
    cupy: Any, a: Any, hermitian: bool, tol: Any = None, rtol: Any = None
) -> Any:
    del hermitian
    values = cupy.linalg.svd(a, compute_uv=False)
    if tol is None:
        share = max(a.shape[-2:]) * cupy.finfo(a.dtype).eps if rtol is None else rtol
        tol = share * values.max(-1, keepdims=True)
    return (values > tol).sum(-1)


_ERRORS: dict[str, Callable[[], ArithmeticError]] = {
    "division": lambda: ZeroDivisionError("division by zero"),
    "power": lambda: OverflowError(34, "Numerical result out of range"),
}


def _within(_: Any, x: Any, low: int, high: int, dtype: str) -> Any:
    """Return integers that lie between two, and raise as NumPy for others."""
    ends = (x.min(), x.max()) if all(x.shape) else ()
    for number in map(int, ends):
        if not low <= number <= high:
            if dtype in _ERRORS:
                raise _ERRORS[dtype]()
            message = f"Python integer {number} out of bounds for {dtype}"
            raise OverflowError(message)
    return x


def _found(
    _: Any,
    wrong: Any,
    *sizes: Any,
    places: tuple[tuple[int, int, str], ...],
    apart: int,
) -> Any:
    """Return what went wrong where that is nothing, and raise as NumPy elsewhere."""
    numbers: list[int] = wrong.reshape(-1).tolist()
    for number in numbers:
        if number:
            index, place = divmod(number, apart)
            axis, which, note = places[place - 1]
            size = int(sizes[which].max())
            message = (
                f"index {index} is out of bounds for axis {axis} with size {size}{note}"
            )
            raise IndexError(message)
    return wrong


LOOKS = ("indexing",)
"""Functions that do nothing where the first byte of an integer, their first, is 0."""

CHECKS: dict[str, Callable[..., Any]] = {"arithmetic": _within, "indexing": _found}
"""What looks at numbers, whatever the library, and raises in NumPy's words."""
_OWN: dict[Library, dict[str, Callable[..., Any]]] = {
    Library.TORCH: {
        "linalg.svd": _torch_svd,
        "linalg.qr": _torch_qr,
        "linalg.pinv": _torch_pinv,
        "linalg.matrix_rank": _torch_rank,
        "linalg.solve": _torch_solve,
        **{
            f"fft.{name}": _torch_wave(name)
            for name in ("fft", "ifft", "fftn", "ifftn", "rfft", "irfft")
        },
    },
    Library.CUPY: {
        "linalg.cholesky": _cupy_cholesky,
        "linalg.lstsq": _cupy_lstsq,
        "linalg.svd": _cupy_svd,
        "linalg.pinv": _cupy_pinv,
        "linalg.matrix_rank": _cupy_rank,
    },
}
