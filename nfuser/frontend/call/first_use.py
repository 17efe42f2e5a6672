# SPDX-License-Identifier: Apache-2.0
"""A module that is imported when something of it is first used."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nfuser.base.collector import count_as_old
from nfuser.codegen.numba.compiler_lock import undisturbed

if TYPE_CHECKING:
    from types import ModuleType


class FirstUse:
    """Stands for a module; what was used once is an attribute of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            # Forks wait for it, and no exception arrives: either would leave a module
            # half imported, or importlib's locks held.
            self._module = undisturbed(partial(_imported, self._name))
        found = getattr(self._module, name)
        setattr(self, name, found)
        return found


def _imported(name: str) -> ModuleType:
    found = import_module(name)
    count_as_old()
    return found
