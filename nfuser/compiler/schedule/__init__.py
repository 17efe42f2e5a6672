# SPDX-License-Identifier: Apache-2.0
"""Choose loops, bindings and placements for one segment."""
