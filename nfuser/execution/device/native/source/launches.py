# SPDX-License-Identifier: Apache-2.0
"""Native source: kernels are launched on a device, or run in threads of the CPU."""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import (
    Py_DecRef,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    call_kernel,
    call_launch,
    call_launch_together,
)
from nfuser.execution.device.native.layout import (
    ADDRESS,
    AS_DOUBLE,
    AS_SINGLE,
    COMPUTED,
    CONSTANT,
    F_DATA,
    FRAME_BYTES,
    GIVEN_SINGLE,
    H_SIZE,
    J_CALLER,
    J_CUTS,
    J_EACH,
    J_INVITED,
    J_KERNEL,
    J_LANES,
    J_VALUES,
    JOB_WORDS,
    K_BLOCK_X,
    K_BLOCK_Y,
    K_COUNT,
    K_CUTS,
    K_EACH,
    K_FOOTPRINT,
    K_FUNCTION,
    K_GRID_Y,
    K_GROW,
    K_HELPERS,
    K_KERNEL,
    K_LANES,
    K_PARAMETERS,
    K_RELEASE,
    K_SHARED,
    K_TOGETHER,
    K_TOTAL,
    MOST_PARAMETERS,
    NUMBERS,
    PARAMETER_BYTES,
    POOL_STATE,
    RECORDER,
    RELEASED,
    TURN,
    TURNS,
)
from nfuser.execution.device.native.source.pool import share
from nfuser.execution.device.native.source.repeat import (
    held,
    released,
)
from nfuser.execution.device.native.words import (
    double,
    single,
    space,
    store,
    table,
    word,
)


def _fill(at: int, frame: int, slots: int, values: int) -> int:
    """Write the parameters of a kernel, 8 bytes each."""
    parameter = at + K_PARAMETERS
    end = parameter + PARAMETER_BYTES * word(at + K_COUNT)
    while parameter < end:
        kind = word(parameter)
        given = word(parameter + 8)
        if kind == ADDRESS:
            value = word(slots + 8 * given) + word(parameter + 16)
        elif kind == TURN:
            value = word(slots + TURNS + 8 * given)
        elif kind == COMPUTED:
            value = word(frame + NUMBERS + 8 * given)
        else:
            value = given
            if kind != CONSTANT:
                value = word(frame + given * FRAME_BYTES + F_DATA)
                if kind in (AS_DOUBLE, AS_SINGLE):
                    value = double(value)
                if kind in (GIVEN_SINGLE, AS_SINGLE):
                    value = single(value)
        store(values, value)
        values += 8
        parameter += PARAMETER_BYTES
    return 0


def launch(at: int, frame: int, slots: int, stream: int) -> int:
    """Launch a kernel on ``stream``; return a status."""
    values = space(MOST_PARAMETERS)
    addresses = space(MOST_PARAMETERS)
    _fill(at, frame, slots, values)
    k = 0
    while k < word(at + K_COUNT):
        store(addresses + 8 * k, values + 8 * k)
        k += 1
    if tell(word(at + K_FOOTPRINT), values, stream, 1):
        return -1
    if word(at + K_TOGETHER):
        status = call_launch_together(
            word(at + K_FUNCTION),
            word(at + K_KERNEL),
            word(at + K_TOTAL),
            word(at + K_GRID_Y),
            1,
            word(at + K_BLOCK_X),
            word(at + K_BLOCK_Y),
            1,
            word(at + K_SHARED),
            stream,
            addresses,
        )
    else:
        status = call_launch(
            word(at + K_FUNCTION),
            word(at + K_KERNEL),
            word(at + K_TOTAL),
            word(at + K_GRID_Y),
            1,
            word(at + K_BLOCK_X),
            word(at + K_BLOCK_Y),
            1,
            word(at + K_SHARED),
            stream,
            addresses,
            0,
        )
    if tell(word(at + K_FOOTPRINT), values, stream, 0):
        return -1
    return status


def tell(footprint: int, values: int, stream: int, begins: int) -> int:
    """Tell whoever orders a graph of a launch on ``stream``; return a status."""
    function = word(word(table() + RECORDER))
    if function == 0:
        return 0
    words = space(3)
    store(words, values)
    store(words + 8, stream)
    store(words + 16, begins)
    arguments = space(2)
    number = PyLong_FromLongLong(words)
    if number == 0:
        return -1
    store(arguments, footprint)
    store(arguments + 8, number)
    found = PyObject_Vectorcall(function, arguments, 2, 0)
    Py_DecRef(number)
    if found == 0:
        return -1
    Py_DecRef(found)
    return 0


def run_kernel(at: int, frame: int, slots: int, total: int) -> int:
    """Run a CPU kernel in this thread; a long one lets other threads run Python."""
    values = space(MOST_PARAMETERS)
    _fill(at, frame, slots, values)
    function = word(at + K_FUNCTION)
    kernel = word(at + K_KERNEL)
    if word(at + K_RELEASE) == 0:
        return call_kernel(function, kernel, 0, total, values)
    thread = PyEval_SaveThread()
    status = call_kernel(function, kernel, 0, total, values)
    PyEval_RestoreThread(thread)
    return status


def run_in_pool(at: int, frame: int, slots: int) -> int:
    """Run a CPU kernel in this thread and in others that help."""
    values = space(MOST_PARAMETERS)
    job = space(JOB_WORDS)
    _fill(at, frame, slots, values)
    if word(table() + POOL_STATE + H_SIZE) < word(at + K_HELPERS):
        was_released = held(slots)
        found = PyObject_Vectorcall(word(at + K_GROW), 0, 0, 0)
        if found:
            Py_DecRef(found)
        released(slots, was_released)
        if found == 0:
            return -1
    store(job + J_INVITED, word(at + K_HELPERS))
    store(job + J_EACH, word(at + K_EACH))
    store(job + J_LANES, word(at + K_LANES))
    store(job + J_CUTS, word(at + K_CUTS))
    store(job + J_CALLER, word(at + K_FUNCTION))
    store(job + J_KERNEL, word(at + K_KERNEL))
    store(job + J_VALUES, values)
    if word(slots + RELEASED):
        return share(job)
    thread = PyEval_SaveThread()
    status = share(job)
    PyEval_RestoreThread(thread)
    return status


FUNCTIONS = (_fill, launch, tell, run_kernel, run_in_pool)
