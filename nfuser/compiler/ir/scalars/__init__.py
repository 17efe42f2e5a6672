# SPDX-License-Identifier: Apache-2.0
"""Integer expressions: their nodes, symbols and functions, and how they are walked."""
