# SPDX-License-Identifier: Apache-2.0
"""Arrays of each library that host programs run on without a GPU."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

LIBRARIES = pytest.mark.parametrize("library", ["numpy", "torch"])


def array_of(library: str, array: Any) -> Any:
    """Return ``array`` as one of ``library``, in the same memory."""
    if library == "numpy":
        return array
    pytest.importorskip("torch")
    return import_module("torch").from_numpy(array)
