# SPDX-License-Identifier: Apache-2.0
"""A workload as data: what goes in, the function in NumPy's words and in its peers'."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import FunctionType
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Array:
    """An input: random numbers of a shape, or indices below ``high``.

    ``order`` lists the axes as they lie in memory, outermost first. ``used`` is the
    part of the elements that a result depends on.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    high: int | None = None
    low: float | None = None
    order: tuple[int, ...] | None = None
    used: float = 1.0

    @property
    def necessary_bytes(self) -> int:
        """Bytes that must be read once."""
        return round(prod(self.shape) * self.numpy_dtype.itemsize * self.used)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type, of NumPy or ml_dtypes."""
        return np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))

    def on_cpu(self, seed: int) -> np.ndarray[Any, Any]:
        """Return it as a NumPy array."""
        random = np.random.default_rng(seed)
        shape = tuple(self.shape[k] for k in self._order)
        if self.high is not None:
            made = random.integers(0, self.high, shape)
        elif self.low is not None:
            made = self.low + random.random(shape, "float32")
        else:
            made = random.standard_normal(shape, "float32")
        return made.astype(self.numpy_dtype).transpose(np.argsort(self._order))

    def on_gpu(self, torch: Any, seed: int) -> Any:
        """Return it as a torch tensor."""
        random = torch.Generator("cuda").manual_seed(seed)
        shape = tuple(self.shape[k] for k in self._order)
        kind = {"device": "cuda", "generator": random}
        if self.high is not None:
            made = torch.randint(0, self.high, shape, **kind)
        elif self.low is not None:
            made = self.low + torch.rand(shape, **kind)
        else:
            made = torch.randn(shape, **kind)
        back = [int(k) for k in np.argsort(self._order)]
        return made.to(getattr(torch, self.dtype)).permute(back)

    @property
    def _order(self) -> tuple[int, ...]:
        return self.order or tuple(range(len(self.shape)))


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    ``inputs`` takes the sizes of a backend, whose last one is the extent of the last
    axis. ``torch``, ``liger`` and ``jax`` take their namespace first; without a ``jax``
    form, JAX runs ``function`` with ``jax.numpy`` as its ``np``, and so does CuPy what
    is elementwise. ``numexpr`` calls its arguments a, b, c and d. ``loses`` is the
    error that f32 leaves of the function whoever computes it, if that is more than the
    usual limit. The geometric means
    are over the rows that are ``headline`` for a backend.
    """

    name: str
    function: Callable[..., Any]
    inputs: Callable[..., tuple[Array, ...]]
    torch: Callable[..., Any]
    cuda: tuple[int, ...] | None = None
    cpu: tuple[int, ...] | None = None
    headline: tuple[str, ...] = ("cuda", "cpu")
    is_elementwise: bool = False
    jax: Callable[..., Any] | None = None
    liger: Callable[..., Any] | None = None
    numexpr: str | None = None
    numba: Callable[..., Any] | None = None
    loses: float = 0.0

    def row_name(self, sizes: tuple[int, ...]) -> str:
        """Return the name of a row: that of the workload, and its sizes."""
        return f"{self.name} {'x'.join(map(str, sizes))}"

    def sizes(self, backend: str, change: str = "") -> tuple[int, ...] | None:
        """Return the sizes for a backend: as they are, ``odd`` or ``tiny``."""
        sizes = self.cuda if backend == "cuda" else self.cpu
        if change == "tiny":
            sizes = sizes or self.cuda
            return sizes and tuple(min(n, 4 + k) for k, n in enumerate(sizes))
        if change == "odd" and sizes:
            return (*sizes[:-1], sizes[-1] + 1)
        return sizes


def results(given: Any) -> list[Any]:
    """Return the results of a call as a list."""
    return list(given) if isinstance(given, (tuple, list)) else [given]


def in_namespace(function: Callable[..., Any], np_like: Any) -> Callable[..., Any]:
    """Return ``function`` with another module as its ``np``, and as its helpers'."""
    assert isinstance(function, FunctionType)
    module = function.__module__
    names: dict[str, Any] = dict(function.__globals__) | {"np": np_like}

    def moved(f: FunctionType) -> FunctionType:
        return FunctionType(f.__code__, names, f.__name__, f.__defaults__)

    for name, held in function.__globals__.items():
        if isinstance(held, FunctionType) and held.__module__ == module:
            names[name] = moved(held)
    return moved(function)
