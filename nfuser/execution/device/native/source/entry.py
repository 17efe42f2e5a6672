# SPDX-License-Identifier: Apache-2.0
"""Native source: one call, from its arguments to what it returns.

The arguments are read into a frame; the extents say in which bucket of the function's
state to look; the first record whose patterns fit says what to do. A call that none
fits, or that has keywords, goes the way through Python, which may leave a record.
"""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import (
    Py_DecRef,
    Py_IncRef,
    PyContextVar_Get,
    PyErr_Clear,
    PyMethod_New,
    PyObject_Vectorcall,
    PyTuple_New,
    PyTuple_SetItem,
    PyTuple_Size,
    call_return_array,
)
from nfuser.execution.device.native.layout import (
    B_GIVEN,
    B_HELD,
    B_ITEMS,
    B_RECORD,
    BOUND_SLOT,
    BOUND_SLOW,
    CALL_WORDS,
    F_DATA,
    F_OBJECT,
    FRAME_BYTES,
    MANY,
    MOST_ARGUMENTS,
    MOST_OBJECTS,
    NONE,
    NUMPY_DATA,
    OBJECT_TYPE,
    ONE,
    OWNED,
    OWNED_WORDS,
    R_CAPTURED,
    R_COUNT,
    R_OBJECTS,
    R_OWNER,
    R_RESULT,
    R_RESULT_CALL,
    R_RESULT_COUNT,
    R_RESULTS,
    R_USED,
    RETURN_ARRAY,
    S_CALLS,
    SLOT,
    SLOW,
    TRACER,
)
from nfuser.execution.device.native.source.matching import (
    find,
    fits,
    holds,
    read_captured,
)
from nfuser.execution.device.native.source.nests import read_all, release
from nfuser.execution.device.native.source.perform import perform
from nfuser.execution.device.native.source.read import ask, ask_again, take
from nfuser.execution.device.native.words import space, store, table, word


def call(own: int, arguments: int, count: int, names: int) -> int:
    """Call a fused function: the C function behind its ``__call__``."""
    owned = _owned(own, SLOT)
    every = count
    if names:
        every += PyTuple_Size(names)
    if owned == 0 or every > MOST_ARGUMENTS or _is_tracing():
        return _slow(own, arguments, count, names)
    found = space(1)
    Py_IncRef(owned)
    served = _call_owned(owned, arguments, count, every, names, found)
    Py_DecRef(owned)
    if served:
        return word(found)
    return _slow(own, arguments, count, names)


def _owned(own: int, slot: int) -> int:
    """Return what holds the words that calls of an object follow, or 0."""
    shared = table()
    owned = word(own + word(shared + slot))
    if owned and word(owned + OBJECT_TYPE) == word(shared + OWNED):
        return owned
    return 0


def _words(owned: int) -> int:
    """Return where the words lie; who reads them holds their owner."""
    return word(word(owned + word(table() + OWNED_WORDS)) + NUMPY_DATA)


def _call_owned(
    owned: int, arguments: int, count: int, every: int, names: int, found: int
) -> int:
    """Follow the record that serves a call, if there is one; tell whether it did."""
    frame = space(CALL_WORDS)
    state = _words(owned)
    record = 0
    if read_all(arguments, every, frame) == 0:
        record = find(state, names, every - count, frame)
    if record == 0:
        release(frame)
        return 0
    holder = word(record + R_OWNER)
    Py_IncRef(holder)
    served = _serve(record, arguments, every, frame, found)
    if served:
        store(state + S_CALLS, word(state + S_CALLS) + 1)
        store(record + R_USED, 1)
    Py_DecRef(holder)
    release(frame)
    return served


def call_bound(own: int, arguments: int, count: int, names: int) -> int:
    """Call what ``bind`` returned: with its own arguments, or with others like them."""
    owned = _owned(own, BOUND_SLOT)
    if owned == 0 or names or _is_tracing():
        return _slow_bound(own, arguments, count, names)
    found = space(1)
    Py_IncRef(owned)
    served = _call_bound_owned(owned, arguments, count, found)
    Py_DecRef(owned)
    if served:
        return word(found)
    return _slow_bound(own, arguments, count, names)


def _call_bound_owned(owned: int, arguments: int, count: int, found: int) -> int:
    """Follow the record of a bound call; tell whether it served."""
    frame = space(CALL_WORDS)
    items = space(MOST_ARGUMENTS)
    state = _words(owned)
    record = word(state + B_RECORD)
    given = word(state + B_GIVEN)
    every = word(record + R_COUNT)
    held = word(state + B_HELD)
    # Other arguments may share memory with outputs that were bound: Python copies.
    if count and (count != given or every != given):
        return 0
    if count < every and held < every:
        return 0
    k = 0
    while k < every:
        at = frame + k * FRAME_BYTES
        if k < count:
            item = word(arguments + 8 * k)
            failed = ask(item, at)
        else:
            item = word(state + B_ITEMS + 8 * k)
            failed = ask_again(item, at)
        store(items + 8 * k, item)
        if failed:
            return 0
        k += 1
    k = 0
    while k < every:
        at = frame + k * FRAME_BYTES
        if take(word(items + 8 * k), at):
            return 0
        fixed = state + B_ITEMS + 8 * (held + k)
        if every != given and word(at + F_DATA) != word(fixed):
            return 0
        k += 1
    if not fits(record, frame, every, 0, 0):
        return 0
    return _serve(record, items, every, frame, found)


def _slow_bound(own: int, arguments: int, count: int, names: int) -> int:
    return _through(word(table() + BOUND_SLOW), own, arguments, count, names)


def _slow(own: int, arguments: int, count: int, names: int) -> int:
    return _through(word(table() + SLOW), own, arguments, count, names)


def _through(function: int, own: int, arguments: int, count: int, names: int) -> int:
    """Call a method the way through Python."""
    method = PyMethod_New(function, own)
    if method == 0:
        return 0
    found = PyObject_Vectorcall(method, arguments, count, names)
    Py_DecRef(method)
    return found


def _is_tracing() -> int:
    """Tell whether a trace runs in this thread, or if that cannot be told."""
    found = space(1)
    if PyContextVar_Get(word(table() + TRACER), 0, found) < 0:
        PyErr_Clear()
        return 1
    tracer = word(found)
    if tracer == 0:
        return 0
    Py_DecRef(tracer)
    return tracer != word(table() + NONE)


# -- doing what it says ------------------------------------------------------


def _serve(record: int, arguments: int, count: int, frame: int, found: int) -> int:
    """Follow a record, unless what patterns cannot see has changed; tell which.

    ``found`` gets a new reference to the result, or 0 with an exception set.
    """
    store(found, 0)
    answer = holds(record, arguments, count)
    if answer != 1:
        return answer
    held = space(MOST_ARGUMENTS)
    captured = word(record + R_CAPTURED)
    k = 0
    while k < captured:
        store(held + 8 * k, 0)
        k += 1
    first = frame + word(record + R_COUNT) * FRAME_BYTES
    serves = 1
    if captured:
        serves = read_captured(record, arguments, first, held)
    if serves:
        store(found, _run(record, frame))
    k = 0
    while k < captured:
        if word(held + 8 * k):
            Py_DecRef(word(held + 8 * k))
        k += 1
    return serves


def _run(record: int, frame: int) -> int:
    """Follow a record; return a new reference, or 0 with an exception set."""
    objects = space(MOST_OBJECTS)
    count = word(record + R_OBJECTS)
    k = 0
    while k < count:
        store(objects + 8 * k, 0)
        k += 1
    found = 0
    if perform(record, frame, objects):
        found = _result(record, objects, frame)
    k = 0
    while k < count:
        if word(objects + 8 * k):
            Py_DecRef(word(objects + 8 * k))
        k += 1
    return found


def _result(record: int, objects: int, frame: int) -> int:
    """Return what the function gives: an output, a tuple, or what is made of them."""
    leaves = space(MOST_OBJECTS)
    count = word(record + R_RESULT_COUNT)
    steps = word(record + R_RESULTS)
    k = 0
    failed = 0
    while k < count:
        leaf = _leaf(steps + 16 * k, objects, frame)
        store(leaves + 8 * k, leaf)
        failed += leaf == 0
        k += 1
    kind = word(record + R_RESULT)
    if kind == ONE:
        return word(leaves)
    made = 0
    if failed == 0 and kind == MANY:
        made = PyTuple_New(count)
        if made:
            _fill_tuple(made, leaves, count)
            return made
    if failed == 0 and kind != MANY:
        made = PyObject_Vectorcall(word(record + R_RESULT_CALL), leaves, count, 0)
    k = 0
    while k < count:
        Py_DecRef(word(leaves + 8 * k))
        k += 1
    return made


def _fill_tuple(made: int, leaves: int, count: int) -> int:
    k = 0
    while k < count:
        PyTuple_SetItem(made, k, word(leaves + 8 * k))
        k += 1
    return 0


def _leaf(step: int, objects: int, frame: int) -> int:
    """Return a new reference to an output; NumPy's without axes become scalars.

    One that the caller gave is among the arguments, which count from -1 down.
    """
    number = word(step)
    if number < 0:
        item = word(frame - (number + 1) * FRAME_BYTES + F_OBJECT)
    else:
        item = word(objects + 8 * number)
    Py_IncRef(item)
    if word(step + 8):
        return call_return_array(word(table() + RETURN_ARRAY), item)
    return item


FUNCTIONS = (
    call,
    call_bound,
    _owned,
    _words,
    _call_owned,
    _call_bound_owned,
    _slow,
    _slow_bound,
    _through,
    _is_tracing,
    _serve,
    _run,
    _result,
    _fill_tuple,
    _leaf,
)
