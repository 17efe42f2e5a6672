# SPDX-License-Identifier: Apache-2.0
"""Where numbers may come from that nothing watches: files, devices, other libraries.

A trace keeps arrays that plain NumPy makes inside the function, as they follow from
what is watched. That holds while only NumPy, scipy and the like were called.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.captures.parts import is_users_file

if TYPE_CHECKING:
    from types import FrameType

# Their functions give the same for the same arguments.
_PURE = frozenset(
    {
        *("array_api_compat", "einops", "ml_dtypes", "mpmath", "nfuser", "numpy"),
        *("opt_einsum", "packaging", "pandas", "scipy", "torch", "xarray"),
    }
)
_READERS = (
    *("numpy.lib._npyio_impl", "numpy.lib.npyio", "numpy.lib._datasource"),
    *("numpy.lib.format", "numpy.lib._format_impl", "numpy._core.memmap"),
    *("numpy.ctypeslib", "scipy.io", "scipy.datasets"),
    *("torch.serialization", "torch.utils.data", "torch.hub"),
    *("pandas.io", "xarray.backends", "xarray.conventions", "xarray.tutorial"),
)
_OUTSIDE = frozenset(
    {
        *("asyncio", "bz2", "configparser", "csv", "ctypes", "dbm", "fileinput"),
        *("gzip", "http", "io", "json", "lzma", "mmap", "multiprocessing", "nt", "os"),
        *("pathlib", "pickle", "posix", "queue", "select", "shelve", "socket"),
        *("sqlite3", "subprocess", "tarfile", "tomllib", "urllib", "xml", "zipfile"),
    }
)
_NAMES = frozenset({"fromfile"})


class UnwatchedSources:
    """Notes the ``first`` thing called that may give what nothing watches."""

    def __init__(self) -> None:
        self.first: str | None = None

    def call(self, function: Any) -> None:
        """Note a function of C's that the user's code calls."""
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        module = getattr(function, "__module__", None) or type(owner).__module__
        if name in _NAMES or (module is not None and _is_outside(module)):
            self._note(f"{module}.{name}")

    def enter(self, frame: FrameType) -> None:
        """Note a function of a library's that the user's code calls in any way."""
        module = frame.f_globals.get("__name__") or ""
        if module and _is_outside(module) and _is_called_by_user(frame):
            self._note(f"{module}.{frame.f_code.co_name}")

    def _note(self, name: str) -> None:
        self.first = self.first or name.removeprefix("_")


_ASKING = frozenset({"dask.base", "dask.utils"})  # what they compute, others do


def _is_outside(module: str) -> bool:
    if module in _ASKING:
        return False
    name = module.partition(".")[0]
    top = name.removeprefix("_")  # the part that is written in C has the same answer
    if {name, top} & sys.stdlib_module_names or name == "builtins":
        return top in _OUTSIDE
    return top not in _PURE or module.startswith(_READERS)


def _is_called_by_user(frame: FrameType) -> bool:
    """Tell whether no import stands between the user's code and ``frame``."""
    caller = frame.f_back
    while caller is not None and not is_users_file(caller.f_code.co_filename):
        if caller.f_code.co_filename.startswith("<frozen importlib"):
            return False
        caller = caller.f_back
    return caller is not None
