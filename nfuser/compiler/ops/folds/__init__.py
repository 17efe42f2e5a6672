# SPDX-License-Identifier: Apache-2.0
"""Verbs that fold axes: reductions, scans, products."""
