# SPDX-License-Identifier: Apache-2.0
"""``nfuser.fuse`` and what it returns."""

from __future__ import annotations
