# SPDX-License-Identifier: Apache-2.0
"""Kernel IR: its nouns, its text, its invariants."""
