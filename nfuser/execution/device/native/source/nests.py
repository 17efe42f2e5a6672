# SPDX-License-Identifier: Apache-2.0
"""Native source: arguments are read, and what lists, tuples and dicts among them hold.

Each takes a row of the frame, a nest before what it holds. Another thread may change a
list while a kernel runs: what nests hold is held until the call is over. Nests are
opened first, then all is asked what only Python can tell, then all is read.
"""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import (
    Py_DecRef,
    Py_IncRef,
    PyDict_Next,
    PyDict_Size,
    PyErr_Clear,
    PyList_GetItem,
    PyList_Size,
    PyTuple_GetItem,
    PyTuple_Size,
)
from nfuser.execution.device.native.layout import (
    C_COUNT,
    C_HELD,
    C_ROWS,
    DICT,
    F_DATA,
    F_FLAGS,
    F_KIND,
    F_NDIM,
    F_OBJECT,
    FRAME_BYTES,
    LIST,
    MOST_ARGUMENTS,
    NEST,
    OBJECT_TYPE,
    P_ITEMS,
    P_KEYS,
    P_KIND,
    P_SIZE,
    TUPLE,
)
from nfuser.execution.device.native.source.read import ask, take
from nfuser.execution.device.native.words import space, store, table, word


def read_all(arguments: int, count: int, frame: int) -> int:
    """Read the arguments of a call; return 1 where one of them cannot be read."""
    store(frame + C_ROWS, 0)
    store(frame + C_COUNT, 0)
    k = 0
    while k < count:
        if _open(word(arguments + 8 * k), frame):
            return 1
        k += 1
    end = frame + word(frame + C_ROWS) * FRAME_BYTES
    at = frame
    while at < end:
        if ask(word(at + F_OBJECT), at):
            return 1
        at += FRAME_BYTES
    at = frame
    while at < end:
        if word(at + F_FLAGS) != NEST and take(word(at + F_OBJECT), at):
            return 1
        at += FRAME_BYTES
    return 0


def release(frame: int) -> int:
    """Let go of what nests hold."""
    k = word(frame + C_COUNT)
    while k > 0:
        k -= 1
        Py_DecRef(word(frame + C_HELD + 8 * k))
    return 0


def _open(item: int, frame: int) -> int:
    """Put an argument into the next row; what it holds comes after it."""
    row = word(frame + C_ROWS)
    if row >= MOST_ARGUMENTS:
        return 1
    store(frame + C_ROWS, row + 1)
    at = frame + row * FRAME_BYTES
    shared = table()
    kind = word(item + OBJECT_TYPE)
    if kind == word(shared + DICT):
        _begin(at, item, PyDict_Size(item))
        return _read_values(item, frame)
    if kind == word(shared + LIST):
        _begin(at, item, PyList_Size(item))
    elif kind == word(shared + TUPLE):
        _begin(at, item, PyTuple_Size(item))
    else:
        store(at + F_OBJECT, item)
        store(at + F_FLAGS, 0)
        return 0
    k = 0
    while k < word(at + F_DATA):
        if kind == word(shared + LIST):
            part = PyList_GetItem(item, k)
        else:
            part = PyTuple_GetItem(item, k)
        if _hold(part, frame):
            return 1
        k += 1
    return 0


def _begin(at: int, item: int, count: int) -> int:
    store(at + F_KIND, word(item + OBJECT_TYPE))
    store(at + F_OBJECT, item)
    store(at + F_NDIM, -1)  # no array
    store(at + F_FLAGS, NEST)
    store(at + F_DATA, count)
    return 0


def _read_values(item: int, frame: int) -> int:
    place = space(3)
    store(place, 0)
    while PyDict_Next(item, place, place + 8, place + 16):
        if _hold(word(place + 16), frame):
            return 1
    return 0


def _hold(item: int, frame: int) -> int:
    """Read what a nest holds, and hold it, too."""
    count = word(frame + C_COUNT)
    if item == 0:  # it became shorter as its items were read
        PyErr_Clear()
        return 1
    if count >= MOST_ARGUMENTS:
        return 1
    Py_IncRef(item)
    store(frame + C_HELD + 8 * count, item)
    store(frame + C_COUNT, count + 1)
    return _open(item, frame)


def is_such_nest(pattern: int, frame: int) -> int:
    """Tell whether a nest is one of this kind, with these keys."""
    if word(frame + F_KIND) != word(pattern + P_KIND) or word(frame + F_DATA) != word(
        pattern + P_ITEMS
    ):
        return 0
    key = pattern + P_KEYS
    end = pattern + word(pattern + P_SIZE)
    place = space(3)
    store(place, 0)
    while key < end:
        if PyDict_Next(word(frame + F_OBJECT), place, place + 8, place + 16) == 0:
            return 0
        if word(place + 8) != word(key):
            return 0
        key += 8
    return 1


FUNCTIONS = (read_all, release, _open, _begin, _read_values, _hold, is_such_nest)
