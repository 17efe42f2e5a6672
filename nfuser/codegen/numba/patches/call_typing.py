# SPDX-License-Identifier: Apache-2.0
"""How Numba typed a call: kernels make few kinds of calls, each very many times."""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from numba.core import types
from numba.core.typing.context import Context

if TYPE_CHECKING:
    from collections.abc import Generator

_MOST = 10_000  # numbers that a source spells out are types, so there is no end of them


class KernelTyping(Context):
    """Types what kernels say; calls of one class of numbers are calls of one function.

    Numba makes a function and its rules for each ``f64(0.0)``, and none of them would
    be found again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[Any, Any] = {}

    def resolve_getattr(self, typ: Any, attr: str) -> Any:
        """Return the type of an attribute."""
        if attr != "__call__" or not isinstance(typ, types.NumberClass):
            return super().resolve_getattr(typ, attr)
        if typ not in self._made:
            self._made[typ] = super().resolve_getattr(typ, attr)
        return self._made[typ]


class CallTypes:
    """Signatures by function and types of arguments.

    To find one Numba tries the rules that a function has one by one: half the time of a
    compilation.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    @contextmanager
    def known_to(self, context: Any) -> Generator[None]:
        """Let ``context`` of typing ask here first; under Numba's lock only."""
        find = types.Function.get_call_type

        def get_call_type(function: Any, asking: Any, args: Any, kws: Any) -> Any:
            if kws or asking is not context:
                return find(function, asking, args, kws)
            key = (function, args)
            found = self._known.get(key)
            if found is None:
                signature: Any = find(function, asking, args, kws)
                if len(self._known) >= _MOST:
                    self._known.clear()
                found = signature, function.get_impl_key(signature)
                self._known[key] = found
            signature, implementation = found
            # Another context of this process may have put its own there.
            function._impl_keys[signature.args] = implementation
            return signature

        # Lowering asks functions for what typing has found, so their class has to know.
        types.Function.get_call_type = get_call_type
        try:
            yield
        finally:
            types.Function.get_call_type = find
