# SPDX-License-Identifier: Apache-2.0
"""What is held from element to element of a row: sums, scans, and what passes keep."""
