# SPDX-License-Identifier: Apache-2.0
"""Programs of one row become programs of all rows, which lie along a first axis.

What is written of a row, while ``Rows.written`` is open, is rewritten once it ends:
each expression that differs from row to row is raised by one axis, by the rule of its
kind. What is the same in each row is computed once, as it was written.
"""

from __future__ import annotations

from nfuser.compiler.transforms.batch.rows import BatchRows

__all__ = ["BatchRows"]
