# SPDX-License-Identifier: Apache-2.0
"""From the stages of one call to words about them; nothing is compiled, or run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import nfuser.frontend.explain.traffic as traffic
from nfuser.compiler.domains.unset import is_unset
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    VIEWS,
    Argument,
    Assign,
    Constant,
    FromScalar,
    Pointwise,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.text import Names, expr_text
from nfuser.compiler.ops.folds.draws import METHODS
from nfuser.compiler.rewrite.dead_code import drop_dead_code
from nfuser.compiler.rewrite.known_choices import take_known_choices
from nfuser.compiler.schedule.placement.placement import described
from nfuser.compiler.schedule.scheduled import Joined, Serial
from nfuser.execution.host.call.library.library_calls import caller
from nfuser.execution.runtime.tables.counters import Counters
from nfuser.frontend.explain.explanation import (
    ExplainedCut,
    Explanation,
    Operation,
    Piece,
    Reason,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.scheduled import Schedule
    from nfuser.compiler.segment import Rejection
    from nfuser.compiler.segment.segmented import Cut as SegmentCut
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.runtime.caches.executor_cache import (
        FusionExecutorCache,
        Outline,
    )
    from nfuser.execution.runtime.place import Place


@value
class Seen:
    """A call that was looked at: its traced fusion, what its plan would be made of."""

    traced: Fusion
    outline: Outline
    names: Mapping[int, str]
    explanation: Explanation


_DRAWS = (
    "write nfuser.random.default_rng(seed) in place of a generator of NumPy's to draw "
    "inside the kernels: other numbers, which never touch memory"
)


def explain(
    cache: FusionExecutorCache,
    fusion: Fusion,
    place: Place,
    arrays: Mapping[int, Descriptor],
    integers: Mapping[int, int],
    counters: Counters,
    names: Mapping[int, str],
    aliases: Mapping[int, int] | None = None,
) -> Seen:
    """Explain a call of ``fusion`` that ``cache`` serves, with the lines of ``fusion``.

    ``names`` are those of the arguments, ``aliases`` the inputs that outputs go to.
    """
    if cache.fusion is not fusion:
        # It is another's that says the same, with lines of its own; kernels are shared.
        twin = Fusion(cache.fusion.name, fusion.exprs, fusion.outputs)
        cache, counters = cache.alike(twin), Counters()
    outline = cache.outline(place, arrays, integers, counters)
    told = _Explainer(fusion, outline, place, arrays, names).run(aliases or {})
    return Seen(fusion, outline, names, told)


class _Explainer:
    def __init__(
        self,
        traced: Fusion,
        outline: Outline,
        place: Place,
        arrays: Mapping[int, Descriptor],
        names: Mapping[int, str],
    ) -> None:
        self.traced = traced
        self.outline = outline
        self.place = place
        self.arrays = arrays
        self.names = names
        self.facts = outline.facts
        self.segmented = outline.concretization.segmented

    def run(self, aliases: Mapping[int, int]) -> Explanation:
        plain = self.outline.concretization.concrete.fusion
        written = drop_dead_code(take_known_choices(plain))
        alone = traffic.unfused(written, self.facts)
        shown = [
            f"{self.names[slot]}: {d.dtype}[{_sizes(d.shape)}]"
            for slot, d in self.arrays.items()
        ]
        return Explanation(
            self.traced.name,
            self._where(),
            tuple(shown),
            len(alone.operations),
            self._pieces(),
            tuple(self._cut(cut) for cut in self.segmented.cuts),
            alone.traffic,
            self._notes(aliases),
        )

    def _where(self) -> str:
        device, backend = str(self.place.device), self.place.backend
        return device if device.startswith(backend) else f"{device}, {backend}"

    # -- pieces --------------------------------------------------------------

    def _pieces(self) -> tuple[Piece, ...]:
        made = zip(self.outline.sources, self.outline.heuristics, strict=True)
        pieces: list[Piece] = []
        for segment in self.segmented.pieces:
            if not (segment.is_kernel or segment.is_library_call):
                continue  # what stored the value has put it where it belongs
            if segment.is_library_call:
                (call,) = segment.fusion.library_calls
                whose = caller(call.name, self.place.library, self.place.device)
                name = f"{call.name} by {whose.value}"
                schedule, placed = "no kernel of ours", tuple[str, ...]()
            else:
                source, heuristic = next(made)
                name, schedule = source.entry, str(heuristic)
                placed = tuple(self._placed(source.kernel.scheduled))
            fusion = segment.fusion
            done = [e for e in fusion.exprs if not isinstance(e, _LEAVES)]
            pieces.append(
                Piece(
                    name,
                    not segment.is_library_call,
                    schedule,
                    _operations(done),
                    traffic.fused(fusion, self.facts),
                    self._is_launched(fusion),
                    placed,
                )
            )
        return tuple(pieces)

    def _is_launched(self, fusion: Fusion) -> bool:
        """Tell whether there is something to store."""
        sizes = (traffic.size_of(t, self.facts) for t in fusion.outputs)
        return any(sizes) and not is_unset(fusion)

    def _placed(self, scheduled: Schedule) -> Iterator[str]:
        """Yield what lies where between the passes of a kernel."""
        whole = self.segmented.fusion.definition

        def name(tensor: TensorView) -> str:
            expr = whole.get(tensor) or part.fusion.definition[tensor]
            if not isinstance(expr, Argument):
                return _operation(expr).name
            return self.names.get(expr.slot, "an operand") + expr.part.value

        if isinstance(scheduled, Serial):
            return
        parts = scheduled.parts if isinstance(scheduled, Joined) else (scheduled,)
        for part in parts:
            yield from described(part.placements, part.left_out, name)

    # -- cuts ----------------------------------------------------------------

    def _cut(self, cut: SegmentCut) -> ExplainedCut:
        definition = self.segmented.fusion.definition
        expr, tensor = definition[cut.tensor], cut.tensor
        pieces = self._numbered()
        stored_by = next((k for k, f in pieces if tensor in f.outputs), None)
        users = [k for k, f in pieces if tensor in f.definition]
        telling = [r for r in cut.reasons if not r.is_other] or cut.reasons
        typed = f"{tensor.dtype}[{_sizes(map(self.facts.size, tensor.shape))}]"
        if isinstance(expr, Argument):
            typed = f"{self.names[expr.slot]}{expr.part.value}: {typed}"
        return ExplainedCut(
            typed,
            None if isinstance(expr, Argument) else _operation(expr),
            stored_by,
            tuple(k for k in users if k != stored_by),
            traffic.size_of(tensor, self.facts),
            tuple(dict.fromkeys(self._reason(r) for r in telling)),
        )

    def _numbered(self) -> list[tuple[int, Fusion]]:
        """Return each piece with its number; a loop has that of its first one."""
        found: list[tuple[int, Fusion]] = []
        number = 0
        for segment in self.segmented.segments:
            found.append((number, segment.fusion))
            number += 1 if segment.body is None else len(segment.body.pieces)
        return found

    def _reason(self, rejection: Rejection) -> Reason:
        definition = self.segmented.fusion.definition
        if rejection.tensor is None or rejection.tensor not in definition:
            return Reason(rejection.reason)
        return Reason(rejection.reason, _operation(definition[rejection.tensor]))

    # -- notes ---------------------------------------------------------------

    def _notes(self, aliases: Mapping[int, int]) -> tuple[str, ...]:
        notes = self._apart()
        for number, tensor in enumerate(self.traced.outputs):
            what = f"result {number}" if len(self.traced.outputs) > 1 else "the result"
            if number in aliases:
                into = self.names[aliases[number]]
                notes.append(f"{what} is copied into {into}, after all was read")
            elif whole := self._returned(tensor):
                notes.append(f"{what} is a copy of {whole}: it shares no memory")
        calls = (c for _, f in self._numbered() for c in f.library_calls)
        if any(call.name.startswith(METHODS) for call in calls):
            notes.append(_DRAWS)
        return tuple(notes)

    def _apart(self) -> list[str]:
        """Say of which pieces there is nothing to be explained."""
        pieces = [
            (k, {t for t in fusion.definition if t.ndim})
            for k, fusion in self._numbered()
        ]
        held = Counter(t for _, piece in pieces for t in piece)
        return [
            f"piece {k} has nothing in common with the others"
            for k, piece in pieces
            if len(pieces) > 1 and all(held[t] == 1 for t in piece)
        ]

    def _returned(self, tensor: TensorView) -> str | None:
        """Return of what argument, or part of one, an output is but a copy."""
        expr = self.traced.definition[tensor]
        if not traffic.is_copy(expr):
            return None
        views = 0
        while not isinstance(expr, Argument):
            if not (traffic.is_copy(expr) or isinstance(expr, VIEWS)):
                return None
            views += isinstance(expr, VIEWS)
            expr = self.traced.definition[sources(expr)[0]]
        if expr.by_value:
            return None
        return f"a view of {self.names[expr.slot]}" if views else self.names[expr.slot]


_LEAVES = Argument | Constant | FromScalar | Assign  # which stores nothing itself


def _operations(exprs: Sequence[Expr]) -> tuple[Operation, ...]:
    """Return what ``exprs`` do; views and casts where a line has nothing else."""
    found = [_operation(e) for e in exprs]
    minor = [
        isinstance(e, VIEWS) or (isinstance(e, Pointwise) and e.op is traffic.CAST)
        for e in exprs
    ]
    pairs = list(zip(found, minor, strict=True))
    busy = {o.line for o, is_minor in pairs if not is_minor}
    if busy:
        busy.add(None)  # what a rewrite converts
    return tuple(o for o, is_minor in pairs if not is_minor or o.line not in busy)


def _operation(expr: Expr) -> Operation:
    # A copy of what is returned is made on no line of the function.
    told = expr.operands[0] if traffic.is_copy(expr) else results(expr)[0]
    name = expr_text(expr, Names()).partition("(")[0]
    return Operation(name.removesuffix("_near"), told.source)


def _sizes(shape: Iterable[int]) -> str:
    return ", ".join(map(str, shape))
