# SPDX-License-Identifier: Apache-2.0
"""What a call would run, in words and numbers."""

from __future__ import annotations
