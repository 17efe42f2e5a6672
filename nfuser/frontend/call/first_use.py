# SPDX-License-Identifier: Apache-2.0
"""A module that is imported when something of it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
            with COMPILER:  # forks wait for it: a module must not be half imported
                self._module = import_module(self._name)
        found = getattr(self._module, name)
        setattr(self, name, found)
        return found
