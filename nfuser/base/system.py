# SPDX-License-Identifier: Apache-2.0
"""What this system, processor and Python give beyond what nfuser cannot do without.

Each of ``FEATURES`` saves time and is replaced where it is missing: elsewhere than on
Linux, on other processors and Pythons, or where ``NFUSER_DISABLE`` named it when the
process began. ``missing`` is the one place that knows; ``doctor`` shows it.
"""

from __future__ import annotations

import os
import struct
import sys
import sysconfig
from functools import cache

import nfuser.config as config

FEATURES = {
    "native_calls": "calls and helper threads that run no Python",
    "object_files": "kernels are loaded by nfuser itself, and kept on disk",
}


@cache
def missing() -> dict[str, str]:
    """Return the features that are not here, each with the reason."""
    found: dict[str, str] = {}
    off = config.at_start().disable
    for name in FEATURES:
        if name in off:
            found[name] = f"NFUSER_DISABLE names {name}"
        elif not sys.platform.startswith("linux"):
            found[name] = f"{name} are for Linux, and this is {sys.platform}"
    if machine() not in ("x86_64", "AMD64"):
        reason = f"native_calls are for x86-64, and this is {machine()}"
        found.setdefault("native_calls", reason)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        found.setdefault("native_calls", "this Python has no GIL")
    return found


def machine() -> str:
    """Return the kind of processor, as the system names it."""
    name = getattr(os, "uname", None)
    return name().machine if name else os.environ.get("PROCESSOR_ARCHITECTURE", "")


def has(feature: str) -> bool:
    """Tell whether one of ``FEATURES`` is here."""
    return feature not in missing()


def refusal(
    implementation: str = sys.implementation.name,
    byteorder: str = sys.byteorder,
    pointer_bytes: int = struct.calcsize("P"),
) -> str | None:
    """Return why nfuser cannot run in such a process; None if it can.

    >>> refusal("pypy", "little", 8)
    'use CPython: nfuser and Numba read its bytecode, and this is pypy'
    """
    if implementation != "cpython":
        return (
            "use CPython: nfuser and Numba read its bytecode, and this is "
            f"{implementation}"
        )
    if pointer_bytes != 8:
        bits = 8 * pointer_bytes
        return f"use a Python of 64 bits: kernels count in them, and this has {bits}"
    if byteorder != "little":
        return (
            "use a little-endian processor: numbers are stored so in constants of "
            f"kernels, and this one is {byteorder}-endian"
        )
    return None


if _reason := refusal():
    raise ImportError(_reason)
