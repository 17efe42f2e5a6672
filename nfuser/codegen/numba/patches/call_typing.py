# SPDX-License-Identifier: Apache-2.0
"""How Numba typed a call: kernels make few kinds of calls, each very many times."""

# Numba carries few types.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from numba.core import types

if TYPE_CHECKING:
    from collections.abc import Generator

_MOST = 10_000  # numbers that a source spells out are types, so there is no end of them


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
