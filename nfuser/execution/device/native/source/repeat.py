# SPDX-License-Identifier: Apache-2.0
"""Native source: what loops need between their iterations, without a line of Python.

Other threads may run Python meanwhile. Signals are looked for every 10 ms.
"""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import (
    PyErr_CheckSignals,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    clock_gettime,
)
from nfuser.execution.device.native.layout import (
    L_FIRST,
    L_MOVES,
    L_ROW_BYTES,
    L_SWAPS,
    LOOK_EVERY,
    LOOKED,
    MONOTONIC,
    RELEASED,
)
from nfuser.execution.device.native.words import space, store, word


def released(slots: int, may_be: int) -> int:
    """Let other threads run Python, if they may."""
    if may_be:
        store(slots + RELEASED, PyEval_SaveThread())
    return 0


def held(slots: int) -> int:
    """Let no other thread run Python; tell whether they could."""
    thread = word(slots + RELEASED)
    if thread:
        PyEval_RestoreThread(thread)
        store(slots + RELEASED, 0)
    return thread != 0


def signalled(slots: int) -> int:
    """Let signals be handled, if nobody looked for them lately; return a status."""
    time = space(2)
    clock_gettime(MONOTONIC, time)
    now = word(time) * 1000000000 + word(time + 8)
    if now - word(slots + LOOKED) < LOOK_EVERY:
        return 0
    store(slots + LOOKED, now)
    was_released = held(slots)
    status = PyErr_CheckSignals()
    released(slots, was_released)
    return status


def begin_rows(at: int, slots: int) -> int:
    """Let what moves with the iterations begin at its place."""
    row = at + L_FIRST + L_ROW_BYTES * word(at + L_SWAPS)
    end = row + L_ROW_BYTES * word(at + L_MOVES)
    while row < end:
        base = word(slots + 8 * word(row + 8))
        store(slots + 8 * word(row), base + word(row + 16))
        row += L_ROW_BYTES
    return 0


def turn_rows(at: int, objects: int, slots: int) -> int:
    """Let the arrays of each pair change places, and what moves go on."""
    row = at + L_FIRST
    end = row + L_ROW_BYTES * word(at + L_SWAPS)
    while row < end:
        _swap(slots + 8 * word(row), slots + 8 * word(row + 8))
        _swap(objects + 8 * word(row + 16), objects + 8 * word(row + 24))
        row += L_ROW_BYTES
    end = row + L_ROW_BYTES * word(at + L_MOVES)
    while row < end:
        place = slots + 8 * word(row)
        store(place, word(place) + word(row + 24))
        row += L_ROW_BYTES
    return 0


def _swap(first: int, second: int) -> int:
    before = word(first)
    store(first, word(second))
    store(second, before)
    return 0


FUNCTIONS = (released, held, signalled, begin_rows, turn_rows, _swap)
