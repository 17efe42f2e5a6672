# SPDX-License-Identifier: Apache-2.0
"""How wide the loops of a CPU kernel are, and what runs side by side."""
