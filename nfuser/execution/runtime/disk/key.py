# SPDX-License-Identifier: Apache-2.0
"""What machine code depends on besides the source of its kernel.

Everything that could make the same source compile to other code is part of the key, so
no entry is ever out of date: other versions and other machines have entries of their
own, side by side.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import nfuser.codegen as codegen
from nfuser.codegen.numba.which_parts import is_public
from nfuser.config import VERSION

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from nfuser.codegen.printers.source import Source

_COMPILERS = {
    "cpu": ("numba", "llvmlite"),
    "cuda": ("numba", "llvmlite", "numba_cuda"),
}
# Projects whose versions count, wherever in the same folders they lie.
_FAMILIES = {
    "cpu": ("numba-", "llvmlite-"),
    "cuda": ("numba-", "numba_cuda-", "llvmlite-", "nvidia_", "cuda_"),
}
_TOOLKIT = ("CUDA_HOME", "CUDA_PATH")
_PROCESSOR = (  # of /proc/cpuinfo; the first processor speaks for all
    *("vendor_id", "cpu family", "model", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
)


def key_of(source: Source, backend: str) -> str:
    """Return the key of the machine code of ``source``."""
    parts = (source.digest, environment(backend).digest, is_public())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class Environment(NamedTuple):
    """A digest of compilers, their settings and the processor; and what went into it.

    ``folders`` are those that the compilers are installed in, with their ages.
    ``is_sound`` tells whether what had been imported by then was what is digested.
    """

    digest: str
    versions: tuple[str, ...]
    folders: tuple[tuple[Path, int], ...]
    is_sound: bool


@cache
def environment(backend: str) -> Environment:
    """Return what machine code depends on in this process."""
    folders = tuple((folder, _age(folder)) for folder in _folders(backend))
    versions = tuple(_versions(backend))
    settings = sorted((k, v) for k, v in os.environ.items() if _matters(k))
    parts = (
        VERSION,
        sys.implementation.cache_tag,
        codegen.SOURCES.digest(),
        versions,
        settings,
        _contents(Path(".numba_config.yaml")),  # Numba reads it
        _processor() if backend == "cpu" else _toolkit(),
    )
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    is_sound = codegen.SOURCES.are_as_imported() and _are_named(backend, versions)
    return Environment(digest, versions, folders, is_sound)


def _matters(variable: str) -> bool:
    """Tell whether Numba compiles otherwise where this variable is set.

    Pools of processes tell their workers how many threads of Numba's to use. Kernels
    are given theirs at the launch.
    """
    return variable.startswith("NUMBA_") and variable != "NUMBA_NUM_THREADS"


def is_current(backend: str) -> bool:
    """Tell whether what compiles in this process is still what was digested.

    Most of it is imported after that, when the first kernel is compiled: files, and
    versions, may have changed in between. Then nothing may be kept under that name.
    """
    known = environment(backend)
    if not (known.is_sound and codegen.SOURCES.are_as_imported()):
        return False
    are_as_old = all(_age(folder) == age for folder, age in known.folders)
    are_alike = are_as_old or tuple(_versions(backend)) == known.versions
    return are_alike and _are_named(backend, known.versions)


def _are_named(backend: str, versions: Iterable[str]) -> bool:
    """Tell whether compilers that are imported have the versions named."""
    loaded = {name: sys.modules.get(name) for name in _COMPILERS[backend]}
    found = [(k, getattr(v, "__version__", None)) for k, v in loaded.items()]
    known = [f"{name}-{version}" for name, version in found if version]
    rows = [row.lower() for row in versions]
    return all(any(row.startswith(k) for row in rows) for k in known)


def _age(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _folders(backend: str) -> list[Path]:
    """Return the folders that the compilers are installed in."""
    specs = [find_spec(name) for name in _COMPILERS[backend]]
    origins = [spec.origin for spec in specs if spec is not None and spec.origin]
    return [*dict.fromkeys(Path(origin).parents[1] for origin in origins)]


def _versions(backend: str) -> list[str]:
    """Return the installed versions, by the names of folders: nothing is imported."""
    found: list[str] = []
    for folder in _folders(backend):
        found += [
            name
            for name in os.listdir(folder)
            if name.endswith((".dist-info", ".egg-info"))
            and name.lower().startswith(_FAMILIES[backend])
        ]
    for name in _COMPILERS[backend]:
        if not any(f.lower().startswith(f"{name}-") for f in found):
            found.append(f"{name}-{_version_elsewhere(name)}")
    return sorted(found)


def _version_elsewhere(name: str) -> str:
    """Return the version of a package that lies elsewhere than its metadata."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (slow)

    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _processor() -> Hashable:
    """Return what compilers ask of this processor."""
    try:
        with open("/proc/cpuinfo") as file:
            first, _, _ = file.read(16384).partition("\n\n")
    except OSError:
        return _processor_by_llvm()
    rows = (line.partition(":") for line in first.splitlines())
    facts = {name.strip(): text.strip() for name, _, text in rows}
    known = tuple((name, facts[name]) for name in _PROCESSOR if name in facts)
    is_told = any(name in facts for name in ("flags", "Features"))
    return (os.uname().machine, known) if is_told else _processor_by_llvm()


def _processor_by_llvm() -> Hashable:
    import llvmlite.binding as llvm  # noqa: PLC0415 (slow)

    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _toolkit() -> list[tuple[str, bytes]]:
    """Return the toolkits outside of Python's packages that Numba may use."""
    roots = dict.fromkeys(os.environ.get(name, "") for name in _TOOLKIT)
    return [(root, _contents(Path(root, "version.json"))) for root in roots if root]
