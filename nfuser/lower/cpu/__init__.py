# SPDX-License-Identifier: Apache-2.0
"""What only CPU kernels need."""

from __future__ import annotations
