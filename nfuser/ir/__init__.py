# SPDX-License-Identifier: Apache-2.0
"""Nouns of the fusion IR: scalars, axes, tensors, expressions, fusions."""

from __future__ import annotations
