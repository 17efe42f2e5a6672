# SPDX-License-Identifier: Apache-2.0
"""What many elements have in common: averages, counts, reductions of some."""
