# SPDX-License-Identifier: Apache-2.0
"""Arrays in: one description for the arrays of every library."""
