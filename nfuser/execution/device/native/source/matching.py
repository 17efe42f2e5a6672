# SPDX-License-Identifier: Apache-2.0
"""Native source: which record serves a call, by its arguments and what is captured."""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import (
    Py_DecRef,
    Py_IncRef,
    PyCell_Get,
    PyDict_GetItemWithError,
    PyDict_Next,
    PyErr_Clear,
    PyObject_GetAttr,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    call_context,
)
from nfuser.execution.device.native.layout import (
    ALIGNMENT,
    BUCKETS,
    C_ROWS,
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
    NUMBERS,
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
    Q_ITEMS,
    Q_KEY,
    Q_PLACE,
    Q_ROOT,
    Q_STEPS,
    R_CAPTURE_PATTERNS,
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
    R_PATTERNS,
    R_QUICK,
    REFERENT,
    S_BUCKETS,
    S_OPEN,
    TRUE,
    WHOLE_DICT,
)
from nfuser.execution.device.native.source.nests import is_such_nest
from nfuser.execution.device.native.source.numbers import compute
from nfuser.execution.device.native.source.read import read
from nfuser.execution.device.native.words import space, store, table, word


def find(state: int, names: int, named: int, frame: int) -> int:
    """Return the record that serves a call, ``named`` of whose arguments have names."""
    count = word(frame + C_ROWS)
    key = mixed(frame, count)
    record = word(state + S_BUCKETS + 8 * (key & (BUCKETS - 1)))
    while record:
        if word(record + R_HASH) == key and fits(record, frame, count, names, named):
            return record
        record = word(record + R_NEXT)
    record = word(state + S_OPEN)
    while record and not fits(record, frame, count, names, named):
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


def fits(record: int, frame: int, count: int, names: int, named: int) -> int:
    """Tell whether the patterns of a record fit the arguments in a frame."""
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


def holds(record: int, arguments: int, count: int) -> int:
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
        if word(at + Q_ROOT) == WHOLE_DICT:
            if _is_such_dict(at) == 0:
                return 0
        else:
            item = _captured(at, arguments)
            if item == 0:
                return 0
            Py_DecRef(item)
            if item != word(at + Q_EXPECTED):
                return 0
        at += word(at)
    return 1


def _is_such_dict(at: int) -> int:
    """Tell whether a dict has the keys and values that it had, in their order."""
    item = at + Q_ITEMS
    end = at + word(at)
    place = space(3)
    store(place, 0)
    while PyDict_Next(word(at + Q_PLACE), place, place + 8, place + 16):
        if item == end:
            return 0
        if word(place + 8) != word(item) or word(place + 16) != word(item + 8):
            return 0
        item += 16
    return item == end


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


def read_captured(record: int, arguments: int, frame: int, held: int) -> int:
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


FUNCTIONS = (
    find,
    mixed,
    fits,
    _is_alike,
    _is_such_array,
    holds,
    _are_the_same,
    _is_such_dict,
    _captured,
    read_captured,
)
