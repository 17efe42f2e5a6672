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
from typing import TYPE_CHECKING

import nfuser.codegen as codegen
from nfuser.config import VERSION

if TYPE_CHECKING:
    from collections.abc import Hashable

    from nfuser.codegen.source import Source

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
    parts = (source.digest, environment(backend))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@cache
def environment(backend: str) -> str:
    """Return a digest of compilers, their settings, and the processor."""
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    parts = (
        VERSION,
        sys.implementation.cache_tag,
        _own_code(),
        _versions(backend),
        settings,
        _contents(Path(".numba_config.yaml")),  # Numba reads it
        _processor() if backend == "cpu" else _toolkit(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _own_code() -> str:
    """Digest the room that turns source into machine code."""
    digest = hashlib.sha256()
    for folder in codegen.__path__:
        for parent in (Path(folder), Path(folder, "primitives")):
            for name in sorted(os.listdir(parent)):
                if name.endswith(".py"):
                    digest.update(name.encode() + _contents(parent / name))
    return digest.hexdigest()


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _versions(backend: str) -> list[str]:
    """Return the installed versions, by the names of folders: nothing is imported."""
    found: list[str] = []
    folders: dict[Path, None] = {}
    for name in _COMPILERS[backend]:
        spec = find_spec(name)
        if spec is not None and spec.origin:
            folders[Path(spec.origin).parents[1]] = None
    for folder in folders:
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
