# SPDX-License-Identifier: Apache-2.0
"""Keeps ``torch.compile`` out of fused functions, where a graph of it breaks.

Dynamo follows whatever a compiled function calls, and compiles anew what runs behind a
break. A function that is marked here is neither followed nor compiled, and nothing that
it calls is.
"""

# What torch keeps for itself has no static type; operators call what is fused.
# pyright: reportImportCycles=false

from __future__ import annotations

import importlib.util
import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

F = TypeVar("F", bound="Callable[..., Any]")

_REASON = "a fused function compiles itself, and breaks the graph of torch.compile"
_waiting: dict[int, CodeType] = {}  # by identity: functions made in one place share it


def graph_break(function: F) -> F:
    """Mark ``function``: torch.compile leaves it, and all that it calls, alone."""
    marked: Any = function
    marked._torchdynamo_disable = True  # what torch.compiler.disable sets
    marked._torchdynamo_disable_msg = _REASON
    _waiting[id(marked.__code__)] = marked.__code__
    tell()
    return function


def left_alone(function: F) -> F:
    """Let Dynamo follow ``function`` into a graph, but never compile it by itself."""
    marked: Any = function
    _waiting[id(marked.__code__)] = marked.__code__
    return function


def is_compiling() -> bool:
    """Tell whether Dynamo follows this call; torch's own takes this place."""
    return False


def in_graph(fused: Any, args: Any, kwargs: Any) -> Any:
    """Return what a call gives that Dynamo follows."""
    # Few ask for it; and Dynamo follows no other kind of import.
    import nfuser.frontend.gradients.operator as operator  # noqa: PLC0415

    return operator.in_graph(fused, args, kwargs)


def follow(owner: type[Any]) -> bool:
    """Let Dynamo follow the native ``__call__`` of ``owner`` as ``in_graph``.

    Torch imports Dynamo when it is asked for, and that takes seconds: it is told then.
    """
    if "torch._dynamo" in sys.modules:
        _tell_of(owner)
    else:
        sys.meta_path.insert(0, _Watch(owner))
    return True


def _tell_of(owner: type[Any]) -> None:
    """Tell Dynamo of ``owner``; a torch that takes that otherwise goes on without.

    This may be in the middle of an import of torch's own, which must not fail.
    """
    try:
        _substitute(owner)
    except Exception as error:  # noqa: BLE001 (torch may change whatever it keeps)
        torch: Any = sys.modules["torch"]
        warnings.warn(
            "torch.compile breaks its graphs at fused functions, and refuses them with "
            f"fullgraph=True: torch {torch.__version__} does not take what torch 2.13 "
            f"does ({type(error).__name__}: {error})",
            RuntimeWarning,
            stacklevel=2,
        )


def _substitute(owner: type[Any]) -> None:
    torch: Any = sys.modules["torch"]
    substitute = getattr(torch.compiler, "substitute_in_graph", None)
    if substitute is None:
        return

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return in_graph(self, args, kwargs)

    substitute(owner.__call__, skip_signature_check=True)(called)


class _Watch:
    """Finds Dynamo as others do, and tells it once it is imported."""

    def __init__(self, owner: type[Any]) -> None:
        self._owner = owner

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the specification of Dynamo's package, and of nothing else."""
        del path, target
        if name != "torch._dynamo" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def told(module: Any) -> None:
                run(module)
                _tell_of(self._owner)

            loader.exec_module = told
        return spec


def tell() -> bool:
    """Tell torch, once it is imported, what was marked; return whether that was now.

    Then the frame that asks may be one that Dynamo has begun with: whoever it calls
    next is left alone.
    """
    if _waiting and (torch := sys.modules.get("torch")) is not None:
        frames: Any = getattr(getattr(torch, "_C", None), "_dynamo", None)
        frames = getattr(frames, "eval_frame", None)
        if not hasattr(frames, "set_code_exec_strategy"):
            return False  # an old torch, or one that is being imported
        globals()["is_compiling"] = torch.compiler.is_compiling
        skip = frames._FrameAction.SKIP
        strategy = frames._FrameExecStrategy(skip, skip)
        while _waiting:
            frames.set_code_exec_strategy(_waiting.popitem()[1], strategy)
        return True
    return False


tell.__dict__["_torchdynamo_disable"] = True
