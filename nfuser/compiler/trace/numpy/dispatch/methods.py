# SPDX-License-Identifier: Apache-2.0
"""The methods of ndarray on a traced array: the NumPy functions of the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.dtypes.promotion import safe_cast
from nfuser.compiler.trace.numpy.dispatch.operators import Operators
from nfuser.compiler.trace.numpy.movement.moves import flatten, reshape_method
from nfuser.compiler.trace.numpy.without_axes import mark
from nfuser.compiler.trace.standins.dialect import spoken
from nfuser.compiler.trace.watch.unwatched import unwatched
from nfuser.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return self._tracer.handlers[name](self._tracer, self, *args, **options)

    method.__name__ = name.rpartition(".")[2]
    method.__doc__ = f"Return ``numpy.{name}`` of the array."
    return spoken(method)


class Methods(Operators):
    """Methods and attributes of ndarray that have a fused form."""

    __slots__ = ()

    sum, prod, mean = _method("sum"), _method("prod"), _method("mean")
    max, min = _method("max"), _method("min")
    var, std = _method("var"), _method("std")
    any, all = _method("any"), _method("all")
    cumsum, cumprod = _method("cumsum"), _method("cumprod")
    argmax, argmin = _method("argmax"), _method("argmin")
    argsort, argpartition = _method("argsort"), _method("argpartition")
    searchsorted = _method("searchsorted")
    clip, round = _method("clip"), _method("round")
    ravel, take, repeat = _method("ravel"), _method("take"), _method("repeat")
    squeeze, swapaxes = _method("squeeze"), _method("swapaxes")
    dot, diagonal, trace = _method("dot"), _method("diagonal"), _method("trace")

    nonzero = _method("nonzero")
    fill, put = _method("fill"), _method("put")
    sort, partition = _method("ndarray.sort"), _method("ndarray.partition")

    def _like_it(self: Any, found: Any) -> Any:
        """Say of a result that it is a number if this is one, and else an array."""
        return mark(found, (self,), is_array=not self._is_number)

    @unwatched
    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """Return the array with another dtype."""
        del subok
        target, held = as_dtype(dtype), self._tracer.tensor(self).dtype
        safe_cast(held, target, casting)
        if held is target and not copy and ops.memory_order(order) == "K":
            return self
        return self._like_it(
            self._tracer.call_on_tensor(ops.astype, self, target, order)
        )

    @spoken
    @unwatched
    def conj(self) -> Any:
        """Return the conjugate; what is real, bool too, as it is."""
        is_complex = self._tracer.tensor(self).dtype.is_complex
        t = self._tracer
        return t.handlers["conj"](t, self) if is_complex else self

    conjugate = conj

    def choose(self, *choices: Any, **options: Any) -> Any:
        """Return ``numpy.choose``; the choices may come one by one."""
        listed = choices[0] if len(choices) == 1 else choices
        return self._tracer.handlers["choose"](self._tracer, self, listed, **options)

    @unwatched
    def copy(self, order: str = "C") -> Any:
        """Return a new array with the same elements, by default in C order."""
        return self._like_it(self._tracer.call_on_tensor(ops.copy, self, order))

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, _: Any) -> Any:
        return self.copy("K")

    @unwatched
    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the elements in C order with other sizes."""
        return self._like_it(reshape_method(self._tracer, self, *shape, **options))

    @spoken
    @unwatched
    def flatten(self, order: str = "C") -> Any:
        """Return the elements along one axis."""
        return flatten(self._tracer, self, order)

    @spoken
    @unwatched
    def transpose(self, *order: Any) -> Any:
        """Return a view with the axes in ``order``, by default reversed."""
        nested = len(order) == 1 and not hasattr(order[0], "__index__")
        axes: Any = order[0] if nested else order
        return self._like_it(self._tracer.view(ops.permute, self, axes or None))

    @property
    @unwatched
    def T(self) -> Any:  # noqa: N802 (NumPy's name)
        """The array with its axes reversed."""
        return self._like_it(self._tracer.view(ops.permute, self))

    @property
    @unwatched
    def mT(self) -> Any:  # noqa: N802 (NumPy's name)
        """The array with its last two axes exchanged."""
        if self._tracer.tensor(self).ndim < 2:
            message = "matrix transpose with ndim < 2 is undefined"
            raise ShapeError(message)
        return self._tracer.view(ops.swapaxes, self, -2, -1)

    @property
    @unwatched
    def real(self) -> Any:
        """The real part."""
        return self._like_it(self._tracer.view(ops.real, self))

    @real.setter
    @unwatched
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    @unwatched
    def imag(self) -> Any:
        """The imaginary part."""
        return self._like_it(self._tracer.view(ops.imag, self))

    @imag.setter
    @unwatched
    def imag(self, value: Any) -> None:
        if not self._tracer.tensor(self).dtype.is_complex:
            message = "array does not have imaginary part to set"
            raise DTypeError(message)
        self.imag[...] = value

    @property
    def device(self) -> Any:
        """Where the array is: in the words of the array API, or a torch.device."""
        return self._tracer.device

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Return the array itself: results stay where the inputs are."""
        if device != "cpu" or stream is not None:
            raise refusals.attribute("to")
        return self
