# SPDX-License-Identifier: Apache-2.0
"""Products of matrices in fused functions: the array library's, and few kernels."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser.compiler.dtypes import DType
from nfuser.errors import NfuserError, ShapeError, UnsupportedError
from nfuser.execution.device.describe.libraries import Device, Library
from nfuser.execution.host.call.library.library_calls import library_call
from nfuser.execution.host.call.program import CallLibrary, Operand, Slot, SlotPart
from tests.fuzz.backends import from_torch, to_torch

if TYPE_CHECKING:
    from collections.abc import Callable

BACKENDS = ("cpu", "interpret", "torch", pytest.param("cuda", marks=pytest.mark.gpu))
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64")
INTEGERS = ("int8", "uint8", "int32", "int64", "bool")


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _layer(x: Any, w: Any, b: Any) -> Any:
    return _relu(x @ w + b)


def _attend(q: Any, k: Any, v: Any) -> Any:
    scores = xp.softmax(q @ np.swapaxes(k, -1, -2) / 4, axis=-1)
    return scores @ v


# Each with the shapes of its arguments, and how many kernels run beside the products.
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], int]] = {
    "alone": (lambda x, y: x @ y, ((3, 4), (4, 5)), 0),
    "layer": (_layer, ((6, 4), (4, 5), (5,)), 1),
    "linear": (lambda x, w, b: x @ w.T + b, ((6, 4), (5, 4), (5,)), 1),
    "before": (lambda x, y: np.exp(x) @ y, ((3, 4), (4, 5)), 1),
    "around": (lambda x, y: (x * 2) @ (y + 1) - x[:, :1], ((3, 4), (4, 5)), 3),
    "in a row": (lambda x, y: x @ y @ x, ((3, 4), (4, 3)), 0),
    "with itself": (lambda x: x @ x.T, ((3, 4),), 0),
    "stacks": (lambda x, y: x @ y, ((2, 1, 3, 4), (5, 4, 2)), 0),
    "stack and matrix": (lambda x, y: np.matmul(x, y) * 2, ((7, 3, 4), (4, 5)), 1),
    "permuted stacks": (
        lambda x, y: np.matmul(x.transpose(1, 0, 2, 3), y),
        ((2, 3, 4, 5), (3, 2, 5, 6)),
        0,
    ),
    "row": (lambda x, y: x @ y + 1, ((4,), (4, 5)), 1),
    "column": (lambda x, y: x @ y, ((3, 4), (4,)), 0),
    "inner": (lambda x, y: xp.matmul(x, y) + 1, ((4,), (4,)), 1),
    "stack of rows": (lambda x, y: x @ y, ((4,), (3, 4, 5)), 0),
    "stack of columns": (lambda x, y: x @ y, ((3, 5, 4), (4,)), 0),
    "slices": (lambda x, w: x[1:, ::2] @ w[:2], ((4, 4), (3, 5)), 0),
    "reversed": (lambda x, w: x[::-1] @ w, ((4, 4), (4, 5)), 1),
    "reshaped": (lambda x, w: x.reshape(-1, 4) @ w, ((2, 3, 4), (4, 5)), 0),
    "one of many": (lambda x, w: x[1] @ w, ((2, 3, 4), (4, 5)), 0),
    "expanded": (
        lambda x, w: np.broadcast_to(x, (5, 3, 4)) @ w,
        ((3, 4), (4, 5)),
        0,
    ),
    "also read": (lambda x, y: (x.T @ y, x.T + 1), ((4, 3), (4, 5)), 1),
    "given twice": (lambda x, y: (x @ y, x @ y), ((3, 4), (4, 5)), 1),
    "sum of it": (lambda x, y: (x @ y).sum(axis=0), ((3, 4), (4, 5)), 1),
    "ones": (lambda x: np.ones((2, 4), x.dtype) @ x, ((4, 5),), 1),
    "in place": (lambda x, y: _written(x * 1, y), ((4, 4), (4, 4)), 2),
    "no inner": (lambda x, y: x @ y + 1, ((3, 0), (0, 5)), 1),
    "no rows": (lambda x, y: x @ y + 1, ((0, 4), (4, 5)), 0),
    "of size 1": (lambda x, y: x @ y + 1, ((1, 1), (1, 1)), 1),
    "attention": (_attend, ((2, 3, 4), (2, 5, 4), (2, 5, 6)), 1),
}


def _written(x: Any, y: Any) -> Any:
    x @= y
    return x + 1


def _array(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        return rng.integers(0, 5, shape).astype(dtype)
    made = rng.standard_normal(shape)
    if dtype == "complex64":
        made = made + 1j * rng.standard_normal(shape)
    if dtype == "bfloat16":
        return made.astype(pytest.importorskip("ml_dtypes").bfloat16)
    return made.astype(dtype)


def _run(function: Callable[..., Any], backend: str, *args: Any) -> list[Any]:
    is_torch = backend in ("torch", "cuda")
    if backend == "cuda":
        args = tuple(map(to_torch, args))
    if backend == "torch":
        torch = pytest.importorskip("torch")
        args = tuple(torch.from_numpy(a) for a in args)
    place = None if is_torch else backend
    found = nfuser.fuse(function, backend=place, dialect="numpy")(*args)
    listed = list(found) if isinstance(found, tuple) else [found]
    return [from_torch(x) if backend == "cuda" else np.asarray(x) for x in listed]


def _assert_like(found: list[Any], wanted: Any, rtol: float = 1e-5) -> None:
    listed = list(wanted) if isinstance(wanted, tuple) else [wanted]
    assert len(found) == len(listed)
    for made, expected in zip(found, listed, strict=True):
        assert (made.shape, made.dtype) == (np.shape(expected), expected.dtype)
        scale = np.abs(np.asarray(expected, complex)).max(initial=1)
        np.testing.assert_allclose(
            made.astype(complex), expected.astype(complex), rtol, rtol * scale
        )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_numpy_has_the_same(name: str, backend: str) -> None:
    function, shapes, _ = CASES[name]
    args = [_array(shape, "float32", k) for k, shape in enumerate(shapes)]
    _assert_like(_run(function, backend, *args), function(*args))


@pytest.mark.parametrize("name", CASES)
def test_kernels_run_what_the_library_does_not(name: str) -> None:
    function, shapes, kernels = CASES[name]
    args = [_array(shape, "float32", k) for k, shape in enumerate(shapes)]
    assert len(nfuser.fuse(function).kernels(*args)) == kernels


@pytest.mark.parametrize("name", ["permuted stacks", "stacks", "linear", "alone"])
def test_products_lie_in_memory_as_numpys(name: str) -> None:
    function, shapes, _ = CASES[name]
    args = [_array(shape, "float32", k) for k, shape in enumerate(shapes)]
    args += [np.asfortranarray(args.pop())]
    assert nfuser.fuse(function)(*args).strides == function(*args).strides


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_each_dtype_is_multiplied_in_itself(dtype: str, backend: str) -> None:
    if backend == "cuda" and dtype in INTEGERS and dtype != "bool":
        pytest.skip("torch multiplies no integers there")
    x, w = _array((6, 5), dtype, 1), _array((5, 7), dtype, 2)
    if backend in ("torch", "cuda") and dtype == "bfloat16":
        pytest.skip("torch reads no NumPy bfloat16")
    wanted = np.asarray(x @ w).astype(x.dtype)
    rtol = {"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 2e-5)
    _assert_like(_run(lambda x, w: x @ w, backend, x, w), wanted, rtol)
    if dtype != "bool":
        _assert_like(
            _run(lambda x, w: x @ w + w[0], backend, x, w), wanted + w[0], rtol
        )


@pytest.mark.parametrize("pair", [("int32", "float32"), ("float16", "float64")])
def test_two_dtypes_meet_as_numpys_do(pair: tuple[str, str]) -> None:
    x, w = _array((6, 5), pair[0], 1), _array((5, 7), pair[1], 2)
    for backend in ("cpu", "torch"):
        _assert_like(_run(lambda x, w: x @ w, backend, x, w), x @ w)


# -- one trace for all sizes ---------------------------------------------------


def test_new_sizes_need_no_trace_and_no_kernel() -> None:
    layer = nfuser.fuse(_layer)
    for rows, inner, columns in ((6, 4, 5), (60, 40, 50), (7, 3, 9)):
        x, w = (
            _array((rows, inner), "float32", 1),
            _array((inner, columns), "float32", 2),
        )
        b = _array((columns,), "float32", 3)
        _assert_like([layer(x, w, b)], _layer(x, w, b))
        _assert_like([layer(x, w, b)], _layer(x, w, b))
    info = layer.cache_info()
    assert (info.traces, info.concretizations, info.calls, info.hits) == (1, 1, 6, 3)


def test_sizes_that_do_not_fit_are_refused_with_the_line() -> None:
    x, w, b = (_array(s, "float32", 1) for s in ((6, 4), (4, 5), (5,)))
    layer = nfuser.fuse(_layer)
    for ready in (False, True):
        if ready:
            layer(x, w, b)
        with pytest.raises(ShapeError, match=r"size 6 is different from 4") as caught:
            layer(x, x, b)
        assert "x @ w + b" in str(caught.value)
        with pytest.raises(ValueError, match="size 6 is different from 4"):
            _layer(x, x, b)


BAD: list[tuple[Callable[[Any], Any], type[NfuserError], str]] = [
    (lambda x: x @ 2.0, ShapeError, "input operand 1 does not have enough dimensions"),
    (lambda x: 2.0 @ x, ShapeError, "input operand 0 does not have enough dimensions"),
    (lambda x: x @ x.sum(), ShapeError, "enough dimensions"),
    (lambda x: x @ x[0, :2], ShapeError, "core dimension 0"),
    (
        lambda x: x[None, None] @ np.ones((2, 3, 4, 4)) @ np.ones((5, 3, 4, 4)),
        ShapeError,
        r"stacks of shapes \(2,3\) \(5,3\)",
    ),
    (
        lambda x: np.matmul(x, x, axes=[(0, 1), (0, 1), (0, 1)]),
        UnsupportedError,
        "axes",
    ),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case[2])
def test_what_is_no_product_is_refused(case: Any) -> None:
    function, kind, message = case
    with pytest.raises(kind, match=message):
        nfuser.fuse(function)(_array((4, 4), "float32", 1))


def test_libraries_without_a_product_are_refused_before_anything_runs() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones((2, 2), dtype=torch.uint32)
    with pytest.raises(UnsupportedError, match="torch multiplies no matrices of u32"):
        nfuser.fuse(lambda x: x @ x)(x)


@pytest.mark.parametrize("library", [Library.NUMBA, Library.JAX])
def test_device_arrays_that_nobody_multiplies_are_refused(library: Library) -> None:
    slot = Slot("x", (2, 2), (2, 1), DType.F32)
    stmt = CallLibrary("matmul", (Operand(SlotPart(slot)),) * 2, slot)
    with pytest.raises(UnsupportedError, match="pass arrays of PyTorch or CuPy"):
        library_call(stmt, library, Device("cuda"))


def test_jaxs_arrays_on_the_cpu() -> None:
    jax: Any = pytest.importorskip("jax")
    x, w = _array((3, 4), "float32", 1), _array((5, 4), "float32", 2)
    given = [jax.device_put(a, jax.devices("cpu")[0]) for a in (x, w)]
    for function in (lambda x, w: x @ w.T, lambda x, w: np.exp(x @ w.T) * 2):
        found = nfuser.fuse(function)(*given)
        assert isinstance(found, jax.Array)
        _assert_like([np.asarray(found)], function(x, w))


# -- inside other functions ----------------------------------------------------


def test_fused_functions_are_inlined() -> None:
    layer = nfuser.fuse(_layer)
    two = nfuser.fuse(lambda x, w, b: layer(layer(x, w, b), w, b) * 2)
    x, w, b = (_array(s, "float32", k) for k, s in enumerate(((6, 4), (4, 4), (4,))))
    _assert_like([two(x, w, b)], _layer(_layer(x, w, b), w, b) * 2)
    assert len(two.kernels(x, w, b)) == 2


def test_numpys_arrays_beside_torchs() -> None:
    torch = pytest.importorskip("torch")
    x, w = _array((3, 4), "float32", 1), _array((4, 5), "float32", 2)
    w.setflags(write=False)
    found = nfuser.fuse(lambda x, w: x @ w[::-1].T.T + 1)(torch.from_numpy(x), w)
    assert isinstance(found, torch.Tensor)
    _assert_like([found.numpy()], x @ w[::-1] + 1)


def test_arrays_of_any_strides_are_read_in_place() -> None:
    x, w = _array((6, 8), "float32", 1), _array((4, 5), "float32", 2)
    layer = nfuser.fuse(lambda x, w: x @ w)
    for given in (x[::-1, ::2], x[:, 4:], np.asfortranarray(x[:, :4]), x[::2, :4]):
        _assert_like([layer(given, w)], given @ w)


def test_an_outputs_buffer_is_written_by_the_library() -> None:
    x, w = _array((3, 4), "float32", 1), _array((4, 5), "float32", 2)
    out = np.empty((3, 5), np.float32)
    bound = nfuser.fuse(lambda x, w: x @ w).bind(x, w, out=out)
    assert bound() is out
    _assert_like([out], x @ w)


def _scattered(x: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred @ centred.T


@pytest.mark.parametrize("function", [np.cov, _scattered])
def test_a_computed_matrix_is_stored_once_for_its_product_with_itself(
    function: Callable[[Any], Any],
) -> None:
    x = _array((30, 200), "float64", 3)
    fused = nfuser.fuse(lambda x: function(x))
    _assert_like([fused(x)], function(x))
    told = str(fused.explain(x))
    assert told.count("stores 48,000 bytes") == 1, told


def test_a_stack_that_is_turned_between_its_matrices_is_stored_for_the_library() -> (
    None
):
    x, y = _array((4, 5, 6), "float64", 1), _array((4, 6, 5), "float64", 2)

    def swapped(x: Any, y: Any) -> Any:
        made = np.tanh(x)
        return made.transpose(1, 0, 2) @ y.transpose(2, 1, 0)[:, :, :3]

    def turned(x: Any, y: Any) -> Any:
        return np.tanh(x).swapaxes(1, 2) @ np.tanh(y).swapaxes(1, 2)

    for function in (swapped, turned):
        _assert_like([nfuser.fuse(function)(x, y)], function(x, y))


# -- programs of many of them --------------------------------------------------

STEPS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a @ b,
    lambda a, b: a @ b.T,
    lambda a, b: a.T @ b,
    lambda a, b: np.matmul(a[None], b)[0],
    lambda a, b: np.tanh(a) + b,
    lambda a, b: a * b.mean(axis=1, keepdims=True),
    lambda a, b: a.T * 0.5,
    lambda a, b: (a[:, :3] @ b[:3]) / 3,
    lambda a, b: a[::-1] @ b,
    lambda a, b: a.reshape(3, 2, 6).reshape(6, 6) @ b,
    lambda a, b: a @ b[:, 0] + b,
    lambda a, b: a - b.cumsum(axis=0),
)


def _random(seed: int) -> Callable[..., Any]:
    rng = np.random.default_rng(seed)
    chosen = [(int(rng.integers(len(STEPS))), *rng.integers(0, 9, 2)) for _ in range(7)]

    def program(*given: Any) -> Any:
        held = list(given)
        for step, one, two in chosen:
            made = STEPS[step](held[-1 - one % len(held)], held[two % len(held)])
            held.append(made / 4)
        return tuple(held[len(given) :: 2])

    return program


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int) -> None:
    program = _random(seed)
    args = [_array((6, 6), "float64", k) for k in range(2)]
    for backend in ("cpu", "interpret", "torch"):
        _assert_like(_run(program, backend, *args), program(*args), 1e-9)
