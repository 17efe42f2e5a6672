# SPDX-License-Identifier: Apache-2.0
"""Reductions in other words, before they are lowered: parts, and moments."""
