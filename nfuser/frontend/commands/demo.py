# SPDX-License-Identifier: Apache-2.0
"""The demo: six functions, written in NumPy, fused, checked and timed.

Each function below is plain NumPy; the decorator is all there is to do. ``main`` calls
it on float32 arrays and compares: results with the plain function in float64, time with
the plain function on the same arrays, both in this process.
"""

from __future__ import annotations

import importlib
import os
import textwrap
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nfuser.errors import NfuserError
from nfuser.execution.device.cpu.affinity import num_threads
from nfuser.execution.device.cuda import driver
from nfuser.execution.host.call.evaluate import REPORTS
from nfuser.frontend.fuse.decorator import fuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Array = Any  # of NumPy, torch, CuPy; or, while a function is traced, its stand-in


@fuse
def gelu_bias(x: Array, bias: Array) -> Array:
    """Gelu, in its tanh form, of a sum with one row."""
    y = x + bias
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


@fuse
def softmax(x: Array) -> Array:
    """Each row as probabilities."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@fuse
def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    """Each row with mean 0 and variance 1, then scaled and shifted."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * weight + bias


@fuse
def rms_norm(x: Array, residual: Array, weight: Array) -> tuple[Array, Array]:
    """Add, and give the sum also with each row divided by its root mean square."""
    h = x + residual
    scale = np.sqrt((h * h).mean(axis=-1, keepdims=True) + 1e-5)
    return h, h / scale * weight


@fuse
def batch_norm_stats(x: Array) -> tuple[Array, Array]:
    """Mean and variance of each channel of images (batch, channel, height, width)."""
    return x.mean(axis=(0, 2, 3)), np.var(x, axis=(0, 2, 3))


@fuse
def stiff_spring(x: Array, v: Array) -> tuple[Array, Array]:
    """Five steps of many springs at once: a chain of 30 elementwise operations."""
    for _ in range(5):
        v = v - 0.1 * x * x * x
        x = x + 0.1 * v
    return x, v


@dataclass(frozen=True)
class Case:
    """A fused function, shapes to time it at, and shapes small enough to interpret."""

    title: str
    function: Any  # a Fused; as a field its type would be that of a bound method
    shapes: tuple[tuple[int, ...], ...]
    small: tuple[tuple[int, ...], ...]


_ROWS, _SMALL_ROWS = (4096, 2048), (8, 512)
CASES = (
    Case("gelu(x + bias)", gelu_bias, (_ROWS, (2048,)), (_SMALL_ROWS, (512,))),
    Case("softmax", softmax, (_ROWS,), (_SMALL_ROWS,)),
    Case(
        "layer norm",
        layer_norm,
        (_ROWS, (2048,), (2048,)),
        (_SMALL_ROWS, (512,), (512,)),
    ),
    Case(
        "RMS norm + residual",
        rms_norm,
        (_ROWS, _ROWS, (2048,)),
        (_SMALL_ROWS, _SMALL_ROWS, (512,)),
    ),
    Case(
        "batch norm statistics", batch_norm_stats, ((32, 64, 64, 64),), ((4, 4, 8, 8),)
    ),
    Case(
        "30-operation chain", stiff_spring, (_ROWS, _ROWS), (_SMALL_ROWS, _SMALL_ROWS)
    ),
)


@dataclass(frozen=True)
class DemoDevice:
    """A place to run: how arrays get there and back, and how to wait for it."""

    name: str
    put: Callable[[np.ndarray[Any, Any]], Any]
    get: Callable[[Any], np.ndarray[Any, Any]]
    wait: Callable[[], object]


@dataclass(frozen=True)
class DemoRow:
    """One function on one device, measured."""

    title: str
    device: str
    kernels: int
    reads: float
    error: float
    plain_error: float
    plain_seconds: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.title:22} {self.device:5} {self.kernels:7} {self.reads:8.2f}x "
            f"{self.error:9.1e} {self.plain_error:9.1e} {_time(self.plain_seconds)} "
            f"{_time(self.seconds)} {self.plain_seconds / self.seconds:7.1f}x"
        )


HEADER = (
    f"{'function':22} {'on':5} {'kernels':>7} {'reads of x':>9} "
    f"{'error':>8} {'of NumPy':>9} {'NumPy':>9} {'nfuser':>9} {'faster':>8}"
)
NOTES = """\
error       largest difference from the plain function in float64; then NumPy's own
reads of x  how often the GPU kernel reads each element of the first argument, counted
            while its source runs in the interpreter, at a small size
NumPy       the plain function on the same arrays, in this process, on the CPU"""
WIDTH = 90
TOLERANCE = 1e-4  # of values of order 1; float32 leaves some 1e-6


def main() -> int:
    """Print the table; return 1 if a result is wrong or took several kernels."""
    print(f"nfuser on {num_threads()} of {os.cpu_count()} processors, float32\n")
    print(HEADER)
    rows: list[DemoRow] = []
    gpu = _cuda()
    for device in (_cpu(),) if isinstance(gpu, str) else (_cpu(), gpu):
        for case in CASES:
            rows.append(measure(case, device))
            print(rows[-1], flush=True)
    print(f"\n{NOTES}")
    if isinstance(gpu, str):
        text = f"cuda        not shown: {gpu}"
        print(textwrap.fill(text, WIDTH, subsequent_indent=" " * 12))
    bad = [r for r in rows if not r.error < TOLERANCE or r.kernels != 1]
    for row in bad:
        print(f"\nnot as it should be: {row.title} on {row.device}")
    return 1 if bad else 0


def measure(case: Case, device: DemoDevice) -> DemoRow:
    """Run one case on one device."""
    fused, plain = case.function, case.function.__wrapped__
    arrays = random_arrays(case.shapes)
    there = [device.put(a) for a in arrays]
    exact = _several(plain(*(a.astype(np.float64) for a in arrays)))
    got = [device.get(a) for a in _several(fused(*there))]

    def call() -> None:
        fused(*there)
        device.wait()

    ours, theirs = _by_turns(call, lambda: plain(*arrays))
    return DemoRow(
        case.title,
        device.name,
        len(fused.kernels(*there)),
        reads_of_first(case),
        _largest_error(got, exact),
        _largest_error(_several(plain(*arrays)), exact),
        theirs,
        ours,
    )


def reads_of_first(case: Case) -> float:
    """Return how often the GPU kernel reads each element of the first argument.

    The interpreter runs the very source that a GPU would, and counts.
    """
    arrays = random_arrays(case.small)
    function = fuse(case.function.__wrapped__, backend="interpret")
    others, REPORTS[:] = REPORTS[:], []  # of which there may be as many as are kept
    function(*arrays)
    reports, REPORTS[:] = REPORTS[:], others
    # Buffers stand in the order of the arguments.
    firsts = [next(iter(report.accesses.values())) for report in reports]
    return sum(access.elements_read for access in firsts) / arrays[0].size


def random_arrays(shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray[Any, Any]]:
    """Return seeded float32 arrays of these shapes."""
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape, np.float32) for shape in shapes]


def _several(results: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", results) if type(results) is tuple else (results,)


def _largest_error(found: Iterable[Any], exact: Iterable[Any]) -> float:
    return max(float(np.max(np.abs(a - b))) for a, b in zip(found, exact, strict=True))


def _by_turns(*calls: Callable[[], object], repeat: int = 9) -> list[float]:
    """Return the median seconds of each, taken by turns so that noise hits all."""
    seconds: list[list[float]] = [[] for _ in calls]
    for turn in range(repeat + 1):
        for call, taken in zip(calls, seconds, strict=True):
            begin = perf_counter()
            call()
            if turn:  # the first warms up
                taken.append(perf_counter() - begin)
    return [median(taken) for taken in seconds]


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:6.2f} ms"


def _cpu() -> DemoDevice:
    def same(array: Any) -> Any:
        return array

    return DemoDevice("cpu", same, same, lambda: None)


def _cuda() -> DemoDevice | str:
    """Return the GPU with torch or CuPy to hold its arrays, or why there is none."""
    if reason := driver.why_missing():
        return reason
    for library, device in (("torch", _torch), ("cupy", _cupy)):
        try:
            found = device(importlib.import_module(library))
            fuse(np.negative)(found.put(np.zeros(1, np.float32)))
        except LookupError:
            continue
        except ImportError as error:
            if error.name == library:
                continue
            return f"{error}; see python -m nfuser doctor"
        except NfuserError as error:
            return str(error).partition("\n")[0]
        return found
    return "neither torch nor CuPy with CUDA is installed"


def _torch(torch: Any) -> DemoDevice:
    if not torch.cuda.is_available():
        raise LookupError("this torch has no CUDA")
    return DemoDevice(
        "cuda",
        lambda a: torch.from_numpy(a).cuda(),
        lambda a: a.cpu().numpy(),
        torch.cuda.synchronize,
    )


def _cupy(cupy: Any) -> DemoDevice:
    return DemoDevice(
        "cuda", cupy.asarray, cupy.asnumpy, cupy.cuda.Device().synchronize
    )
