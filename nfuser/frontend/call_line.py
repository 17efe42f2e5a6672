# SPDX-License-Identifier: Apache-2.0
"""The line that called a fused function, for errors that know no better one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.trace.source_line import current_line

if TYPE_CHECKING:
    from nfuser.errors import NfuserError


def name_call(error: NfuserError) -> None:
    """Put the calling line into a message that names no line yet."""
    text = str(error.args[0]) if error.args else ""
    line = current_line()
    if line is not None and "\n  at " not in text:
        error.args = (text + line.note, *error.args[1:])
