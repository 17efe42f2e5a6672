# SPDX-License-Identifier: Apache-2.0
"""Records of calls: what native code needs to serve calls like one that ran.

A record says no more than the key of a plan does, and no less: it holds what native
code itself read of the arguments, and a function that is asked where Python must look.
"""

# Arguments have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import operator
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.base.debug import dump
from nfuser.compiler.ir.scalars.scalar import Const, const
from nfuser.compiler.ir.scalars.scalar_walk import substitute
from nfuser.compiler.trace.call import tree as trees
from nfuser.execution.device.describe.descriptor import describe
from nfuser.execution.device.describe.libraries import Library, library_of
from nfuser.execution.device.native import layout as at
from nfuser.execution.device.native.library import advancing
from nfuser.execution.device.native.shared import shared
from nfuser.execution.device.native.state import Record
from nfuser.execution.host.call.native.number_steps import (
    GREATEST,
    LEAST,
    NotNativeError,
    NumberWriter,
)
from nfuser.execution.host.call.native.program_words import NativeProgram
from nfuser.execution.host.call.native.records import READ, RecordWriter
from nfuser.execution.runtime.call import symbols_of
from nfuser.frontend.call.inputs.arguments import static_key
from nfuser.frontend.call.line import name_call
from nfuser.frontend.call.shape import by_position, with_names
from nfuser.frontend.fuse.dynamo import graph_break
from nfuser.frontend.native.answers import apartness, assembler, told_by
from nfuser.frontend.native.guards import captured_words, quick_guard
from nfuser.frontend.native.outcomes import require_outcome
from nfuser.frontend.native.words import NESTS, bits_of, limits_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.device.native.shared import Shared
    from nfuser.execution.host.call.program import CallProgram, Slot
    from nfuser.execution.runtime.place import Place
    from nfuser.frontend.call.ready import Ready
    from nfuser.frontend.call.shape import CallShape


def record_call(
    function: Callable[..., Any],
    ready: Ready,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Record | None:
    """Return the record of a call of ``function`` that ``ready`` served, if any."""
    shape = shape_of(function, args, kwargs)
    return make_record(ready, shape, (*args, *kwargs.values()))


def shape_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> CallShape:
    """Return how a call of ``function`` is spelled."""
    if not kwargs:
        return by_position(len(args))
    return with_names(inspect.signature(function), len(args), tuple(kwargs))


def make_record(
    ready: Ready, shape: CallShape, args: Sequence[Any], outputs: Sequence[Any] = ()
) -> Record | None:
    """Return what native code needs to serve calls like this one of ``ready``.

    None where native code cannot serve such calls. ``args`` are in the order of the
    call. ``outputs`` are arrays that the results are written into; they count as
    further arguments.
    """
    found = shared()
    if found is None or not can_be_native(ready.place):
        return None
    try:
        return RecordMaker(found, ready, shape, args, outputs).made()
    except NotNativeError:
        return None


def can_be_native(place: Place) -> bool:
    """Tell whether native code reads the arrays of calls there."""
    is_read = place.backend != "interpret" and place.library in READ
    return is_read and not dump.wants("launch")


class RecordMaker:
    """Writes the record of calls like one that ``ready`` served."""

    is_open = False  # whether sizes, strides and integers may differ between calls

    def __init__(
        self,
        shared: Shared,
        ready: Ready,
        shape: CallShape,
        args: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        self._shape = shape
        self._shared = shared
        self._ready = ready
        captured = ready.variant.trace.captured
        arrays = captured.read(*shape.bound(args))
        streams = captured.read_streams(*shape.bound(args))
        if arrays is None or streams is None:
            raise NotNativeError
        if captured.streams.places and ready.place.device.is_cuda:
            raise NotNativeError  # Python looks whether a graph is recorded
        if not captured.streams.are_of_nfuser or ready.variant.trace.changed:
            raise NotNativeError
        self._streams = streams
        self._captured = tuple(zip(captured.arrays, arrays, strict=True))
        rows, self._starts = rows_of(args)
        self._args = (*rows, *outputs)
        self._items = (*self._args, *arrays)
        self._count = len(rows)
        if ready.variant.trace.writes and not self._may_write(ready, arrays, outputs):
            raise NotNativeError
        place = ready.place
        self._writer = RecordWriter(shared, place.library, place.device)
        self._keep = self._writer.keep
        self._keep.hold(ready)
        self._program, self._inputs = self._laid_out()
        self._positions: dict[Slot, int] = {}
        self._numbers: dict[int, tuple[int, type]] = {}
        self._slots: dict[int, int] = {}
        self._name_slots()
        self._require_writable()
        self._sizes = self._fixed_sizes()

    def _may_write(
        self, ready: Ready, captured: Sequence[Any], outputs: Sequence[Any]
    ) -> bool:
        """Tell whether native code may write into the arguments of such calls.

        That they may be written is part of their patterns; that they lie apart is what
        ``_guard`` asks.
        """
        is_plain = ready.place.library is Library.NUMPY and not self.is_open
        has_nests = any(type(x) in NESTS for x in self._args)
        return is_plain and not captured and not outputs and not has_nests

    def _require_writable(self) -> None:
        """Leave it to Python to refuse calls that may not write what they would."""
        for slot, _ in self._ready.variant.trace.writes:
            array = self._args[self._positions[self._inputs[slot]]]
            if not describe(array, "an argument").writable:
                raise NotNativeError

    def _laid_out(self) -> tuple[CallProgram, Mapping[int, Slot]]:
        """Return the program of such calls, and its inputs by slot."""
        return self._ready.plan.program, self._ready.plan.inputs

    def _fixed_sizes(self) -> dict[Scalar, int]:
        """Return the sizes that such calls have in common."""
        shapes = {slot: x.shape for slot, x in self._inputs.items()}
        return symbols_of(shapes, {})

    def _name_slots(self) -> None:
        """Say which argument is the caller's array or number of each slot."""
        slot = 0
        ordered = (k for p in self._shape.order for k in self._starts[p])
        for position in ordered:
            item = self._args[position]
            cls = type(item)
            if library_of(cls) is not None:
                if slot not in self._inputs:
                    raise NotNativeError  # a scalar on the CPU beside CUDA arrays
                self._positions[self._inputs[slot]] = position
            elif cls is int or cls is float or cls in self._shared.scalars:
                self._numbers[slot] = position, cls
            elif cls in NESTS:
                continue  # what it holds comes next
            elif isinstance(item, (*NESTS, np.generic)):
                raise NotNativeError
            else:
                continue
            self._slots[position] = slot
            slot += 1
        leaves = self._ready.variant.trace.output_leaves
        places = range(self._count, len(self._args))
        for position, leaf in zip(places, leaves, strict=False):
            output = self._program.outputs[leaf.position]
            self._positions[output] = position
        for k, (captured, _) in enumerate(self._captured):
            where = self._inputs[captured.slot]
            self._positions[where] = len(self._args) + k

    def made(self) -> Record:
        """Return the record."""
        ready = self._ready
        if ready.lifted or len(self._items) > at.MOST_ARGUMENTS:
            raise NotNativeError
        program = self._native()
        frame = self._shared.read(self._items)
        if frame is None:
            raise NotNativeError
        count, writer = len(self._args), self._writer
        patterns = self._patterns(frame, program)
        header = writer.header(frame, count, patterns, program, name_call)
        for where, number in (
            (at.R_GUARD, self._guard()),
            (at.R_TOTAL, len(self._items)),
            (at.R_CAPTURED, len(self._captured)),
            (at.R_CAPTURES, self._keep.words(self._captures())),
            (at.R_CAPTURE_PATTERNS, self._keep.words(self._capture_patterns(frame))),
            (at.R_QUICK, self._quick_guard()),
            (at.R_NAMED, len(self._shape.names)),
            (
                at.R_NAMES,
                self._keep.words([self._keep.object(n) for n in self._shape.names]),
            ),
        ):
            header[where // 8] = number
        self._results(header, program)
        addresses = [int(row[at.F_DATA // 8]) for row in frame[:count]]
        return Record(header, self._keep, addresses, is_open=self.is_open)

    def _native(self) -> NativeProgram:
        """Return the program, with all that is asked of a call before it runs."""
        steps = self._steps()
        self._require_answers(steps)
        place = self._ready.place
        return NativeProgram(
            self._program,
            place.library,
            place.device,
            self._positions,
            self._numbers,
            len(self._items),
            steps,
            self._draws(),
        )

    def _draws(self) -> dict[int, tuple[int, int]]:
        """Return where the words of each stream lie, and how often it is drawn from."""
        found: dict[int, tuple[int, int]] = {}
        drawn = self._ready.variant.trace.captured.streams.drawn
        for what, stream in zip(drawn, self._streams, strict=True):
            self._keep.hold(stream)
            found[what.slot] = stream.share(advancing()), what.draws
        return found

    def _steps(self) -> NumberWriter:
        """Return what works out the numbers of a call."""
        integers = {
            slot: position
            for slot, (position, cls) in self._numbers.items()
            if issubclass(cls, (int, np.integer)) and cls is not np.uint64
        }
        return NumberWriter(integers, self._reads())

    def _reads(self) -> dict[Scalar, Callable[[NumberWriter], int]]:
        """Return how sizes are read that differ from call to call."""
        return {}

    def _answers(self) -> dict[Scalar, int]:
        """Return the conditions of such calls, each with its answer."""
        return dict(self._ready.conditions)

    def _require_answers(self, steps: NumberWriter) -> None:
        """Serve only calls for which all holds that was asked."""
        for guard in self._ready.outcomes:
            require_outcome(guard, steps, self._numbers)
        if answers := self._answers():
            self._require_conditions(steps, answers)
        for check in self._ready.variant.trace.checks:
            (number,) = self._open([check.scalar])
            if not isinstance(number, Const):
                steps.require(steps.scalar(number), *limits_of(check.dtype))

    def _require_conditions(
        self, steps: NumberWriter, answers: Mapping[Scalar, int]
    ) -> None:
        needed = dict(zip(self._open(answers), answers.values(), strict=True))
        # The others hold as long as sizes are the same.
        steps.require_answers(
            {c: a for c, a in needed.items() if not isinstance(c, Const)}
        )

    def _open(self, scalars: Iterable[Scalar]) -> list[Scalar]:
        """Return scalars with numbers for the sizes that do not change."""
        known = {symbol: const(size) for symbol, size in self._sizes.items()}
        return substitute(scalars, known)

    # -- what must be alike --------------------------------------------------

    def _patterns(self, frame: Any, program: NativeProgram) -> list[int]:
        words: list[int] = []
        for position, item in enumerate(self._args):
            words += self._pattern(position, item, frame[position], program)
        return words

    def _pattern(
        self, position: int, item: Any, row: Any, program: NativeProgram
    ) -> list[int]:
        cls = type(item)
        if library_of(cls) is not None:
            return self._writer.array_pattern(item, row, is_open=self.is_open)
        if cls is int or cls is float or cls in self._shared.scalars:
            low, high = self._range(position, cls, program)
            return [at.IS_NUMBER, 40, self._keep.object(cls), low, high]
        if cls in NESTS:
            keys = list(item) if cls is dict else []
            found = [len(item), *map(self._keep.object, keys)]
            return [at.IS_NEST, 24 + 8 * len(found), self._keep.object(cls), *found]
        if item is None:
            return [at.IS_OBJECT, 24, self._keep.object(None)]
        key: Any = static_key(item)
        reference = key[1] if isinstance(key, tuple) and len(key) == 2 else None
        if isinstance(reference, weakref.ref):
            return [at.IS_REFERENT, 24, self._keep.object(reference)]
        return [at.IS_OBJECT, 24, self._keep.object(item)]

    def _range(
        self, position: int, cls: type, program: NativeProgram
    ) -> tuple[int, int]:
        """Return the least and the greatest number that the record serves."""
        slot, ready = self._slots[position], self._ready
        wanted: list[Any] = [
            g.value for g in ready.variant.trace.value_guards if g.slot == slot
        ]
        if slot in ready.integers and not self.is_open:
            wanted.append(ready.integers[slot])
        low, high = program.ranges.get(position, (LEAST, GREATEST))
        if not wanted:
            return low, high
        if any(type(value) is not cls for value in wanted):
            raise NotNativeError
        bits = [bits_of(value) for value in wanted]
        return max(low, *bits), min(high, *bits)

    def _guard(self) -> int:
        """Return a function that tells whether all that was captured is unchanged."""
        captured = self._ready.variant.trace.captured
        streams, found = captured.streams, self._streams
        is_free = not (captured.constants or captured.aliases or streams.places)
        are_apart = self._apartness()
        if is_free:
            return 0 if are_apart is None else self._keep.object(are_apart)
        bound = self._shape.bound
        slots = self._ready.variant.trace.writes if captured.has_seen else ()
        places = [self._positions[self._inputs[slot]] for slot, _ in slots]

        @graph_break
        def is_unchanged(*args: Any) -> bool:
            if are_apart is not None and not are_apart(*args):
                return False
            given = bound(args)
            if captured.read(*given) is None:
                return False
            written = [args[k] for k in places]
            if written and captured.seen_within(written, *given) is not None:
                return False
            now = captured.read_streams(*given)
            return now is not None and all(map(operator.is_, now, found))

        return self._keep.object(is_unchanged)

    def _apartness(self) -> Callable[..., bool] | None:
        written = [slot for slot, _ in self._ready.variant.trace.writes]
        places = {s: self._positions[x] for s, x in self._inputs.items()}
        return apartness(written, places, self._args)

    def _captures(self) -> list[int]:
        words: list[int] = []
        for captured, _ in self._captured:
            found = captured_words(captured, self._shape, self._keep)
            if found is None:
                raise NotNativeError
            words += found
        return words

    def _capture_patterns(self, frame: Any) -> list[int]:
        words: list[int] = []
        for k, (_, array) in enumerate(self._captured, len(self._args)):
            words += self._writer.array_pattern(array, frame[k])
        return words

    def _quick_guard(self) -> int:
        captured = self._ready.variant.trace.captured
        if self._apartness() is not None:
            return 0  # Python looks where the arrays lie
        words = quick_guard(captured, self._shape, self._args, self._keep)
        return self._keep.words(words) if words else 0

    # -- what it returns -------------------------------------------------------

    def _place_of(self, slot: int) -> int:
        """Return the place of an argument among those that are passed."""
        if slot in self._numbers:
            return self._numbers[slot][0]
        if slot not in self._inputs:
            raise NotNativeError
        return self._positions[self._inputs[slot]]

    def _results(self, header: Any, program: NativeProgram) -> None:
        trace, place = self._ready.variant.trace, self._ready.place
        outputs = self._program.outputs
        words: list[int] = []
        for leaf in trace.output_leaves:
            if leaf.slot is not None:  # whether or not something was written
                words += [-1 - self._place_of(leaf.slot), 0]
                continue
            slot = outputs[leaf.position]
            if slot in self._positions:
                words += [-1 - self._positions[slot], 0]
                continue
            if slot not in program.objects:
                raise NotNativeError
            is_scalar = place.library is Library.NUMPY and not slot.shape
            is_scalar = is_scalar and not leaf.is_array
            words += [program.objects[slot], int(is_scalar)]
        shape = trace.output_tree
        leaves = (trees.LEAF,) * len(trace.output_leaves)
        told = told_by(trace)
        for symbol in told:
            words += [-1 - self._place_of(symbol.slot), 0]
        if any(not leaf.is_as_made for leaf in trace.output_leaves):
            kind = at.CALLED
        elif shape == trees.LEAF:
            kind = at.ONE
        elif shape == trees.Tree(tuple, leaves):
            kind = at.MANY
        else:
            kind = at.CALLED
        if kind == at.CALLED:
            header[at.R_RESULT_CALL // 8] = self._keep.object(assembler(trace, told))
        header[at.R_RESULT // 8] = kind
        header[at.R_RESULT_COUNT // 8] = len(words) // 2
        header[at.R_RESULTS // 8] = self._keep.words(words)
