# SPDX-License-Identifier: Apache-2.0
"""The structures that CUDA's driver takes of a launch."""

from __future__ import annotations

import ctypes


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute``: a number and a union of 64 bytes."""

    _fields_ = (
        ("number", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("value", ctypes.c_int * 16),
    )


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )
