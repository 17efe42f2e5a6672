# SPDX-License-Identifier: Apache-2.0
"""Threads that do everything at once: ``python -m tests.stress --seconds 60``."""

from __future__ import annotations
