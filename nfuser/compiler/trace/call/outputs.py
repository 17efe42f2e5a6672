# SPDX-License-Identifier: Apache-2.0
"""What a traced function returned, and left in what it was passed, as outputs."""

# What a traced function gives has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.call.tree as tree
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Argument, Assign, Loop, View, results
from nfuser.compiler.trace.call.call import Changed, OutputLeaf
from nfuser.compiler.trace.call.labelled import learn_all
from nfuser.compiler.trace.call.returned_views import are_known, steps_to
from nfuser.compiler.trace.captures.parts import is_array
from nfuser.compiler.trace.standins.array import TracedArray
from nfuser.compiler.trace.standins.chosen import Chosen
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.standins.symbolic import SymbolicInt
from nfuser.errors import NfuserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.call.passed import Passed
    from nfuser.compiler.trace.tracer import Tracer


class Outputs:
    """The outputs of a trace: what is returned, written, and put into arguments.

    ``leaves`` of the nest ``shape`` are what is returned; ``changed`` are the lists and
    dicts that were passed and hold other items now; ``writes`` are the slots of arrays
    that were assigned to, each with its place among ``tensors``.
    """

    def __init__(self, tracer: Tracer, returned: Any, passed: Passed) -> None:
        learn_all()
        self._tracer = tracer
        self._passed = passed
        self._written = dict(tracer.written())
        kept = [tracer.tensor(root) for root in self._written.values()]
        self._states = _states(tracer.builder.exprs, kept)
        self._places: dict[int, int] = {}
        self._made: dict[int, OutputLeaf] = {}
        self._views: dict[int, OutputLeaf] = {}
        self.tensors: list[TensorView] = []
        passed.refuse_relabelled()
        changed = passed.changed()
        nests = passed.nests if changed else {}
        flat, self.shape = tree.flatten(returned, nests)
        self.leaves = tuple(map(self._returned, flat))
        self.changed = tuple(self._change(*found, nests) for found in changed)
        for slot, root in self._written.items():
            self._place(slot, root)
        self.tensors += tracer.tokens.values()  # so that all draws are made
        self.writes = tuple((slot, self._places[slot]) for slot in self._written)

    def _change(
        self, path: tuple[Any, ...], items: Any, nests: dict[int, tuple[Any, ...]]
    ) -> Changed:
        flat, shape = tree.flatten(items, nests)
        return Changed(path, shape, tuple(map(self._put, flat)))

    def _put(self, item: Any) -> OutputLeaf:
        """Return what an item of a list or dict is: the very thing that has a name."""
        place = self._passed.place_of(item)
        if place is not None:
            return OutputLeaf(-1, passed=place)
        return self._made.get(id(item)) or self._returned(item)

    def _returned(self, item: Any) -> OutputLeaf:
        nest = self._passed.nests.get(id(item))
        if nest is not None:
            return OutputLeaf(-1, passed=nest)
        slot = item._slot if isinstance(item, TracedArray) else None  # pyright: ignore[reportPrivateUsage]
        if slot in self._written:
            return OutputLeaf(self._place(slot, item), None, True, slot)
        leaf = self._views.get(id(item)) or self._view(item)
        if leaf is not None:
            self._views[id(item)] = leaf
            return leaf
        found, python = self._output(item)
        is_of_array = isinstance(item, np.ndarray) or getattr(item, "_is_array", False)
        leaf = OutputLeaf(len(self.tensors), python, is_of_array)
        self.tensors.append(self._own(found))
        self._made.setdefault(id(item), leaf)
        return leaf

    def _view(self, item: Any) -> OutputLeaf | None:
        """Return a view of an array that was assigned to."""
        root = item._root if isinstance(item, TracedArray) else None  # pyright: ignore[reportPrivateUsage]
        slot = root._slot if root is not None else None  # pyright: ignore[reportPrivateUsage]
        if root is None or slot not in self._written:
            return None
        tensor = self._tracer.tensor
        steps = steps_to(tensor(item), tensor(root), self._tracer.builder.exprs)
        if steps is None or not are_known(steps, root._kind):  # pyright: ignore[reportPrivateUsage]
            return None
        return OutputLeaf(self._place(slot, root), None, True, slot, view=steps)

    def _place(self, slot: int, root: Any) -> int:
        """Return the place of an array that was assigned to."""
        if slot not in self._places:
            self._places[slot] = len(self.tensors)
            self.tensors.append(self._tracer.tensor(root))
        return self._places[slot]

    def _output(self, item: Any) -> tuple[TensorView, type | None]:
        tracer, b = self._tracer, self._tracer.builder
        if isinstance(item, TracedArray):
            held = tracer.tensor(item)
            return held, b.weak.get(held)
        if isinstance(item, SymbolicInt):
            return b.from_scalar(tracer.operand(item), DType.I64), int
        if type(item) in (bool, int, float, complex):
            return b.tensor(item), type(item)
        try:
            return tracer.tensor(item), None
        except NfuserError as error:
            if isinstance(item, Chosen) and item.line is not None:
                error.args = (f"{error.args[0]}{item.line.note}",)
            if is_array(item) or isinstance(item, Standin):
                raise
            raise refusals.returned(item) from error

    def _own(self, held: TensorView) -> TensorView:
        """Return an output that shares no memory with inputs or other outputs."""
        b = self._tracer.builder
        definition = next(e for e in reversed(b.exprs) if held in results(e))
        taken = held in self.tensors or held in self._states
        if taken or isinstance(definition, Argument | View):
            return b.point("copy", held)
        return held


def _states(exprs: Sequence[Expr], last: Sequence[TensorView]) -> set[TensorView]:
    """Return what arrays are after each assignment, of which ``last`` is what is left.

    What comes between may be nothing, for some sizes: then two of them are one tensor.
    """
    found = set(last)
    for expr in reversed(exprs):
        if isinstance(expr, Assign) and expr.result in found:
            found.add(expr.source)
        elif isinstance(expr, Loop):
            found |= {before for before, _, after in expr.pairs if after in found}
    return found
