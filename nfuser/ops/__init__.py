# SPDX-License-Identifier: Apache-2.0
"""Verbs of the fusion IR: one function an operation."""

from __future__ import annotations
