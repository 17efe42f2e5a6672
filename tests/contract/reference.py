# SPDX-License-Identifier: Apache-2.0
"""The reference as the documentation's own extension writes it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def extension(name: str) -> Any:
    """Return a module of ``docs/_ext``, which is on no other path."""
    if name != "examples":
        pytest.importorskip("sphinx")
    folder = str(DOCS / "_ext")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [folder, *sys.path])
        return importlib.import_module(name)
