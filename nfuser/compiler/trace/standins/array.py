# SPDX-License-Identifier: Apache-2.0
"""The array stand-in: what a traced function sees in place of its arrays."""

from __future__ import annotations

import math
import sys
import weakref
from functools import partial, reduce
from operator import index
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import nfuser.compiler.trace.numpy.movement.assignment as assignment
import nfuser.compiler.trace.numpy.movement.indexing as indexing
import nfuser.compiler.trace.numpy.movement.writes as writes
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.ir.scalars.functions import product
from nfuser.compiler.trace.numpy.dispatch.methods import Methods
from nfuser.compiler.trace.numpy.dispatch.protocols import NumpyProtocols
from nfuser.compiler.trace.numpy.without_axes import mark
from nfuser.compiler.trace.source_line import running
from nfuser.compiler.trace.standins.asked import (
    TRUTH_OF_AXES,
    ask_of_joined,
    ask_of_number,
    ask_of_range,
    ask_to_convert,
    ask_to_rewrite,
)
from nfuser.compiler.trace.standins.dialect import NUMPY
from nfuser.compiler.trace.standins.host_numbers import host_number
from nfuser.compiler.trace.standins.symbolic import SymbolicCount, SymbolicInt, integer
from nfuser.compiler.trace.watch.unwatched import unwatched
from nfuser.errors import MutationError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.elementwise.of_rows import BinaryVerb
    from nfuser.compiler.trace.tracer import Tracer

_LONGEST_LOOP = 300
_PYTHON = {"b": bool, "i": int, "u": int, "f": float}
_OF_NUMBERS = {"as_integer_ratio", "bit_count", "hex", "is_integer"}


class TracedArray(Methods, NumpyProtocols):
    """Stands for an array whose elements are not known while tracing.

    A view keeps its base and the verb that made it, so that it follows when the root
    of all is assigned to, and so that what is assigned to it reaches that root.
    """

    __slots__ = (
        *(
            "_base",
            "_chosen_of",
            "_counted",
            "_held",
            "_is_array",
            "_is_own",
            "_is_shared",
        ),
        *("_is_variable", "_remake", "_root", "_seen", "_slot"),
    )

    def __init__(
        self,
        tracer: Tracer,
        held: TensorView,
        *,
        base: Any = None,
        remake: Callable[[TensorView], TensorView] | None = None,
        slot: int | None = None,
        kind: type | None = None,
    ) -> None:
        kind = kind or tracer.builder.weak.get(held)
        self._kind = tracer.class_of(held) if kind is None else kind
        self._tracer = tracer
        tracer.made.append(weakref.ref(self))
        self._held = held
        self._slot = slot  # of an argument
        self._is_array = slot is not None  # also without axes
        self._is_variable = False  # of a derivative
        self._is_shared = False  # perhaps another name's array, too
        self._chosen_of: tuple[tuple[TracedArray, TensorView], ...] = ()  # one of these
        self._counted: Any = None  # the array and the key, if turns of a loop count it
        self._is_own = slot is not None  # whether what it holds lies in its memory
        self._base: TracedArray | None = base
        self._remake = remake
        self._root: TracedArray | None = None
        self._seen: TensorView | None = None  # what the root held
        if self._base is not None:
            root = self._base._root
            self._root = self._base if root is None else root
            self._seen = self._root._held

    def _choose(self, arrays: Iterable[TracedArray]) -> None:
        """Be one of ``arrays``, it is not known which, or have elements of its own."""
        self._is_shared = True
        found: dict[tuple[int, int], tuple[TracedArray, TensorView]] = {}
        for x in arrays:
            # Each with what it may be itself: whoever looks asks nobody in turn.
            for array, held in (*x._choices, (x, x._operand())):
                found[id(array), id(held)] = array, held
        self._chosen_of = tuple(found.values())

    @property
    def _choices(self) -> tuple[tuple[TracedArray, TensorView], ...]:
        """The arrays that this, or what it is a view of, may be."""
        return (self if self._root is None else self._root)._chosen_of

    def _operand(self) -> TensorView:
        root = self._root
        for array, held in (self if root is None else root)._chosen_of:
            if array._current() is not held:
                message = (
                    "read it before, or write y = y + 1 instead of y += 1: an array "
                    "that a choice or a loop bound may be one that was updated in "
                    "place since; which one it is, is not known while tracing"
                )
                raise MutationError(message)
        if root is None or self._seen is root._held:
            return self._held
        return self._current()

    def _current(self) -> TensorView:
        """Return what it holds, if it is none of those that it may be."""
        root = self._root
        if root is None or self._seen is root._held:
            return self._held
        stale: list[TracedArray] = [self]
        while (base := stale[-1]._base) is not None and base is not root:
            stale.append(base)
        for view in reversed(stale):
            if view._seen is root._held or view._base is None or view._remake is None:
                continue
            view._seen, view._held = root._held, view._remake(view._base._held)
        return self._held

    @property
    def _is_number(self) -> bool:
        """Whether NumPy or Python would hold an immutable number here."""
        held = self._operand()
        if held.ndim or self._is_array:
            return False
        tracer = self._tracer
        return not tracer.dialect.has_words or held in tracer.builder.weak

    def _update(self, verb: BinaryVerb, other: Any) -> Any:
        """Apply ``x op= other``: a number is bound anew, an array is written."""
        if self._is_number:
            return self._tracer.operate(verb, self, other)
        found = self._tracer.call_operator(verb, self, other)
        self._write(found)
        return self

    def _write(self, value: Any) -> None:
        """Let the elements be those of a result, cast as ``out=`` casts them."""
        writes.write(self._tracer, self, value, "same_kind")

    def _chain(
        self, end: TracedArray | None = None
    ) -> tuple[TracedArray, Callable[[TensorView], TensorView]]:
        """Return the root of all, and what makes this view of what it holds.

        Or ``end``, which this is a view of, in place of the root.
        """
        remakes: list[Callable[[TensorView], TensorView]] = []
        found = self
        while found is not end and found._base is not None and found._remake:
            remakes.append(found._remake)
            found = found._base
        return found, lambda held: reduce(lambda x, f: f(x), reversed(remakes), held)

    def _hold(self, held: TensorView) -> None:
        """Let the root stand for what its memory holds from now on."""
        self._held = held

    @unwatched
    def __setitem__(self, key: Any, value: Any) -> None:
        assignment.set_item(self._tracer, self, key, value)

    @unwatched
    def __getitem__(self, key: Any) -> Any:
        found = indexing.get_item(self._tracer, self, key)
        listed = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
        is_array = any(k is Ellipsis for k in listed)  # without axes, too
        mark(found, (self,), is_array=is_array)
        if found._is_number and self._tracer.dialect is NUMPY:
            found._detach()
        return found

    def _detach(self) -> None:
        """Be a number, which stays what it is when the array is assigned to."""
        self._held = self._operand()
        self._base = self._root = self._remake = None

    def __len__(self) -> int:
        shape = self._operand().shape
        if not shape:
            message = "len() of unsized object"
            raise TraceError(message)
        if self._tracer.plain is None:
            ask_of_range(sys._getframe(1), or_length=True)  # pyright: ignore[reportPrivateUsage]
        return self._tracer.consume_scalar(shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self._operand().ndim:
            message = "iteration over a 0-d array"
            raise TraceError(message)
        count = len(self)
        if count > _LONGEST_LOOP:
            if self._tracer.plain is None:
                ask_to_rewrite()
            message = (
                "write array operations, or fuse the body of the loop by itself: a "
                f"Python loop over {count} elements would be traced one by one"
            )
            raise TraceError(message)
        return map(self.__getitem__, range(count))  # each as it is by then

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    def __bool__(self) -> bool:
        if self._tracer.plain is None and self._is_open_truth():
            ask_to_rewrite()
        held = self._operand()
        what = TRUTH_OF_AXES if held.ndim else "bool(x), or `if x`,"
        return bool(self._tracer.consume(held, what))

    def _is_open_truth(self) -> bool:
        held = self._operand()
        found = None if held.ndim else host_number(self._tracer.builder, held)
        return not held.ndim and found is None

    def __float__(self) -> float:
        self._ask_to_call("float")
        return float(self._tracer.consume(self._operand(), "float(x)"))

    def __int__(self) -> int:
        self._ask_to_call("int")
        return int(self._tracer.consume(self._operand(), "int(x)"))

    def _ask_to_call(self, name: str) -> None:
        """Ask for a trace in which what the user's code calls so gives a number."""
        found = running()
        if found is not None and found.called == name:
            self._may_open(f"{name}(x)")

    def _may_open(self, what: str) -> bool:
        """Tell whether this is given as a number of Python's that a call computes."""
        t = self._tracer
        if t.dialect is not NUMPY or not self._is_open_truth():
            return False
        if self._operand().dtype.is_complex:
            return False
        if not t.opens:
            t.may_open = True
            ask_of_number(what)
        return True

    def _rounded(self, name: str, function: Any) -> Any:
        """Return the integer of Python's that a function of NumPy's gives first."""
        if self._may_open(f"{name}(x)"):
            return self._tracer.python_number(function(self), int)
        return getattr(math, name)(float(self))

    def __floor__(self) -> Any:
        return self._rounded("floor", np.floor)

    def __ceil__(self) -> Any:
        return self._rounded("ceil", np.ceil)

    def __complex__(self) -> complex:
        return complex(self._tracer.consume(self._operand(), "complex(x)"))

    def __index__(self) -> int:
        if self._tracer.plain is None:
            ask_of_range(sys._getframe(1), or_table=True)  # pyright: ignore[reportPrivateUsage]
        return index(self._tracer.consume(self._operand(), "an index"))

    def __round__(self, digits: int | None = None) -> Any:
        if not self._is_number:
            message = "write np.round(x, decimals): round(x) is for numbers"
            raise TraceError(message)
        if digits is not None:
            return self.round(digits)
        if self._may_open("round(x)"):
            return self._tracer.python_number(np.rint(self), int)
        return round(float(self))

    def item(self, *indices: Any) -> Any:
        """Return the one element as a number of Python's."""
        x: Any = self
        if indices:
            x = self.reshape(-1)[indices] if len(indices) == 1 else self[indices]
        elif self.ndim and self.size == 1:
            x = self.reshape(())
        return x._only("x.item()")

    def tolist(self) -> Any:
        """Return the number of Python's, if there is but one."""
        return self._only("x.tolist()")

    def _only(self, what: str) -> Any:
        """Return the one element as a number of Python's."""
        if self._may_open(what):
            return self._tracer.python_number(self, _PYTHON[self._operand().dtype.kind])
        number = self._tracer.consume(self._operand(), what)
        return number.item() if hasattr(number, "item") else number

    def __repr__(self) -> str:
        return repr(self._shown())

    def __str__(self) -> str:
        return str(self._shown())

    def __format__(self, spec: str) -> str:
        return format(self._shown(), spec)

    def _shown(self) -> Any:
        """Return the number that text is made of; for an array, what it is."""
        x = self._held
        what = f"{x.dtype.numpy.name} array of {x.ndim} dimensions"
        return self._tracer.consume_if_number(x, _Unknown(what))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Return today's value of a number, which plain NumPy asks for."""
        if not self._tracer.converts:
            ask_to_convert()
        if self._tracer.plain is None:
            ask_of_range(sys._getframe(1), or_table=True)  # pyright: ignore[reportPrivateUsage]
            ask_of_joined()
        number = None
        if self._is_number:
            number = self._tracer.consume_if_number(self._operand(), None)
        if number is None:
            return super().__array__(dtype, copy)
        return np.asarray(number, dtype)

    def __getattr__(self, name: str) -> Any:
        dialect, own = self._tracer.dialect, self._operand()
        held = own.dtype.numpy
        if name in dialect.methods:
            return partial(dialect.methods[name], self._tracer, self)
        if name in dialect.attributes:
            return dialect.attributes[name](self._tracer, self)
        if name in _OF_NUMBERS and self._is_number and hasattr(held.type, name):
            number = self._tracer.consume(own, "x.item()")
            return getattr(number, name)
        raise dialect.attribute(name)

    @property
    @unwatched
    def shape(self) -> tuple[SymbolicInt | int, ...]:
        """The sizes; they stay symbolic until Python asks for their values."""
        return tuple(integer(self._tracer, s) for s in self._operand().shape)

    @shape.setter
    def shape(self, _: Any) -> None:
        raise refusals.attribute("shape")

    def _set_flat(self, _: Any) -> None:
        raise refusals.attribute("flat")

    flat = property(None, _set_flat)  # which nobody can read, and ``__getattr__`` tells

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._operand().ndim

    @property
    def size(self) -> SymbolicInt | int:
        """The number of elements."""
        count = product(self._operand().shape)
        if self._tracer.dialect.has_words:
            return SymbolicCount(self._tracer, count, self.shape)
        return integer(self._tracer, count)

    @property
    def dtype(self) -> Any:
        """The dtype, as the library of the array has it."""
        return self._tracer.dialect.dtype(self._operand().dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._operand().dtype.itemsize

    @property
    def nbytes(self) -> SymbolicInt | int:
        """Bytes of all elements."""
        return self.size * self.itemsize


class _Unknown:
    """What is printed for an array, which has no elements while tracing."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __repr__(self) -> str:
        return f"<traced {self._what}>"

    def __format__(self, spec: str) -> str:
        if spec:
            raise refusals.formatted(spec)
        return repr(self)
