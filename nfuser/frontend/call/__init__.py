# SPDX-License-Identifier: Apache-2.0
"""One call of a fused function: its arguments, their forms, its plan."""
