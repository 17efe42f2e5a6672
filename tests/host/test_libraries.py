# SPDX-License-Identifier: Apache-2.0
"""What array libraries compute on a device, tried with NumPy and with tensors here."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.call.library.library_calls as library_calls
from nfuser.execution.device.describe.libraries import Library
from nfuser.execution.host.call.library.sorted_scatters import sorted_scatter

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(0)
LIBRARIES = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.fixture(params=LIBRARIES)
def computing(request: pytest.FixtureRequest, monkeypatch: Any) -> Library:
    """Let calls go to a library as they do on a device, and return it."""
    library = Library(request.param)
    if library is Library.TORCH:
        pytest.importorskip("torch")

    def scatter(stmt: Any, scattered: Any, reading: Any) -> Any:
        arrays = library_calls.arrays_of(library, library_calls.Device("cpu"))
        own = library_calls._reading(stmt, arrays)  # pyright: ignore[reportPrivateUsage]
        return sorted_scatter(stmt, scattered, arrays, own)

    monkeypatch.setattr(library_calls, "scatter_call", scatter)
    products = library_calls.caller

    def caller(name: str, own: Library, device: Any) -> Library:
        return products(name, own, device) if name == "matmul" else library

    monkeypatch.setattr(library_calls, "caller", caller)
    return library


def agree(function: Callable[..., Any], *arrays: Any, limit: float = 0) -> None:
    """Hold a fused function's results and arguments against NumPy's."""
    theirs, mine = [x.copy() for x in arrays], [x.copy() for x in arrays]
    wanted = function(*theirs)
    found = nfuser.fuse(function)(*mine)
    wanted, found = ([x] if not isinstance(x, tuple) else x for x in (wanted, found))
    for one, other in zip((*wanted, *theirs), (*found, *mine), strict=True):
        if one is not None:
            assert other.dtype == one.dtype
            np.testing.assert_allclose(other, one, limit, limit)


@pytest.mark.usefixtures("computing")
@pytest.mark.parametrize("count", [0, 1, 5, 1000])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "u4", "c16", "?"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_at(name: str, dtype: str, count: int, computing: Library) -> None:
    is_compared = name in ("maximum", "minimum")
    refused = [
        (dtype == "c16" and name not in ("add", "subtract")),
        (dtype == "?" and name == "subtract"),
        (dtype == "u4" and is_compared and computing is Library.TORCH),
    ]
    if any(refused):
        pytest.skip("refused by name, or by NumPy")

    def work(x: Any, i: Any, v: Any) -> None:
        getattr(np, name).at(x, i, v)

    index = RNG.integers(-50, 50, count)
    values = (RNG.random(count) * 1.5).astype(dtype)
    agree(work, np.ones(50, dtype), index, values, limit=1e-5)
    agree(work, np.ones(100, dtype)[::2], np.sort(index), values, limit=1e-5)


@pytest.mark.usefixtures("computing")
@pytest.mark.parametrize("dtype", ["f8", "i4", "u4", "c8"])
def test_assignment_by_an_index_takes_the_last(dtype: str) -> None:
    def work(x: Any, i: Any, j: Any, v: Any, rows: Any) -> None:
        x[i, j] = v
        x[j] = rows
        x[i] += 1
        x[:, i % 4] = 7

    i, j = RNG.integers(-6, 6, 300), RNG.integers(0, 5, 300)
    values, rows = RNG.random(300) * 9, RNG.random((300, 5)) * 9
    agree(work, np.ones((6, 5), dtype), i, j, values.astype(dtype), rows.astype(dtype))


@pytest.mark.usefixtures("computing")
def test_an_index_out_of_range_writes_nothing() -> None:
    def work(x: Any, i: Any) -> None:
        x[i] = 3.0

    held = np.zeros(5)
    for index in ([0, 5], [-6, 1]):
        with pytest.raises(IndexError, match="out of bounds"):
            nfuser.fuse(work)(held, np.array(index))
    assert not held.any()


def definite(n: int, *stack: int) -> Any:
    x = RNG.random((*stack, n, n)) - 0.5
    return x @ np.swapaxes(x, -1, -2) + n * np.eye(n)


def _from_values(a: Any) -> Any:
    values, vectors = np.linalg.eigh(a)
    return vectors * values[..., None, :] @ vectors.swapaxes(-1, -2)


def _from_singular_values(a: Any) -> Any:
    left, values, right = np.linalg.svd(a, full_matrices=False)
    return left * values[..., None, :] @ right


def _from_qr(a: Any) -> Any:
    orthogonal, triangle = np.linalg.qr(a)
    return orthogonal @ triangle


def _triangle(a: Any) -> Any:
    triangle: Any = np.linalg.qr(a, mode="r")
    return np.abs(triangle)


LINALG: dict[str, Any] = {
    "cholesky": lambda a: np.linalg.cholesky(a + 0),
    "upper": lambda a: np.linalg.cholesky(a, upper=True),
    "inv": lambda a: np.linalg.inv(a * 2),
    "det": lambda a: np.linalg.det(a),
    "slogdet": lambda a: tuple(np.linalg.slogdet(a)),
    "eigvalsh": lambda a: np.linalg.eigvalsh(a, "U"),
    "eigh": _from_values,
    "svd": _from_singular_values,
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
    "qr": _from_qr,
    "r": _triangle,
    "pinv": lambda a: np.linalg.pinv(a),
    "rank": lambda a: np.linalg.matrix_rank(a[..., :1] * a[..., :1, :]),
    "rank within": lambda a: np.linalg.matrix_rank(a, tol=0.5),
    "solve": lambda a: np.linalg.solve(a, a[..., :2]),
    "solve one": lambda a: np.linalg.solve(a, np.ones(4)),
    "complex": lambda a: np.linalg.inv(a + 1j * np.eye(4)),
    "waves": lambda a: np.fft.ifft(np.fft.fft(a, axis=0, norm="ortho"), axis=0),
    "many waves": lambda a: np.fft.ifft2(np.fft.fft2(a) * 2),
    "real waves": lambda a: np.fft.irfft(np.fft.rfft(a) * 2, 5),
}


@pytest.mark.usefixtures("computing")
@pytest.mark.parametrize("stack", [(), (4,), (2, 3)], ids=str)
@pytest.mark.parametrize("function", LINALG.values(), ids=LINALG)
def test_functions(function: Any, stack: tuple[int, ...]) -> None:
    agree(function, definite(4, *stack), limit=1e-8)
