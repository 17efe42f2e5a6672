# SPDX-License-Identifier: Apache-2.0
"""``python -m nfuser doctor``: what is installed, what runs, and what would help."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import cast

import nfuser.base.system as system
from nfuser.compiler.ir.base import value
from nfuser.errors import BackendError
from nfuser.execution.device.cpu.affinity import available_threads, num_threads
from nfuser.execution.device.cuda import driver
from nfuser.frontend.native.why_not import why_no_calls_are

_PACKAGES = ("nfuser", "numpy", "ml_dtypes", "numba", "llvmlite")
_CUDA_PACKAGES = ("numba-cuda", "cuda-core", "cuda-bindings")
_TOOLS = {  # the compiler and the linker that numba-cuda finds as wheels
    "cuda13": ("nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvrtc"),
    "cuda12": (
        "nvidia-cuda-nvcc-cu12",
        "nvidia-nvjitlink-cu12",
        "nvidia-cuda-nvrtc-cu12",
    ),
}
_FILES = {  # by the start of a package's name, what numba-cuda loads of it
    "nvidia-nvvm": "nvvm",
    "nvidia-cuda-nvcc": "nvvm",
    "nvidia-nvjitlink": "nvJitLink",
    "nvidia-cuda-nvrtc": "nvrtc",
}
# Compiles the smallest kernel, in a process of its own that imports Numba.
_COMPILES = """
import warnings
from nfuser.codegen.numba.compile_cpu import compile_cpu
from nfuser.codegen.numba.which_parts import told
warnings.simplefilter("ignore")
compile_cpu("def f(start, stop):\\n    pass", "f", "void(int64, int64)")
print(told())
"""
# Asked of numba-cuda itself, in a process of its own that may load what it finds.
_PROBE = """
import json
from cuda.pathfinder import load_nvidia_dynamic_lib
from numba.cuda.cuda_paths import get_cuda_paths
found = {}
for name in ("nvvm", "nvJitLink", "nvrtc"):
    try:
        found[name] = load_nvidia_dynamic_lib(name).abs_path
    except Exception:
        pass
try:
    paths = get_cuda_paths()
    found["nvvm"] = paths["nvvm"].info
    found["libdevice"] = paths["libdevice"].info
except Exception:
    pass
print(json.dumps({name: path for name, path in found.items() if path}))
"""
_LIBRARIES = {
    "NumPy": ("numpy",),
    "PyTorch": ("torch",),
    "CuPy": ("cupy", "cupy-cuda13x", "cupy-cuda12x"),
    "Numba CUDA": ("numba-cuda",),
    "JAX": ("jax",),
}
_WIDE = ("avx512f", "avx2", "fma", "neon", "sve")
_LEAST_CAPABILITY = (8, 0)


@value
class Findings:
    """What was found; advice is a function of this alone.

    ``toolkit`` has the files of an installed CUDA toolkit that stand in for packages.
    """

    versions: dict[str, str] = field(default_factory=dict[str, str])
    driver: tuple[int, int] | None = None
    devices: tuple[driver.DeviceProperties, ...] = ()
    why_no_device: str | None = None
    toolkit: dict[str, str] = field(default_factory=dict[str, str])


def main() -> int:
    """Print the report; return 1 if something that is here cannot be used."""
    facts = examine()
    print(report(facts))
    return 1 if problems(facts) else 0


def examine() -> Findings:
    """Look at this process and this machine; nothing heavy is imported."""
    names = [*_PACKAGES, *_CUDA_PACKAGES]
    names += [
        name for group in (_TOOLS, _LIBRARIES) for row in group.values() for name in row
    ]
    versions = {name: found for name in names if (found := _version(name))}
    reason = driver.why_missing()
    try:
        newest = driver.driver_version()
    except BackendError:
        newest = None
    devices = () if reason else tuple(driver.devices())
    facts = Findings(versions, newest, devices, reason)
    if "numba-cuda" in versions and missing(facts):
        return replace(facts, toolkit=_toolkit())
    return facts


def _toolkit() -> dict[str, str]:
    """Return where numba-cuda finds its tools when they are no packages."""
    try:
        return json.loads(_run(_PROBE).stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )


def report(facts: Findings) -> str:
    """Return the whole report as text."""
    lines = [f"python {platform.python_version()} on {platform.platform()}"]
    lines += [_line(name, facts.versions.get(name)) for name in _PACKAGES]
    lines += [
        "",
        "CPU backend",
        f"  {_processor()}",
        f"  {_compiler()}",
        f"  {_threads()}",
        *(f"  no {name}: {reason}" for name, reason in system.missing().items()),
        f"  {_calls()}",
        "",
        "CUDA backend",
    ]
    lines += [f"  {line}" for line in _cuda(facts)]
    lines += ["", "array libraries"]
    for library, names in _LIBRARIES.items():
        found = next((n for n in names if n in facts.versions), None)
        lines.append(_line(library, facts.versions[found] if found else None))
    wrong = problems(facts)
    told = [f"problem: {text}" for text in wrong]
    lines += ["", *(told or ["no problem with what is here"])]
    return "\n".join(lines)


def extra(facts: Findings) -> str | None:
    """Return the extra that fits the driver, or None where no driver runs CUDA 12.

    >>> found = Findings(driver=(13, 0)), Findings(driver=(12, 4)), Findings()
    >>> [extra(facts) for facts in found]
    ['cuda13', 'cuda12', None]
    """
    if facts.driver is None or facts.driver < (12, 0):
        return None
    return "cuda13" if facts.driver >= (13, 0) else "cuda12"


def missing(facts: Findings) -> list[str]:
    """Return the packages that the CUDA backend needs and does not find."""
    wanted = extra(facts) or "cuda13"
    absent = [n for n in ("numba-cuda", *_TOOLS[wanted]) if n not in facts.versions]
    if not _fits(facts):
        return absent
    return [name for name in absent if stand_in(name, facts) is None]


def stand_in(package: str, facts: Findings) -> str | None:
    """Return the file of a CUDA toolkit that is used in place of ``package``.

    >>> facts = Findings(toolkit={"nvJitLink": "/usr/lib/libnvJitLink.so.13"})
    >>> stand_in("nvidia-nvjitlink", facts)
    '/usr/lib/libnvJitLink.so.13'
    """
    name = next((f for start, f in _FILES.items() if package.startswith(start)), None)
    if name == "nvvm" and "libdevice" not in facts.toolkit:
        return None
    return None if name is None else facts.toolkit.get(name)


def _fits(facts: Findings) -> bool:
    """Tell whether the driver runs what the toolkit makes; its linker has a number."""
    found = re.search(r"\.so\.(\d+)", facts.toolkit.get("nvJitLink", ""))
    if found is None or facts.driver is None:
        return True
    return int(found[1]) <= facts.driver[0]


def problems(facts: Findings) -> list[str]:
    """Return what keeps a device that is here from being used, each with its remedy."""
    found: list[str] = []
    if facts.driver is not None and facts.driver < (12, 0):
        newest = ".".join(map(str, facts.driver))
        found.append(
            f"the driver runs CUDA {newest}; update it to one for CUDA 12 or 13"
        )
    elif facts.devices and (names := missing(facts)):
        install = f"pip install 'nfuser[{extra(facts)}]'"
        found.append(f"{', '.join(names)} not found; {install}")
    if _clash(facts):
        found.append(
            "numba-cuda 0.30 cannot be imported with NumPy 2.5; pip install 'numpy<2.5'"
        )
    found += [
        f"{device.name} has compute capability {_dotted(device.compute_capability)}; "
        f"nfuser needs {_dotted(_LEAST_CAPABILITY)}"
        for device in facts.devices
        if device.compute_capability < _LEAST_CAPABILITY
    ]
    return found


def _clash(facts: Findings) -> bool:
    numpy, cuda = (facts.versions.get(name) for name in ("numpy", "numba-cuda"))
    if numpy is None or cuda is None:
        return False
    return _numbers(numpy) >= (2, 5) and _numbers(cuda) < (0, 31)


def _cuda(facts: Findings) -> list[str]:
    if facts.driver is None or facts.why_no_device:
        lines = [f"no device: {facts.why_no_device}"]
        if names := missing(facts):
            lines.append(f"kernels cannot be compiled for one either: no {names[0]}")
        return lines + _tools(facts)
    lines = [f"driver for CUDA {_dotted(facts.driver)}"]
    lines += [
        f"cuda:{index} {device.name}, compute capability "
        f"{_dotted(device.compute_capability)}, {device.multiprocessors} "
        f"multiprocessors, {device.l2_bytes >> 20} MiB of L2"
        for index, device in enumerate(facts.devices)
    ]
    lines += [f"{n} {facts.versions.get(n, 'missing')}" for n in _CUDA_PACKAGES]
    return lines + _tools(facts)


def _tools(facts: Findings) -> list[str]:
    """Return a line for each tool: the package, or the file that is used instead."""
    names = _TOOLS[extra(facts) or "cuda13"]
    found = {name: facts.versions.get(name) or stand_in(name, facts) for name in names}
    absent = missing(facts)
    return [f"{n} {at}" for n, at in found.items() if at and n not in absent]


def _processor() -> str:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        return f"cannot compile: {error}"
    features = cast("dict[str, bool]", llvm.get_host_cpu_features())
    wide = [name for name in _WIDE if features.get(name)]
    return f"{llvm.get_host_cpu_name()}: {', '.join(wide) or 'no vector extensions'}"


def _compiler() -> str:
    try:
        done = _run(_COMPILES)
    except (OSError, subprocess.SubprocessError) as error:
        return f"cannot tell whether it compiles: {error}"
    if done.returncode:
        return f"cannot compile: {(done.stderr.splitlines() or ['no reason'])[-1]}"
    return f"compiles by {done.stdout.strip()}"


def _calls() -> str:
    if reason := why_no_calls_are():
        return f"calls go through Python: {reason}"
    return "calls are native from the third of a kind on; f.explain(...) says of which"


def _threads() -> str:
    used, allowed, all_of_them = num_threads(), available_threads(), os.cpu_count()
    return (
        f"{used} threads ({allowed} allowed by affinity and quota, {all_of_them} here)"
    )


def _line(name: str, found: str | None) -> str:
    return f"  {name:12} {found or 'not installed'}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())


def _dotted(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"
