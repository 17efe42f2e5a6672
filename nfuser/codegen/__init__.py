# SPDX-License-Identifier: Apache-2.0
"""From kernel IR to source, and from source to machine code."""

from __future__ import annotations

from nfuser.base.sources import Sources

SOURCES = Sources(__path__)
