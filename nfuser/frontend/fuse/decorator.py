# SPDX-License-Identifier: Apache-2.0
"""``nfuser.fuse``: a NumPy-style function becomes one that runs as few kernels."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from nfuser.errors import ArgumentError
from nfuser.frontend.call.first_use import FirstUse
from nfuser.frontend.fuse.dynamo import tell
from nfuser.frontend.fuse.fused import Fused

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.compiler.segment import ShouldMerge
    from nfuser.execution.chunks import Rechunk
    from nfuser.frontend.call import parts
else:
    parts = FirstUse("nfuser.frontend.call.parts")


P = ParamSpec("P")
R = TypeVar("R")

_METHODS: tuple[type[Any], ...] = (classmethod, staticmethod)


@overload
def fuse(function: Callable[P, R], /) -> Fused[P, R]: ...
@overload
def fuse(
    *,
    backend: str | None = None,
    resize: ResizePolicy | None = None,
    dialect: str | None = None,
    should_merge: ShouldMerge | None = None,
    rechunk: Rechunk | None = None,
) -> Callable[[Callable[P, R]], Fused[P, R]]: ...
@overload
def fuse(
    function: Callable[P, R],
    /,
    *,
    backend: str | None = None,
    resize: ResizePolicy | None = None,
    dialect: str | None = None,
    should_merge: ShouldMerge | None = None,
    rechunk: Rechunk | None = None,
) -> Fused[P, R]: ...
def fuse(
    function: Callable[..., Any] | None = None,
    /,
    *,
    backend: str | None = None,
    resize: ResizePolicy | None = None,
    dialect: str | None = None,
    should_merge: ShouldMerge | None = None,
    rechunk: Rechunk | None = None,
) -> Any:
    """Return ``function`` compiled: traced once, few kernels a call.

    As a decorator, with or without arguments. ``backend="interpret"`` runs the CUDA
    kernels of NumPy arrays in the interpreter that checks them. ``resize="static"``
    compiles the extents of slices, pads and concatenations in, once for each new one;
    ``"exact"`` does so for every size, and ``"dynamic"``, the default, passes them to
    the kernel. ``dialect="numpy"`` lets the tensors of torch have the methods and
    operators of NumPy's arrays; by default they mean what torch's do. ``should_merge``
    tells which two groups of expressions may share a kernel. ``rechunk="warn"`` lets
    chunks of Dask arrays grow where a function reads all of an axis. What is not said
    of a fused function stays as it is.

    >>> import numpy as np
    >>> @fuse
    ... def scaled(x, a):
    ...     return x * a + 1
    >>> scaled(np.arange(3, dtype="f4"), 2.0)
    array([1., 3., 5.], dtype=float32)
    """
    if backend is not None:
        parts.check_backend(backend)
    if rechunk not in (None, "refuse", "warn"):
        message = f'write rechunk="warn" or rechunk="refuse", found {rechunk!r}'
        raise ArgumentError(message)
    tell()
    options: dict[str, Any] = {"backend": backend, "resize": resize}
    options |= {"dialect": dialect, "should_merge": should_merge}
    options["rechunk"] = rechunk
    if function is None:
        return functools.partial(fuse, **options)
    if isinstance(function, _METHODS):
        method: Any = function
        kind = cast("type[Any]", type(function))
        return kind(fuse(method.__func__, **options))
    if isinstance(function, Fused):
        return function._anew(**options)  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
    if not callable(function):
        message = f"fuse expects a function, found {type(function).__name__}"
        raise TypeError(message)
    return Fused(function, **options)
