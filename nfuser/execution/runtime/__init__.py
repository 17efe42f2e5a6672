# SPDX-License-Identifier: Apache-2.0
"""Caches from a call to a ready plan."""
