# SPDX-License-Identifier: Apache-2.0
"""The native entry of fused functions: what it takes is imported when calls repeat."""

from __future__ import annotations

from typing import Any

from nfuser.execution.device.native.library import keep_by
from nfuser.execution.device.native.shared import shared
from nfuser.execution.host.call.native.calls import has_native_calls
from nfuser.execution.runtime.compile.native_code import kept


def install(owner: type[Any]) -> bool:
    """Give ``owner`` its native entry; tell whether this Python can have one."""
    keep_by(kept)
    found = shared()
    if found is not None:
        found.install(owner, "_native")
    return has_native_calls()
