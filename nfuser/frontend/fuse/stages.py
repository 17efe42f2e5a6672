# SPDX-License-Identifier: Apache-2.0
"""A call taken step by step, after ``jax.stages``: lowered, then compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from nfuser.compiler.trace.call import tree as trees
from nfuser.errors import ArgumentError
from nfuser.execution.device.describe.libraries import library_of
from nfuser.frontend.fuse.dynamo import graph_break

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.codegen.printers.source import Source

P = ParamSpec("P")
R = TypeVar("R")


class Lowered(Generic[P, R]):
    """A fused function for arguments of one form: kernels are written, not compiled."""

    def __init__(
        self,
        name: str,
        backend: str,
        sources: Sequence[Source],
        form: CompiledForm,
        prepare: Callable[[], None],
        call: Callable[P, R],
    ) -> None:
        self.name = name
        self.backend = backend
        self.sources = tuple(sources)
        self._form = form
        self._prepare = prepare
        self._call = call

    def as_text(self) -> str:
        """Return the source of all kernels, in the order in which they run."""
        return "\n\n".join(source.text for source in self.sources)

    def compile(self) -> Compiled[P, R]:
        """Compile every kernel that nobody has compiled before."""
        self._prepare()
        return Compiled(self.name, self.sources, self._form, self._call)

    def __repr__(self) -> str:
        return f"<nfuser.Lowered {self.name}, {len(self.sources)} kernels>"


class Compiled(Generic[P, R]):
    """A fused function that is ready for arguments of one form, and takes no others.

    Shapes, dtypes and what is no array must be as they were; numbers may have other
    values.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[Source],
        form: CompiledForm,
        call: Callable[P, R],
    ) -> None:
        self.name = name
        self._sources = tuple(sources)
        self._form = form
        self._call = call

    def as_text(self) -> str:
        """Return the source of all kernels, in the order in which they run."""
        return "\n\n".join(source.text for source in self._sources)

    @graph_break
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function with arguments of the form that it was compiled for."""
        self._form.check(self.name, args, kwargs)
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<nfuser.Compiled {self.name}, {len(self._sources)} kernels>"


class CompiledForm:
    """What calls of one compiled function have in common."""

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        leaves, self._tree = trees.flatten((args, dict(kwargs)))
        self._leaves = [_form_of(leaf) for leaf in leaves]

    def check(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Refuse arguments of another form."""
        leaves, tree = trees.flatten((args, dict(kwargs)))
        if tree != self._tree:
            message = (
                f"{name} was compiled for arguments of another structure; call the "
                "fused function itself, or lower it again"
            )
            raise ArgumentError(message)
        for number, (wanted, leaf) in enumerate(zip(self._leaves, leaves, strict=True)):
            if (found := _form_of(leaf)) != wanted:
                message = (
                    f"{name}: argument {number}: compiled for {_said(wanted)}, found "
                    f"{_said(found)}; call the fused function itself, or lower it again"
                )
                raise ArgumentError(message)


def _form_of(leaf: Any) -> tuple[str, object, object]:
    if library_of(leaf.__class__) is not None:
        return "an array", tuple(leaf.shape), str(leaf.dtype)
    if type(leaf) in (int, float, complex):
        return "a number", type(leaf).__name__, None
    if hasattr(leaf, "dtype") and hasattr(leaf, "item"):  # a scalar of NumPy
        return "a number", str(leaf.dtype), None
    return "the value", leaf, None


def _said(form: tuple[str, object, object]) -> str:
    kind, first, second = form
    if kind == "an array":
        return f"{kind} of shape {first} and dtype {second}"
    return f"{kind} {first!r}" if kind == "the value" else f"{kind} of type {first}"
