# SPDX-License-Identifier: Apache-2.0
"""Functions of linalg and fft are NumPy's: dtypes, stacks, sizes, errors."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser.errors import (
    DTypeError,
    HostError,
    OptionError,
    ShapeError,
    UnsupportedError,
)

RNG = np.random.default_rng(0)
STACKS = [(), (3,), (2, 3)]
DTYPES = ["f8", "f4", "c16", "c8", "i8"]


def agree(function: Any, *arrays: Any, backend: str = "cpu") -> None:
    """Hold results against NumPy's: structure, dtypes, shapes, values."""
    wanted = function(*arrays)
    found = nfuser.fuse(function, backend=backend)(*arrays)
    assert type(found) is type(wanted) or not isinstance(wanted, tuple)
    for one, other in zip(_flat(found), _flat(wanted), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        is_short = one.dtype.itemsize <= (8 if one.dtype.kind == "c" else 4)
        limit = 1e-4 if is_short else 1e-10
        np.testing.assert_allclose(one, other, limit, limit)


def _flat(found: Any) -> list[Any]:
    if isinstance(found, tuple):
        return [x for item in found for x in _flat(item)]
    return [np.asarray(found)]


def _matrix(dtype: str, stack: tuple[int, ...]) -> Any:
    x = (RNG.random((*stack, 4, 4)) * 5).astype(dtype)
    return x + (1j * RNG.random(x.shape)).astype(dtype) if "c" in dtype else x


def _definite(dtype: str, stack: tuple[int, ...]) -> Any:
    x = _matrix(dtype, stack)
    return (x @ np.swapaxes(x.conj(), -1, -2) + 5 * np.eye(4)).astype(dtype)


@pytest.mark.parametrize("stack", STACKS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_square_matrices(dtype: str, stack: tuple[int, ...]) -> None:
    def work(x: Any, y: Any, v: Any) -> Any:
        return (
            np.linalg.cholesky(x),
            np.linalg.inv(x + 0) * 2,
            np.linalg.det(x),
            np.linalg.slogdet(x),
            np.linalg.eigh(x)[0],
            np.abs(np.linalg.eigh(x).eigenvectors),
            np.linalg.eigvalsh(x, "U"),
            np.linalg.solve(x, y) + 1,
            np.linalg.solve(x, v),
        )

    x = _definite(dtype, stack)
    agree(work, x, _matrix(dtype, stack)[..., :2], np.ones(4, dtype))


@pytest.mark.parametrize("stack", STACKS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_matrices(dtype: str, stack: tuple[int, ...]) -> None:
    def work(x: Any) -> Any:
        u, s, v = np.linalg.svd(x, full_matrices=False)
        return (
            (u * s[..., None, :]) @ v,
            np.linalg.svd(x)[1],
            np.linalg.svd(x, compute_uv=False),
            np.linalg.qr(x),
            np.linalg.qr(x, "complete"),
            np.linalg.qr(x, "r"),
            np.linalg.pinv(x),
            np.linalg.matrix_rank(x),
        )

    agree(work, _matrix(dtype, stack)[..., :3])


def test_results_have_the_names_that_numpy_gives_them() -> None:
    x = _definite("f8", ())
    agree(np.linalg.eigh, x)
    agree(np.linalg.svd, x)
    agree(lambda x: np.linalg.slogdet(x), x)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_least_squares(dtype: str) -> None:
    x, y = _matrix(dtype, ())[:, :3], _matrix(dtype, ())[:, :2]
    agree(np.linalg.lstsq, x, y)
    agree(lambda a, b: np.linalg.lstsq(a, b[:, 0])[0], x, y)
    agree(lambda a, b: np.linalg.lstsq(a.T, b[:3])[:2], x, y)


@pytest.mark.parametrize("stack", STACKS[:2], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_transforms(dtype: str, stack: tuple[int, ...]) -> None:
    def work(x: Any) -> Any:
        return (
            np.fft.fft(x),
            np.fft.ifft(x * 2, axis=0, norm="ortho"),
            np.fft.fft(x, 7),
            np.fft.fft(x, 2, axis=-2),
            np.fft.fft2(x),
            np.fft.ifft2(x, (3, 5)),
            np.fft.fftn(x),
            np.fft.ifftn(x, axes=(0,)),
            np.fft.irfft(x),
            np.fft.irfft(x, 5),
            np.fft.irfft(x, 9),
            np.fft.irfft2(x),
            np.fft.irfftn(x, (3, 4), (-2, -1)),
            np.fft.fftshift(x),
            np.fft.ifftshift(x, axes=-1),
        )

    x = _matrix(dtype, stack)
    agree(work, x)
    if "c" not in dtype:
        agree(lambda x: (np.fft.rfft(x), np.fft.rfft(x, 7)), x)
        agree(lambda x: (np.fft.rfft2(x), np.fft.rfftn(x)), x)


def test_frequencies_of_open_sizes() -> None:
    fused = nfuser.fuse(
        lambda x: (xp.fft.fftfreq(len(x), 0.5), xp.fft.rfftfreq(len(x)))
    )
    for n in (5, 8, 9):
        one, other = fused(np.zeros(n))
        np.testing.assert_allclose(one, np.fft.fftfreq(n, 0.5), 1e-15)
        np.testing.assert_allclose(other, np.fft.rfftfreq(n), 1e-15)


def test_one_trace_serves_all_sizes() -> None:
    fused = nfuser.fuse(lambda x: np.fft.irfft(np.fft.rfft(x), x.shape[0]))
    for n in (4, 8, 9):
        x = RNG.random(n)
        np.testing.assert_allclose(fused(x), x, 1e-12)
    assert fused.cache_info().traces == 1


def test_they_run_beside_kernels_of_the_interpreter() -> None:
    x = _definite("f8", ())
    agree(lambda x: np.linalg.solve(x, x + 1) * 2, x, backend="interpret")
    agree(lambda x: np.abs(np.fft.fft(x * 2)), x, backend="interpret")


def test_they_run_in_loops() -> None:
    def work(x: Any, steps: Any) -> Any:
        for _ in range(steps):
            x = np.linalg.inv(x) * 0.5 + x * 0.1
        return x

    x = _definite("f8", ())
    fused = nfuser.fuse(work)
    for steps in (3, 40):
        np.testing.assert_allclose(fused(x, steps), work(x, steps), 1e-8)


def test_nothing_is_there_of_empty_matrices() -> None:
    for function, shape in (
        (np.linalg.det, (0, 0)),
        (np.linalg.inv, (2, 0, 0)),
        (np.linalg.cholesky, (0, 3, 3)),
        (np.fft.fft, (0, 3)),
    ):
        agree(lambda x, function=function: function(x), np.zeros(shape))


def test_errors_are_those_of_the_library_and_nothing_is_torn() -> None:
    def work(x: Any, y: Any) -> None:
        x += 1
        y[...] = np.linalg.inv(x)

    x, y = np.zeros((3, 3)), np.zeros((3, 3))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix") as told:
        nfuser.fuse(work)(x, y)
    assert isinstance(told.value, HostError)
    assert not y.any()
    assert len(set(x.ravel())) == 1
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        nfuser.fuse(lambda x: np.linalg.cholesky(x))(-np.eye(3))


def test_what_cannot_be_is_refused_by_name() -> None:
    def run(function: Any, x: Any) -> Any:
        return nfuser.fuse(lambda x: function(x))(x)

    with pytest.raises(ShapeError, match="must be square"):
        run(np.linalg.inv, np.zeros((3, 4)))
    with pytest.raises(ShapeError, match="at least two-dimensional"):
        run(np.linalg.inv, np.zeros(3))
    with pytest.raises(UnsupportedError, match=r"write np\.linalg\.eigh"):
        run(np.linalg.eig, np.eye(3))
    with pytest.raises(DTypeError, match="takes no arrays of f16"):
        run(np.linalg.det, np.eye(3, dtype="f2"))
    with pytest.raises(DTypeError, match=r"write x\.real"):
        run(np.fft.rfft, np.ones(3, complex))
    with pytest.raises(OptionError, match="data points"):
        run(lambda x: np.fft.fft(x, 0), np.ones(3))
    with pytest.raises(UnsupportedError, match="has no derivative yet"):
        nfuser.grad(lambda x: np.sum(np.linalg.inv(x)))(np.eye(3))


def test_explain_names_them() -> None:
    told = str(nfuser.fuse(lambda x: np.abs(np.fft.fft(x)) + 1).explain(np.ones(8)))
    assert "1 call of the array library" in told
    assert "fft.fft by numpy" in told


def test_tensors_of_torch_are_read_where_they_lie() -> None:
    torch = pytest.importorskip("torch")
    x = _definite("f8", ())
    fused = nfuser.fuse(lambda x: np.linalg.solve(x, x * 2))
    found = fused(torch.from_numpy(x))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), np.eye(4) * 2, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"rtol": None}, {"rtol": 0.1}, {"rcond": 0.1}])
def test_what_pinv_takes_for_zero(options: Any) -> None:
    given = np.diag(np.array([1, 0.05, 1e-8], np.float32))
    agree(lambda a: np.linalg.pinv(a, **options), given)


def test_residuals_without_full_rank_are_refused_with_what_to_write() -> None:
    a, b = np.ones((5, 2)), np.arange(5.0)
    agree(lambda a, b: np.linalg.lstsq(a, b)[0], a, b)
    with pytest.raises(HostError, match=r"write np\.linalg\.pinv\(a\) @ b"):
        nfuser.fuse(lambda a, b: np.linalg.lstsq(a, b)[1])(a, b)
