# SPDX-License-Identifier: Apache-2.0
"""Kernels with reductions."""

from __future__ import annotations
