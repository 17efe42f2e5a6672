# SPDX-License-Identifier: Apache-2.0
"""The C functions that native source calls, by their own names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nfuser.execution.device.native.translate import Signature


class CFunction:
    """A C function's type, in LLVM's words; it is called by native code only."""

    def __init__(self, result: str, *parameters: str) -> None:
        self.signature: Signature = result, parameters

    def __call__(self, *arguments: int) -> int:
        """Stand for a call in native source."""
        raise NotImplementedError(arguments)


PyCell_Get = CFunction("i64", "i64")
PyContextVar_Get = CFunction("i32", "i64", "i64", "i64")
PyDict_GetItemWithError = CFunction("i64", "i64", "i64")
PyDict_Next = CFunction("i32", "i64", "i64", "i64", "i64")
PyDict_Size = CFunction("i64", "i64")
PyErr_CheckSignals = CFunction("i32")
PyErr_Clear = CFunction("void")
PyErr_Fetch = CFunction("void", "i64", "i64", "i64")
PyErr_Occurred = CFunction("i64")
PyErr_Restore = CFunction("void", "i64", "i64", "i64")
PyEval_RestoreThread = CFunction("void", "i64")
PyEval_SaveThread = CFunction("i64")
PyList_GetItem = CFunction("i64", "i64", "i64")
PyList_Size = CFunction("i64", "i64")
PyLong_AsLongLong = CFunction("i64", "i64")
PyLong_AsLongLongAndOverflow = CFunction("i64", "i64", "i64")
PyLong_FromLongLong = CFunction("i64", "i64")
PyMethod_New = CFunction("i64", "i64", "i64")
PyObject_GetAttr = CFunction("i64", "i64", "i64")
PyObject_Vectorcall = CFunction("i64", "i64", "i64", "i64", "i64")
PyObject_VectorcallMethod = CFunction("i64", "i64", "i64", "i64", "i64")
PyTuple_GetItem = CFunction("i64", "i64", "i64")
PyTuple_New = CFunction("i64", "i64")
PyTuple_SetItem = CFunction("i32", "i64", "i64", "i64")
PyTuple_Size = CFunction("i64", "i64")
Py_DecRef = CFunction("void", "i64")
Py_IncRef = CFunction("void", "i64")
clock_gettime = CFunction("i32", "i32", "i64")
pow = CFunction("double", "double", "double")  # noqa: A001 (this is its name)
memset = CFunction("i64", "i64", "i32", "i64")
pthread_cond_broadcast = CFunction("i32", "i64")
pthread_cond_signal = CFunction("i32", "i64")
pthread_cond_wait = CFunction("i32", "i64", "i64")
pthread_mutex_lock = CFunction("i32", "i64")
pthread_mutex_unlock = CFunction("i32", "i64")
sched_yield = CFunction("i32")

# By address; the first argument of a call is where the function lies.
call_context = CFunction("i32", "i64")
call_kernel = CFunction("i32", "i64", "i64", "i64", "i64")
call_launch = CFunction("i32", "i64", *["i32"] * 7, "i64", "i64", "i64")
call_launch_together = CFunction("i32", "i64", *["i32"] * 7, "i64", "i64")
call_memset = CFunction("i32", "i64", "i32", "i64", "i64")
call_new_array = CFunction(
    "i64", "i64", "i64", "i32", "i64", "i64", "i64", "i32", "i64"
)
call_read_tensor = CFunction("i32", "i64", "i64")
call_return_array = CFunction("i64", "i64")
call_stream = CFunction("i32", "i32", "i32", "i64")
