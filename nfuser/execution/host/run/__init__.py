# SPDX-License-Identifier: Apache-2.0
"""One run of a host program: its inputs, its state, its steps."""
