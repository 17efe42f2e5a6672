# SPDX-License-Identifier: Apache-2.0
"""``NFUSER_DUMP=explain,report``: what is told of each call that is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.base.debug.dump import dump_lazily

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.explain.explain import Seen
    from nfuser.frontend.report.gather import Counted


def dump_call(
    name: str,
    function: Callable[..., Any] | None,
    fused: Counted,
    look: Callable[[], Seen],
) -> None:
    """Dump what is wanted of a call of ``function`` that ``look`` looks at."""

    def page() -> str:
        from nfuser.frontend.report.gather import report_of  # noqa: PLC0415 (few ask for it)

        return report_of(function, fused, look()).html()

    dump_lazily("explain", lambda: str(look().explanation), name)
    dump_lazily("report", page, name)
