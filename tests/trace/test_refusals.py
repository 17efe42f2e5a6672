# SPDX-License-Identifier: Apache-2.0
"""What cannot be traced is refused: the error, the advice, the line."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import datetime
import inspect
import math
import pickle
import random
import secrets
import time
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy import asarray

from nfuser import numpy as nnp
from nfuser.compiler.trace import call_of, trace_function
from nfuser.compiler.trace.numpy.names import refusals
from nfuser.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    MutationError,
    NfuserError,
    OptionError,
    RangeError,
    ShapeError,
    TraceError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.ones((4, 8), np.float32)
OLD = np.random.RandomState(0)


def branch(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def by_mask_and_index(x: Any) -> Any:
    x[x[:, 0] > 0, x[0] > 0] = 1
    return x


def through_flat(x: Any) -> Any:
    x.flat = 1
    return x


def by_mask(x: Any) -> Any:
    x[x > 0] = np.exp(x[:, 0])
    return x


def return_chosen(x: Any) -> Any:
    found = x[x > 2]
    return found, x.sum()


class Count(int):
    pass


def add_to_table(x: Any) -> Any:
    y = np.arange(8) * 0.5
    y += x[0]
    return y


def truncate_in_place(x: Any) -> Any:
    y = x.astype(np.int32)
    y += 1.5
    return y


def widen_in_place(x: Any) -> Any:
    y = x[0] * 1
    y += x
    return y


def reshaped_then_updated(x: Any) -> Any:
    y = x * 2
    z = y.reshape(-1)
    y += 1
    return z


def generator(x: Any) -> Any:
    yield x


async def coroutine(x: Any) -> Any:
    return x


class Interface:
    __array_interface__ = X.__array_interface__


INTERFACE = Interface()

CASES: list[tuple[Callable[[Any], Any], type[NfuserError], str]] = [
    (branch, TraceError, "where(condition, a, b)"),
    (lambda x: float(x), TraceError, "float(x)"),
    (lambda x: int(x), TraceError, "int(x)"),
    (lambda x: x.tolist(), TraceError, "tolist"),
    (lambda x: x.item(), TraceError, "item"),
    (lambda x: x and x, TraceError, "bool(x)"),
    (lambda x: max(x[0], x[1]), TraceError, "np.maximum(a, b)"),
    (lambda x: range(3)[x.sum()], TraceError, "an index"),
    (
        lambda x: x.flat[2],
        UnsupportedError,
        "x.reshape(-1)[i] to read, np.put(x, i, v)",
    ),
    (through_flat, UnsupportedError, "x[...] = v for x.flat = v"),
    (lambda x: np.ptp(x > 0), DTypeError, "any(x) != all(x)"),
    (lambda x: x.size(0), TraceError, "write x.shape[0]"),
    (lambda x: np.stack([x, x[0]]), ShapeError, "same shape"),
    (lambda x: np.stack([x, x[1:]]), ShapeError, "found (4,8), (3,8)"),
    (lambda x: np.trim_zeros(x[0]), UnsupportedError, "shape that depends on values"),
    (lambda x: np.triu_indices_from(x), UnsupportedError, "triu(x)"),
    (lambda x: np.nonzero(x), UnsupportedError, "where(condition"),
    (lambda x: np.where(x > 0), UnsupportedError, "where(condition"),
    (lambda x: np.fft.hfft(x), UnsupportedError, "numpy.fft.hfft"),
    (lambda x: np.linalg.cond(x), UnsupportedError, "numpy.linalg.cond"),
    (lambda x: np.subtract.accumulate(x), UnsupportedError, "subtract.accumulate"),
    (lambda x: nnp.maximum.accumulate(x, axis=None), ShapeError, "multiple axes"),
    (lambda x: np.maximum.accumulate(x.sum()), ArgumentError, "on a scalar"),
    (lambda x: nnp.cumsum(x, axis=(0, 1)), ArgumentError, "not tuple"),
    (lambda x: np.cumsum(x, axis=2), AxisError, "axis 2 is out of bounds"),
    (lambda x: np.cumsum(x, out=x), UnsupportedError, "cumsum: out="),
    (lambda x: np.cumulative_sum(x), ShapeError, "2 dimensions needs an axis"),
    (lambda x: x.cummax(0), TraceError, "np.maximum.accumulate(x, axis)"),
    (lambda x: np.add.reduceat(x, [0]), UnsupportedError, "add.reduceat"),
    (lambda x: x[x > 0], UnsupportedError, "where(condition"),
    (lambda x: x[[0, 1], [0, 1, 2]], AxisError, "indexing arrays could not be"),
    (lambda x: x[x > 0, 0], AxisError, "3 were indexed"),
    (lambda x: x[1.0], AxisError, "valid indices, found float"),
    (lambda x: x[x], AxisError, "found an array of"),
    (lambda x: x[[4]], AxisError, "index 4 is out of bounds for axis 0 with size 4"),
    (lambda x: x[:, None, [0, -9]], AxisError, "axis 1 with size 8"),
    (lambda x: x[[*range(0, 999, 3), 1]], UnsupportedError, "array argument"),
    (lambda x: np.take(x, [9], axis=1), AxisError, "take: index 9 is out"),
    (lambda x: nnp.take(x, 0, mode="no"), OptionError, "'raise', 'clip' or 'wrap'"),
    (lambda x: np.take(x[:0], 0, axis=0), AxisError, "axis 0 with size 0"),
    (lambda x: np.take(x, x, axis=1), DTypeError, "integer dtype"),
    (lambda x: np.take_along_axis(x, x, 1), AxisError, "integer dtype"),
    (lambda x: np.compress(x[0] > 0, x, 1), UnsupportedError, "where(condition"),
    (lambda x: x.reshape(-1, -1), ShapeError, "one unknown dimension"),
    (lambda x: x.reshape(5, -1), ShapeError, "multiply up to 5, which does not div"),
    (lambda x: x.reshape(3, 3), ShapeError, "size 32 into shape (3,3)"),
    (lambda x: x.reshape(0, -1), ShapeError, "size 32 into shape (0,-1)"),
    (lambda x: nnp.reshape(x, (2.0, -1)), ArgumentError, "found 2.0 (float)"),
    (lambda x: x.reshape(), ArgumentError, "expected a shape"),
    (lambda x: x.reshape(-1, order="A"), UnsupportedError, "order="),
    (lambda x: x.reshape(-1, order="K"), ShapeError, "not permitted"),
    (lambda x: x.reshape(-1, copy=False), UnsupportedError, "copy=False"),
    (lambda x: x.resize(3), UnsupportedError, "np.pad"),
    (lambda x: np.repeat(x, [1, 2, 3, 4], axis=0), UnsupportedError, "counts"),
    (lambda x: np.repeat(x, -1), ShapeError, "repeat: negative dimensions"),
    (lambda x: np.tile(x, -1), ShapeError, "tile: negative dimensions"),
    (lambda x: np.roll(x, (1, 2, 3), (0, 1)), ShapeError, "3 shifts"),
    (lambda x: x[::0], ShapeError, "slice step cannot be zero"),
    (lambda x: np.concatenate([x, x[0]]), ShapeError, "2, 1 axes"),
    (lambda x: np.concatenate([x, x[:, 1:]]), ShapeError, "size 8 and the array at 1"),
    (lambda x: np.concatenate([x, x], axis=2), AxisError, "axis 2 is out of bounds"),
    (
        lambda x: np.concatenate([]) if x is None else np.stack([x, x[0]]),
        ShapeError,
        "same shape",
    ),
    (lambda x: np.concatenate([x, x], dtype="i4"), DTypeError, "same_kind"),
    (lambda x: np.concatenate([x, x], out=x), UnsupportedError, "out="),
    (lambda x: np.block([[x], x]), ShapeError, "depths are mismatched"),
    (lambda x: np.split(x, 3), ShapeError, "an equal division: 3 parts of axis 0"),
    (lambda x: np.split(x, 0), ShapeError, "larger than 0"),
    (lambda x: np.dsplit(x, 1), ShapeError, "at least 3 axes"),
    (lambda x: np.pad(x, -1), ShapeError, "nfuser.numpy.pad, which drops"),
    (lambda x: nnp.pad(x, -5), ShapeError, "drop more than there is"),
    (lambda x: np.pad(x, ((1, 2),) * 3), ShapeError, "for each of 2 axes"),
    (lambda x: nnp.pad(x, 1.5), ArgumentError, "found 1.5"),
    (lambda x: np.pad(x, 1, mode="mean"), UnsupportedError, "mode 'mean'"),
    (lambda x: nnp.pad(x, 1, mode=print), UnsupportedError, "a function"),
    (lambda x: nnp.pad(x, 1, mode="odd"), ShapeError, "expected one of"),
    (
        lambda x: nnp.pad(x, 1, mode="edge", constant_values=1),
        ShapeError,
        "keyword arg",
    ),
    (lambda x: np.pad(x, 1, "reflect", reflect_type="odd"), UnsupportedError, "odd"),
    (lambda x: np.pad(x[:0], 1, mode="wrap"), ShapeError, "extend empty axis 0"),
    (lambda x: np.pad(x.astype("i1"), 1, constant_values=300), RangeError, "300"),
    (lambda x: np.pad(x, 1, constant_values=x[0]), ArgumentError, "numbers, found"),
    (lambda x: nnp.zeros((3, -1)) + x[0, 0], ShapeError, "negative dimensions"),
    (lambda x: nnp.arange(0, 1, 0) + x[0, 0], ShapeError, "step is 0"),
    (lambda x: nnp.linspace(x[0], 1, 8), ArgumentError, "two real numbers"),
    (lambda x: nnp.tril(x[0, 0]), ShapeError, "at least one axis"),
    (reshaped_then_updated, MutationError, "updated in place after it was reshaped"),
    (lambda x: x.sum(dim=-1), UnsupportedError, "axis="),
    (lambda x: x.unsqueeze(0), TraceError, "expand_dims"),
    (lambda x: x.abs(), TraceError, "np.abs(x)"),
    (lambda x: round(x), TraceError, "np.round"),
    (lambda x: x.frobnicate, TraceError, "frobnicate"),
    (lambda x: np.exp(x, where=x > 0), UnsupportedError, "where(condition"),
    (lambda x: np.nanmax(x, initial=1), UnsupportedError, "initial"),
    (lambda x: np.nanmean(x, where=x > 0), UnsupportedError, "where(condition"),
    (lambda x: [*np.broadcast_to(x, (999, 4, 8))], TraceError, "one by one"),
    (lambda x: x.sum(axis=2), AxisError, "axis 2 is out of bounds"),
    (lambda x: x.sum(axis=(0, 0)), ShapeError, "duplicate"),
    (lambda x: x.squeeze(0), ShapeError, "size not equal to one"),
    (lambda x: x.transpose(0), ShapeError, "axes don't match"),
    (lambda x: np.broadcast_to(x, (4, 9)), ShapeError, "(4,8)"),
    (lambda x: x + x[:, :3], ShapeError, "add: operands could not be broadcast"),
    (lambda x: x * x[:, 0], ShapeError, "write x[:, None] for (4,)"),
    (lambda x: np.where(x > 0, x, x[:3]), ShapeError, "where: operands"),
    (lambda x: np.broadcast_arrays(x, x[:3]), ShapeError, "broadcast_arrays: "),
    (lambda x: x[4], AxisError, "index 4 is out of bounds"),
    (lambda x: x[0, 0, 0], AxisError, "too many indices"),
    (lambda x: x & 1, DTypeError, "bitwise_and"),
    (lambda x: -(x > 0), DTypeError, "negative"),
    (lambda x: np.cumprod(x + 1j), DTypeError, "complex"),
    (lambda x: x.astype(object), DTypeError, "object"),
    (lambda x: np.array([x, None], dtype=object), DTypeError, "object"),
    (lambda x: x[x > 2], UnsupportedError, "where(condition, x, fill)"),
    (return_chosen, UnsupportedError, "where(condition, x, fill)"),
    (lambda x: x if x > 2 else -x, TraceError, "write x.any() or x.all(), or np.where"),
    (lambda x: x + Count(2**70), RangeError, "write int(k) in place of a number"),
    (lambda x: np.ldexp(x, 2**31), RangeError, "out of bounds for int32"),
    (lambda x: x.astype(np.uint8) + 300, RangeError, "300"),
    (lambda x: x.astype(np.int32) ** -1, ShapeError, "negative integer powers"),
    (lambda x: 2 ** x.astype(np.int32), UnsupportedError, "float"),
    (lambda x: f"{x.sum():.2f}", TraceError, "format it after the call"),
    (lambda x: x.sum().is_integer(), TraceError, "value of an array"),
    (lambda x: x.view(np.uint32), UnsupportedError, "the same bytes"),
    (by_mask_and_index, UnsupportedError, "a mask beside other indices"),
    (by_mask, UnsupportedError, "x[mask] = f(y[mask])"),
    (add_to_table, MutationError, "was made by plain NumPy while tracing"),
    (lambda x: np.frexp(x), UnsupportedError, "np.floor(np.log2(np.abs(x))) + 1"),
    (lambda x: np.nditer(x), UnsupportedError, "write array operations on the whole"),
    (lambda x: math.exp(x), TraceError, "write np.exp(x) in place of math.exp(x)"),
    (lambda x: math.erf(x), TraceError, "write xp.erf(x) in place of math.erf(x)"),
    (lambda x: math.gamma(x[0, 0]), TraceError, "call math.gamma outside"),
    (lambda x: asarray(x), TraceError, "leave asarray out"),
    (lambda x: sorted(x[0, :2]), TraceError, "write np.sort(x)"),
    (lambda x: x.squeeze(dim=0), UnsupportedError, "axis="),
    (lambda x: nnp.swapaxes(x, 0), ArgumentError, "axis1, axis2"),
    (truncate_in_place, DTypeError, "same_kind"),
    (widen_in_place, ShapeError, "non-broadcastable"),
    (lambda x: "text", TraceError, "found str"),
    (lambda x: (x, {1, 2}), TraceError, "return a tuple or a list; expected"),
    (lambda x: {x}, TraceError, "use a tuple or a list"),
    (lambda x: {x: 1}, TraceError, "a value of the dict"),
    (lambda x: (y for y in [x]), TraceError, "in place of `yield`; expected"),
    (
        lambda x: map(np.exp, [x]),
        TraceError,
        "return a tuple or a list: [*items]; expected",
    ),
    (lambda x: np.exp, TraceError, "return its arrays and numbers, and build"),
    (coroutine, TraceError, "fuse a plain function and await around it"),
    (generator, TraceError, "`return` in place of `yield`"),
    (lambda x: x + INTERFACE, ArgumentError, "no dtype and no shape"),
    (lambda x: np.where(x, x, "a"), ArgumentError, "found str"),
    (lambda x: x + np.random.rand(), TraceError, "numpy.random"),
    (lambda x: x * OLD.rand(), TraceError, "random numbers"),
    (lambda x: x * random.random(), TraceError, "random.random"),
    (lambda x: x + time.time(), TraceError, "time.time"),
    (lambda x: x + secrets.randbelow(3), TraceError, "secrets.randbelow"),
    (lambda x: x + uuid.uuid4().int, TraceError, "uuid.uuid4"),
    (lambda x: x + datetime.datetime.now().year, TraceError, "now: a fused"),
]


@pytest.mark.parametrize(("function", "error", "advice"), CASES)
def test_it_is_refused(
    function: Callable[[Any], Any], error: type[NfuserError], advice: str
) -> None:
    with pytest.raises(error) as caught:
        trace_function(function, call_of((X,)))
    # The user's line, which follows, may hold the advice as well.
    assert advice in str(caught.value).partition("\n  at ")[0]
    lines, first = inspect.getsourcelines(function)
    here = [f"{__file__}:{first + k}" for k in range(len(lines))]
    assert any(f"{place}\n" in str(caught.value) for place in here)


def test_the_line_of_a_mask_is_named_when_its_elements_are_returned() -> None:
    with pytest.raises(UnsupportedError, match=r"found = x\[x > 2\]"):
        trace_function(return_chosen, call_of((X,)))


FIRST_WORDS = {
    *("build", "call", "combine", "end", "fuse", "index", "leave", "make", "pass"),
    *("return", "use", "write"),
}


def test_refusals_begin_with_what_to_write() -> None:
    told = {
        *(str(refusals.function(name)) for name in refusals._NUMPY_FUNCTIONS),  # pyright: ignore[reportPrivateUsage]
        *(str(refusals.attribute(name)) for name in refusals._NUMPY_METHODS),  # pyright: ignore[reportPrivateUsage]
        *(str(refusals.keyword("sum", name)) for name in ("where", "out", "order")),
        *(str(error) for error in (refusals.hashed(), refusals.counts())),
        *(str(refusals.returned(item)) for item in ("text", {1}, print, iter([]))),
        str(refusals.formatted(".2f")),
        str(refusals.pad_mode("mean")),
        str(refusals.unknown_array((3,))),
        *(
            str(refusals.plain_output("add", is_in_place=a, is_made=b))
            for a in (True, False)
            for b in (True, False)
        ),
        refusals.MASK,
    }
    others = {"byteswap", "fold"}
    assert {text.partition(" ")[0].rstrip(",") for text in told} <= FIRST_WORDS | others


@pytest.mark.parametrize("values", ["ab", [1, None], ["2020-01-01"]])
def test_arrays_of_other_dtypes_are_refused(values: Any) -> None:
    dtype = "datetime64[D]" if "2020" in str(values) else None
    with pytest.raises(DTypeError, match="not supported"):
        call_of((np.array(list(values), dtype),))


def test_torch_functions_name_the_numpy_spelling() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TraceError, match=r"np\.exp"):
        trace_function(lambda x: torch.exp(x), call_of((X,)))


def test_scipy_functions_name_the_fused_one() -> None:
    special = pytest.importorskip("scipy.special")
    with pytest.raises(TraceError, match=r"nfuser\.numpy\.softmax"):
        trace_function(lambda x: special.softmax(x), call_of((X,)))
    with pytest.raises(UnsupportedError, match="gamma"):
        trace_function(lambda x: special.gamma(x), call_of((X,)))


def test_functions_of_scipy_that_ask_for_elements_are_named() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    stats = pytest.importorskip("scipy.stats")
    with pytest.raises(TraceError, match=r"^call ndimage\.gaussian_filter outside"):
        trace_function(lambda x: ndimage.gaussian_filter(x, 1), call_of((X,)))
    with pytest.raises(TraceError, match=r"^call stats\.rankdata outside"):
        trace_function(lambda x: stats.rankdata(x), call_of((X,)))


def test_a_traced_array_does_not_outlive_its_trace() -> None:
    kept: list[Any] = []
    with pytest.warns(RuntimeWarning, match="keeps a traced array in a list"):
        trace_function(lambda x: kept.append(x) or x, call_of((X,)))
    with pytest.raises(TraceError, match="outlived"):
        trace_function(lambda x: x + kept[0], call_of((X,)))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "unique",
            "^write .* call it outside, as it gives a shape .*: .*no fused form",
        ),
        ("nothing", "no attribute 'nothing'"),
    ],
)
def test_a_name_that_the_namespace_lacks_says_why(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(nnp, name)


def test_an_error_about_an_axis_is_numpys_too() -> None:
    with pytest.raises(np.exceptions.AxisError) as caught:
        trace_function(lambda x: x.sum(axis=2), call_of((X,)))
    for found in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(found, AxisError)
        assert "\n  at " in str(found)
