# SPDX-License-Identifier: Apache-2.0
"""Native source: one call, from its arguments to what it returns.

The arguments are read into a frame; the extents say in which bucket of the function's
state to look; the first record whose patterns fit says what to do. A call that none
fits, or that has keywords, goes the way through Python, which may leave a record.
"""

from __future__ import annotations

from nfuser.device.native.c_functions import (
    Py_DecRef,
    Py_IncRef,
    PyCell_Get,
    PyContextVar_Get,
    PyDict_GetItemWithError,
    PyErr_Clear,
    PyMethod_New,
    PyObject_GetAttr,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_New,
    PyTuple_SetItem,
    PyTuple_Size,
    call_context,
    call_return_array,
)
from nfuser.device.native.layout import (
    ALIGNMENT,
    B_GIVEN,
    B_HELD,
    B_ITEMS,
    B_RECORD,
    BOUND_SLOT,
    BOUND_SLOW,
    BUCKETS,
    C_ROWS,
    CALL_WORDS,
    CONFIG,
    CONTEXT,
    F_DATA,
    F_DIMS,
    F_FLAGS,
    F_KIND,
    F_META,
    F_NDIM,
    F_OBJECT,
    F_STRIDES,
    FRAME_BYTES,
    FROM_CELL,
    FROM_DICT,
    IS_ARRAY,
    IS_NEST,
    IS_NUMBER,
    IS_OBJECT,
    IS_OPEN_ARRAY,
    MANY,
    MOST_ARGUMENTS,
    MOST_OBJECTS,
    NONE,
    NUMBERS,
    NUMPY_DATA,
    OBJECT_TYPE,
    ONE,
    OWNED,
    OWNED_WORDS,
    P_ALIGNMENT,
    P_DIMS,
    P_FLAGS,
    P_HIGH,
    P_KIND,
    P_LOW,
    P_META,
    P_NDIM,
    P_OBJECT,
    P_SIZE,
    Q_EXPECTED,
    Q_KEY,
    Q_PLACE,
    Q_ROOT,
    Q_STEPS,
    R_CAPTURE_PATTERNS,
    R_CAPTURED,
    R_CAPTURES,
    R_CONFIG,
    R_CONTEXT,
    R_COUNT,
    R_GUARD,
    R_HASH,
    R_NAMED,
    R_NAMES,
    R_NEXT,
    R_NUMBERS,
    R_OBJECTS,
    R_OWNER,
    R_PATTERNS,
    R_QUICK,
    R_RESULT,
    R_RESULT_CALL,
    R_RESULT_COUNT,
    R_RESULTS,
    R_USED,
    REFERENT,
    RETURN_ARRAY,
    S_BUCKETS,
    S_CALLS,
    S_OPEN,
    SLOT,
    SLOW,
    TRACER,
    TRUE,
)
from nfuser.device.native.nests import is_such_nest, read_all, release
from nfuser.device.native.numbers import compute
from nfuser.device.native.perform import perform
from nfuser.device.native.read import ask, ask_again, read, take
from nfuser.device.native.words import space, store, table, word


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
        record = _find(state, names, every - count, frame)
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
    if not _fits(record, frame, every, 0, 0):
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


def _holds(record: int, arguments: int, count: int) -> int:
    """Tell whether what patterns cannot see holds, too: 1, 0, or -1 for an error."""
    function = word(record + R_CONTEXT)
    if function:
        found = space(1)
        if call_context(word(table() + CONTEXT), found) or word(found) != function:
            return 0
    guard = word(record + R_GUARD)
    quick = word(record + R_QUICK)
    if guard == 0 or (quick and _are_the_same(quick, arguments)):
        return 1
    answer = PyObject_Vectorcall(guard, arguments, count, 0)
    if answer == 0:
        return -1
    Py_DecRef(answer)
    return answer == word(table() + TRUE)


def _are_the_same(at: int, arguments: int) -> int:
    """Tell whether all captured values are the objects that they were."""
    while word(at):
        item = _captured(at, arguments)
        if item == 0:
            return 0
        Py_DecRef(item)
        if item != word(at + Q_EXPECTED):
            return 0
        at += word(at)
    return 1


def _captured(at: int, arguments: int) -> int:
    """Return a reference to what a captured value is now; 0 where it cannot be told."""
    root = word(at + Q_ROOT)
    if root == FROM_CELL:
        item = PyCell_Get(word(at + Q_PLACE))
    else:
        if root == FROM_DICT:
            item = PyDict_GetItemWithError(word(at + Q_PLACE), word(at + Q_KEY))
        else:
            item = word(arguments + 8 * word(at + Q_KEY))
        if item:
            Py_IncRef(item)
    step = at + Q_STEPS
    end = at + word(at)
    while item and step < end:
        part = PyObject_GetAttr(item, word(step))
        Py_DecRef(item)
        item = part
        step += 8
    if item == 0:
        PyErr_Clear()
    return item


def _read_captured(record: int, arguments: int, frame: int, held: int) -> int:
    """Read captured arrays into the frame; tell whether they are as they were.

    ``held`` gets a reference to each: outside, another may take its place.
    """
    at = word(record + R_CAPTURES)
    pattern = word(record + R_CAPTURE_PATTERNS)
    while word(at):
        item = _captured(at, arguments)
        store(held, item)
        if item == 0 or read(item, frame) or not _is_alike(pattern, frame):
            return 0
        at += word(at)
        pattern += word(pattern + P_SIZE)
        frame += FRAME_BYTES
        held += 8
    return 1


# -- finding a record --------------------------------------------------------


def _find(state: int, names: int, named: int, frame: int) -> int:
    """Return the record that serves a call, ``named`` of whose arguments have names."""
    count = word(frame + C_ROWS)
    key = mixed(frame, count)
    record = word(state + S_BUCKETS + 8 * (key & (BUCKETS - 1)))
    while record:
        if word(record + R_HASH) == key and _fits(record, frame, count, names, named):
            return record
        record = word(record + R_NEXT)
    record = word(state + S_OPEN)
    while record and not _fits(record, frame, count, names, named):
        record = word(record + R_NEXT)
    return record


def mixed(frame: int, count: int) -> int:
    """Return a number made of all extents: where records of such calls are."""
    key = count
    end = frame + count * FRAME_BYTES
    while frame < end:
        axes = word(frame + F_NDIM)
        dims = word(frame + F_DIMS)
        k = 0
        while k < axes:
            key = key * 1000003 + word(dims + 8 * k)
            k += 1
        key += axes
        frame += FRAME_BYTES
    return key ^ (key >> 17)


def _fits(record: int, frame: int, count: int, names: int, named: int) -> int:
    if word(record + R_COUNT) != count or word(record + R_NAMED) != named:
        return 0
    k = 0
    while k < named:
        if PyTuple_GetItem(names, k) != word(word(record + R_NAMES) + 8 * k):
            return 0
        k += 1
    if word(record + R_CONFIG) != word(word(table() + CONFIG)):
        return 0
    pattern = word(record + R_PATTERNS)
    k = 0
    while k < count:
        if not _is_alike(pattern, frame + k * FRAME_BYTES):
            return 0
        pattern += word(pattern + P_SIZE)
        k += 1
    steps = word(record + R_NUMBERS)
    if steps:
        return compute(steps, frame, frame + NUMBERS)
    return 1


def _is_alike(pattern: int, frame: int) -> int:
    tag = word(pattern)
    if tag in (IS_ARRAY, IS_OPEN_ARRAY):
        return _is_such_array(pattern, frame)
    if tag == IS_OBJECT:
        return word(frame + F_OBJECT) == word(pattern + P_OBJECT)
    if tag == IS_NUMBER:
        value = word(frame + F_DATA)
        return (
            (word(frame + F_KIND) == word(pattern + P_KIND))
            & (value >= word(pattern + P_LOW))
            & (value <= word(pattern + P_HIGH))
        )
    if tag == IS_NEST:
        return is_such_nest(pattern, frame)
    return word(word(pattern + P_OBJECT) + REFERENT) == word(frame + F_OBJECT)


def _is_such_array(pattern: int, frame: int) -> int:
    if (
        word(frame + F_KIND) != word(pattern + P_KIND)
        or word(frame + F_META) != word(pattern + P_META)
        or word(frame + F_FLAGS) != word(pattern + P_FLAGS)
        or word(frame + F_DATA) & ALIGNMENT != word(pattern + P_ALIGNMENT)
        or word(frame + F_NDIM) != word(pattern + P_NDIM)
    ):
        return 0
    if word(pattern) == IS_OPEN_ARRAY:
        return 1  # of what sizes and strides, the steps of the record tell
    axes = word(frame + F_NDIM)
    dims = word(frame + F_DIMS)
    strides = word(frame + F_STRIDES)
    wanted = pattern + P_DIMS
    k = 0
    while k < axes:
        if word(dims + 8 * k) != word(wanted + 8 * k):
            return 0
        if word(strides + 8 * k) != word(wanted + 8 * (k + axes)):
            return 0
        k += 1
    return 1


# -- doing what it says ------------------------------------------------------


def _serve(record: int, arguments: int, count: int, frame: int, found: int) -> int:
    """Follow a record, unless what patterns cannot see has changed; tell which.

    ``found`` gets a new reference to the result, or 0 with an exception set.
    """
    store(found, 0)
    holds = _holds(record, arguments, count)
    if holds != 1:
        return holds
    held = space(MOST_ARGUMENTS)
    captured = word(record + R_CAPTURED)
    k = 0
    while k < captured:
        store(held + 8 * k, 0)
        k += 1
    first = frame + word(record + R_COUNT) * FRAME_BYTES
    serves = 1
    if captured:
        serves = _read_captured(record, arguments, first, held)
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
    _holds,
    _are_the_same,
    _captured,
    _read_captured,
    _serve,
    _find,
    mixed,
    _fits,
    _is_alike,
    _is_such_array,
    _run,
    _result,
    _fill_tuple,
    _leaf,
)
