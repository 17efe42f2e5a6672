# SPDX-License-Identifier: Apache-2.0
"""Host programs; ``python -m tests.host`` tries random ones."""

from __future__ import annotations
