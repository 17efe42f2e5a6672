# SPDX-License-Identifier: Apache-2.0
"""Random definitions over every operation of ``fd.ops``, against NumPy."""

from __future__ import annotations
