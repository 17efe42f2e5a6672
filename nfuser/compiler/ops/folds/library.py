# SPDX-License-Identifier: Apache-2.0
"""Functions that the array library computes: what each takes, and what it gives.

A row of the table says which dtype the operands meet in, and which shapes and dtypes
the results have. All that is known of a function here is its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import nfuser.compiler.ops.folds.products as products
from nfuser.compiler.dtypes import DType, promote
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import Called
from nfuser.compiler.ir.scalars.functions import equal, less, minimum
from nfuser.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

    Shape: TypeAlias = Sequence[Scalar | int]
    Results: TypeAlias = list[tuple[Shape, DType]]
    Rule: TypeAlias = Callable[
        [Builder, DType, Sequence[TensorView], Mapping[str, Any]], Results
    ]

_COMPLEX = {DType.F32: DType.C64, DType.F64: DType.C128}


@value
class _Row:
    """``results`` gives shapes and dtypes; ``meets`` the dtype of the operands.

    Some values, as those of a singular matrix, are refused if it ``may_fail``.
    """

    results: Rule
    meets: Callable[[str, DType], DType]
    may_fail: bool = False


def called(
    b: Builder, name: str, operands: Sequence[TensorView], **options: Any
) -> tuple[TensorView, ...]:
    """Return what the function ``name`` of the array library gives."""
    row = FUNCTIONS[name]
    kind = row.meets(name, promote(*(t.dtype for t in operands)))
    held = tuple(b.cast(t, kind) for t in operands)
    found = row.results(b, kind, held, options)
    made = tuple(b.new(shape, dtype) for shape, dtype in found)
    types = tuple(dtype for _, dtype in found)
    given = tuple(t.dtype for t in held)
    passed = tuple((k, v) for k, v in options.items() if k != "size")
    b.emit(Called(name, held, made, given, types, passed, row.may_fail))
    return made


def _matrices(name: str, kind: DType) -> DType:
    if kind.is_half:
        message = f"write x.astype(np.float32): {name} takes no arrays of {kind}"
        raise DTypeError(message)
    return kind if kind.is_float or kind.is_complex else DType.F64


def _waves(name: str, kind: DType) -> DType:
    del name
    if kind.is_half:
        return DType.F32
    return kind if kind.is_float or kind.is_complex else DType.F64


def _real_waves(name: str, kind: DType) -> DType:
    if kind.is_complex:
        message = f"write x.real: {name} takes real numbers, found {kind}"
        raise DTypeError(message)
    return _waves(name, kind)


def _complex_waves(name: str, kind: DType) -> DType:
    found = _waves(name, kind)
    return _COMPLEX.get(found, found)


def _sizes(
    b: Builder, x: TensorView, *, square: bool = False
) -> tuple[list[Scalar], Scalar, Scalar]:
    """Return the sizes of a stack of matrices, and of each of them."""
    if x.ndim < 2:
        message = (
            f"{x.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
        raise ShapeError(message)
    *stack, m, n = x.shape
    if square and not b.ask(equal(m, n), usual=1):
        message = "Last 2 dimensions of the array must be square"
        raise ShapeError(message)
    return stack, m, n


def _like(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del options
    _sizes(b, given[0], square=True)
    return [(given[0].shape, kind)]


def _each(*kinds: str) -> Rule:
    """Return the rule of numbers for each matrix, of the dtype or real."""

    def rule(b: Builder, kind: DType, given: Any, options: Any) -> Results:
        del options
        stack, _, _ = _sizes(b, given[0], square=True)
        return [(stack, kind if k == "own" else kind.real) for k in kinds]

    return rule


def _eigh(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del options
    stack, _, n = _sizes(b, given[0], square=True)
    return [([*stack, n], kind.real), (given[0].shape, kind)]


def _eigvalsh(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    return _eigh(b, kind, given, options)[:1]


def _svd(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    stack, m, n = _sizes(b, given[0])
    k = minimum(m, n)
    values: tuple[Shape, DType] = ([*stack, k], kind.real)
    if not options["compute_uv"]:
        return [values]
    left, right = (m, n) if options["full_matrices"] else (k, k)
    return [([*stack, m, left], kind), values, ([*stack, right, n], kind)]


def _qr(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    stack, m, n = _sizes(b, given[0])
    k = m if options["mode"] == "complete" else minimum(m, n)
    triangle: tuple[Shape, DType] = ([*stack, k, n], kind)
    return [triangle] if options["mode"] == "r" else [([*stack, m, k], kind), triangle]


def _pinv(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del options
    stack, m, n = _sizes(b, given[0])
    return [([*stack, n, m], kind)]


def _rank(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del kind, options
    return [(_sizes(b, given[0])[0], DType.I64)]


def _solve(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del options
    a, y = given
    stack, n, _ = _sizes(b, a, square=True)
    rows = y.shape[-1] if y.ndim == 1 else y.shape[-2]
    _require_rows(b, "solve", n, rows)
    if y.ndim == 1:
        return [([*stack, n], kind)]
    return [([*products.stack_of(b, tuple(stack), y.shape[:-2]), *y.shape[-2:]], kind)]


def _lstsq(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del options
    a, y = given
    stack, m, n = _sizes(b, a)
    if stack or y.ndim not in (1, 2):
        message = "lstsq: expected a matrix, and a vector or a matrix beside it"
        raise ShapeError(message)
    _require_rows(b, "lstsq", m, y.shape[0])
    columns = list(y.shape[1:])
    is_over = b.ask(less(n, m))
    left: Shape = [0] if not is_over else columns or [1]
    return [
        ([n, *columns], kind),
        (left, kind.real),
        ([], DType.I32),
        ([minimum(m, n)], kind.real),
    ]


def _require_rows(b: Builder, name: str, wanted: Scalar, found: Scalar) -> None:
    if not b.ask(equal(wanted, found), usual=1):
        sizes = f"{b.today(wanted)} and {b.today(found)}"
        message = f"{name}: expected as many rows on both sides, found {sizes}"
        raise ShapeError(message)


def _wave(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del b, options
    return [(given[0].shape, _COMPLEX.get(kind, kind))]


def _half_wave(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del b
    shape = list(given[0].shape)
    shape[options["axis"]] = shape[options["axis"]] // 2 + 1
    return [(shape, _COMPLEX[kind])]


def _real_wave(b: Builder, kind: DType, given: Any, options: Any) -> Results:
    del b
    shape = list(given[0].shape)
    shape[options["axis"]] = options["size"]
    return [(shape, kind.real)]


FUNCTIONS: dict[str, _Row] = {
    "linalg.cholesky": _Row(_like, _matrices, may_fail=True),
    "linalg.inv": _Row(_like, _matrices, may_fail=True),
    "linalg.det": _Row(_each("own"), _matrices),
    "linalg.slogdet": _Row(_each("own", "real"), _matrices),
    "linalg.eigh": _Row(_eigh, _matrices, may_fail=True),
    "linalg.eigvalsh": _Row(_eigvalsh, _matrices, may_fail=True),
    "linalg.svd": _Row(_svd, _matrices, may_fail=True),
    "linalg.qr": _Row(_qr, _matrices),
    "linalg.pinv": _Row(_pinv, _matrices, may_fail=True),
    "linalg.matrix_rank": _Row(_rank, _matrices, may_fail=True),
    "linalg.solve": _Row(_solve, _matrices, may_fail=True),
    "linalg.lstsq": _Row(_lstsq, _matrices, may_fail=True),
    "fft.fft": _Row(_wave, _waves),
    "fft.ifft": _Row(_wave, _waves),
    "fft.fftn": _Row(_wave, _waves),
    "fft.ifftn": _Row(_wave, _waves),
    "fft.rfft": _Row(_half_wave, _real_waves),
    "fft.irfft": _Row(_real_wave, _complex_waves),
}
