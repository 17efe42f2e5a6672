# SPDX-License-Identifier: Apache-2.0
"""Run a program through the first stages only, and its IR with NumPy.

``trace`` runs what was traced, ``rewrite`` what is left after the rewrites: together
they tell whether a wrong result comes of the front of the compiler or of its back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.numpy as xp
from nfuser.compiler.concretize import answer, concretize, questions
from nfuser.compiler.dtypes import check_fits
from nfuser.compiler.ir.scalars.scalar_walk import evaluate
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.trace.call.call import StaticLeaf, Trace, call_of
from nfuser.compiler.trace.trace_function import trace_function
from tests.fuzz.arrays import is_array
from tests.oracle.fusion_meaning import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from tests.fuzz.program import Program
    from tests.oracle.number_types import Array

    Run = Callable[..., list[Any]]


def _values(arguments: tuple[Any, ...]) -> dict[Scalar, int]:
    values: dict[Scalar, int] = {}
    for slot, x in enumerate(arguments):
        if is_array(x):
            values |= {scalar_symbols.size(slot, k): n for k, n in enumerate(x.shape)}
        elif type(x) is int:
            values[scalar_symbols.scalar_input(slot)] = x
    return values


def _serves(
    trace: Trace, values: Mapping[Scalar, int], arguments: tuple[Any, ...]
) -> bool:
    return all(
        evaluate(guard.condition, values) == guard.answer for guard in trace.guards
    ) and all(arguments[guard.slot] == guard.value for guard in trace.value_guards)


def staged(program: Program, *, rewritten: bool) -> Run:
    """Trace once for as many calls as the guards admit, and run the IR."""
    function = program.function(xp)
    traces: list[Trace] = []

    def run(*given: Any) -> list[Any]:
        call = call_of(given)
        arguments = tuple(
            x
            for x, leaf in zip(given, call.leaves, strict=True)
            if not isinstance(leaf, StaticLeaf)
        )
        values = _values(arguments)
        found = next((t for t in traces if _serves(t, values, arguments)), None)
        if found is None:
            found = trace_function(function, call)
            traces.append(found)
        for check in found.checks:
            check_fits(evaluate(check.scalar, values), check.dtype, check.message)
        fusion = found.fusion
        asked = questions(fusion)
        answers = answer(fusion, asked, values)
        if rewritten:
            fusion = rewrite(concretize(fusion, asked, answers)).fusion
        outputs = Evaluator(arguments, values).run(fusion)
        if rewritten:
            outputs = _joined(found, outputs)
        return [outputs[leaf.position] for leaf in found.output_leaves]

    return run


def _joined(trace: Trace, parts: list[Array]) -> list[Array]:
    """Put the real pairs that stand for complex outputs together again."""
    rest = iter(parts)
    joined: list[Array] = []
    for tensor in trace.fusion.outputs:
        array = next(rest)
        if tensor.dtype.is_complex:
            made = np.empty(array.shape, tensor.dtype.numpy)
            made.real, made.imag = array, next(rest)
            array = made
        joined.append(array)
    return joined


def traced(program: Program) -> Run:
    """Run the traced fusion."""
    return staged(program, rewritten=False)


def rewritten(program: Program) -> Run:
    """Run the fusion after concretization and rewrites."""
    return staged(program, rewritten=True)
