# SPDX-License-Identifier: Apache-2.0
"""A call of a fused function, looked at: nothing is compiled, and nothing runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.frontend.explain.explain import explain
from nfuser.frontend.native.why_not import why_not_native

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.runtime.place import Place
    from nfuser.execution.runtime.tables.counters import Counters
    from nfuser.frontend.call.inputs.arguments import Described
    from nfuser.frontend.explain.explain import Seen
    from nfuser.frontend.fuse.variants import Variant


def look(
    variant: Variant,
    asked: tuple[Place, Mapping[int, Descriptor], Mapping[int, int]],
    described: Described,
    counters: Counters,
) -> Seen:
    """Explain a call that ``variant`` serves, and whether native code serves it."""
    trace = variant.trace
    captured = {a.slot: a.origin.name for a in trace.captured.arrays}
    names = {**described.names, **captured}
    seen = explain(variant.cache, trace.fusion, *asked, counters, names)
    reason = why_not_native(asked[0], trace, described, seen.outline.program)
    calls = f"through Python: {reason}" if reason else "native from the third on"
    return replace(seen, explanation=replace(seen.explanation, calls=calls))
