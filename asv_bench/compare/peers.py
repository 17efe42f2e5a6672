# SPDX-License-Identifier: Apache-2.0
"""Who runs a workload, and how: each binds it to arguments, or says why it cannot."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from asv_bench.compare.workload import in_namespace, results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asv_bench.compare.workload import Workload


class NoFormError(Exception):
    """A peer has no form of a workload."""


@dataclass(frozen=True)
class Bound:
    """Calls that give fresh outputs, and one that writes into given memory.

    ``on`` takes arguments and returns the call on them. ``wait`` waits for a result
    where nothing else tells when it is there.
    """

    on: Callable[[Sequence[Any]], Callable[[], Any]]
    reused: Callable[[], Any] | None = None
    wait: Callable[[Any], Any] | None = None


def bind_nfuser(
    workload: Workload,
    arguments: Sequence[Any],
    *,
    resize: Any = "dynamic",
    function: Callable[..., Any] | None = None,
) -> tuple[Bound, Any]:
    """Return nfuser's call, and the fused function to be asked about its kernels.

    Another ``function`` says the workload in other words.
    """
    fused = _fused(function or workload.function, resize)
    is_cpu = isinstance(arguments[0], np.ndarray)
    reused = _reusing(fused, arguments) if is_cpu else None
    return Bound(lambda given: partial(fused, *given), reused), fused


def _reusing(fused: Any, arguments: Sequence[Any]) -> Callable[[], Any]:
    """Return a call that writes into what its first call makes."""
    bound: list[Callable[[], Any]] = []

    def call() -> Any:
        if not bound:
            made = fused(*arguments)
            has_memory = all(isinstance(x, np.ndarray) for x in results(made))
            again = fused.bind(*arguments, out=made) if has_memory else None
            bound.append(again or (lambda: fused(*arguments)))
        return bound[0]()

    return call


@cache
def _fused(function: Callable[..., Any], resize: Any) -> Any:
    """Return one fused function for all its workloads: kernels are made once."""
    return nfuser.fuse(function, resize=resize, dialect="numpy")


def _numpy(workload: Workload, _: Sequence[Any]) -> Bound:
    return Bound(lambda given: partial(workload.function, *given))


def _torch(workload: Workload, _: Sequence[Any]) -> Bound:
    import torch

    torch.set_grad_enabled(False)
    return Bound(lambda given: partial(workload.torch, torch, *_tensors(torch, given)))


def _tensors(torch: Any, arrays: Sequence[Any]) -> list[Any]:
    return [
        torch.as_tensor(array.view(np.int16)).view(torch.bfloat16)
        if str(array.dtype) == "bfloat16"  # NumPy's, which torch does not know
        else torch.as_tensor(array)
        for array in arrays
    ]


def _compile(dynamic: bool) -> Any:
    def bind(workload: Workload, _: Sequence[Any]) -> Bound:
        import torch

        torch.set_grad_enabled(False)

        def plain(*given: Any) -> Any:
            return workload.torch(torch, *given)

        compiled = torch.compile(plain, dynamic=dynamic)
        return Bound(lambda given: partial(compiled, *_tensors(torch, given)))

    return bind


def _jax(workload: Workload, arguments: Sequence[Any]) -> Bound:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_enable_x64", True)
    if workload.jax:
        form = workload.jax

        def function(*given: Any) -> Any:
            return form(jax.numpy, *given)
    else:
        function = in_namespace(workload.function, jax.numpy)
    is_cpu = isinstance(arguments[0], np.ndarray)
    if not is_cpu and not all(a.is_contiguous() for a in arguments):
        raise NoFormError
    hold = jax.numpy.asarray if is_cpu else jax.dlpack.from_dlpack
    jitted = jax.jit(function)
    return Bound(
        lambda given: partial(jitted, *map(hold, given)), wait=jax.block_until_ready
    )


def _cupy(workload: Workload, arguments: Sequence[Any]) -> Bound:
    import cupy

    if not workload.is_elementwise or str(arguments[0].dtype).endswith("bfloat16"):
        raise NoFormError
    fused = cupy.fuse(in_namespace(workload.function, cupy))
    return Bound(lambda given: partial(fused, *map(cupy.from_dlpack, given)))


def _liger(workload: Workload, _: Sequence[Any]) -> Bound:
    import liger_kernel.transformers.functional as functional

    if workload.liger is None:
        raise NoFormError
    form = workload.liger
    return Bound(lambda given: partial(form, functional, *given))


def _numexpr(workload: Workload, arguments: Sequence[Any]) -> Bound:
    import numexpr

    if workload.numexpr is None:
        raise NoFormError
    names: dict[str, Any] = dict(zip("abcd", arguments, strict=False))

    def constant(found: re.Match[str]) -> str:
        # A literal would make numexpr compute in float64.
        name = f"k{len(names)}"
        names[name] = arguments[0].dtype.type(found[0])
        return name

    text = re.sub(r"(?<!\*\* )\b\d+(\.\d+)?\b", constant, workload.numexpr)
    made = numexpr.evaluate(text, names)
    out = np.empty_like(made)
    reused = partial(numexpr.evaluate, text, names, out=out)
    return Bound(
        lambda _: partial(numexpr.evaluate, text, names), reused if made.ndim else None
    )


def _numba(workload: Workload, arguments: Sequence[Any]) -> Bound:
    import numba

    if workload.numba is None:
        raise NoFormError
    kind = numba.from_dtype(arguments[0].dtype)
    signature = kind(*(kind for _ in arguments))
    ufunc: Any = numba.vectorize([signature], target="parallel")(workload.numba)
    out = results(ufunc(*arguments))[0]
    return Bound(
        lambda given: partial(ufunc, *given), partial(ufunc, *arguments, out=out)
    )


PEERS: dict[str, dict[str, tuple[str, Any]]] = {
    "cuda": {
        "torch": ("torch", _torch),
        "torch.compile": ("torch", _compile(dynamic=False)),
        "JAX": ("jax", _jax),
        "cupy.fuse": ("cupy", _cupy),
        "Liger": ("liger_kernel", _liger),
    },
    "cpu": {
        "NumPy": ("numpy", _numpy),
        "numexpr": ("numexpr", _numexpr),
        "Numba": ("numba", _numba),
        "JAX": ("jax", _jax),
        "torch": ("torch", _torch),
        "torch.compile": ("torch", _compile(dynamic=False)),
    },
}
DYNAMIC_COMPILE = ("torch", _compile(dynamic=True))


def installed(backend: str, wanted: Sequence[str] | None) -> dict[str, Any]:
    """Return the peers that are there, of those ``wanted`` (None: of all)."""
    return {
        name: bind
        for name, (module, bind) in PEERS[backend].items()
        if (wanted is None or name.lower() in wanted) and find_spec(module)
    }
