# SPDX-License-Identifier: Apache-2.0
"""What was decided between a fusion and its kernels, kept beside the machine code.

An entry is named by all that the decision depends on: what the fusion says, what was
chosen for it, the settings, and the files of nfuser that decide. Nothing is guessed
from a function: it is traced in each process, and what it says is looked up here.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import nfuser.config as config
from nfuser.base.debug import timing
from nfuser.base.sources import PLANNING
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.compiler.ir.identity import spelled
from nfuser.config import VERSION
from nfuser.execution.runtime.disk.cache import current_store
from nfuser.execution.runtime.disk.entry import DiskEntry
from nfuser.execution.runtime.disk.store import DiskStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLDER = "plans"
_log = logging.getLogger("nfuser")
_DAMAGED = (
    *(pickle.UnpicklingError, EOFError, ImportError, AttributeError),
    *(LookupError, TypeError, ValueError),
)
T = TypeVar("T")


class PlanStore(DiskStore):
    """Plans in a folder of their own; where they cannot be kept, kernels say so."""

    def _stop_writing(self, error: OSError) -> None:
        self._writes = False
        _log.info("no more plans are kept in %s: %s", self.folder, error)


def current_plans() -> PlanStore | None:
    """Return the plans in force; None if there are none, or all stages are to run."""
    if config.current().dump or (kernels := current_store()) is None:
        return None
    if not kernels.is_usable:
        return None
    return _plans_in(str(kernels.folder / FOLDER))


@cache
def _plans_in(folder: str) -> PlanStore:
    return PlanStore(Path(folder))


class _Code(NamedTuple):
    """A digest of the code that decides, and whether it is what has been imported."""

    digest: str
    is_sound: bool


@cache
def _code() -> _Code:
    parts = (VERSION, sys.implementation.cache_tag, PLANNING.digest())
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return _Code(digest, PLANNING.are_as_imported())


def _key(depends: tuple[str, ...]) -> str:
    settings = config.current()
    parts = (*depends, spelled(settings.of_kernels), settings.verify, _code().digest)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def find_plan(depends: tuple[str, ...], read: Callable[[Any], T]) -> T | None:
    """Return what some process decided before; ``read`` makes it of what was kept.

    ``depends`` says all that it depends on besides settings and nfuser's own files.
    """
    store = current_plans()
    if store is None or not _code().is_sound:
        return None
    key = _key(depends)
    with timing.timed("load"):
        entry = store.get(key)
        if entry is None:
            return None
        try:
            # The store has looked whose file it is: who can write to it can have code
            # run in this process anyhow, for machine code lies beside it.
            return read(pickle.loads(entry.machine.code))
        except _DAMAGED as error:
            store.remove(key, f"{type(error).__name__}: {error}")
            return None


def keep_plan(depends: tuple[str, ...], name: str, plan: object) -> None:
    """Keep what was decided just now; ``name`` is what it is about."""
    keep_plans([(depends, name, plan)])


def keep_plans(made: Sequence[tuple[tuple[str, ...], str, object]]) -> None:
    """Keep several; nfuser's own files are looked at once."""
    store = current_plans() if made else None
    if store is None or not (_code().is_sound and PLANNING.are_as_imported()):
        return
    for depends, name, plan in made:
        data = MachineCode(pickle.dumps(plan, pickle.HIGHEST_PROTOCOL), "pickle")
        store.put(_key(depends), DiskEntry(data, name, "plan", "every processor"))
