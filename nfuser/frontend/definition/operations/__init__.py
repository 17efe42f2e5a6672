# SPDX-License-Identifier: Apache-2.0
"""The operations of ``fd.ops``, one kind a file."""

from __future__ import annotations
