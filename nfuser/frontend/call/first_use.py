# SPDX-License-Identifier: Apache-2.0
"""A module that is imported when something of it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nfuser.base.collector import count_as_old, no_collection
from nfuser.codegen.numba.compiler_lock import COMPILER

if TYPE_CHECKING:
    from types import ModuleType


class FirstUse:
    """Stands for a module; what was used once is an attribute of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            # Forks wait for the lock: a module must not be half imported.
            with COMPILER, no_collection():
                self._module = import_module(self._name)
                count_as_old()
        found = getattr(self._module, name)
        setattr(self, name, found)
        return found
