# SPDX-License-Identifier: Apache-2.0
"""Native source: an argument of a call is read into the frame.

Each function returns 1 where it cannot vouch for what it read; such a call goes the
way through Python, which takes it or says why not.
"""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import (
    Py_DecRef,
    PyErr_Clear,
    PyErr_Occurred,
    PyLong_AsLongLong,
    PyLong_AsLongLongAndOverflow,
    PyObject_GetAttr,
    PyObject_Vectorcall,
    PyObject_VectorcallMethod,
    PyTuple_GetItem,
    PyTuple_Size,
    call_read_tensor,
)
from nfuser.execution.device.native.layout import (
    CUPY,
    CUPY_DATA,
    CUPY_DEVICE,
    CUPY_POINTER,
    DL_DATA,
    DL_DEVICE,
    DL_DIMS,
    DL_OFFSET,
    DL_STRIDES,
    DL_TYPE,
    DTYPE,
    DUAL_LEVEL,
    F_DATA,
    F_DIMS,
    F_FLAGS,
    F_KIND,
    F_META,
    F_NDIM,
    F_OBJECT,
    F_ROOM,
    F_STRIDES,
    FLOAT,
    FORWARD_MODE,
    GRAD_MODE,
    GREATEST,
    INT,
    IS_CONJ,
    IS_NEG,
    MEMMAP,
    MOST_AXES,
    NDARRAY,
    NO_LEVEL,
    NUMBER,
    NUMPY_CHECKED,
    NUMPY_DATA,
    NUMPY_DIMS,
    NUMPY_DTYPE,
    NUMPY_FLAGS,
    NUMPY_NDIM,
    NUMPY_STRIDES,
    OBJECT_TYPE,
    PARAMETER,
    READ_TENSOR,
    REQUIRES_GRAD,
    SCALAR_BYTES,
    SCALARS,
    SHAPE,
    STRIDES,
    TENSOR,
    TRUE,
)
from nfuser.execution.device.native.words import space, store, table, word, word32


def read(item: int, frame: int) -> int:
    """Read one argument of any kind; of an unknown one only which object it is."""
    if ask(item, frame):
        return 1
    return take(item, frame)


def ask(item: int, frame: int) -> int:
    """Do what may run Python: all that is to be asked of an argument.

    Python may change other arguments meanwhile, so all are asked before one is taken.
    """
    kind = word(item + OBJECT_TYPE)
    shared = table()
    if kind == word(shared + TENSOR) or kind == word(shared + PARAMETER):
        return _ask_torch(item, frame)
    if kind == word(shared + CUPY):
        return _read_cupy(item, frame)
    return 0


def take(item: int, frame: int) -> int:
    """Read an argument that was asked; no Python runs."""
    kind = word(item + OBJECT_TYPE)
    store(frame + F_KIND, kind)
    store(frame + F_OBJECT, item)
    shared = table()
    if kind == word(shared + CUPY):
        return 0
    store(frame + F_NDIM, -1)  # no array
    if kind == word(shared + NDARRAY) or kind == word(shared + MEMMAP):
        return _read_numpy(item, frame)
    if kind == word(shared + FLOAT):
        store(frame + F_DATA, word(item + NUMBER))
        return 0
    if kind == word(shared + INT):
        return _read_int(item, frame)
    if kind == word(shared + TENSOR) or kind == word(shared + PARAMETER):
        return _read_dlpack(item, frame)
    store(frame + F_DATA, 0)
    scalar = shared + SCALARS
    while word(scalar) and word(scalar) != kind:
        scalar += SCALAR_BYTES
    if word(scalar):
        return _read_scalar(item, frame, scalar)
    return 0


def _read_scalar(item: int, frame: int, scalar: int) -> int:
    """Read the value of a NumPy scalar, an integer as one of 64 bits."""
    unused = 64 - word(scalar + 8)
    value = word(item + NUMBER) << unused
    if word(scalar + 16):
        store(frame + F_DATA, value >> unused)
        return 0
    if unused == 0:
        store(frame + F_DATA, value)
        return value < 0  # more than what counts as an integer here
    store(frame + F_DATA, ((value >> 1) & GREATEST) >> (unused - 1))
    return 0


def ask_again(item: int, frame: int) -> int:
    """Ask what was taken before: a tensor nothing, as only where it lies may change."""
    kind = word(item + OBJECT_TYPE)
    if kind == word(table() + TENSOR) or kind == word(table() + PARAMETER):
        return 0
    return ask(item, frame)


def _read_numpy(item: int, frame: int) -> int:
    store(frame + F_META, word(item + NUMPY_DTYPE))
    store(frame + F_FLAGS, word32(item + NUMPY_FLAGS) & NUMPY_CHECKED)
    store(frame + F_NDIM, word32(item + NUMPY_NDIM))
    store(frame + F_DIMS, word(item + NUMPY_DIMS))
    store(frame + F_STRIDES, word(item + NUMPY_STRIDES))
    store(frame + F_DATA, word(item + NUMPY_DATA))
    return 0


def _read_int(item: int, frame: int) -> int:
    overflow = space(1)
    store(overflow, 0)
    store(frame + F_DATA, PyLong_AsLongLongAndOverflow(item, overflow))
    return word32(overflow) != 0


def _ask_torch(item: int, frame: int) -> int:
    """Ask a tensor for what DLPack does not tell."""
    if _read_dlpack(item, frame):
        return 1
    shared = table()
    is_complex = ((word(frame + F_META) >> 32) & 255) == 5
    if is_complex and _asked(item, word(shared + IS_CONJ)):
        return 1
    if _asked(item, word(shared + IS_NEG)) or _may_be_dual():
        return 1
    return _needs_gradient(item)


def _may_be_dual() -> int:
    """Tell whether torch is in forward mode, where a tensor may have a tangent."""
    shared = table()
    found = PyObject_GetAttr(word(shared + FORWARD_MODE), word(shared + DUAL_LEVEL))
    if found == 0:
        PyErr_Clear()
        return 1
    Py_DecRef(found)
    return found != word(shared + NO_LEVEL)


def _read_dlpack(item: int, frame: int) -> int:
    shared = table()
    tensor = frame + F_ROOM
    store(tensor + DL_OFFSET, 0)
    if call_read_tensor(word(shared + READ_TENSOR), item, tensor):
        PyErr_Clear()
        return 1
    data = word(tensor + DL_DATA)
    store(frame + F_META, word(tensor + DL_TYPE))
    store(frame + F_FLAGS, word(tensor + DL_DEVICE))
    store(frame + F_NDIM, word32(tensor + DL_TYPE))
    store(frame + F_DIMS, word(tensor + DL_DIMS))
    store(frame + F_STRIDES, word(tensor + DL_STRIDES))
    store(frame + F_DATA, data + word(tensor + DL_OFFSET))
    if data:
        return 0
    return not _is_empty(frame)  # a tensor of a tracer


def _is_empty(frame: int) -> int:
    dims = word(frame + F_DIMS)
    end = dims + 8 * word(frame + F_NDIM)
    while dims < end:
        if word(dims) == 0:
            return 1
        dims += 8
    return 0


def _needs_gradient(item: int) -> int:
    shared = table()
    found = PyObject_GetAttr(item, word(shared + REQUIRES_GRAD))
    if _is_false(found):
        return 0
    return not _is_false(PyObject_Vectorcall(word(shared + GRAD_MODE), 0, 0, 0))


def _asked(item: int, name: int) -> int:
    arguments = space(1)
    store(arguments, item)
    return not _is_false(PyObject_VectorcallMethod(name, arguments, 1, 0))


def _is_false(found: int) -> int:
    """Tell whether an object is neither True nor an error, and let go of it."""
    if found == 0:
        PyErr_Clear()
        return 0
    Py_DecRef(found)
    return found != word(table() + TRUE)


def _read_cupy(item: int, frame: int) -> int:
    shared = table()
    memory = PyObject_GetAttr(item, word(shared + CUPY_DATA))
    store(frame + F_DATA, _integer_of(memory, word(shared + CUPY_POINTER)))
    store(frame + F_FLAGS, _integer_of(memory, word(shared + CUPY_DEVICE)))
    dtype = PyObject_GetAttr(item, word(shared + DTYPE))
    store(frame + F_META, dtype)
    if memory:
        Py_DecRef(memory)
    if dtype:
        Py_DecRef(dtype)
    store(frame + F_DIMS, frame + F_ROOM)
    store(frame + F_STRIDES, frame + F_ROOM + 8 * MOST_AXES)
    count = _read_sizes(item, word(shared + SHAPE), frame + F_ROOM)
    _read_sizes(item, word(shared + STRIDES), frame + F_ROOM + 8 * MOST_AXES)
    store(frame + F_NDIM, count)
    if PyErr_Occurred():
        PyErr_Clear()
        return 1
    return count < 0


def _integer_of(item: int, name: int) -> int:
    """Return an attribute that is an integer; an error stays set."""
    if item == 0:
        return 0
    found = PyObject_GetAttr(item, name)
    if found == 0:
        return 0
    number = PyLong_AsLongLong(found)
    Py_DecRef(found)
    return number


def _read_sizes(item: int, name: int, room: int) -> int:
    """Copy an attribute that is a tuple of integers; return how many there are."""
    sizes = PyObject_GetAttr(item, name)
    if sizes == 0:
        return -1
    count = PyTuple_Size(sizes)
    if count > MOST_AXES:
        count = -1
    k = 0
    while k < count:
        store(room + 8 * k, PyLong_AsLongLong(PyTuple_GetItem(sizes, k)))
        k += 1
    Py_DecRef(sizes)
    return count


FUNCTIONS = (
    read,
    ask,
    take,
    ask_again,
    _read_scalar,
    _read_numpy,
    _read_int,
    _ask_torch,
    _read_dlpack,
    _is_empty,
    _may_be_dual,
    _needs_gradient,
    _asked,
    _is_false,
    _read_cupy,
    _integer_of,
    _read_sizes,
)
