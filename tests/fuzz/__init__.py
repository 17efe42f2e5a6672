# SPDX-License-Identifier: Apache-2.0
"""Random fused programs, judged by the oracle: ``python -m tests.fuzz``."""

from __future__ import annotations
