# SPDX-License-Identifier: Apache-2.0
"""Settle what must be known of one call, and rebuild the fusion with it."""

from __future__ import annotations
