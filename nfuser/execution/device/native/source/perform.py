# SPDX-License-Identifier: Apache-2.0
"""Native source: the statements of a record are performed one after another.

Values are addresses by slot: those of the arguments first, then what is allocated.
"""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import (
    Py_DecRef,
    Py_IncRef,
    PyErr_Clear,
    PyErr_Fetch,
    PyErr_Restore,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    call_memset,
    call_new_array,
    call_read_tensor,
    call_stream,
    memset,
)
from nfuser.execution.device.native.layout import (
    A_FIRST,
    A_FOURTH,
    A_OBJECT,
    A_SECOND,
    A_SLOT,
    A_THIRD,
    C_BYTES,
    C_FOOTPRINT,
    C_FUNCTION,
    C_SLOT,
    CALL,
    CALLED_STREAM,
    CLEAR,
    D_COUNT,
    D_PLACE,
    D_WORDS,
    DL_CUDA,
    DL_DATA,
    DLPACK_STREAM,
    DRAW,
    END,
    F_DATA,
    F_OBJECT,
    FRAME_BYTES,
    FRAME_WORDS,
    K_TOTAL,
    L_COMPUTED,
    L_DEPTH,
    L_FIRST,
    L_FLAG,
    L_MOVES,
    L_RELEASES,
    L_ROW_BYTES,
    L_SAVES,
    L_SWAPS,
    L_TRIPS,
    LAUNCH,
    LOOKED,
    MOST_OPERANDS,
    NDARRAY,
    NEW,
    NEW_ARRAY,
    NEW_NUMPY,
    NEW_OPEN,
    NUMBERS,
    NUMPY_DATA,
    OBJECT_TYPE,
    POOL,
    R_BODY,
    R_FAILED,
    R_STREAM,
    R_STREAM_ARGUMENT,
    R_STREAM_READER,
    R_TOTAL,
    READ_TENSOR,
    RELEASED,
    REPEAT,
    RUN,
    RUN_OPEN,
    SLOT_WORDS,
    TENSOR,
    TORCH_STREAM,
    TURNS,
    V_COUNT,
    V_FUNCTION,
    V_OPERANDS,
)
from nfuser.execution.device.native.source.launches import (
    launch,
    run_in_pool,
    run_kernel,
    tell,
)
from nfuser.execution.device.native.source.read import read
from nfuser.execution.device.native.source.repeat import (
    begin_rows,
    held,
    released,
    signalled,
    turn_rows,
)
from nfuser.execution.device.native.words import (
    add_atomically,
    space,
    store,
    table,
    word,
    word32,
)


def perform(record: int, frame: int, objects: int) -> int:
    """Perform a record; return 0 with an exception set where that fails.

    ``objects`` gets what is allocated, also where a later statement fails.
    """
    slots = space(SLOT_WORDS)
    store(slots + RELEASED, 0)
    store(slots + LOOKED, 0)
    count = word(record + R_TOTAL)
    k = 0
    while k < count:
        store(slots + 8 * k, word(frame + k * FRAME_BYTES + F_DATA))
        k += 1
    stream = space(1)
    status = _read_stream(record, stream)
    at = word(record + R_BODY)
    while status == 0 and word(at) != END:
        status = _statement(at, frame, objects, slots, word(stream))
        at += word(at + 8)
    if status > 0:
        _raise(word(record + R_FAILED), status)
    return status == 0


def _raise(function: int, status: int) -> int:
    """Call a Python function that raises what a status means."""
    argument = space(1)
    number = PyLong_FromLongLong(status)
    store(argument, number)
    if number:
        PyObject_Vectorcall(function, argument, 1, 0)
        Py_DecRef(number)
    return 0


def _statement(at: int, frame: int, objects: int, slots: int, stream: int) -> int:
    """Perform a statement; return a status.

    It is 0 where all went well, -1 where an exception is set, else what a kernel or the
    driver returned.
    """
    code = word(at)
    if code == NEW_NUMPY:
        dims = word(at + A_THIRD)
        strides = word(at + A_FOURTH)
        return _new_numpy(at, objects, slots, dims, strides)
    if code == NEW_OPEN:
        dims = frame + NUMBERS + word(at + A_THIRD)
        strides = frame + NUMBERS + word(at + A_FOURTH)
        return _new_numpy(at, objects, slots, dims, strides)
    if code == NEW:
        return _new(at, objects, slots)
    if code == LAUNCH:
        return launch(at, frame, slots, stream)
    if code == RUN:
        return run_kernel(at, frame, slots, word(at + K_TOTAL))
    if code == RUN_OPEN:
        total = word(frame + NUMBERS + word(at + K_TOTAL))
        return run_kernel(at, frame, slots, total)
    if code == POOL:
        return run_in_pool(at, frame, slots)
    if code == CLEAR:
        return _clear(at, slots, stream)
    if code == CALL:
        return _call(at, frame, objects, slots)
    if code == REPEAT:
        return _repeat(at, frame, objects, slots, stream)
    if code == DRAW:
        return _draw(at, frame)
    item = objects + 8 * word(at + A_OBJECT)  # FREE
    Py_DecRef(word(item))
    store(item, 0)
    return 0


def _draw(at: int, frame: int) -> int:
    """Put a key and the number of its first draw call among what is worked out."""
    words = word(at + D_WORDS)
    to = frame + NUMBERS + word(at + D_PLACE)
    store(to, word(words))
    store(to + 8, add_atomically(words + 8, word(at + D_COUNT)))
    return 0


def _repeat(at: int, frame: int, objects: int, slots: int, stream: int) -> int:
    """Perform a loop; its body is what it has behind its rows."""
    turn = slots + TURNS + 8 * word(at + L_DEPTH)
    rows = word(at + L_SWAPS) + word(at + L_MOVES)
    trips = word(at + L_TRIPS)
    if word(at + L_COMPUTED):
        trips = word(frame + NUMBERS + 8 * trips)
    is_outer = 0
    if word(at + L_RELEASES) and word(slots + RELEASED) == 0:
        is_outer = 1
    released(slots, is_outer)
    begin_rows(at, slots)
    store(turn, 0)
    status = 0
    while status == 0 and word(turn) != trips and _goes_on(at, slots):
        inner = at + L_FIRST + L_ROW_BYTES * rows
        while status == 0 and word(inner) != END:
            status = _statement(inner, frame, objects, slots, stream)
            inner += word(inner + 8)
        if status == 0:
            turn_rows(at, objects, slots)
            store(turn, word(turn) + 1)
            status = signalled(slots)
    if status and word(at + L_SAVES):
        _save(at, frame, objects, slots)
    if is_outer:
        held(slots)
    return status


def _save(at: int, frame: int, objects: int, slots: int) -> int:
    """Copy what turns have made of arrays to where it belongs; keep the exception."""
    was_released = held(slots)
    error = space(3)
    PyErr_Fetch(error, error + 8, error + 16)
    copy = at + word(at + L_SAVES)
    while word(copy) != END:
        if _call(copy, frame, objects, slots):
            PyErr_Clear()
        copy += word(copy + 8)
    PyErr_Restore(word(error), word(error + 8), word(error + 16))
    return released(slots, was_released)


def _goes_on(at: int, slots: int) -> int:
    flag = word(at + L_FLAG)
    if flag < 0:
        return 1
    return word32(word(slots + 8 * flag)) & 255


def _read_stream(record: int, stream: int) -> int:
    kind = word(record + R_STREAM)
    store(stream, 0)
    if kind == DLPACK_STREAM:
        index = word(record + R_STREAM_ARGUMENT)
        reader = word(table() + TORCH_STREAM)
        return call_stream(reader, DL_CUDA, index, stream)
    if kind == CALLED_STREAM:
        found = PyObject_Vectorcall(word(record + R_STREAM_READER), 0, 0, 0)
        if found == 0:
            return -1
        store(stream, PyLong_AsLongLong(found))
        Py_DecRef(found)
    return 0


# -- memory ------------------------------------------------------------------


def _new_numpy(at: int, objects: int, slots: int, dims: int, strides: int) -> int:
    dtype = word(at + A_FIRST)
    Py_IncRef(dtype)
    made = call_new_array(
        word(table() + NEW_ARRAY),
        word(table() + NDARRAY),
        dtype,
        word(at + A_SECOND),
        dims,
        strides,
        0,
        0,
        0,
    )
    if made == 0:
        return -1
    store(objects + 8 * word(at + A_OBJECT), made)
    store(slots + 8 * word(at + A_SLOT), word(made + NUMPY_DATA))
    return 0


def _new(at: int, objects: int, slots: int) -> int:
    """Allocate by a Python function; the library of the array says where it lies."""
    made = PyObject_Vectorcall(
        word(at + A_FIRST), word(at + A_SECOND), word(at + A_THIRD), 0
    )
    if made == 0:
        return -1
    store(objects + 8 * word(at + A_OBJECT), made)
    frame = space(FRAME_WORDS)
    if word(made + OBJECT_TYPE) == word(table() + TENSOR):
        status = call_read_tensor(word(table() + READ_TENSOR), made, frame)
        store(slots + 8 * word(at + A_SLOT), word(frame + DL_DATA))
    else:
        status = read(made, frame)
        store(slots + 8 * word(at + A_SLOT), word(frame + F_DATA))
    return status


def _clear(at: int, slots: int, stream: int) -> int:
    slot = slots + 8 * word(at + C_SLOT)
    function = word(at + C_FUNCTION)
    if function == 0:
        memset(word(slot), 0, word(at + C_BYTES))
        return 0
    if tell(word(at + C_FOOTPRINT), slot, stream, 1):
        return -1
    status = call_memset(function, word(slot), 0, word(at + C_BYTES), stream)
    if tell(word(at + C_FOOTPRINT), slot, stream, 0):
        return -1
    return status


def _call(at: int, frame: int, objects: int, slots: int) -> int:
    """Call a Python function on arrays; those of the caller count from -1 down."""
    arguments = space(MOST_OPERANDS)
    count = word(at + V_COUNT)
    k = 0
    while k < count:
        number = word(at + V_OPERANDS + 8 * k)
        if number < 0:
            item = word(frame - (number + 1) * FRAME_BYTES + F_OBJECT)
        else:
            item = word(objects + 8 * number)
        store(arguments + 8 * k, item)
        k += 1
    was_released = held(slots)
    found = PyObject_Vectorcall(word(at + V_FUNCTION), arguments, count, 0)
    if found:
        Py_DecRef(found)
    released(slots, was_released)
    return 0 - (found == 0)


FUNCTIONS = (
    perform,
    _raise,
    _statement,
    _draw,
    _repeat,
    _save,
    _goes_on,
    _read_stream,
    _new_numpy,
    _new,
    _clear,
    _call,
)
