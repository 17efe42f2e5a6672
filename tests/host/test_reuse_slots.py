# SPDX-License-Identifier: Apache-2.0
"""Values between kernels lie where others lay, and no more memory is held."""

from __future__ import annotations

from nfuser.compiler.dtypes import DType
from nfuser.execution.host.call.program import (
    AllocateSlot,
    CallLibrary,
    CallProgram,
    FreeSlot,
    Operand,
    Slot,
    SlotPart,
    text,
)
from nfuser.execution.host.call.reuse_slots import reuse_slots
from tests.host.launches import launch
from tests.host.peak import measured


def _slot(name: str, size: int = 4) -> Slot:
    return Slot(name, (size,), (1,), DType.F32)


def _lines(program: CallProgram) -> list[str]:
    return [line.split(") grid")[0].strip() for line in text(program).splitlines()]


X, OUT = _slot("x"), _slot("out")


def test_a_chain_goes_to_and_fro_between_two() -> None:
    a, b, c = _slot("a"), _slot("b"), _slot("c")
    body = (
        *(AllocateSlot(a), launch(X, a), AllocateSlot(b), launch(a, b), FreeSlot(a)),
        *(
            AllocateSlot(c),
            CallLibrary("matmul", (Operand(SlotPart(b)),) * 2, c),
            FreeSlot(b),
        ),
        *(AllocateSlot(OUT), launch(c, OUT), FreeSlot(c)),
    )
    before = CallProgram((X,), (OUT,), body)
    after = reuse_slots(before)
    assert _lines(after)[1:-1] == [
        "a = allocate f32[4]",
        "launch kernel(x, a",
        "b = allocate f32[4]",
        "launch kernel(a, b",
        "a = matmul(b, b)",
        "free b",
        "out = allocate f32[4]",
        "launch kernel(a, out",
        "free a",
    ]
    assert measured(after) <= measured(before)
    assert reuse_slots(after) is after


def test_memory_is_not_held_while_other_memory_is_made() -> None:
    a, b, big = _slot("a"), _slot("b"), _slot("big", 400)
    body = (
        *(
            AllocateSlot(a),
            launch(X, a),
            AllocateSlot(OUT),
            launch(a, OUT),
            FreeSlot(a),
        ),
        *(AllocateSlot(big), launch(X, big), FreeSlot(big)),
        *(AllocateSlot(b), launch(X, b, OUT), FreeSlot(b)),
    )
    program = CallProgram((X,), (OUT,), body)
    assert reuse_slots(program) is program


def test_outputs_have_memory_of_their_own() -> None:
    a = _slot("a")
    body = (
        AllocateSlot(a),
        launch(X, a),
        FreeSlot(a),
        AllocateSlot(OUT),
        launch(X, OUT),
    )
    program = CallProgram((X,), (OUT,), body)
    assert reuse_slots(program) is program
