# SPDX-License-Identifier: Apache-2.0
"""What a mask chooses of an array: as many elements as hold, which no trace knows.

``x[mask]`` is kept as all of ``x`` beside the mask. Functions of single elements
compute all of them, reductions take those that the mask chooses, and what is assigned
under the same mask is put back to its places. So nobody asks how many there are.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.movement.keys as keys
import nfuser.compiler.trace.numpy.movement.writes as writes
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.ir.same_value import same_value
from nfuser.compiler.ir.scalars.functions import equal
from nfuser.compiler.trace.source_line import current_line
from nfuser.compiler.trace.standins.asked import ask_of_call, ask_of_range
from nfuser.compiler.trace.standins.literals import array_of
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin, chosen_by_masks
from nfuser.compiler.trace.standins.symbolic import SymbolicInt
from nfuser.compiler.trace.watch.unwatched import unwatched
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer

_ELEMENTWISE = frozenset(
    {
        *("where", "clip", "round", "around", "real", "imag", "nan_to_num", "angle"),
        *("copy", "isclose", "fix", "zeros_like", "ones_like", "empty_like"),
        *("full_like", "astype", "real_if_close"),
    }
)
_FOLDS = frozenset({"sum", "prod", "mean", "any", "all", "std", "var", "max", "min"})
_NAMES = {"amax": "max", "amin": "min"}
_BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
    *("and", "or", "xor", "lshift", "rshift"),
)
_OTHERS = ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert")
_UFUNC_FOLDS = {"add": "sum", "multiply": "prod"}


class Chosen(Standin):
    """The elements of ``full`` that ``mask`` chooses.

    The axes of the mask are those of ``full`` from ``place`` on; in what NumPy would
    give, one axis stands for them. Places along an ``axis`` of the mask say so.
    """

    __slots__ = ("_axis", "_full", "_mask", "_place", "line")
    _is_number = False

    def __init__(
        self, full: Any, mask: TensorView, place: int, axis: int | None = None
    ) -> None:
        self._kind = np.ndarray
        self._tracer: Tracer = full._tracer
        self._full = full
        self._mask = mask
        self._place = place
        self._axis = axis
        self.line = current_line()  # who returns it runs no line any more

    def _operand(self) -> Any:
        raise UnsupportedError(refusals.MASK)

    @property
    def _rest(self) -> int:
        """How many axes follow those of the mask."""
        return self._full.ndim - self._place - self._mask.ndim

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._full.ndim - self._mask.ndim + 1

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._full.dtype

    @property
    def size(self) -> Any:
        """How many elements were chosen: a number that the call counts."""
        return self._count(self._condition() + np.zeros_like(self._full, bool))

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, of which the call counts that of what was chosen."""
        sizes, end = self._full.shape, self._place + self._mask.ndim
        count = self._count(self._tracer.wrap(self._mask))
        return (*sizes[: self._place], count, *sizes[end:])

    def _count(self, truth: Any) -> Any:
        t = self._tracer
        count = t.call_on_tensor(ops.count_nonzero, truth, None)
        t.builder.weak[count._held] = int
        count._kind = int
        return count

    def __len__(self) -> int:
        if self._tracer.plain is None:
            ask_of_call("len")
        raise UnsupportedError(refusals.MASK)

    @unwatched
    def each(self, function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
        """Apply a function of single elements, of this and of others like it."""
        whole = [self.fitted(x) for x in operands]
        return self._like(function(*whole, **options))

    def fitted(self, item: Any) -> Any:
        """Return an operand so that it meets the elements that were chosen."""
        if isinstance(item, Chosen):
            exprs = self._tracer.builder.exprs
            is_same = same_value(exprs, item._mask, self._mask)
            if not is_same or item._rest != self._rest:
                raise UnsupportedError(refusals.MASKED_VALUES)
            return item._full
        is_array = hasattr(item, "ndim") and not isinstance(item, SymbolicInt)
        if not (is_array or is_sequence(item)):
            return item
        return spread(self._tracer, item, self._mask.ndim, self._rest)

    def _like(self, found: Any) -> Any:
        if isinstance(found, tuple):
            return tuple(self._like(x) for x in found)
        place = found.ndim - self._rest - self._mask.ndim
        own = found if found._root is None else self._tracer.wrap(found._operand())
        return Chosen(own, self._mask, place)

    def _condition(self) -> Any:
        """Return the mask as an array that stretches over all elements."""
        mask = self._tracer.wrap(self._mask)
        return mask[(..., *(None,) * self._rest)]

    @unwatched
    def fold(self, name: str, axis: Any = None, *rest: Any, **options: Any) -> Any:
        """Return a reduction of the elements that were chosen."""
        if options.get("keepdims") or options.keys() & {"where", "out"}:
            raise UnsupportedError(refusals.MASK)
        t = self._tracer
        at = self._place if axis is None else self._axis_at(axis)
        if at != self._place:
            full = at if at < self._place else at + self._mask.ndim - 1
            found = t.handlers[name](t, self._full, full, *rest, **options)
            return Chosen(found, self._mask, self._place - (at < self._place))
        if name in ("max", "min") and options.get("initial") is None:
            raise UnsupportedError(refusals.MASKED_EXTREME)
        axes = self._axes(axis)
        chosen = self._condition()
        if name in ("any", "all"):
            full = self._full.astype(bool)
            return t.handlers[name](t, full, axes, *rest, where=chosen, **options)
        return t.handlers[name](t, self._full, axes, *rest, where=chosen, **options)

    def _axis_at(self, axis: Any) -> int:
        if isinstance(axis, tuple):
            raise UnsupportedError(refusals.MASK)
        return ops.normal_axis(axis, self.ndim)

    def _axes(self, axis: Any) -> tuple[int, ...] | None:
        """Return the axes of all elements for the one that stands for the mask's."""
        own = tuple(range(self._place, self._place + self._mask.ndim))
        return None if axis is None else own

    def update(self, function: Callable[..., Any], other: Any) -> Any:
        """Apply ``x op= other``."""
        found = self.each(function, self, other)
        writes.write(self._tracer, self._full, found._full, "same_kind")
        self._axis = None  # they are other numbers than the places
        return self

    @unwatched
    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        if method == "reduce" and ufunc.__name__ in _UFUNC_FOLDS:
            axis = options.pop("axis", 0)
            return self.fold(_UFUNC_FOLDS[ufunc.__name__], axis, **options)
        is_elementwise = ufunc.signature is None and not options.keys() & {
            *("out", "where")
        }
        if method != "__call__" or not is_elementwise:
            raise UnsupportedError(refusals.MASK)
        return self.each(ufunc, *inputs, **options)

    @unwatched
    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        name = _NAMES.get(func.__name__, func.__name__)
        if name in _FOLDS and args and args[0] is self:
            return self.fold(name, *args[1:], **kwargs)
        if name == "count_nonzero" and args == (self,) and not kwargs:
            return self.each(operator.ne, self, 0).fold("sum")
        if name == "place":
            return self._tracer.handlers[name](self._tracer, *args, **kwargs)
        if name == "size" and args == (self,) and not kwargs:
            return self.size
        if name not in _ELEMENTWISE or any(isinstance(x, Chosen) for x in kwargs):
            raise UnsupportedError(refusals.MASK)
        return self.each(func, *args, **kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self._tracer.plain is None:
            ask_of_range(sys._getframe(1), or_table=True)  # pyright: ignore[reportPrivateUsage]
        raise UnsupportedError(refusals.MASK)

    @unwatched
    def places_in(self, x: Any, lead: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
        """Return ``x[*lead, *rest]``, where this is the first array of the key.

        Before it are slices; with it numbers and what the same mask chooses.
        """
        own = [k for k in rest if isinstance(k, Chosen)]
        is_plain = all(isinstance(k, Chosen) or _is_basic(k) for k in rest)
        if not is_plain or any(k._rest or k._place for k in own):
            raise UnsupportedError(refusals.MASK)
        if lead and keys.is_apart([*lead, *rest]):
            raise UnsupportedError(refusals.MASK)
        each = [self.fitted(k) if isinstance(k, Chosen) else k for k in rest]
        t = self._tracer
        return Chosen(t.wrap(t.tensor(x[(*lead, *each)])), self._mask, len(lead))

    @unwatched
    def __getitem__(self, key: Any) -> Any:
        """Return a view along other axes than that of the chosen elements."""
        spelled: list[Any] = [*key] if isinstance(key, tuple) else [key]
        listed = keys.with_ellipsis(spelled, self.ndim)
        at = [k for k, item in enumerate(listed) if item is not None][self._place]
        lead, own, tail = listed[:at], listed[at], listed[at + 1 :]
        is_all = isinstance(own, slice) and own == slice(None)
        if not is_all or not all(k is None or _is_basic(k) for k in (*lead, *tail)):
            raise UnsupportedError(refusals.MASK)
        whole = (slice(None),) * self._mask.ndim
        found = self._full[(*lead, *whole, *tail, ...)]
        rest = sum(k is None or isinstance(k, slice) for k in tail)
        return Chosen(found, self._mask, found.ndim - rest - self._mask.ndim)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise UnsupportedError(refusals.MASK)

    def __bool__(self) -> bool:
        raise UnsupportedError(refusals.MASK)

    def __iter__(self) -> Any:
        raise UnsupportedError(refusals.MASK)

    def __hash__(self) -> int:
        raise refusals.hashed()

    def __getattr__(self, name: str) -> Any:
        if name in _FOLDS:
            return lambda *args, **options: self.fold(name, *args, **options)
        if name in ("astype", "clip", "conj", "conjugate", "copy", "round"):
            return lambda *args, **options: self.each(
                operator.methodcaller(name, *args, **options), self
            )
        if name in ("real", "imag"):
            return self.each(operator.attrgetter(name), self)
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(refusals.MASK)


chosen_by_masks.add(Chosen)


def _straight(function: Callable[..., Any]) -> Any:
    return lambda self, *others: self.each(function, self, *others)


def _reflected(function: Callable[..., Any]) -> Any:
    return lambda self, other: self.each(function, other, self)


def _in_place(function: Callable[..., Any]) -> Any:
    return lambda self, other: self.update(function, other)


for _name in _BINARY:
    _function = getattr(operator, f"__{_name}__")
    setattr(Chosen, f"__{_name}__", _straight(_function))
    setattr(Chosen, f"__r{_name}__", _reflected(_function))
    setattr(Chosen, f"__i{_name}__", _in_place(_function))
for _name in _OTHERS:
    setattr(Chosen, f"__{_name}__", _straight(getattr(operator, f"__{_name}__")))


def _is_basic(key: Any) -> bool:
    """Tell whether an item of a key is a slice, an ellipsis or Python's integer."""
    if key is Ellipsis or isinstance(key, slice):
        return True
    is_number = hasattr(key, "__index__") and not hasattr(key, "_remake")
    is_truth = isinstance(key, (bool, np.bool_))
    return is_number and not is_truth and not getattr(key, "ndim", 0)


def spread(
    t: Tracer, item: Any, count: int, rest: int, dtype: DType | None = None
) -> Any:
    """Return an array with ``count`` axes of size 1 for the one of chosen elements.

    ``rest`` axes follow that one, and it is to be of ``dtype``. More elements than one
    along it would have to be as many as a mask chooses.
    """
    held = array_of(t, item, dtype)
    if held.ndim <= rest:
        return item if isinstance(item, Standin) and dtype is None else t.wrap(held)
    at = held.ndim - rest - 1
    b = t.builder
    if not b.ask(equal(held.shape[at], 1), usual=1):
        raise UnsupportedError(refusals.MASKED_VALUES)
    found = ops.squeeze(b, held, (at,))
    if held.ndim > rest + 1 or count:
        found = ops.expand_dims(b, found, tuple(range(at, at + count)))
    return t.wrap(found)
