# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 (an argument has the name that NumPy gives it)
"""Decompositions and solvers of matrices, which the array library computes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import OptionError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def called(t: Tracer, name: str, *operands: Any, **options: Any) -> list[Any]:
    """Return the results of a function of the array library."""
    held = [t.tensor(array(t, x)) for x in operands]
    return list(t.apply(ops.called, f"linalg.{name}", held, **options))


def _plain(name: str) -> Any:
    def handler(t: Tracer, *operands: Any) -> Any:
        return called(t, name, *operands)[0]

    return handler


def _named(kind: Any, found: list[Any]) -> Any:
    """Return results under the names that NumPy gives them."""
    return type(kind)(*found)


def _cholesky(t: Tracer, a: Any, /, *, upper: bool = False) -> Any:
    (found,) = called(t, "cholesky", a, upper=bool(upper))
    return found


def _slogdet(t: Tracer, a: Any) -> Any:
    return _named(np.linalg.slogdet(np.eye(1)), called(t, "slogdet", a))


def _half(UPLO: Any) -> str:
    if str(UPLO).upper() not in ("L", "U"):
        message = "UPLO argument must be 'L' or 'U'"
        raise OptionError(message)
    return str(UPLO).upper()


def _eigh(t: Tracer, a: Any, UPLO: str = "L") -> Any:
    found = called(t, "eigh", a, UPLO=_half(UPLO))
    return _named(np.linalg.eigh(np.eye(1)), found)


def _eigvalsh(t: Tracer, a: Any, UPLO: str = "L") -> Any:
    return called(t, "eigvalsh", a, UPLO=_half(UPLO))[0]


def _svd(
    t: Tracer,
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
) -> Any:
    options = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    found = called(t, "svd", a, **options, hermitian=bool(hermitian))
    return _named(np.linalg.svd(np.eye(1)), found) if compute_uv else found[0]


def _svdvals(t: Tracer, x: Any, /) -> Any:
    return _svd(t, x, compute_uv=False)


def _qr(t: Tracer, a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        message = (
            f"write mode 'reduced', 'complete' or 'r': qr has no fused form in {mode!r}"
        )
        raise UnsupportedError(message)
    found = called(t, "qr", a, mode=mode)
    return found[0] if mode == "r" else _named(np.linalg.qr(np.eye(1)), found)


def _tolerances(**given: Any) -> dict[str, Any]:
    """Return the tolerances that are given, which must be numbers of the program."""
    found: dict[str, Any] = {}
    for name, number in given.items():
        if number is None or isinstance(number, bool | int | float):
            found |= {} if number is None else {name: number}
        else:
            message = f"write {name}= as a number of Python's, found {number!r}"
            raise UnsupportedError(message)
    return found


def _pinv(
    t: Tracer,
    a: Any,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = MISSING,
) -> Any:
    if rtol is MISSING:
        options = _tolerances(rcond=rcond)
    else:  # None stands for another number than what is not given
        options = {"rtol": None} | _tolerances(rcond=rcond, rtol=rtol)
    return called(t, "pinv", a, **options, hermitian=bool(hermitian))[0]


def _matrix_rank(
    t: Tracer, A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None
) -> Any:
    held = array(t, A)
    if held.ndim < 2:
        return np.any(held != 0).astype(np.int64)
    options = _tolerances(tol=tol, rtol=rtol)
    return called(t, "matrix_rank", held, **options, hermitian=bool(hermitian))[0]


def _matrix_power(t: Tracer, a: Any, n: Any) -> Any:
    x, n = array(t, a), operator.index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        message = (
            "matrix_power: expected square matrices, found an array of shape "
            f"{tuple(map(int, x.shape))}"
        )
        raise ShapeError(message)
    if n == 1 and isinstance(a, Standin):
        return a  # and no copy of it, as in NumPy
    if not n:
        one = t.handlers["eye"](t, x.shape[-1], dtype=x.dtype)
        return np.broadcast_to(one, x.shape).copy()
    if n < 0:
        x, n = called(t, "inv", x)[0], -n
    if n == 3:
        return (x @ x) @ x
    found = None
    while n:  # in the order in which NumPy multiplies
        n, is_odd = divmod(n, 2)
        if is_odd:
            found = x if found is None else found @ x
        x = x @ x if n else x
    return found


def _lstsq(t: Tracer, a: Any, b: Any, rcond: Any = None) -> Any:
    return tuple(called(t, "lstsq", a, b, **_tolerances(rcond=rcond)))


def _of_values(name: str, instead: str) -> Any:
    def handler(t: Tracer, *args: Any, **options: Any) -> Any:
        del t, args, options
        message = (
            f"write np.linalg.{instead} for matrices that are symmetric, or call it "
            f"outside: whether np.linalg.{name} gives complex numbers depends on values"
        )
        raise UnsupportedError(message)

    return handler


HANDLERS = {
    "linalg.cholesky": _cholesky,
    "linalg.det": _plain("det"),
    "linalg.eig": _of_values("eig", "eigh"),
    "linalg.eigh": _eigh,
    "linalg.eigvals": _of_values("eigvals", "eigvalsh"),
    "linalg.eigvalsh": _eigvalsh,
    "linalg.inv": _plain("inv"),
    "linalg.lstsq": _lstsq,
    "linalg.matrix_power": _matrix_power,
    "linalg.matrix_rank": _matrix_rank,
    "linalg.pinv": _pinv,
    "linalg.qr": _qr,
    "linalg.slogdet": _slogdet,
    "linalg.solve": _plain("solve"),
    "linalg.svd": _svd,
    "linalg.svdvals": _svdvals,
}
