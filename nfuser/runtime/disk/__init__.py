# SPDX-License-Identifier: Apache-2.0
"""Machine code on disk, shared by processes."""

from __future__ import annotations
