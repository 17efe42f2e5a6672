# SPDX-License-Identifier: Apache-2.0
"""Bounded tables, and what they count."""
