# SPDX-License-Identifier: Apache-2.0
"""Cut a fusion into pieces that one kernel each can run."""

from __future__ import annotations
