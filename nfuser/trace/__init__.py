# SPDX-License-Identifier: Apache-2.0
"""From a Python function to a fusion: the array stand-in and its tracer."""

from __future__ import annotations
