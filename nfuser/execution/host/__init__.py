# SPDX-License-Identifier: Apache-2.0
"""The host program: what runs when a fused function is called."""
